"""JAX: what XLA leaves to NVIDIA's cuBLAS, cuFFT, cuSOLVER, cuSPARSE and cuDNN; expectations from numpy."""

import for_jax  # noqa: F401, before anything of JAX's

import jax
import jax.numpy as jnp
import numpy as np

from check import check, main

RANDOM = np.random.default_rng(8)


def close(found, expected, tolerance):
    expected = np.asarray(expected)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


@check
def matmul_float32():
    for size in (17, 128):
        a, b = RANDOM.random((2, size, size)).astype(np.float32)
        close(jnp.dot(a, b, precision="highest"), a.astype(np.float64) @ b, 1e-5)


@check
def matmul_as_tensor_cores_do():
    # JAX's default precision allows factors of 10 bits.
    a, b = RANDOM.random((2, 96, 96)).astype(np.float32)
    close(jnp.dot(a, b), a.astype(np.float64) @ b, 2e-3)


@check
def matmul_float64():
    for size in (17, 128):
        a, b = RANDOM.random((2, size, size))
        close(jnp.asarray(a) @ b, a @ b, 1e-13)


@check
def matmul_complex128():
    a, b = RANDOM.random((2, 40, 40)) + 1j * RANDOM.random((2, 40, 40))
    close(jnp.asarray(a) @ b, a @ b, 1e-13)


@check
def matmul_batched():
    a, b = RANDOM.random((5, 20, 30)), RANDOM.random((5, 30, 10))
    close(jnp.einsum("nij,njk->nik", a, b), a @ b, 1e-13)


@check
def gradient_of_a_product():
    a, b = RANDOM.random((2, 30, 30))
    close(jax.jit(jax.grad(lambda a: (a @ b).sum()))(a), np.ones((30, 30)) @ b.T, 1e-13)


@check
def transforms():
    for size in (64, 256, 60, 1009):
        x = RANDOM.random(size) + 1j * RANDOM.random(size)
        close(jnp.fft.fft(x), np.fft.fft(x), 1e-12)
        close(jnp.fft.ifft(x), np.fft.ifft(x), 1e-12)
    x = RANDOM.random((3, 20, 64))
    close(jnp.fft.rfft(x), np.fft.rfft(x), 1e-12)
    close(jnp.fft.fft2(x), np.fft.fft2(x), 1e-12)


@check
def systems_of_equations():
    a, b = RANDOM.random((20, 20)), RANDOM.random(20)
    close(jnp.linalg.solve(a, b), np.linalg.solve(a, b), 1e-9)
    close(jnp.linalg.inv(a), np.linalg.inv(a), 1e-9)
    close(jnp.linalg.det(a), np.linalg.det(a), 1e-10)
    square = a @ a.T + np.eye(20)
    lower = np.linalg.cholesky(square)
    close(jax.scipy.linalg.solve_triangular(lower, b, lower=True), np.linalg.solve(lower, b), 1e-11)


@check
def decompositions():
    a = RANDOM.random((20, 10))
    square = a @ a.T + np.eye(20)
    close(jnp.linalg.cholesky(square), np.linalg.cholesky(square), 1e-12)
    q, r = jnp.linalg.qr(a)
    close(q @ r, a, 1e-12)
    close(jnp.linalg.svd(a, compute_uv=False), np.linalg.svd(a, compute_uv=False), 1e-12)
    close(jnp.linalg.eigvalsh(square), np.linalg.eigvalsh(square), 1e-12)


@check
def convolutions():
    x, k = RANDOM.random((2, 3, 12, 12)), RANDOM.random((4, 3, 3, 3))
    expected = sum(
        np.einsum("nchw,oc->nohw", x[:, :, i : i + 10, j : j + 10], k[:, :, i, j]) for i in range(3) for j in range(3)
    )
    for kind, tolerance in ((np.float64, 1e-12), (np.float32, 2e-3)):
        found = jax.lax.conv_general_dilated(x.astype(kind), k.astype(kind), (1, 1), "VALID")
        close(found, expected, tolerance)


main()
