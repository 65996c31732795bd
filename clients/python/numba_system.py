"""Numba: memory, streams, events, cooperative grids, what is linked, errors."""

import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np
from numba import cuda

from check import Skip, check, main

warnings.filterwarnings("ignore", module="numba.*")

RANDOM = np.random.default_rng(2)


@cuda.jit
def double(a):
    i = cuda.grid(1)
    if i < a.size:
        a[i] *= 2


@check
def device_arrays():
    a = RANDOM.random(500)
    there = cuda.to_device(a)
    double[4, 128](there)
    np.testing.assert_array_equal(there.copy_to_host(), 2 * a)
    part = there[100:200]
    double[1, 128](part)
    a[100:200] *= 2
    np.testing.assert_array_equal(there.copy_to_host(), 2 * a)
    other = cuda.device_array_like(there)
    other.copy_to_device(there)
    np.testing.assert_array_equal(other.copy_to_host(), 2 * a)


@check
def pinned_mapped_and_managed_memory():
    for make in (cuda.pinned_array, cuda.mapped_array, cuda.managed_array):
        a = make(100, np.int32)
        a[:] = np.arange(100)
        double[1, 128](a)
        cuda.synchronize()
        np.testing.assert_array_equal(a, np.arange(100) * 2)


@check
def streams_and_events():
    streams = [cuda.stream() for _ in range(3)]
    arrays = [RANDOM.random(300) for _ in streams]
    first, last = cuda.event(), cuda.event()
    first.record(streams[0])
    there = [cuda.to_device(a, stream=s) for a, s in zip(arrays, streams)]
    for _ in range(3):
        for a, s in zip(there, streams):
            double[3, 128, s](a)
    last.record(streams[0])
    for a, b, s in zip(there, arrays, streams):
        result = a.copy_to_host(stream=s)
        s.synchronize()
        np.testing.assert_array_equal(result, 8 * b)
    assert cuda.event_elapsed_time(first, last) >= 0


@check
def grid_barriers():
    @cuda.jit
    def rounds(cells, count):
        grid = cuda.cg.this_grid()
        i, n = cuda.grid(1), cuda.gridsize(1)
        for r in range(count):
            cells[(r + 1) % 2, i] = cells[r % 2, (i + cuda.blockDim.x) % n] + 1
            grid.sync()

    cells = np.zeros((2, 8 * 64), np.int32)
    cells[0] = np.arange(8 * 64)
    rounds[8, 64](cells, 10)
    np.testing.assert_array_equal(cells[0], np.roll(np.arange(8 * 64), -10 * 64) + 10)


@check
def linked_cuda_source():
    source = cuda.CUSource('extern "C" __device__ int twice(int *result, int x) { *result = 2 * x; return 0; }')
    twice = cuda.declare_device("twice", "int32(int32)", link=source)

    @cuda.jit
    def call(a):
        i = cuda.grid(1)
        if i < a.size:
            a[i] = twice(a[i]) + 1

    a = np.arange(50, dtype=np.int32)
    call[1, 64](a)
    np.testing.assert_array_equal(a, 2 * np.arange(50) + 1)


@check
def linked_in_the_intermediate_language():
    source = cuda.CUSource('extern "C" __device__ int triple(int *result, int x) { *result = 3 * x; return 0; }')
    triple = cuda.declare_device("triple", "int32(int32)", link=source)

    @cuda.jit(lto=True)
    def call(a):
        i = cuda.grid(1)
        if i < a.size:
            a[i] = triple(a[i]) + 1

    a = np.arange(50, dtype=np.int32)
    call[1, 64](a)
    np.testing.assert_array_equal(a, 3 * np.arange(50) + 1)


@check
def a_function_that_nobody_defines():
    missing = cuda.declare_device("nobody_defines_me", "int32(int32)")

    @cuda.jit
    def call(a):
        a[0] = missing(a[0])

    try:
        call[1, 1](np.zeros(1, np.int32))
    except Exception as error:
        assert "nobody_defines_me" in str(error), error
    else:
        raise AssertionError("it was linked")


@check
def print_in_kernels():
    @cuda.jit
    def speak():
        if cuda.grid(1) == 3:
            print("thread", cuda.grid(1))

    with tempfile.TemporaryFile() as said:
        before = os.dup(1)
        os.dup2(said.fileno(), 1)
        try:
            speak[1, 32]()
            cuda.synchronize()
        finally:
            os.dup2(before, 1)
            os.close(before)
        said.seek(0)
        assert said.read() == b"thread 3\n"


@check
def constant_memory():
    table = np.arange(10, 20, dtype=np.int32)

    @cuda.jit
    def look_up(out):
        values = cuda.const.array_like(table)
        out[cuda.threadIdx.x] = values[9 - cuda.threadIdx.x]

    out = np.zeros(10, np.int32)
    look_up[1, 10](out)
    np.testing.assert_array_equal(out, table[::-1])


@check
def exceptions_in_kernels():
    @cuda.jit(debug=True, opt=False)
    def fail(a):
        if cuda.grid(1) == 5:
            raise ValueError("no fives")
        a[cuda.grid(1)] = 1

    try:
        fail[1, 8](np.zeros(8))
    except ValueError as error:
        assert "no fives" in str(error)
    else:
        raise AssertionError("nothing was raised")


@check
def arrays_of_cupy():
    try:
        import cupy
    except ImportError as error:
        raise Skip(error)
    a = cupy.arange(64, dtype=cupy.int64)
    double[1, 64](a)
    np.testing.assert_array_equal(a.get(), np.arange(64) * 2)


@check
def what_helps_without_companions():
    program = """
from numba import cuda
@cuda.jit
def nothing():
    pass
nothing[1, 1]()
"""
    environment = os.environ | {"MARGAY_COMPANIONS": "0"}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert ended.returncode and "NO_BINARY_FOR_GPU" in ended.stderr, ended.stderr
    assert "numba-cuda made it" in ended.stderr and "MARGAY_COMPANIONS=0 switches it off" in ended.stderr, ended.stderr


main()
