"""PyCUDA's own tests, from its source distribution (which `run` builds it from): all of them.

The first argument is the folder of the sources. A file's name is an argument to run it alone, or a test's:
`clients/python/run pycuda_suite test_driver.py::TestDriver::test_memory`.
"""

import os
import pathlib
import sys

import pytest

import suite

FILES = "test_driver.py test_cumath.py test_gpuarray.py".split()

# Nearly each test starts nvcc a few times.
suite.LIMIT = 3600


def run_file(name):
    # Tests of arrays with billions of elements fill 9 and 17 GB and compute for hours; they ask how much there is.
    os.environ["MARGAY_MEMORY"] = "4G"
    # The package there is not built: the installed one is meant.
    os.chdir(next(pathlib.Path(SOURCE).glob("pycuda-*/test")))
    options = ["--capture=sys", "-q", "-p", "no:cacheprovider", "--tb=short", "--durations=15", "--rootdir=."]
    pytest.main([*options, name], plugins=[suite.Lines()])


if __name__ == "__main__":
    SOURCE = sys.argv[1]
    suite.main(FILES, run_file, sys.argv[2:])
