"""CuPy through NVIDIA's own cuBLAS, cuFFT, cuRAND, cuSOLVER and cuSPARSE, unmodified: `clients/python/run --libraries` installs them."""

import importlib.util
import pathlib

import cupy as cp
import numpy as np

from check import Skip, check, main

RANDOM = np.random.default_rng(5)


def needs(library):
    """Skips the check unless the wheel with this library is installed."""
    found = importlib.util.find_spec("nvidia")
    folders = [pathlib.Path(folder) for folder in found.submodule_search_locations] if found else []
    if not any((folder / "cu13" / "lib" / library).exists() for folder in folders):
        raise Skip(f"{library} is not installed")


def products(kind, tolerance):
    needs("libcublas.so.13")
    for size in (17, 128, 384):
        a, b = (RANDOM.random((size, size)) for _ in range(2))
        if np.issubdtype(kind, np.complexfloating):
            a = a + 1j * RANDOM.random((size, size))
        a, b = a.astype(kind), b.astype(kind)
        expected = a.astype(np.complex128) @ b.astype(np.complex128)
        found = (cp.asarray(a) @ cp.asarray(b)).get()
        assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max(), size


@check
def matmul_float32():
    products(np.float32, 1e-5)


@check
def matmul_float64():
    products(np.float64, 1e-13)


@check
def matmul_complex64():
    products(np.complex64, 1e-5)


@check
def matmul_complex128():
    products(np.complex128, 1e-13)


@check
def matmul_batched():
    needs("libcublas.so.13")
    a, b = RANDOM.random((5, 20, 30)), RANDOM.random((5, 30, 10))
    np.testing.assert_allclose(cp.matmul(cp.asarray(a), cp.asarray(b)).get(), a @ b, rtol=1e-13)


def bits_of(values, kind):
    """As half precision, or as bfloat16: the upper half of f32, rounded to nearest even."""
    if kind == "float16":
        return values.astype(np.float16).view(np.uint16)
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def values_of(bits, kind):
    bits = np.ascontiguousarray(bits)
    return bits.view(np.float16) if kind == "float16" else (bits.astype(np.uint32) << 16).view(np.float32)


@check
def matmul_halves():
    """cuBLAS makes kernels over tiles for these: of half precision and bfloat16, in either order of rows and columns."""
    needs("libcublas.so.13")
    from cupy_backends.cuda.libs import cublas

    number = {"float16": 2, "bfloat16": 14, "float32": 0}
    one, half = (np.array(value, np.float32) for value in (1, 0.5))
    handle = cp.cuda.device.get_cublas_handle()
    for kind, out in (("float16", "float16"), ("float16", "float32"), ("bfloat16", "bfloat16"), ("bfloat16", "float32")):
        for m, n, k in ((16, 2, 256), (17, 33, 65), (128, 128, 64), (200, 300, 100), (1, 64, 64)):
            for across_a, across_b in ((0, 0), (0, 1), (1, 0), (1, 1)):
                # Columns go first in cuBLAS.
                a, b = (bits_of(RANDOM.standard_normal(shape), kind) for shape in ((m, k), (k, n)))
                c = RANDOM.standard_normal((m, n))
                c = c.astype(np.float32) if out == "float32" else bits_of(c, out)
                stored = [cp.asarray(np.ascontiguousarray(x if across else x.T)) for x, across in ((a, across_a), (b, across_b))]
                result = cp.asarray(np.ascontiguousarray(c.T))
                cublas.gemmEx(
                    handle, across_a, across_b, m, n, k, one.ctypes.data, stored[0].data.ptr, number[kind], k if across_a else m,
                    stored[1].data.ptr, number[kind], n if across_b else k, half.ctypes.data, result.data.ptr, number[out], m,
                    cublas.CUBLAS_COMPUTE_32F, -1)
                found, before = (x if out == "float32" else values_of(x, out) for x in (result.get().T, c))
                left, right = (values_of(x, kind).astype(np.float64) for x in (a, b))
                expected = left @ right + before.astype(np.float64) / 2
                tolerance = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-5}[out] * (np.abs(expected).max() + 1)
                assert np.abs(found - expected).max() <= tolerance, (kind, out, m, n, k, across_a, across_b)


