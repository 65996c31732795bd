"""numba-cuda's own tests, which are in its package: a sample of the files, or with `--full` all of them.

A file's name is an argument to run it alone: `clients/python/run numba_suite cudapy/test_atomics.py`.
"""

import os
import pathlib
import sys

import pytest

import suite

FILES = """
cudapy/test_atomics.py
""".split()


@pytest.fixture(scope="class")
def initialize_from_pytest_config(request):
    """What the tests want of their repository's conftest.py."""
    request.cls._dump_failed_filechecks = False


class Lines:
    """A line for each test that ran, by what became of it."""

    def __init__(self):
        self.bad = set()

    def pytest_runtest_logreport(self, report):
        name = report.nodeid.replace(" ", "")
        if hasattr(report, "context"):
            # A part of a test, whose own report comes later and does not tell.
            self.bad |= {name} if report.failed else set()
        elif report.failed or (report.when == "call" and name in self.bad):
            suite.line("failed", name)
        elif report.skipped:
            # What a test's authors expect to fail, and does, is as it should be.
            expected = hasattr(report, "wasxfail")
            suite.line("passed" if expected else "skipped", name, None if expected else report.longrepr[2])
        elif report.when == "call":
            suite.line("passed", name)

    def pytest_collectreport(self, report):
        if report.failed:
            suite.line("failed", report.nodeid)
        elif report.skipped:
            suite.line("skipped", report.nodeid, report.longrepr[2])


def folder():
    import numba_cuda

    return pathlib.Path(numba_cuda.__file__).parent / "numba" / "cuda" / "tests"


def every():
    tests = folder()
    return sorted(str(path.relative_to(tests)) for path in tests.glob("*/test_*.py"))


def run_file(name):
    module = "numba.cuda.tests." + name.removesuffix(".py").replace("/", ".")
    # Not captured on descriptors: the lines go to the process's own output.
    options = ["--capture=sys", "-q", "-p", "no:cacheprovider", "--tb=short", "--benchmark-disable", f"--rootdir={folder()}"]
    pytest.main([*options, "-o", "consider_namespace_packages=true", "--pyargs", module], plugins=[Lines(), sys.modules[__name__]])


# Tests start processes that import this file.
if __name__ == "__main__":
    suite.main(FILES, run_file, sys.argv[1:])
