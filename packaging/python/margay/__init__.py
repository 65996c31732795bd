"""Makes Margay this process's CUDA driver. Import it before what uses CUDA:

    import margay
    import cupy

It loads Margay's libcuda.so.1 and libnvidia-ml.so.1, so that whatever asks the loader for them gets these, and sets the environment
of programs that this one starts, as the command `margay run` does. Two things only the command can do, for they have to be there
when a process starts: `margay run --preload`, and what JAX needs (`python -m margay run -- python program.py`).

`MARGAY_COMPANIONS=0` and the other variables that `margay info` lists have to be set before.
"""

import os
import platform
import sys

from . import _driver

if sys.platform != "linux" or platform.machine() != "x86_64":
    raise ImportError(f"margay runs on Linux on x86-64 processors only, and this is {platform.system()} on {platform.machine()}")

_HERE = os.path.dirname(os.path.realpath(__file__))


def library_path():
    """The path of libcuda.so.1, for what has to be told of it."""
    return os.path.join(_HERE, "lib", "libcuda.so.1")


def command_path():
    """The path of the command `margay`."""
    return os.path.join(_HERE, "bin", "margay")


def info():
    """What `margay info` prints: version, library, machine, compiler, and all variables with their values."""
    import subprocess

    done = subprocess.run([command_path(), "info"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return done.stdout


# `python -m margay` only starts the command, which does all of it for the program that it starts.
if not _driver.is_command(__name__):
    _driver.load(library_path())
    _driver.set_environment(os.path.dirname(library_path()))
