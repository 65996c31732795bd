"""PyCUDA's arrays: arithmetic, functions, reductions, scans, kernels over elements, memory pools, random numbers."""

import numpy as np
import pycuda.autoinit
import pycuda.cumath as cumath
import pycuda.driver as drv
import pycuda.gpuarray as gpuarray
from pycuda.elementwise import ElementwiseKernel
from pycuda.reduction import ReductionKernel
from pycuda.scan import ExclusiveScanKernel, InclusiveScanKernel
from pycuda.tools import DeviceMemoryPool, PageLockedMemoryPool

from check import check, main

RANDOM = np.random.default_rng(7)


def whole(*shape, kind=np.float32):
    """Small whole numbers: sums and products of them are exact."""
    return RANDOM.integers(-50, 50, shape).astype(kind)


@check
def arithmetic():
    for kind in (np.float32, np.float64, np.int32, np.complex64):
        a, b = whole(300, kind=kind), whole(300, kind=kind)
        x, y = gpuarray.to_gpu(a), gpuarray.to_gpu(b)
        np.testing.assert_array_equal((x + y).get(), a + b)
        np.testing.assert_array_equal((x - 2 * y).get(), a - 2 * b)
        np.testing.assert_array_equal((x * y).get(), a * b)
    a, b = RANDOM.random((2, 300)).astype(np.float32)
    x, y = gpuarray.to_gpu(a), gpuarray.to_gpu(b)
    # Division is correctly rounded, in nvcc's default as in numpy.
    np.testing.assert_array_equal((x / y).get(), a / b)
    x += y
    np.testing.assert_array_equal(x.get(), a + b)
    np.testing.assert_allclose((y**3).get(), b.astype(np.float64) ** 3, rtol=1e-6)
    np.testing.assert_array_equal(abs(-y).get(), b)
    np.testing.assert_array_equal((x > y).get().astype(bool), a + b > b)


@check
def views_and_shapes():
    a = whole(12, 20)
    x = gpuarray.to_gpu(a)
    np.testing.assert_array_equal(x.reshape(20, 12).get(), a.reshape(20, 12))
    np.testing.assert_array_equal(x[3:7].get(), a[3:7])
    np.testing.assert_array_equal(x.T.get(), a.T)
    np.testing.assert_array_equal(x.view(np.int32).get(), a.view(np.int32))
    np.testing.assert_array_equal(gpuarray.concatenate([x, x], axis=1).get(), np.concatenate([a, a], axis=1))
    np.testing.assert_array_equal(gpuarray.arange(3, 50, 4, dtype=np.int32).get(), np.arange(3, 50, 4))
    np.testing.assert_array_equal(gpuarray.zeros((5, 5), np.float64).fill(2.5).get(), np.full((5, 5), 2.5))


@check
def functions_of_elements():
    a = (RANDOM.random(500) * 0.98 + 0.01).astype(np.float64)
    x = gpuarray.to_gpu(a)
    for name in "ceil floor fabs exp log log10 sqrt sin cos tan asin acos atan sinh cosh tanh".split():
        expected = {"asin": np.arcsin, "acos": np.arccos, "atan": np.arctan}.get(name) or getattr(np, name)
        # CUDA's table of errors in double precision: at most 2 units in the last place for these.
        np.testing.assert_allclose(getattr(cumath, name)(x).get(), expected(a), rtol=1e-15)
    # PyCUDA has these for single precision alone.
    a = a.astype(np.float32)
    fraction, exponent = cumath.frexp(gpuarray.to_gpu(a))
    np.testing.assert_array_equal(fraction.get(), np.frexp(a)[0])
    np.testing.assert_array_equal(exponent.get(), np.frexp(a)[1])


@check
def kernels_over_elements():
    combine = ElementwiseKernel("float a, float *x, float b, float *y, float *z", "z[i] = a * x[i] + b * y[i]", "combine")
    a, b = whole(1000), whole(1000)
    x, y = gpuarray.to_gpu(a), gpuarray.to_gpu(b)
    z = gpuarray.empty_like(x)
    combine(3, x, -2, y, z)
    np.testing.assert_array_equal(z.get(), 3 * a - 2 * b)
    combine(1, x, 1, y, z, range=slice(100, 900, 7))
    expected = 3 * a - 2 * b
    expected[100:900:7] = (a + b)[100:900:7]
    np.testing.assert_array_equal(z.get(), expected)


