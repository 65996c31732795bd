"""A sample of CuPy's own tests, from its source distribution (which `run` fetches); with `--full` all of them.

The first argument is the folder of the sources. Only the tests are taken from there: the CuPy that is tested is the installed
one, so they are copied to a folder of their own, which pytest takes for the root. The sample is made twice: these files, and
in them one of 15 parametrizations and data types, which is a setting of CuPy's tests. `--full` makes neither choice, and
`--full FILE` runs one file whole.
"""

import os
import pathlib
import shutil
import sys
import time

import suite

# CuPy's own word for how many devices there are: tests that ask for more are skipped.
os.environ["CUPY_TEST_GPU_LIMIT"] = "1"
# The seed makes the choice the same every time (but for combinations of types, which CuPy's tests draw from a set).
os.environ.setdefault("CUPY_TEST_RANDOM_SUBSAMPLE", "1")
os.environ["_CUPY_TEST_SUBSAMPLE_SEED"] = "1"
# Tests of RawModule start nvcc: as under `margay run`, with NVIDIA's of `make setup`, or another on the path, behind ours.
COMPANION = pathlib.Path(os.environ.get("LD_LIBRARY_PATH", ""), "companions", "bin", "nvcc")
os.environ["PATH"] = f"{pathlib.Path(__file__).resolve().parents[2] / '.env' / 'cuda-13' / 'bin'}:{os.environ['PATH']}"
if COMPANION.exists() and shutil.which("nvcc"):
    os.environ["NVCC"] = str(COMPANION)

FILES = """
cupy_tests/cuda_tests/test_compiler.py cupy_tests/cuda_tests/test_cufft.py cupy_tests/cuda_tests/test_device.py
cupy_tests/cuda_tests/test_driver.py cupy_tests/cuda_tests/test_graph.py cupy_tests/cuda_tests/test_memory.py
cupy_tests/cuda_tests/test_pinned_memory.py cupy_tests/cuda_tests/test_runtime.py cupy_tests/cuda_tests/test_stream.py
cupy_tests/cuda_tests/test_texture.py cupy_tests/core_tests/test_elementwise.py cupy_tests/core_tests/test_userkernel.py
cupy_tests/core_tests/test_cub_reduction.py cupy_tests/core_tests/test_scan.py cupy_tests/core_tests/test_ndarray_scatter.py
cupy_tests/core_tests/test_bfloat16.py cupy_tests/core_tests/test_mdspan.py cupy_tests/indexing_tests/test_generate.py
cupy_tests/math_tests/test_explog.py cupy_tests/math_tests/test_trigonometric.py cupy_tests/sorting_tests/test_sort.py
cupy_tests/statistics_tests/test_histogram.py cupy_tests/binary_tests/test_elementwise.py cupy_tests/linalg_tests/test_solve.py
cupy_tests/random_tests/test_permutations.py cupy_tests/fft_tests/test_fft.py cupyx_tests/jit_tests/test_raw.py
cupyx_tests/jit_tests/test_cooperative_groups.py cupyx_tests/scipy_tests/sparse_tests/test_construct.py
cupyx_tests/scipy_tests/ndimage_tests/test_measurements.py cupyx_tests/scipy_tests/special_tests/test_gamma.py
""".split()

# Folders whose tests are of something else: how CuPy is built, its types, its imports where there is no device.
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


class Lines(suite.Lines):
    """Besides, why a test failed, and which ones are slow."""

    def pytest_runtest_logreport(self, report):
        super().pytest_runtest_logreport(report)
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            os.write(suite.OUTPUT, f"because {' '.join(str(crash.message if crash else report.longrepr).split())[:500]}\n".encode())
        if report.duration > 20:
            os.write(suite.OUTPUT, f"slow {report.duration:.0f} s {self.name(report)} ({report.when})\n".encode())



def run_file(name):
    import pytest
    from cupy.cuda import compiler

    # NVIDIA's compiler is most of the time of many tests: it is told apart, as processor time.
    compiling = []
    compile_source = compiler._NVRTCProgram.compile

    def timed(*arguments, **named):
        start = time.thread_time()
        try:
            return compile_source(*arguments, **named)
        finally:
            compiling.append(time.thread_time() - start)

    compiler._NVRTCProgram.compile = timed
    os.chdir(tests())
    options = ["--capture=sys", "-q", "-p", "no:cacheprovider", "--tb=short", "-rN", "--import-mode=prepend"]
    pytest.main([*options, name], plugins=[Lines()])
    said = f"\nNVRTC compiled {len(compiling)} sources in {sum(compiling):.0f} of {time.process_time():.0f} s of processor time\n"
    os.write(suite.OUTPUT, said.encode())


# Tests start processes that import this file.
if __name__ == "__main__":
    SOURCE = sys.argv[1]
    if "--full" in sys.argv:
        os.environ["CUPY_TEST_RANDOM_SUBSAMPLE"] = "0"
    suite.main(FILES, run_file, sys.argv[2:], every)
