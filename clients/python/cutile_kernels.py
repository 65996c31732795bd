"""cuTile (`cuda.tile`): kernels over tiles, beside numpy. What they compile to is Tile IR, which the driver runs."""

import ctypes
import os
import subprocess
import sys

import cuda.tile as ct
import ml_dtypes
import numpy as np

from check import check, main

RANDOM = np.random.default_rng(7)
DRIVER = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    result = getattr(DRIVER, name)(*arguments)
    assert result == 0, f"{name}: {result}"


def context():
    """The device's primary context is current from now on."""
    call("cuInit", 0)
    primary = ctypes.c_void_p()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(primary), 0)
    call("cuCtxSetCurrent", primary)


context()


class Buffer:
    """A copy of an array in device memory, as the CUDA array interface describes it; strides are those of the array."""

    def __init__(self, array):
        self.array = array
        self.base = np.ascontiguousarray(array) if array.base is None else array.base
        self.address = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(self.address), ctypes.c_size_t(max(self.base.nbytes, 1)))
        call("cuMemcpyHtoD_v2", self.address, ctypes.c_void_p(self.base.ctypes.data), ctypes.c_size_t(self.base.nbytes))

    def __del__(self):
        DRIVER.cuMemFree_v2(self.address)

    @property
    def __cuda_array_interface__(self):
        offset = self.array.ctypes.data - self.base.ctypes.data if self.array.base is not None else 0
        return {
            "shape": self.array.shape,
            "typestr": self.array.dtype.str,
            "data": (self.address.value + offset, False),
            "strides": self.array.strides,
            "version": 3,
        }

    def numpy(self):
        back = np.empty_like(self.base)
        call("cuMemcpyDtoH_v2", ctypes.c_void_p(back.ctypes.data), self.address, ctypes.c_size_t(back.nbytes))
        return back


def random(shape, dtype=np.float32):
    return (RANDOM.standard_normal(shape) * 8).astype(dtype)


def empty(shape, dtype=np.float32):
    """Memory in which nothing is right yet: all bits are set."""
    return Buffer(np.full(int(np.prod(shape)) * np.dtype(dtype).itemsize, 255, np.uint8).view(dtype).reshape(shape).copy())


def launch(kernel, grid, *arguments):
    ct.launch(0, grid, kernel, arguments)
    call("cuCtxSynchronize")


