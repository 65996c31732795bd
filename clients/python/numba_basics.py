"""Numba: what kernels compute with: shared memory, atomics, device functions, warps."""

import math
import warnings

import numpy as np
from numba import cuda, float32, int32

from check import check, main

# Of small grids and of arrays that are copied for a launch: both are on purpose here.
warnings.filterwarnings("ignore", module="numba.*")

RANDOM = np.random.default_rng(1)


@check
def vector_add():
    @cuda.jit
    def add(a, b, c):
        i = cuda.grid(1)
        if i < c.size:
            c[i] = a[i] + b[i]

    a, b = RANDOM.random(1000, np.float32), RANDOM.random(1000, np.float32)
    c = np.zeros_like(a)
    add[8, 128](a, b, c)
    np.testing.assert_array_equal(c, a + b)


@check
def nothing_is_said_to_the_user():
    @cuda.jit
    def double(a):
        a[cuda.threadIdx.x] *= 2

    a = cuda.to_device(np.arange(4))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        double[1, 4](a)
    assert [str(w.message) for w in said if w.category is RuntimeWarning] == []
    np.testing.assert_array_equal(a.copy_to_host(), np.arange(4) * 2)


@check
def reduction_in_shared_memory():
    @cuda.jit
    def total(a, sums):
        part = cuda.shared.array(128, float32)
        t, i = cuda.threadIdx.x, cuda.grid(1)
        part[t] = a[i] if i < a.size else float32(0)
        cuda.syncthreads()
        step = cuda.blockDim.x // 2
        while step > 0:
            if t < step:
                part[t] += part[t + step]
            cuda.syncthreads()
            step //= 2
        if t == 0:
            sums[cuda.blockIdx.x] = part[0]

    a = RANDOM.integers(0, 100, 1000).astype(np.float32)
    sums = np.zeros(8, np.float32)
    total[8, 128](a, sums)
    np.testing.assert_array_equal(sums, np.resize(np.append(a, np.zeros(24)), (8, 128)).sum(1))


@check
def dynamic_shared_memory():
    @cuda.jit
    def reverse(a):
        copy = cuda.shared.array(0, int32)
        t = cuda.threadIdx.x
        copy[t] = a[t]
        cuda.syncthreads()
        a[t] = copy[cuda.blockDim.x - 1 - t]

    a = np.arange(96, dtype=np.int32)
    reverse[1, 96, 0, 96 * 4](a)
    np.testing.assert_array_equal(a, np.arange(96)[::-1])


@check
def histogram_by_atomics():
    @cuda.jit
    def count(values, bins, largest):
        i = cuda.grid(1)
        if i < values.size:
            cuda.atomic.add(bins, values[i], 1)
            cuda.atomic.max(largest, 0, values[i])

    values = RANDOM.integers(0, 13, 5000).astype(np.int32)
    bins, largest = np.zeros(16, np.int32), np.zeros(1, np.int32)
    count[40, 128](values, bins, largest)
    np.testing.assert_array_equal(bins, np.bincount(values, minlength=16))
    assert largest[0] == values.max()


@check
def atomics_on_floating_point():
    @cuda.jit
    def add(sums, a):
        cuda.atomic.add(sums, cuda.threadIdx.x % 4, a[cuda.grid(1)])

    # Quarters add up without rounding, in any order.
    a = RANDOM.integers(0, 1000, 1024) / 4
    for kind in (np.float32, np.float64):
        sums = np.zeros(4, kind)
        add[8, 128](sums, a.astype(kind))
        np.testing.assert_array_equal(sums, a.reshape(-1, 4).sum(0))


@check
def compare_and_swap():
    @cuda.jit
    def lock(state, winners):
        if cuda.atomic.cas(state, 0, -1, cuda.grid(1)) == -1:
            cuda.atomic.add(winners, 0, 1)

    state, winners = np.array([-1], np.int32), np.zeros(1, np.int32)
    lock[4, 64](state, winners)
    assert 0 <= state[0] < 256 and winners[0] == 1


