"""numba-cuda's own tests, which are in its package: a sample of the files, or with `--full` all of them.

A file's name is an argument to run it alone: `clients/python/run numba_suite cudapy/test_atomics.py`.
"""

import os
import pathlib
import sys

import pytest

import suite

# Files that compile within a minute or two.
FILES = """
benchmarks/test_kernel_launch.py core/test_itanium_mangler.py core/test_serialize.py cudadrv/test_array_attr.py
cudadrv/test_context_stack.py cudadrv/test_cuda_array_slicing.py cudadrv/test_cuda_auto_context.py
cudadrv/test_cuda_devicerecord.py cudadrv/test_cuda_driver.py cudadrv/test_cuda_memory.py cudadrv/test_cuda_ndarray.py
cudadrv/test_deallocations.py cudadrv/test_detect.py cudadrv/test_emm_plugins.py cudadrv/test_events.py
cudadrv/test_host_alloc.py cudadrv/test_init.py cudadrv/test_inline_ptx.py cudadrv/test_is_fp16.py
cudadrv/test_linkable_code.py cudadrv/test_linker.py cudadrv/test_managed_alloc.py cudadrv/test_module_callbacks.py
cudadrv/test_nvjitlink.py cudadrv/test_nvrtc.py cudadrv/test_nvvm_driver.py cudadrv/test_pinned.py cudadrv/test_profiler.py
cudadrv/test_reset_device.py cudadrv/test_runtime.py cudadrv/test_select_device.py cudadrv/test_streams.py
cudapy/test_alignment.py cudapy/test_analysis.py cudapy/test_array.py cudapy/test_array_args.py cudapy/test_array_methods.py
cudapy/test_atomics.py cudapy/test_bfloat16.py cudapy/test_blackscholes.py cudapy/test_boolean.py cudapy/test_byteflow.py
cudapy/test_compiler.py cudapy/test_complex.py cudapy/test_constmem.py cudapy/test_cooperative_groups.py
cudapy/test_cuda_array_interface.py cudapy/test_debug.py cudapy/test_device_func.py cudapy/test_dispatcher.py
cudapy/test_errors.py cudapy/test_exception.py cudapy/test_flow_control.py cudapy/test_gufunc.py cudapy/test_intrinsics.py
cudapy/test_ipc.py cudapy/test_lineinfo.py cudapy/test_localmem.py cudapy/test_mandel.py cudapy/test_matmul.py
cudapy/test_montecarlo.py cudapy/test_multigpu.py cudapy/test_multiprocessing.py cudapy/test_multithreads.py
cudapy/test_print.py cudapy/test_random.py cudapy/test_record_dtype.py cudapy/test_recursion.py cudapy/test_reduction.py
cudapy/test_sm.py cudapy/test_sm_creation.py cudapy/test_stream_api.py cudapy/test_sync.py cudapy/test_userexc.py
cudapy/test_warp_ops.py doc_examples/test_cg.py doc_examples/test_ffi.py doc_examples/test_random.py
doc_examples/test_reduction.py nrt/test_nrt.py nrt/test_nrt_refct.py
""".split()


@pytest.fixture(scope="class")
def initialize_from_pytest_config(request):
    """What the tests want of their repository's conftest.py."""
    request.cls._dump_failed_filechecks = False


class Lines(suite.Lines):
    """Subtests are parts of a test, whose own report comes later and does not tell of them."""

    def __init__(self):
        self.bad = set()

    def pytest_runtest_logreport(self, report):
        name = self.name(report)
        if hasattr(report, "context"):
            self.bad |= {name} if report.failed else set()
        elif report.passed and report.when == "call" and name in self.bad:
            suite.line("failed", name)
        else:
            super().pytest_runtest_logreport(report)

    def pytest_collectreport(self, report):
        if report.skipped:
            suite.line("skipped", report.nodeid, report.longrepr[2])
        else:
            super().pytest_collectreport(report)



def folder():
    import numba_cuda

    return pathlib.Path(numba_cuda.__file__).parent / "numba" / "cuda" / "tests"


def every():
    tests = folder()
    return sorted(str(path.relative_to(tests)) for path in tests.glob("*/test_*.py"))


def run_file(name):
    # Tests of caches look for them where they are without it.
    os.environ.pop("NUMBA_CACHE_DIR", None)
    module = "numba.cuda.tests." + name.removesuffix(".py").replace("/", ".")
    # Not captured on descriptors: the lines go to the process's own output.
    options = ["--capture=sys", "-q", "-p", "no:cacheprovider", "--tb=short", "--benchmark-disable", f"--rootdir={folder()}"]
    pytest.main([*options, "-o", "consider_namespace_packages=true", "--pyargs", module], plugins=[Lines(), sys.modules[__name__]])


# Tests start processes that import this file.
if __name__ == "__main__":
    suite.main(FILES, run_file, sys.argv[1:], every)
