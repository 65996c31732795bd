"""Triton without torch: kernels on arrays of numpy's, which are copied to memory of the driver's."""

import ctypes
import os
import subprocess
import sys

import numpy as np
import triton
import triton.language as tl

from check import check, main

RANDOM = np.random.default_rng(5)
DRIVER = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    result = getattr(DRIVER, name)(*arguments)
    assert result == 0, f"{name}: {result}"


class Buffer:
    """A copy of an array in device memory: what Triton asks of a tensor is its address and its type."""

    def __init__(self, array, dtype=None):
        # The driver's context is current only after Triton has asked for the device.
        triton.runtime.driver.active.get_current_device()
        self.array = np.ascontiguousarray(array)
        self.dtype = dtype or str(self.array.dtype)
        self.address = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(self.address), ctypes.c_size_t(max(self.array.nbytes, 1)))
        call("cuMemcpyHtoD_v2", self.address, ctypes.c_void_p(self.array.ctypes.data), ctypes.c_size_t(self.array.nbytes))

    def __del__(self):
        DRIVER.cuMemFree_v2(self.address)

    def data_ptr(self):
        return self.address.value

    def numpy(self):
        back = np.empty_like(self.array)
        call("cuMemcpyDtoH_v2", ctypes.c_void_p(back.ctypes.data), self.address, ctypes.c_size_t(back.nbytes))
        return back


def empty(shape, dtype):
    """Memory in which nothing is right yet: all bits are set."""
    return Buffer(np.full(np.prod(shape) * np.dtype(dtype).itemsize, 255, np.uint8).view(dtype).reshape(shape))


def random(shape, dtype=np.float32):
    return RANDOM.standard_normal(shape).astype(dtype)


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@check
def vector_add():
    for dtype in (np.float32, np.float64, np.float16, np.int8, np.int32, np.int64):
        for n in (1, 127, 1024, 5000):
            x, y = ((random(n) * 50).astype(dtype) for _ in range(2))
            out = empty(n, dtype)
            add_kernel[(triton.cdiv(n, 256),)](Buffer(x), Buffer(y), out, n, BLOCK=256)
            np.testing.assert_array_equal(out.numpy(), x + y)


@triton.jit
def tail_kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n, other=-1.0))


@check
def masked_loads_and_their_others():
    x = random(100)
    out = empty(128, np.float32)
    tail_kernel[(1,)](Buffer(x), out, 100, BLOCK=128)
    np.testing.assert_array_equal(out.numpy(), np.concatenate([x, np.full(28, -1, np.float32)]))


@triton.jit
def softmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    top = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row * columns + at, top / tl.sum(top, axis=0), mask=at < columns)


@check
def softmax():
    for rows, columns in ((3, 16), (20, 781), (4, 2048)):
        x = random((rows, columns))
        out = empty(x.shape, np.float32)
        softmax_kernel[(rows,)](Buffer(x), out, columns, BLOCK=triton.next_power_of_2(columns))
        wide = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
        np.testing.assert_allclose(out.numpy(), wide / wide.sum(axis=1, keepdims=True), rtol=2e-5)


@triton.jit
def matmul_kernel(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    sums = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, k, K):
        left = tl.load(a + rows[:, None] * k + (start + inner)[None, :],
                       mask=(rows[:, None] < m) & ((start + inner)[None, :] < k), other=0.0)
        right = tl.load(b + (start + inner)[:, None] * n + columns[None, :],
                        mask=((start + inner)[:, None] < k) & (columns[None, :] < n), other=0.0)
        sums = tl.dot(left, right, sums, input_precision=PRECISION)
    tl.store(c + rows[:, None] * n + columns[None, :], sums.to(c.dtype.element_ty),
             mask=(rows[:, None] < m) & (columns[None, :] < n))


def multiply(dtype, precision, tolerance, shapes, **options):
    for m, n, k in shapes:
        a, b = random((m, k), dtype), random((k, n), dtype)
        c = empty((m, n), np.float32)
        grid = (triton.cdiv(m, 32), triton.cdiv(n, 64))
        matmul_kernel[grid](Buffer(a), Buffer(b), c, m, n, k, M=32, N=64, K=32, PRECISION=precision, **options)
        # Each product's error is relative to its factors, so a sum's is to the sum of magnitudes.
        exact = a.astype(np.float64) @ b.astype(np.float64)
        scale = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
        assert (np.abs(c.numpy() - exact) <= tolerance * scale).all(), np.abs(c.numpy() - exact).max()


