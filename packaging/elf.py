"""Programs and libraries: what they ask of a machine, and their debug symbols apart from them."""

import re
import subprocess
import sys

# All that a package may ask of a machine: glibc, gcc's library for unwinding, which every distribution has, and Margay itself.
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}
OWN = {"libcuda.so.1", "libnvidia-ml.so.1"}


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def run(*words):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"packaging: {' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def needed(path):
    """The libraries that it asks for."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", path))


def glibc(path):
    """The least glibc that it runs with, as in (2, 34)."""
    versions = re.findall(r"Name: GLIBC_(\d+)\.(\d+)", run("readelf", "-VW", path))
    return max(((int(major), int(minor)) for major, minor in versions), default=(2, 0))


def check(path):
    """Ends the program if it asks for what a machine may lack."""
    strange = [name for name in needed(path) if name not in SYSTEM | OWN]
    if strange:
        sys.exit(f"packaging: {path.name} needs {', '.join(strange)}, which a machine may lack: link it statically")
    if "GLIBCXX_" in run("readelf", "-VW", path):
        sys.exit(f"packaging: {path.name} needs a C++ library of the machine's: link it statically")


def split(source, target, debug):
    """Copies it without its symbols, which go to a file of their own if there are any. A note in it says that file's name."""
    target.parent.mkdir(parents=True, exist_ok=True)
    options = ["--strip-unneeded"]
    if ".debug_info" in run("readelf", "-SW", source):
        debug.parent.mkdir(parents=True, exist_ok=True)
        run("objcopy", "--only-keep-debug", source, debug)
        debug.chmod(0o644)
        options.append(f"--add-gnu-debuglink={debug}")
    run("objcopy", *options, source, target)
