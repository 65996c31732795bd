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