def cdiv(a, b):
    return -(-a // b)


@ct.kernel
def add_kernel(x, y, out, TILE: ct.Constant[int]):
    at = ct.bid(0)
    ct.store(out, (at,), ct.load(x, (at,), (TILE,)) + ct.load(y, (at,), (TILE,)))


@check
def sums():
    for dtype in (np.float32, np.float64, np.float16, np.int8, np.uint16, np.int32, np.int64):
        for n in (1, 127, 1024, 5000):
            x, y = random(n, dtype), random(n, dtype)
            out = empty(n, dtype)
            launch(add_kernel, (cdiv(n, 256),), Buffer(x), Buffer(y), out, 256)
            np.testing.assert_array_equal(out.numpy(), x + y)


@ct.kernel
def product_kernel(a, b, c, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    total = ct.full((TM, TN), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(TM, TK))):
        left = ct.load(a, (i, k), (TM, TK), padding_mode=ct.PaddingMode.ZERO)
        right = ct.load(b, (k, j), (TK, TN), padding_mode=ct.PaddingMode.ZERO)
        total = ct.mma(left, right, total)
    ct.store(c, (i, j), total.astype(c.dtype))


@check
def products():
    for dtype, bound in ((np.float16, 2e-3), (np.float32, 1e-5)):
        for m, n, k in ((64, 64, 64), (100, 70, 130), (16, 256, 33)):
            a, b = random((m, k), dtype) / 8, random((k, n), dtype) / 8
            c = empty((m, n), dtype)
            launch(product_kernel, (cdiv(m, 32), cdiv(n, 64)), Buffer(a), Buffer(b), c, 32, 64, 32)
            want = a.astype(np.float64) @ b.astype(np.float64)
            np.testing.assert_allclose(c.numpy().astype(np.float64), want, rtol=bound, atol=bound * np.abs(want).max())


@ct.kernel
def transposed_kernel(x, out, T: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    ct.store(out, (j, i), ct.transpose(ct.load(x, (i, j), (T, T))))


@check
def transposes_and_strides():
    x = random((70, 45))
    out = empty((45, 70))
    launch(transposed_kernel, (3, 2), Buffer(x), out, 32)
    np.testing.assert_array_equal(out.numpy(), x.T)
    # A view of every second column, and one of which the columns are next to each other.
    wide = random((70, 90))
    launch(transposed_kernel, (3, 2), Buffer(wide[:, ::2]), out, 32)
    np.testing.assert_array_equal(out.numpy(), wide[:, ::2].T)
    tall = random((45, 70))
    launch(transposed_kernel, (3, 2), Buffer(tall.T), out, 32)
    np.testing.assert_array_equal(out.numpy(), tall)


@ct.kernel
def softmax_kernel(x, out, COLUMNS: ct.Constant[int]):
    row = ct.bid(0)
    values = ct.load(x, (row, 0), (1, COLUMNS), padding_mode=ct.PaddingMode.NEG_INF)
    powers = ct.exp(values - ct.max(values, axis=1, keepdims=True))
    ct.store(out, (row, 0), powers / ct.sum(powers, axis=1, keepdims=True))


@check
def softmax():
    x = random((40, 1000))
    out = empty((40, 1000))
    launch(softmax_kernel, (40,), Buffer(x), out, 1024)
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(out.numpy(), powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)


@ct.kernel
def folds_kernel(x, total, least, largest, where, product, prefix):
    values = ct.load(x, (0, 0), (16, 32))
    ct.store(total, (0,), ct.sum(values, axis=1))
    ct.store(least, (0,), ct.min(values, axis=0))
    ct.store(largest, (0,), ct.max(values, axis=1))
    ct.store(where, (0,), ct.argmax(values, axis=1))
    ct.store(product, (0,), ct.prod(values % 3 + 1, axis=1))
    ct.store(prefix, (0, 0), ct.cumsum(values, axis=1))


@check
def folds():
    x = RANDOM.integers(-100, 100, (16, 32)).astype(np.int32)
    outs = [empty(shape, np.int32) for shape in ((16,), (32,), (16,), (16,), (16,), (16, 32))]
    launch(folds_kernel, (1,), Buffer(x), *outs)
    total, least, largest, where, product, prefix = (out.numpy() for out in outs)
    np.testing.assert_array_equal(total, x.sum(axis=1))
    np.testing.assert_array_equal(least, x.min(axis=0))
    np.testing.assert_array_equal(largest, x.max(axis=1))
    np.testing.assert_array_equal(where, x.argmax(axis=1))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(product, (x % 3 + 1).prod(axis=1, dtype=np.int32))
    np.testing.assert_array_equal(prefix, np.cumsum(x, axis=1))


@ct.kernel
def integers_kernel(x, y, out):
    a, b = ct.load(x, (0,), (64,)), ct.load(y, (0,), (64,))
    ct.store(out, (0, 0), (a // b).reshape((1, 64)))
    ct.store(out, (1, 0), (a % b).reshape((1, 64)))
    ct.store(out, (2, 0), (a & b).reshape((1, 64)))
    ct.store(out, (3, 0), (a ^ b).reshape((1, 64)))
    ct.store(out, (4, 0), (a << (b & 7)).reshape((1, 64)))
    ct.store(out, (5, 0), (a >> (b & 7)).reshape((1, 64)))
    ct.store(out, (6, 0), ct.maximum(a, b).reshape((1, 64)))
    ct.store(out, (7, 0), (a * b - a).reshape((1, 64)))


@check
def integers():
    for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32):
        low = 0 if np.dtype(dtype).kind == "u" else -100
        x = RANDOM.integers(low, 100, 64).astype(dtype)
        y = RANDOM.integers(low, 100, 64).astype(dtype)
        y[y == 0] = 3
        out = empty((8, 64), dtype)
        launch(integers_kernel, (1,), Buffer(x), Buffer(y), out)
        by = (y & 7).astype(dtype)
        want = [x // y, x % y, x & y, x ^ y, x << by, x >> by, np.maximum(x, y), x * y - x]
        np.testing.assert_array_equal(out.numpy(), np.array(want, dtype))


@ct.kernel
def functions_kernel(x, out):
    a = ct.load(x, (0,), (128,))
    b = ct.abs(a) + 1
    ct.store(out, (0, 0), ct.sin(a).reshape((1, 128)))
    ct.store(out, (1, 0), ct.cos(a).reshape((1, 128)))
    ct.store(out, (2, 0), ct.tanh(a).reshape((1, 128)))
    ct.store(out, (3, 0), ct.exp(a).reshape((1, 128)))
    ct.store(out, (4, 0), ct.log(b).reshape((1, 128)))
    ct.store(out, (5, 0), ct.sqrt(b).reshape((1, 128)))
    ct.store(out, (6, 0), ct.rsqrt(b).reshape((1, 128)))
    ct.store(out, (7, 0), ct.floor(a).reshape((1, 128)))
    ct.store(out, (8, 0), ct.pow(b, a).reshape((1, 128)))
    ct.store(out, (9, 0), (a / b).reshape((1, 128)))
    ct.store(out, (10, 0), ct.exp2(a).reshape((1, 128)))
    ct.store(out, (11, 0), ct.log2(b).reshape((1, 128)))
    ct.store(out, (12, 0), ct.sinh(a).reshape((1, 128)))
    ct.store(out, (13, 0), ct.cosh(a).reshape((1, 128)))
    ct.store(out, (14, 0), ct.tan(a).reshape((1, 128)))
    ct.store(out, (15, 0), ct.atan2(a, b).reshape((1, 128)))
    ct.store(out, (16, 0), ct.ceil(a).reshape((1, 128)))
    ct.store(out, (17, 0), (a * b + a).reshape((1, 128)))


@check
def functions():
    for dtype, bound in ((np.float32, 2e-6), (np.float64, 1e-14), (np.float16, 2e-3)):
        x = random(128, dtype) / dtype(16)
        out = empty((18, 128), dtype)
        launch(functions_kernel, (1,), Buffer(x), out)
        a = x.astype(np.float64)
        b = (np.abs(x) + dtype(1)).astype(np.float64)
        want = [np.sin(a), np.cos(a), np.tanh(a), np.exp(a), np.log(b), np.sqrt(b), 1 / np.sqrt(b), np.floor(a), b**a, a / b,
                np.exp2(a), np.log2(b), np.sinh(a), np.cosh(a), np.tan(a), np.arctan2(a, b), np.ceil(a), a * b + a]
        np.testing.assert_allclose(out.numpy().astype(np.float64), np.array(want), rtol=bound, atol=bound)


@ct.kernel
def gather_kernel(x, rows, out):
    at = ct.load(rows, (0,), (32,))
    columns = ct.arange(16, dtype=ct.int32)
    ct.store(out, (0, 0), ct.gather(x, (at.reshape((32, 1)), columns.reshape((1, 16))), padding_value=-1))


@ct.kernel
def scatter_kernel(x, places, out):
    ct.scatter(out, ct.load(places, (0,), (64,)), ct.load(x, (0,), (64,)))


@check
def gathers_and_scatters():
    x = random((40, 16))
    rows = RANDOM.integers(-5, 45, 32).astype(np.int32)
    out = empty((32, 16))
    launch(gather_kernel, (1,), Buffer(x), Buffer(rows), out)
    inside = (rows >= 0) & (rows < 40)
    want = np.where(inside[:, None], x[np.clip(rows, 0, 39)], np.float32(-1))
    np.testing.assert_array_equal(out.numpy(), want)
    places = RANDOM.permutation(100)[:64].astype(np.int32)
    values = random(64)
    out = Buffer(np.zeros(100, np.float32))
    launch(scatter_kernel, (1,), Buffer(values), Buffer(places), out)
    want = np.zeros(100, np.float32)
    want[places] = values
    np.testing.assert_array_equal(out.numpy(), want)


@ct.kernel
def histogram_kernel(keys, counts):
    ct.atomic_add(counts, ct.load(keys, (ct.bid(0),), (256,)), 1)


@check
def atomics():
    keys = RANDOM.integers(0, 50, 256 * 40).astype(np.int32)
    counts = Buffer(np.zeros(50, np.int32))
    launch(histogram_kernel, (40,), Buffer(keys), counts)
    np.testing.assert_array_equal(counts.numpy(), np.bincount(keys, minlength=50))


@ct.kernel
def turn_kernel(turn, order):
    """Tile blocks wait for each other, the last one first."""
    mine = ct.num_blocks(0) - 1 - ct.bid(0)
    while ct.atomic_cas(turn, 0, mine, mine) != mine:
        pass
    ct.scatter(order, mine, ct.bid(0))
    ct.atomic_add(turn, 0, 1)


@check
def blocks_that_wait():
    turn, order = Buffer(np.zeros(1, np.int32)), empty(24, np.int32)
    launch(turn_kernel, (24,), turn, order)
    np.testing.assert_array_equal(order.numpy(), np.arange(24)[::-1])


@ct.kernel
def message_kernel(data, flag, out):
    """The last block sends what the others wait for."""
    if ct.bid(0) == ct.num_blocks(0) - 1:
        ct.store(data, (0,), ct.arange(64, dtype=ct.int32) * 3)
        ct.store(flag, (0,), ct.full((1,), 1, dtype=ct.int32), memory_order=ct.MemoryOrder.RELEASE, memory_scope=ct.MemoryScope.DEVICE)
    else:
        seen = 0
        while seen == 0:
            one = ct.load(flag, (0,), (1,), memory_order=ct.MemoryOrder.ACQUIRE, memory_scope=ct.MemoryScope.DEVICE)
            seen = one.item()
        ct.store(out, (ct.bid(0), 0), ct.load(data, (0,), (64,)).reshape((1, 64)))


@check
def messages():
    data, flag, out = empty(64, np.int32), Buffer(np.zeros(1, np.int32)), empty((5, 64), np.int32)
    launch(message_kernel, (6,), data, flag, out)
    np.testing.assert_array_equal(out.numpy(), np.tile(np.arange(64) * 3, (5, 1)))


@ct.kernel
def collatz_kernel(x, out):
    number = ct.gather(x, ct.bid(0))
    steps = 0
    while number != 1:
        if number % 2 == 0:
            number = number // 2
        else:
            number = 3 * number + 1
        steps += 1
    ct.scatter(out, ct.bid(0), steps)


@check
def loops_and_branches():
    def steps(number):
        count = 0
        while number != 1:
            number = number // 2 if number % 2 == 0 else 3 * number + 1
            count += 1
        return count

    x = np.arange(1, 41, dtype=np.int32)
    out = empty(40, np.int32)
    launch(collatz_kernel, (40,), Buffer(x), out)
    np.testing.assert_array_equal(out.numpy(), [steps(number) for number in range(1, 41)])


@ct.kernel
def pieces_kernel(x, y, out, cut):
    a, b = ct.load(x, (0, 0), (8, 16)), ct.load(y, (0, 0), (8, 16))
    ct.store(out, (0, 0), ct.cat((a, b), axis=1))
    ct.store(cut, (0, 0), ct.where(ct.extract(a, (1, 1), (4, 8)) > 0, ct.extract(a, (1, 1), (4, 8)), ct.extract(b, (0, 1), (4, 8))))


@check
def pieces():
    x, y = random((8, 16)), random((8, 16))
    out, cut = empty((8, 32)), empty((4, 8))
    launch(pieces_kernel, (1,), Buffer(x), Buffer(y), out, cut)
    np.testing.assert_array_equal(out.numpy(), np.concatenate([x, y], axis=1))
    part = x[4:, 8:]
    np.testing.assert_array_equal(cut.numpy(), np.where(part > 0, part, y[:4, 8:]))


@ct.kernel
def rows_kernel(x, rows, out):
    chosen = ct.load(rows, (0,), (8,))
    ct.store(out, (0, 0), ct.load_advanced_indexing(x, (chosen, ct.Slice(3, 16)), padding_mode=ct.PaddingMode.ZERO))


@check
def rows_by_number():
    x = random((20, 30))
    rows = np.array([3, 19, 0, 25, 7, 7, -1, 12], np.int32)
    out = empty((8, 16))
    launch(rows_kernel, (1,), Buffer(x), Buffer(rows), out)
    inside = (rows >= 0) & (rows < 20)
    np.testing.assert_array_equal(out.numpy(), np.where(inside[:, None], x[np.clip(rows, 0, 19), 3:19], np.float32(0)))


@ct.kernel
def small_kernel(codes, numbers, wide, narrow, kind: ct.Constant[int]):
    code = ct.load(codes, (0,), (256,))
    number = ct.load(numbers, (0,), (4096,))
    small = ct.float8_e4m3fn if kind == 0 else ct.float8_e5m2
    ct.store(wide, (0,), ct.bitcast(code, small).astype(ct.float32))
    ct.store(narrow, (0,), ct.bitcast(number.astype(small), ct.uint8))


@check
def numbers_of_eight_bits():
    """All codes to f32, and numbers of all sizes back; what is too large becomes the largest number."""
    codes = np.arange(256, dtype=np.uint8)
    for kind, small in enumerate((ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)):
        largest = float(ml_dtypes.finfo(small).max)
        numbers = np.exp2(RANDOM.uniform(-20, 18, 4096)).astype(np.float32) * RANDOM.choice([-1, 1], 4096).astype(np.float32)
        numbers[:256] = codes.view(small).astype(np.float32)
        numbers = np.nan_to_num(numbers, nan=1.5, posinf=1e9, neginf=-1e9)
        wide, narrow = empty(256), empty(4096, np.uint8)
        launch(small_kernel, (1,), Buffer(codes), Buffer(numbers), wide, narrow, kind)
        np.testing.assert_array_equal(wide.numpy(), codes.view(small).astype(np.float32))
        want = np.clip(numbers, -largest, largest).astype(small)
        np.testing.assert_array_equal(narrow.numpy().view(small).astype(np.float32), want.astype(np.float32))


@ct.kernel
def scaled_kernel(a, a_scale, b, b_scale, out):
    left = ct.bitcast(ct.load(a, (0, 0), (32, 64)), ct.float8_e4m3fn)
    right = ct.bitcast(ct.load(b, (0, 0), (64, 16)), ct.float8_e4m3fn)
    of_left = ct.bitcast(ct.load(a_scale, (0, 0), (32, 2)), ct.float8_e8m0fnu)
    of_right = ct.bitcast(ct.load(b_scale, (0, 0), (2, 16)), ct.float8_e8m0fnu)
    ct.store(out, (0, 0), ct.mma_scaled(left, of_left, right, of_right, ct.full((32, 16), 0, dtype=ct.float32)))


@check
def scaled_products():
    a, b = random((32, 64)).astype(ml_dtypes.float8_e4m3fn), random((64, 16)).astype(ml_dtypes.float8_e4m3fn)
    a_scale, b_scale = (RANDOM.integers(120, 134, shape).astype(np.uint8) for shape in ((32, 2), (2, 16)))
    out = empty((32, 16))
    launch(scaled_kernel, (1,), Buffer(a.view(np.uint8)), Buffer(a_scale), Buffer(b.view(np.uint8)), Buffer(b_scale), out)
    power = lambda codes: np.exp2(codes.astype(np.float64) - 127)
    left = a.astype(np.float64) * np.repeat(power(a_scale), 32, axis=1)
    right = b.astype(np.float64) * np.repeat(power(b_scale), 32, axis=0)
    want = left @ right
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-5, atol=1e-5 * np.abs(want).max())


@ct.kernel
def prefixes_kernel(x, forward, backward):
    values = ct.load(x, (0, 0), (8, 64))
    ct.store(forward, (0, 0), ct.cumsum(values, axis=1))
    ct.store(backward, (0, 0), ct.cumsum(values, axis=0, reverse=True))


@check
def prefixes():
    x = RANDOM.integers(-50, 50, (8, 64)).astype(np.float32)
    forward, backward = empty((8, 64)), empty((8, 64))
    launch(prefixes_kernel, (1,), Buffer(x), forward, backward)
    np.testing.assert_array_equal(forward.numpy(), np.cumsum(x, axis=1))
    np.testing.assert_array_equal(backward.numpy(), np.cumsum(x[::-1], axis=0)[::-1])


@ct.kernel
def printing_kernel(x):
    ct.printf("tile %d: %.2f\n", ct.bid(0), ct.load(x, (0,), (4,)))


@check
def printing():
    """In a process of its own: what it prints is to be read."""
    source = "import cutile_kernels as c, numpy as np; c.launch(c.printing_kernel, (2,), c.Buffer(np.array([1, 2.5, -3, 4], np.float32)))"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, cwd=os.path.dirname(os.path.abspath(__file__)))
    lines = sorted(done.stdout.splitlines())
    assert lines == ["tile 0: [1.00, 2.50, -3.00, 4.00]", "tile 1: [1.00, 2.50, -3.00, 4.00]"], (done.stdout, done.stderr)


def by_itself(kernel, grid, buffer, **variables):
    """A launch in a process of its own, with a buffer of zeros of so many numbers: what it says, and how it ends."""
    source = f"import cutile_kernels as c, numpy as np; c.launch(c.{kernel}, {grid}, c.Buffer(np.zeros({buffer}, np.float32)))"
    where = os.path.dirname(os.path.abspath(__file__))
    # What is found here is meant to be.
    given = {name: value for name, value in os.environ.items() if not name.startswith("MARGAY_CHECK")}
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, cwd=where, env=given | variables)
    return done.returncode, done.stdout + done.stderr


def place(words):
    """Where the first line of this file with these words is, as reports name it."""
    with open(__file__) as file:
        return f"cutile_kernels.py:{next(number for number, line in enumerate(file, 1) if words in line)}:"


@ct.kernel
def astray_kernel(x):
    ct.scatter(x, ct.arange(16, dtype=ct.int32) * 1000000000, ct.full((16,), 1, dtype=ct.float32), check_bounds=False)


@check
def a_stray_store_is_found():
    """In a process of its own: its context is lost."""
    code, said = by_itself("astray_kernel", (1,), 16)
    assert code != 0 and "700" in said, said
    assert place("1000000000") in said and "by store_ptr_tko of Tile IR" in said, said


def raise_first(x, by):
    first = ct.load(x, (0,), (16,))
    ct.store(x, (0,), first + by)


@ct.kernel
def racing_kernel(x):
    if ct.bid(0) == 1:
        raise_first(x, 2)
    else:
        ct.store(x, (0,), ct.full((16,), 1, dtype=ct.float32))


@check
def a_race_names_both_lines():
    """Of blocks that nothing orders; one of the accesses is in a function that the kernel calls."""
    code, said = by_itself("racing_kernel", (2,), 16, MARGAY_CHECK="race")
    for words in ("ct.store(x, (0,), first + by)", "ct.store(x, (0,), ct.full((16,), 1", "raise_first(x, 2)"):
        assert place(words) in said, (words, said)
    assert "in raise_first (inlined)" in said and "race of" in said, said


if __name__ == "__main__":
    main()