SHAPES = ((32, 64, 32), (64, 64, 128), (50, 70, 90))


@check
def dot_of_halves():
    multiply(np.float16, "ieee", 2e-6, SHAPES)


@check
def dot_of_floats():
    multiply(np.float32, "ieee", 2e-6, SHAPES)


@check
def dot_of_floats_rounded_to_tf32():
    multiply(np.float32, "tf32", 2e-3, SHAPES)


@check
def dot_of_floats_in_three_parts():
    multiply(np.float32, "tf32x3", 4e-6, SHAPES)


@check
def dot_in_stages_and_with_more_warps():
    for stages in (1, 2, 4):
        for warps in (1, 8):
            multiply(np.float16, "ieee", 2e-6, SHAPES[1:], num_stages=stages, num_warps=warps)


@triton.jit
def small_dot_kernel(a, b, c, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at), out_dtype=c.dtype.element_ty))


@check
def dot_of_bytes():
    a, b = (RANDOM.integers(-128, 128, (32, 32), np.int8) for _ in range(2))
    c = empty((32, 32), np.int32)
    small_dot_kernel[(1,)](Buffer(a), Buffer(b), c, N=32)
    np.testing.assert_array_equal(c.numpy(), a.astype(np.int32) @ b.astype(np.int32))


@check
def dot_of_doubles():
    a, b = (random((32, 32), np.float64) for _ in range(2))
    c = empty((32, 32), np.float64)
    small_dot_kernel[(1,)](Buffer(a), Buffer(b), c, N=32)
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-12, atol=1e-12)


@check
def dot_of_bfloats():
    # Small whole numbers are exact in bfloat16, whose bits are the upper half of a float's; so are their sums in a float.
    a, b = (RANDOM.integers(-100, 100, (32, 32)).astype(np.float32) for _ in range(2))
    upper = [Buffer((x.view(np.uint32) >> 16).astype(np.uint16), "bfloat16") for x in (a, b)]
    c = empty((32, 32), np.float32)
    small_dot_kernel[(1,)](*upper, c, N=32)
    np.testing.assert_array_equal(c.numpy(), a @ b)


@triton.jit
def transposed_dot_kernel(a, c, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(a + at)
    tl.store(c + at, tl.dot(x, tl.trans(x)))


@check
def dot_with_a_transposed():
    a = random((64, 64), np.float16)
    c = empty((64, 64), np.float32)
    transposed_dot_kernel[(1,)](Buffer(a), c, N=64)
    wide = a.astype(np.float64)
    np.testing.assert_allclose(c.numpy(), wide @ wide.T, rtol=1e-4, atol=1e-4)


@triton.jit
def row_reductions_kernel(x, total, top, bottom, place, COLUMNS: tl.constexpr):
    row = tl.program_id(0)
    value = tl.load(x + row * COLUMNS + tl.arange(0, COLUMNS))
    tl.store(total + row, tl.sum(value, axis=0))
    tl.store(top + row, tl.max(value, axis=0))
    tl.store(bottom + row, tl.min(value, axis=0))
    tl.store(place + row, tl.argmax(value, axis=0))


@check
def sums_maxima_minima_and_places():
    for dtype in (np.float32, np.float64, np.int32):
        for columns in (2, 64, 1024):
            x = (random((5, columns)) * 1000).astype(dtype)
            total, top, bottom = (empty(5, dtype) for _ in range(3))
            place = empty(5, np.int32)
            row_reductions_kernel[(5,)](Buffer(x), total, top, bottom, place, COLUMNS=columns)
            np.testing.assert_allclose(total.numpy(), x.sum(axis=1), rtol=1e-4, atol=1e-2)
            np.testing.assert_array_equal(top.numpy(), x.max(axis=1))
            np.testing.assert_array_equal(bottom.numpy(), x.min(axis=1))
            np.testing.assert_array_equal(place.numpy(), x.argmax(axis=1))


@triton.jit
def axis_kernel(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, AXIS: tl.constexpr):
    value = tl.load(x + tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :])
    kept: tl.constexpr = COLUMNS if AXIS == 0 else ROWS
    tl.store(out + tl.arange(0, kept), tl.sum(value, axis=AXIS))


