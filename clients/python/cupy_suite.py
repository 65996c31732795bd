"""A sample of CuPy's own tests, from its source distribution (which `run` fetches); `--full` for all of them.

The first argument is the folder of the sources. Only the tests are taken from there: the CuPy that is tested is the installed
one, so they are copied to a folder of their own, which pytest takes for the root.
"""

import os
import pathlib
import re
import shutil
import sys
import time

import suite

# CuPy's own word for how many devices there are: tests that ask for more are skipped.
os.environ["CUPY_TEST_GPU_LIMIT"] = "1"
# Tests of RawModule start nvcc: as under `margay run`, with NVIDIA's of `make setup`, or another on the path, behind ours.
COMPANION = pathlib.Path(os.environ.get("LD_LIBRARY_PATH", ""), "companions", "bin", "nvcc")
os.environ["PATH"] = f"{pathlib.Path(__file__).resolve().parents[2] / '.env' / 'cuda-13' / 'bin'}:{os.environ['PATH']}"
if COMPANION.exists() and shutil.which("nvcc"):
    os.environ["NVCC"] = str(COMPANION)

FILES = """
cupy_tests/core_tests/test_raw.py
""".split()

# Folders whose tests are of something else: how CuPy is built, its types (mypy), its imports without a device.
NOT_HERE = ("install_tests", "typing_tests", "import_tests")


def tests():
    """A copy of the tests beside their sources."""
    folder = pathlib.Path(SOURCE) / "tests"
    if not folder.exists():
        made = next(pathlib.Path(SOURCE).glob("cupy-*"))
        half = folder.with_name("tests-half")
        shutil.copytree(made / "tests", half, dirs_exist_ok=True)
        # What the tests expect of warnings, and their marks.
        shutil.copy(made / "pyproject.toml", half / "pyproject.toml")
        half.rename(folder)
    return folder


def every():
    """The files of all tests, in order of folders; those that take hours at the end."""
    there = (str(path.relative_to(tests())) for path in tests().rglob("test_*.py"))
    return sorted((name for name in there if not name.startswith(NOT_HERE)), key=lambda name: ("ndimage" in name, name))


class Lines:
    """A line for each test that ran, by what became of it."""

    def __init__(self):
        self.reasons = {}

    def pytest_runtest_logreport(self, report):
        # `clients/python/run` takes a name as one word.
        name = re.sub(r"\s", "", report.nodeid)
        if report.failed:
            suite.line("failed", name)
            crash = getattr(report.longrepr, "reprcrash", None)
            os.write(suite.OUTPUT, f"because {' '.join(str(crash.message if crash else report.longrepr).split())[:500]}\n".encode())
        elif report.skipped:
            # What a test's authors expect to fail, and does, is as it should be.
            expected = hasattr(report, "wasxfail")
            suite.line("passed" if expected else "skipped", name, None if expected else report.longrepr[2])
        elif report.when == "call":
            suite.line("passed", name)
        if report.duration > 20:
            os.write(suite.OUTPUT, f"slow {report.duration:.0f} s {name} ({report.when})\n".encode())

    def pytest_collectreport(self, report):
        if report.failed:
            suite.line("failed", report.nodeid)


def run_file(name):
    import pytest
    from cupy.cuda import compiler

    compiling = [0, 0.0]
    compile_using_nvrtc = compiler.compile_using_nvrtc

    def timed(*arguments, **named):
        start = time.monotonic()
        try:
            return compile_using_nvrtc(*arguments, **named)
        finally:
            compiling[0] += 1
            compiling[1] += time.monotonic() - start

    compiler.compile_using_nvrtc = timed
    os.chdir(tests())
    options = ["--capture=sys", "-q", "-p", "no:cacheprovider", "--tb=short", "-rN", "--import-mode=prepend"]
    pytest.main([*options, *name.split("@")], plugins=[Lines()])
    os.write(suite.OUTPUT, f"\nNVRTC took {compiling[1]:.0f} s for {compiling[0]} sources\n".encode())


# Tests start processes that import this file.
if __name__ == "__main__":
    SOURCE = sys.argv[1]
    suite.main(FILES, run_file, sys.argv[2:], every)