@check
def reductions():
    a = whole(100_000)
    x = gpuarray.to_gpu(a)
    assert gpuarray.sum(x).get() == a.sum()
    assert (gpuarray.max(x).get(), gpuarray.min(x).get()) == (a.max(), a.min())
    assert gpuarray.dot(x[:5000], x[5000:10000]).get() == np.dot(a[:5000], a[5000:10000])
    squares = ReductionKernel(np.float32, neutral="0", reduce_expr="a+b", map_expr="x[i]*x[i]", arguments="float *x")
    # Below 2^24 in each part, in whichever order.
    assert squares(x[:5000]).get() == (a[:5000] ** 2).sum()


@check
def scans():
    for kind, name in ((np.int32, "int"), (np.float32, "float")):
        a = whole(20_000, kind=kind)
        x = gpuarray.to_gpu(a)
        np.testing.assert_array_equal(InclusiveScanKernel(kind, "a+b")(x).get(), np.cumsum(a))
        x = gpuarray.to_gpu(a)
        running = ExclusiveScanKernel(kind, "a > b ? a : b", neutral=-1000)
        np.testing.assert_array_equal(running(x).get(), np.maximum.accumulate(np.append(kind(-1000), a)[:-1]))


@check
def choices_and_comparisons():
    a, b = whole(400), whole(400)
    x, y = gpuarray.to_gpu(a), gpuarray.to_gpu(b)
    np.testing.assert_array_equal(gpuarray.if_positive(x > y, x, y).get(), np.where(a > b, a, b))
    np.testing.assert_array_equal(gpuarray.maximum(x, y).get(), np.maximum(a, b))
    z = gpuarray.to_gpu(whole(500, kind=np.complex128))
    np.testing.assert_array_equal((z.real + z.imag).get(), z.get().real + z.get().imag)
    np.testing.assert_array_equal(z.conj().get(), z.get().conj())


@check
def memory_pools():
    pool = DeviceMemoryPool()
    a = whole(1000)
    x = gpuarray.to_gpu(a, allocator=pool.allocate)
    assert pool.active_blocks == 1
    np.testing.assert_array_equal((x + x).get(), 2 * a)
    del x
    assert (pool.active_blocks, pool.held_blocks > 0) == (0, True)
    pool.stop_holding()
    locked = PageLockedMemoryPool().allocate((1000,), np.float32)
    locked[:] = a
    stream = drv.Stream()
    x = gpuarray.to_gpu_async(locked, stream=stream)
    stream.synchronize()
    np.testing.assert_array_equal(x.get(), a)


@check
def random_numbers():
    from pycuda.curandom import MRG32k3aRandomNumberGenerator, Sobol32RandomNumberGenerator, XORWOWRandomNumberGenerator

    for make in (XORWOWRandomNumberGenerator, MRG32k3aRandomNumberGenerator):
        a = make().gen_uniform(10_000, np.float32).get()
        assert a.min() > 0 and a.max() <= 1
        # Five deviations of the mean of so many.
        assert abs(a.mean() - 0.5) < 5 * np.sqrt(1 / 12 / 10_000)
    # The first 64 of a Sobol sequence are the multiples of 1/64 in some order, plus 2^-33 that is lost in all but the first.
    sobol = Sobol32RandomNumberGenerator()
    threads = sobol.block_count * sobol.generators_per_block
    a = np.sort(sobol.gen_uniform(64 * threads, np.float32).get().reshape(64, threads), axis=0)
    np.testing.assert_array_equal(a, np.repeat(np.append(2.0**-33, np.arange(1, 64) / 64)[:, None], threads, axis=1))
    first, again = (XORWOWRandomNumberGenerator(lambda count: gpuarray.zeros(count, np.int32) + 5) for _ in range(2))
    np.testing.assert_array_equal(first.gen_normal(1000, np.float64).get(), again.gen_normal(1000, np.float64).get())


if __name__ == "__main__":
    main()