@check
def sums_along_either_axis():
    x = RANDOM.integers(-1000, 1000, (32, 64), np.int32)
    for axis in (0, 1):
        out = empty(x.shape[1 - axis], np.int32)
        axis_kernel[(1,)](Buffer(x), out, ROWS=32, COLUMNS=64, AXIS=axis)
        np.testing.assert_array_equal(out.numpy(), x.sum(axis=axis))


@triton.jit
def combine(a, b):
    return a * 3 + b


@triton.jit
def product(a, b):
    return a * b


@triton.jit
def scans_kernel(x, sums, products, N: tl.constexpr):
    at = tl.arange(0, N)
    value = tl.load(x + at)
    tl.store(sums + at, tl.cumsum(value, axis=0))
    tl.store(products + at, tl.associative_scan(value, 0, product))


@check
def scans():
    x = RANDOM.integers(-3, 4, 256).astype(np.int32)
    x[x == 0] = 1
    sums, products = empty(256, np.int32), empty(256, np.int32)
    scans_kernel[(1,)](Buffer(x), sums, products, N=256)
    np.testing.assert_array_equal(sums.numpy(), np.cumsum(x, dtype=np.int32))
    np.testing.assert_array_equal(products.numpy(), np.cumprod(x, dtype=np.int32))


@triton.jit
def sort_kernel(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.sort(tl.load(x + at)))


@check
def sort():
    x = random(256)
    out = empty(256, np.float32)
    sort_kernel[(1,)](Buffer(x), out, N=256)
    np.testing.assert_array_equal(out.numpy(), np.sort(x))


@triton.jit
def histogram_kernel(x, out, N: tl.constexpr, BINS: tl.constexpr):
    tl.store(out + tl.arange(0, BINS), tl.histogram(tl.load(x + tl.arange(0, N)), BINS))


@check
def histogram():
    x = RANDOM.integers(0, 16, 1024).astype(np.int32)
    out = empty(16, np.int32)
    histogram_kernel[(1,)](Buffer(x), out, N=1024, BINS=16)
    np.testing.assert_array_equal(out.numpy(), np.bincount(x, minlength=16))