@check
def device_functions():
    @cuda.jit(device=True)
    def horner(x, c0, c1, c2):
        return c0 + x * (c1 + x * c2)

    @cuda.jit(device=True, inline="never")
    def collatz(n):
        steps = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    @cuda.jit
    def both(x, y, steps):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = horner(x[i], 1, 2, 3)
            steps[i] = collatz(i + 1)

    def steps_of(n):
        return 0 if n == 1 else 1 + steps_of(n // 2 if n % 2 == 0 else 3 * n + 1)

    x = RANDOM.integers(-50, 50, 300).astype(np.float64)
    y, steps = np.zeros(300), np.zeros(300, np.int64)
    both[3, 128](x, y, steps)
    np.testing.assert_array_equal(y, 1 + 2 * x + 3 * x * x)
    np.testing.assert_array_equal(steps, [steps_of(n) for n in range(1, 301)])


@check
def mathematics():
    @cuda.jit
    def functions(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[0, i] = math.sqrt(x[i])
            out[1, i] = math.exp(-x[i])
            out[2, i] = math.sin(x[i])
            out[3, i] = math.log1p(x[i])
            out[4, i] = math.pow(x[i], 1.5)

    x = RANDOM.random(500) * 20
    out = np.zeros((5, 500))
    functions[4, 128](x, out)
    expected = [np.sqrt(x), np.exp(-x), np.sin(x), np.log1p(x), x**1.5]
    np.testing.assert_allclose(out, expected, rtol=1e-14, atol=1e-14)


@check
def two_dimensions_and_strides():
    @cuda.jit
    def transpose(a, b):
        x, y = cuda.grid(2)
        if x < a.shape[0] and y < a.shape[1]:
            b[y, x] = a[x, y]

    a = RANDOM.random((33, 50))[::2, ::-1]
    b = np.zeros((50, 17))
    transpose[(3, 7), (8, 8)](np.ascontiguousarray(a), b)
    np.testing.assert_array_equal(b, a.T)
    strided = cuda.to_device(np.ascontiguousarray(a))[1::2]
    c = np.zeros((50, 8))
    transpose[(3, 7), (8, 8)](strided, c)
    np.testing.assert_array_equal(c, a[1::2].T)


@check
def local_arrays_and_records():
    point = np.dtype([("x", np.float32), ("n", np.int64)], align=True)

    @cuda.jit
    def spread(points, out):
        i = cuda.grid(1)
        if i < points.size:
            powers = cuda.local.array(4, float32)
            powers[0] = 1
            for k in range(1, 4):
                powers[k] = powers[k - 1] * points[i].x
            points[i].n = i
            out[i] = powers[i % 4]

    points = np.zeros(40, point)
    points["x"] = np.arange(40)
    out = np.zeros(40, np.float32)
    spread[1, 64](points, out)
    np.testing.assert_array_equal(points["n"], np.arange(40))
    np.testing.assert_array_equal(out, np.arange(40, dtype=np.float32) ** (np.arange(40) % 4))


@check
def warps():
    @cuda.jit
    def sums(a, out):
        value = a[cuda.grid(1)]
        for step in (16, 8, 4, 2, 1):
            value += cuda.shfl_down_sync(0xFFFFFFFF, value, step)
        if cuda.laneid == 0:
            out[cuda.grid(1) // 32] = value

    a = RANDOM.integers(0, 1000, 256).astype(np.int32)
    out = np.zeros(8, np.int32)
    sums[2, 128](a, out)
    np.testing.assert_array_equal(out, a.reshape(8, 32).sum(1))


@check
def vectorized_functions():
    from numba import vectorize

    @vectorize(["float64(float64, float64)"], target="cuda")
    def hypot(a, b):
        return math.sqrt(a * a + b * b)

    a, b = RANDOM.random(200), RANDOM.random(200)
    np.testing.assert_allclose(hypot(a, b), np.hypot(a, b), rtol=1e-15)


@check
def reduce():
    total = cuda.reduce(lambda a, b: a + b)
    a = RANDOM.integers(0, 1000, 3000).astype(np.float64)
    assert total(a) == a.sum()


@check
def random_numbers():
    from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32

    @cuda.jit
    def pi(states, hits):
        i, inside = cuda.grid(1), 0
        for _ in range(50):
            x, y = xoroshiro128p_uniform_float32(states, i), xoroshiro128p_uniform_float32(states, i)
            inside += x * x + y * y <= 1
        hits[i] = inside

    hits = np.zeros(256, np.int32)
    pi[2, 128](create_xoroshiro128p_states(256, seed=1), hits)
    # Five standard deviations of 12,800 throws.
    assert abs(hits.sum() / (256 * 50) * 4 - math.pi) < 0.08


main()
