"""A sample of tinygrad's own tests, from its repository (which `run` fetches): files for devices that do without torch.

`--full` runs all files for devices. Some of them compare with torch on the CPU, which is too large to install for that: they
are skipped unless it is in the environment (build/clients/tinygrad).

The first argument is the folder of the sources; they are the tinygrad that is tested, so that tests and library belong together.
"""

import os
import pathlib
import sys

import suite

FILES = """
test/test_tiny.py test/backend/test_uops.py test/backend/test_jit.py test/backend/test_graph.py test/backend/test_symbolic_ops.py
test/backend/test_symbolic_jit.py test/backend/test_setitem.py test/backend/test_subbuffer.py test/backend/test_linearizer.py
test/backend/test_tensor_variable.py test/backend/test_transcendental.py test/backend/test_encodings.py
test/backend/test_renderer_failures.py test/backend/test_custom_kernel.py test/backend/test_softmax_fusion.py
test/backend/test_opt_gemm.py test/backend/test_const_folding.py test/backend/test_rangeify.py test/backend/test_to_numpy.py
test/backend/test_zero_copy.py test/backend/test_stunning.py test/backend/test_pickle.py
""".split()


def every():
    """The files of all tests for devices; the one that takes hours at the end."""
    there = [str(path.relative_to(SOURCE)) for path in pathlib.Path(SOURCE).glob("test/backend/test_*.py")]
    return ["test/test_tiny.py", *sorted(there, key=lambda name: (name.endswith("test_ops.py"), name))]


class Lines(suite.Lines):
    """What is missing here is a reason to skip a test."""

    def __init__(self):
        self.reasons = {}

    def name(self, report):
        return super().name(report).removeprefix("test/")

    def pytest_runtest_makereport(self, item, call):
        # A test that compares with tinygrad's device CPU compiles for it with clang, which has nothing to do with this one.
        missing = call.excinfo and call.excinfo.errisinstance(FileNotFoundError)
        if missing and call.excinfo.value.filename == "clang":
            self.reasons[item.nodeid] = "clang is not installed"

    def pytest_runtest_logreport(self, report):
        if report.nodeid not in self.reasons:
            super().pytest_runtest_logreport(report)
        elif report.failed:
            suite.line("skipped", self.name(report), self.reasons[report.nodeid])

    def pytest_collectreport(self, report):
        if report.failed and "No module named 'torch'" in str(report.longrepr):
            suite.line("skipped", report.nodeid, "torch is not installed")
        else:
            super().pytest_collectreport(report)



def run_file(name):
    import pytest

    os.chdir(SOURCE)
    sys.path.insert(0, SOURCE)
    # Not captured on descriptors: the lines go to the process's own output. Other traces than Python's own are made with its
    # parser, which gives up after deep recursions, and pytest with it.
    pytest.main(["--capture=sys", "-q", "-p", "no:cacheprovider", "--tb=native", name], plugins=[Lines()])


# Tests start processes that import this file.
if __name__ == "__main__":
    SOURCE = sys.argv[1]
    suite.main(FILES, run_file, sys.argv[2:], every)
