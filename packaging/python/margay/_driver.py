"""How a process gets Margay as its driver, and the programs that it starts."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
import warnings

# The names that programs ask the loader for. It gives them a library that is loaded already if that calls itself so: of
# libcuda.so.1 there is a second one for that, of the name alone, because some ask for libcuda.so first.
LIBRARIES = ["libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1"]


def is_command(package):
    """Whether Python was started as `python -m margay`."""
    words = getattr(sys, "orig_argv", [])
    return sys.argv[:1] == ["-m"] and ("-m", package) in zip(words, words[1:])


def loaded():
    """The driver libraries in this process, by their files: NVIDIA's has its version in the name."""
    with open("/proc/self/maps", errors="surrogateescape") as maps:
        files = {line.rstrip("\n").split(maxsplit=5)[5] for line in maps if "libcuda.so" in line}
    return sorted(file for file in files if re.match(r"libcuda\.so(\.[0-9.]+)?$", os.path.basename(file)))


def installed(own):
    """What says that this machine has another driver: its library as the loader finds it, or its part of the kernel."""
    ldconfig = shutil.which("ldconfig", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]))
    if ldconfig:
        listed = subprocess.run([ldconfig, "-p"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        for path in re.findall(r"^\s*libcuda\.so\.1 .*x86-64.* => (.*)$", listed, re.MULTILINE):
            if os.path.realpath(path) != own:
                return path
    version = "/proc/driver/nvidia/version"
    return version if os.path.exists(version) else None


def load(library):
    others = [file for file in loaded() if os.path.dirname(file) != os.path.dirname(library)]
    if others:
        raise ImportError(
            f"margay cannot be this process's CUDA driver: {others[0]} is loaded already, and {library} would be a second one. "
            "Import margay first, and take the other out of LD_PRELOAD."
        )
    for name in LIBRARIES:
        path = os.path.join(os.path.dirname(library), name)
        try:
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            if "GLIBC_" in str(error):
                raise ImportError(f"margay needs a newer glibc than this machine's {os.confstr('CS_GNU_LIBC_VERSION')}: {error}")
            raise ImportError(f"margay cannot load its library: {error}")
    driver = installed(library)
    if driver:
        warnings.warn(
            f"this machine has a CUDA driver of its own ({driver}), but this process uses Margay ({library}), which it imported; "
            "do not import margay to use the other",
            RuntimeWarning,
            stacklevel=4,
        )


def set_environment(folder):
    """The variables of `margay run`, for the programs that this process starts."""
    prepend("LD_LIBRARY_PATH", folder)
    companions = os.path.join(folder, "companions")
    programs = os.path.join(companions, "bin")
    if os.environ.get("MARGAY_COMPANIONS", "1").strip() == "0" or not os.path.isdir(programs):
        return
    prepend("PATH", programs)
    for variable in ["TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"]:
        os.environ.setdefault(variable, os.path.join(programs, "ptxas"))
    os.environ.setdefault("CUDA_ROOT", companions)


def prepend(variable, folder):
    # An empty list must not become an empty element, which means the current directory.
    rest = os.environ.get(variable)
    folders = rest.split(os.pathsep) if rest else []
    # The program may be one that a Python with Margay started.
    if folders[:1] != [folder]:
        os.environ[variable] = os.pathsep.join([folder, *folders])