@triton.jit
def atomics_kernel(x, added, greatest, least, bits, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    value = tl.load(x + at)
    tl.atomic_add(added + value % 7, 1)
    same = tl.zeros((N,), tl.int32)
    tl.atomic_max(greatest + same, value)
    tl.atomic_min(least + same, value)
    tl.atomic_or(bits + same, 1 << (value % 31))


@check
def atomics_on_integers():
    x = RANDOM.integers(0, 10**6, 2048).astype(np.int32)
    added, bits = Buffer(np.zeros(7, np.int32)), Buffer(np.zeros(1, np.int32))
    greatest, least = Buffer(np.full(1, -1, np.int32)), Buffer(np.full(1, 2**31 - 1, np.int32))
    atomics_kernel[(8,)](Buffer(x), added, greatest, least, bits, N=256)
    np.testing.assert_array_equal(added.numpy(), np.bincount(x % 7, minlength=7))
    assert greatest.numpy()[0] == x.max() and least.numpy()[0] == x.min()
    assert bits.numpy()[0] == np.bitwise_or.reduce(1 << (x % 31))


@triton.jit
def atomic_add_kernel(x, out, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.atomic_add(out + at % 8, tl.load(x + at))


@check
def atomic_sums_of_every_float():
    # Whole numbers, so that the order of the sums is of no matter.
    for dtype in (np.float16, np.float32, np.float64):
        x = RANDOM.integers(-4, 5, 1024).astype(dtype)
        out = Buffer(np.zeros(8, dtype))
        atomic_add_kernel[(4,)](Buffer(x), out, N=256)
        np.testing.assert_array_equal(out.numpy(), x.reshape(-1, 8).sum(axis=0))


@triton.jit
def float_extremes_kernel(x, greatest, least, N: tl.constexpr):
    value = tl.load(x + tl.program_id(0) * N + tl.arange(0, N))
    tl.atomic_max(greatest, tl.max(value, axis=0))
    tl.atomic_min(least, tl.min(value, axis=0))


@check
def atomic_extremes_of_floats():
    x = random(1024)
    greatest, least = Buffer(np.full(1, -np.inf, np.float32)), Buffer(np.full(1, np.inf, np.float32))
    float_extremes_kernel[(8,)](Buffer(x), greatest, least, N=128)
    assert greatest.numpy()[0] == x.max() and least.numpy()[0] == x.min()


@triton.jit
def lock_kernel(lock, count):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(count, tl.load(count, volatile=True) + 1)
    tl.atomic_xchg(lock, 0)


@check
def a_lock_of_compare_and_swap():
    lock, count = Buffer(np.zeros(1, np.int32)), Buffer(np.zeros(1, np.int32))
    lock_kernel[(200,)](lock, count)
    assert count.numpy()[0] == 200 and lock.numpy()[0] == 0


@triton.jit
def layer_norm_kernel(x, weight, bias, out, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + row * columns + at, mask=inside, other=0.0)
    mean = tl.sum(value, axis=0) / columns
    centred = tl.where(inside, value - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / columns + epsilon)
    tl.store(out + row * columns + at, centred * scale * tl.load(weight + at, mask=inside) + tl.load(bias + at, mask=inside),
             mask=inside)


@check
def layer_norm():
    x, weight, bias = random((6, 300)), random(300), random(300)
    out = empty(x.shape, np.float32)
    layer_norm_kernel[(6,)](Buffer(x), Buffer(weight), Buffer(bias), out, 300, 1e-5, BLOCK=512)
    wide = x.astype(np.float64)
    wide = (wide - wide.mean(axis=1, keepdims=True)) / np.sqrt(wide.var(axis=1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(out.numpy(), wide * weight + bias, rtol=1e-4, atol=1e-4)


@triton.jit
def attention_kernel(q, k, v, out, length, scale, ROWS: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    depth = tl.arange(0, DEPTH)
    query = tl.load(q + rows[:, None] * DEPTH + depth[None, :])
    top = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    sums = tl.zeros((ROWS, DEPTH), tl.float32)
    for start in range(0, length, ROWS):
        others = start + tl.arange(0, ROWS)
        at = others[:, None] * DEPTH + depth[None, :]
        scores = tl.dot(query, tl.trans(tl.load(k + at))) * scale
        scores = tl.where(rows[:, None] >= others[None, :], scores, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, axis=1))
        weights = tl.exp(scores - higher[:, None])
        shrink = tl.exp(top - higher)
        total = total * shrink + tl.sum(weights, axis=1)
        sums = tl.dot(weights.to(tl.float16), tl.load(v + at), sums * shrink[:, None])
        top = higher
    tl.store(out + rows[:, None] * DEPTH + depth[None, :], sums / total[:, None])


@check
def attention():
    q, k, v = (random((128, 64), np.float16) for _ in range(3))
    out = empty((128, 64), np.float32)
    attention_kernel[(4,)](Buffer(q), Buffer(k), Buffer(v), out, 128, 0.125, ROWS=32, DEPTH=64)
    scores = q.astype(np.float64) @ k.astype(np.float64).T * 0.125
    scores[np.triu_indices(128, 1)] = -np.inf
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    wanted = weights / weights.sum(axis=1, keepdims=True) @ v.astype(np.float64)
    np.testing.assert_allclose(out.numpy(), wanted, atol=4e-3)


@triton.jit
def functions_kernel(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    value = tl.load(x + at)
    tl.store(out + at, tl.exp(value))
    tl.store(out + N + at, tl.log(value))
    tl.store(out + 2 * N + at, tl.sin(value))
    tl.store(out + 3 * N + at, tl.cos(value))
    tl.store(out + 4 * N + at, tl.sqrt_rn(value))
    tl.store(out + 5 * N + at, tl.erf(value))
    tl.store(out + 6 * N + at, tl.floor(value))
    tl.store(out + 7 * N + at, tl.div_rn(1.0, value))


@check
def functions():
    from math import erf

    x = RANDOM.uniform(0.01, 10, 256).astype(np.float32)
    out = empty((8, 256), np.float32)
    functions_kernel[(1,)](Buffer(x), out, N=256)
    wide = x.astype(np.float64)
    wanted = [f(wide) for f in (np.exp, np.log, np.sin, np.cos, np.sqrt, np.vectorize(erf), np.floor, np.reciprocal)]
    np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(out.numpy()[4], np.sqrt(x))
    np.testing.assert_array_equal(out.numpy()[7], np.float32(1) / x)


@triton.jit
def dropout_kernel(out, seed, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + at, tl.rand(seed, at))


@check
def random_numbers():
    out, again = empty(4096, np.float32), empty(4096, np.float32)
    dropout_kernel[(4,)](out, 7, N=1024)
    dropout_kernel[(4,)](again, 7, N=1024)
    np.testing.assert_array_equal(out.numpy(), again.numpy())
    assert 0 <= out.numpy().min() and out.numpy().max() < 1 and abs(out.numpy().mean() - 0.5) < 0.02


@triton.jit
def descriptor_kernel(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [ROWS, COLUMNS], [COLUMNS, 1], [BLOCK, BLOCK])
    target = tl.make_tensor_descriptor(out, [COLUMNS, ROWS], [ROWS, 1], [BLOCK, BLOCK])
    row, column = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    target.store([column, row], tl.trans(source.load([row, column])))


@check
def descriptors_of_tensors_made_in_the_kernel():
    scratch = []

    def allocate(size, alignment, stream):
        scratch.append(Buffer(np.zeros(size, np.uint8)))
        return scratch[-1]

    triton.set_allocator(allocate)
    x = random((64, 96))
    out = empty((96, 64), np.float32)
    descriptor_kernel[(2, 3)](Buffer(x), out, ROWS=64, COLUMNS=96, BLOCK=32)
    np.testing.assert_array_equal(out.numpy(), x.T)


@triton.jit
def host_descriptor_kernel(source, target, BLOCK: tl.constexpr):
    row, column = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    target.store([row, column], source.load([row, column]) * 2)


class Type:
    """The part of a type that descriptors ask for besides its name."""

    def __init__(self, name):
        self.name = name
        self.itemsize = np.dtype(name).itemsize

    def __str__(self):
        return self.name


class Tensor(Buffer):
    """A buffer with what descriptors ask for besides."""

    def __init__(self, array):
        super().__init__(array, Type(str(array.dtype)))

    @property
    def shape(self):
        return self.array.shape

    @property
    def ndim(self):
        return self.array.ndim

    def stride(self, axis=None):
        strides = tuple(step // self.array.itemsize for step in self.array.strides)
        return strides if axis is None else strides[axis]


@check
def descriptors_of_tensors_made_by_the_host():
    from triton.tools.tensor_descriptor import TensorDescriptor

    x = random((64, 64))
    source, target = Tensor(x), Tensor(np.zeros_like(x))
    made = [TensorDescriptor(t, list(t.shape), list(t.stride()), [32, 32]) for t in (source, target)]
    host_descriptor_kernel[(2, 2)](*made, BLOCK=32)
    np.testing.assert_array_equal(target.numpy(), x * 2)


@triton.jit
def print_kernel(x):
    tl.device_print("value", tl.load(x + tl.program_id(0)))


@check
def prints():
    if os.environ.get("PRINTS"):
        print_kernel[(2,)](Buffer(np.array([41, 42], np.int32)), num_warps=1)
        call("cuCtxSynchronize")
        return
    # What a kernel prints goes to the process's output, past Python's.
    command = [sys.executable, __file__, "prints"]
    text = subprocess.run(command, env={**os.environ, "PRINTS": "1"}, capture_output=True, text=True, check=True).stdout
    said = [line for line in text.splitlines() if line.startswith("pid")]
    wanted = [f"pid ({block}, 0, 0) idx () value: {value}" for block, value in ((0, 41), (1, 42))]
    assert sorted(set(said)) == wanted and len(said) == 64, said


@triton.jit
def assembly_kernel(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    value = tl.inline_asm_elementwise("popc.b32 $0, $1;", "=r,r", [tl.load(x + at)], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(out + at, value)


@check
def assembly_of_the_kernels_own():
    x = RANDOM.integers(-2**31, 2**31, 128).astype(np.int32)
    out = empty(128, np.int32)
    assembly_kernel[(1,)](Buffer(x), out, N=128)
    np.testing.assert_array_equal(out.numpy(), [bin(int(v) & 0xFFFFFFFF).count("1") for v in x])


def time_nothing(run, quantiles):
    # The way that Triton has of timing needs torch.
    run()
    return [1.0] * len(quantiles)


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128}, num_warps=8)], key=["n"],
                 do_bench=time_nothing)
@triton.jit
def tuned_kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


@check
def autotuning():
    x = random(1000)
    out = empty(1000, np.float32)
    tuned_kernel[lambda chosen: (triton.cdiv(1000, chosen["BLOCK"]),)](Buffer(x), out, 1000)
    np.testing.assert_array_equal(out.numpy(), x * 2)


main()