@check
def vectors():
    needs("libcublas.so.13")
    x, y = RANDOM.random((2, 1000)).astype(np.float32)
    np.testing.assert_allclose(float(cp.dot(cp.asarray(x), cp.asarray(y))), x @ y, rtol=1e-5)
    m = RANDOM.random((30, 1000)).astype(np.float32)
    np.testing.assert_allclose((cp.asarray(m) @ cp.asarray(x)).get(), m @ x, rtol=1e-5)
    np.testing.assert_allclose(cp.outer(cp.asarray(x[:50]), cp.asarray(y[:60])).get(), np.outer(x[:50], y[:60]), rtol=1e-6)


@check
def tensordot():
    needs("libcublas.so.13")
    a, b = RANDOM.random((4, 5, 6)), RANDOM.random((5, 6, 7))
    np.testing.assert_allclose(cp.tensordot(cp.asarray(a), cp.asarray(b), 2).get(), np.tensordot(a, b, 2), rtol=1e-13)


@check
def random_numbers():
    """Within five standard deviations of what the distribution says."""
    needs("libcurand.so.10")
    generator = cp.random.RandomState(1)
    uniform, normal = generator.rand(200000).get(), generator.normal(size=200000).get()
    assert 0 <= uniform.min() and uniform.max() <= 1
    assert abs(uniform.mean() - 0.5) < 5 * (1 / 12 / 200000) ** 0.5
    assert abs(normal.mean()) < 5 / 200000**0.5
    assert abs(normal.var() - 1) < 5 * (2 / 200000) ** 0.5
    assert not np.array_equal(uniform, np.sort(uniform))


def close(found, expected, tolerance):
    np.testing.assert_allclose(found.get(), expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


def transforms(sizes, kind, tolerance):
    needs("libcufft.so.12")
    for size in sizes:
        x = (RANDOM.random(size) + 1j * RANDOM.random(size)).astype(kind)
        close(cp.fft.fft(cp.asarray(x)), np.fft.fft(x.astype(np.complex128)), tolerance)
        close(cp.fft.ifft(cp.asarray(x)), np.fft.ifft(x.astype(np.complex128)), tolerance)


@check
def fft_powers_of_two():
    transforms((2, 64, 1024, 8192), np.complex128, 1e-13)
    transforms((2, 64, 1024, 8192), np.complex64, 1e-5)


@check
def fft_other_sizes():
    # Products of small primes, a large prime, twice one.
    transforms((60, 945, 1009, 2 * 1009), np.complex128, 1e-12)


@check
def fft_real():
    needs("libcufft.so.12")
    x = RANDOM.random((5, 96))
    close(cp.fft.rfft(cp.asarray(x)), np.fft.rfft(x), 1e-13)
    close(cp.fft.irfft(cp.asarray(np.fft.rfft(x))), x, 1e-13)


@check
def fft_of_planes():
    needs("libcufft.so.12")
    x = RANDOM.random((3, 20, 64)) + 1j * RANDOM.random((3, 20, 64))
    close(cp.fft.fft2(cp.asarray(x)), np.fft.fft2(x), 1e-12)
    close(cp.fft.fftn(cp.asarray(x)), np.fft.fftn(x), 1e-12)


@check
def systems_of_equations():
    needs("libcusolver.so.12")
    a, b = RANDOM.random((50, 50)), RANDOM.random(50)
    close(cp.linalg.solve(cp.asarray(a), cp.asarray(b)), np.linalg.solve(a, b), 1e-9)
    close(cp.linalg.inv(cp.asarray(a)), np.linalg.inv(a), 1e-9)


@check
def decompositions():
    needs("libcusolver.so.12")
    a = RANDOM.random((40, 20))
    square = a @ a.T + np.eye(40)
    q, r = cp.linalg.qr(cp.asarray(a))
    close(q @ r, a, 1e-12)
    close(cp.linalg.cholesky(cp.asarray(square)), np.linalg.cholesky(square), 1e-12)
    close(cp.linalg.svd(cp.asarray(a), compute_uv=False), np.linalg.svd(a, compute_uv=False), 1e-12)
    close(cp.linalg.eigvalsh(cp.asarray(square)), np.linalg.eigvalsh(square), 1e-12)


@check
def sparse_products():
    needs("libcusparse.so.12")
    import cupyx.scipy.sparse as sparse

    dense = RANDOM.random((50, 60)) * (RANDOM.random((50, 60)) < 0.1)
    matrix, x = sparse.csr_matrix(cp.asarray(dense)), RANDOM.random(60)
    close(matrix @ cp.asarray(x), dense @ x, 1e-13)
    close((matrix @ matrix.T).toarray(), dense @ dense.T, 1e-13)


main()
