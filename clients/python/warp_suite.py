"""A sample of Warp's own tests, which are in its package: those of cuda:0 and those that name no device; `--full` for all of them.

A file's name is an argument to run it alone: `clients/python/run warp_suite tests.test_copy`. Tests of the CPU, which Warp has
a compiler of its own for, are left out.
"""

import importlib
import importlib.util
import pathlib
import re
import sys
import unittest

import suite

# Files whose kernels compile within a minute or two: others (test_arithmetic, test_math, test_vec) take many.
FILES = """
tests.cuda.test_streams tests.cuda.test_mempool tests.cuda.test_conditional_captures tests.cuda.test_ipc tests.cuda.test_pinned
tests.cuda.test_kernel_attributes tests.cuda.test_occupancy tests.cuda.test_capture_mode tests.cuda.test_sync_errors
tests.cuda.test_array_fill_capture tests.cuda.test_cluster_dim tests.test_atomic tests.test_copy tests.test_assert
tests.test_print tests.test_utils tests.test_runlength_encode tests.tile.test_tile_reduce
""".split()


def every():
    """The files of all tests but the CPU's, in order of folders."""
    package = pathlib.Path(importlib.util.find_spec("warp").origin).parent
    there = (path.relative_to(package).with_suffix("") for path in package.glob("tests/**/test_*.py"))
    return sorted(".".join(path.parts) for path in there if not path.name.startswith("test_cpu_"))


class Lines(unittest.TextTestResult):
    """A line for each test that ran, by what became of it."""

    def name(self, test):
        return test.id().removeprefix("warp.")

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.bad = set()

    def addSuccess(self, test):
        super().addSuccess(test)
        suite.line("passed", self.name(test))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        suite.line("skipped", self.name(test), reason)

    def bad_once(self, test):
        # A test with parts may fail in several, and while it is put away.
        name = self.name(test)
        if name not in self.bad:
            suite.line("failed", name)
        self.bad.add(name)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.bad_once(test)

    def addError(self, test, error):
        super().addError(test, error)
        self.bad_once(test)

    def addSubTest(self, test, part, error):
        super().addSubTest(test, part, error)
        if error:
            self.bad_once(test)

    def addExpectedFailure(self, test, error):
        super().addExpectedFailure(test, error)
        suite.line("passed", self.name(test))

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.bad_once(test)


def tests(group):
    for test in group:
        if isinstance(test, unittest.TestSuite):
            yield from tests(test)
        elif not re.search(r"_cpu$", test.id()):
            yield test


def run_file(name):
    warp = importlib.import_module("warp")
    warp.config.verbose = False
    # As Warp's own runner does: its greeting is not what a test prints.
    warp.init()
    loaded = unittest.defaultTestLoader.loadTestsFromName(f"warp.{name}")
    unittest.TextTestRunner(stream=sys.stdout, resultclass=Lines).run(unittest.TestSuite(tests(loaded)))


# Tests start processes that import this file.
if __name__ == "__main__":
    suite.main(FILES, run_file, sys.argv[1:], every)
