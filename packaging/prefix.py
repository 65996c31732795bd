"""The folder that all packages are made from, as the tarball unpacks:

    bin/margay
    lib/libcuda.so.1, libnvidia-ml.so.1, libmargay-jit.so (where there is LLVM), companions/, and links for linkers
    include/cuda.h  lib/pkgconfig/margay.pc  share/doc/margay/
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import elf
import licenses

ROOT = Path(__file__).resolve().parent.parent
# Programs of NVIDIA's for which the command stands in, under their names.
STAND_INS = ["ptxas", "tileiras"]
# The limit for what every program under Margay loads, in bytes.
LARGEST_LIBRARY = 30_000_000

PKG_CONFIG = """\
prefix=${{pcfiledir}}/{prefix}
libdir=${{prefix}}/{libdir}
includedir=${{prefix}}/{includedir}

Name: Margay
Description: A CUDA driver library for machines without a GPU
Version: {version}
Cflags: -I${{includedir}}
Libs: -L${{libdir}} -lcuda
"""


def version():
    """The project's."""
    return re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]


def epoch():
    """The time that all files bear: $SOURCE_DATE_EPOCH, else the last commit's."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None:
        log = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%ct"], stdout=subprocess.PIPE, text=True)
        given = log.stdout.strip()
    if not given.isdigit():
        sys.exit("packaging: no time for the files: set SOURCE_DATE_EPOCH (there is no git repository to ask for the last commit's)")
    return int(given)


def link(path, target):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def pkg_config(path, prefix, libdir, includedir):
    """A file that finds the rest from where it lies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PKG_CONFIG.format(prefix=prefix, libdir=libdir, includedir=includedir, version=version()))


def make(build, prefix, debug):
    """Makes the prefix from a finished build, and the folder of debug symbols, which can be laid over it. Returns the least
    glibc of all."""
    lib = prefix / "lib"
    (lib / "companions" / "bin").mkdir(parents=True)
    elf_files = {"bin/margay": build / "margay", "lib/libcuda.so.1": build / "libcuda.so",
                 "lib/libnvidia-ml.so.1": build / "libnvidia-ml.so.1"}
    for required in elf_files.values():
        if not required.exists():
            sys.exit(f"packaging: {required} is not there: build it first (make)")
    built = elf.run(build / "margay", "--version").split()[-1]
    if built != version():
        sys.exit(f"packaging: {build}/margay is version {built}, and Cargo.toml says {version()}: build it again (make)")
    jit = build / "libmargay-jit.so"
    if jit.exists():
        elf_files["lib/libmargay-jit.so"] = jit
    else:
        print(f"packaging: {jit} is not there: without it, kernels are interpreted, not compiled")
    companions = build / "companions"
    for path in sorted(companions.rglob("*")):
        name = path.relative_to(companions)
        target = lib / "companions" / name
        if path.is_symlink() or path.is_dir():
            continue
        if elf.is_elf(path):
            elf_files[f"lib/companions/{name}"] = path
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    for name, source in elf_files.items():
        place, _, file = name.rpartition("/")
        elf.split(source.resolve(), prefix / name, debug / place / ".debug" / f"{file}.debug")
        elf.check(prefix / name)

    link(lib / "libcuda.so", "libcuda.so.1")
    link(lib / "stubs" / "libcuda.so", "../libcuda.so.1")
    for program in STAND_INS:
        link(lib / "companions" / "bin" / program, "../../../bin/margay")
    pkg_config(lib / "pkgconfig" / "margay.pc", "../..", "lib", "include")
    (prefix / "include").mkdir()
    shutil.copy(ROOT / "include" / "cuda.h", prefix / "include")
    doc = prefix / "share" / "doc" / "margay"
    doc.mkdir(parents=True)
    for name in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"]:
        shutil.copy(ROOT / name, doc)
    (doc / "licenses.txt").write_text(licenses.of(jit.exists()))

    check_size(lib / "libcuda.so.1")
    place = next(paths_in(prefix, build), None)
    if place:
        sys.exit(f"packaging: {place}, a path of this machine (make sets RUSTFLAGS so that it holds none: build it by make)")
    return max(elf.glibc(prefix / name) for name in elf_files)


def check_size(library):
    size = library.stat().st_size
    if size > LARGEST_LIBRARY:
        sys.exit(f"packaging: {library.name} has {size:,} bytes, more than {LARGEST_LIBRARY:,}")


def paths_in(folder, build):
    """What tells where it was built, and in which file."""
    places = [b"/root/", b"/home/", os.fsencode(build), os.fsencode(ROOT) + b"/"]
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and elf.is_elf(path)):
        content = path.read_bytes()
        for place in places:
            at = content.find(place)
            if at >= 0:
                shown = content[at : at + 100].split(b"\0")[0].decode(errors="replace")
                yield f"{path.relative_to(folder)} holds {shown}"
