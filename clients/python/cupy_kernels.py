"""CuPy: kernels that the program brings, streams, memory."""

import os
import subprocess
import sys
import tempfile

import cupy as cp
import numpy as np

from check import check, main

RANDOM = np.random.default_rng(4)


@check
def raw_kernel():
    saxpy = cp.RawKernel(
        r"""
        extern "C" __global__ void saxpy(float a, const float *x, float *y, int n)
        {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) y[i] = a * x[i] + y[i];
        }
        """,
        "saxpy",
    )
    x, y = RANDOM.integers(0, 100, (2, 1000)).astype(np.float32)
    there = cp.asarray(y)
    saxpy((8,), (128,), (np.float32(3), cp.asarray(x), there, np.int32(1000)))
    np.testing.assert_array_equal(there.get(), 3 * x + y)


@check
def raw_module_with_templates_and_constants():
    module = cp.RawModule(
        code=r"""
        __constant__ int shift[4];
        template <typename T> __global__ void add(T *x) { x[threadIdx.x] += (T)shift[threadIdx.x % 4]; }
        """,
        name_expressions=["add<float>", "add<long long>"],
    )
    shift = cp.ndarray(4, np.int32, module.get_global("shift"))
    shift[...] = cp.asarray([10, 20, 30, 40], dtype=np.int32)
    for name, kind in (("add<float>", np.float32), ("add<long long>", np.int64)):
        x = cp.arange(16).astype(kind)
        module.get_function(name)((1,), (16,), (x,))
        np.testing.assert_array_equal(x.get(), np.arange(16) + np.tile([10, 20, 30, 40], 4))


@check
def shared_memory_and_barriers():
    reverse = cp.RawKernel(
        r"""
        extern "C" __global__ void reverse(int *x)
        {
            extern __shared__ int copy[];
            copy[threadIdx.x] = x[threadIdx.x];
            __syncthreads();
            x[threadIdx.x] = copy[blockDim.x - 1 - threadIdx.x];
        }
        """,
        "reverse",
    )
    x = cp.arange(200, dtype=cp.int32)
    reverse((1,), (200,), (x,), shared_mem=800)
    np.testing.assert_array_equal(x.get(), np.arange(200)[::-1])


@check
def elementwise_kernel():
    squared = cp.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "squared_difference")
    x, y = RANDOM.integers(0, 100, (2, 500)).astype(np.float32)
    np.testing.assert_array_equal(squared(cp.asarray(x), cp.asarray(y)).get(), (x - y) ** 2)
    np.testing.assert_array_equal(squared(cp.asarray(x), 5).get(), (x - 5) ** 2)


@check
def reduction_kernel():
    length = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "length_of_rows")
    x = RANDOM.integers(0, 10, (6, 40)).astype(np.float64)
    np.testing.assert_allclose(length(cp.asarray(x), axis=1).get(), np.sqrt((x * x).sum(1)), rtol=1e-15)


@check
def fused_functions():
    @cp.fuse()
    def smooth(x, y):
        return cp.sqrt(x * x + y * y) + 1

    x, y = RANDOM.random((2, 300))
    np.testing.assert_allclose(smooth(cp.asarray(x), cp.asarray(y)).get(), np.hypot(x, y) + 1, rtol=1e-15)


@check
def kernels_in_python():
    from cupyx import jit

    @jit.rawkernel()
    def add(x, y, n):
        i = jit.grid(1)
        if i < n:
            y[i] += x[i]

    x, y = RANDOM.random((2, 100))
    there = cp.asarray(y)
    add((1,), (128,), (cp.asarray(x), there, np.uint32(100)))
    np.testing.assert_array_equal(there.get(), x + y)


@check
def errors_of_the_compiler():
    try:
        cp.RawKernel('extern "C" __global__ void k() { undeclared(); }', "k").compile()
    except cp.cuda.compiler.CompileException as error:
        assert "undeclared" in str(error)
    else:
        raise AssertionError("it compiled")


@check
def streams_and_events():
    streams = [cp.cuda.Stream(non_blocking=True) for _ in range(3)]
    results = []
    for n, stream in enumerate(streams):
        with stream:
            results.append(cp.arange(100) * n)
    event = streams[2].record()
    event.synchronize()
    for n, (result, stream) in enumerate(zip(results, streams)):
        stream.synchronize()
        np.testing.assert_array_equal(result.get(), np.arange(100) * n)


@check
def pinned_and_managed_memory():
    pinned = cp.cuda.alloc_pinned_memory(800)
    host = np.frombuffer(pinned, np.float64, 100)
    host[:] = np.arange(100)
    np.testing.assert_array_equal((cp.asarray(host) + 1).get(), np.arange(100) + 1)
    with cp.cuda.using_allocator(cp.cuda.malloc_managed):
        np.testing.assert_array_equal((cp.arange(50) * 2).get(), np.arange(50) * 2)


@check
def graphs():
    stream = cp.cuda.Stream(non_blocking=True)
    add = cp.ElementwiseKernel("int64 x", "int64 y", "y += x", "add_to")
    with stream:
        x, y = cp.arange(30), cp.zeros(30, np.int64)
        add(x, y)
        stream.synchronize()
        stream.begin_capture()
        add(x, y)
        add(x, y)
        graph = stream.end_capture()
        for _ in range(3):
            graph.launch(stream)
        stream.synchronize()
    np.testing.assert_array_equal(y.get(), 7 * np.arange(30))


@check
def what_helps_without_companions():
    program = """
import cupy
cupy.RawKernel('extern "C" __global__ void k() {}', "k")((1,), (1,), ())
"""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"MARGAY_COMPANIONS": "0", "CUPY_CACHE_DIR": cache}
        ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert ended.returncode and "NO_BINARY_FOR_GPU" in ended.stderr, ended.stderr
    assert "CuPy made it" in ended.stderr and "MARGAY_COMPANIONS=0 switches it off" in ended.stderr, ended.stderr


main()
