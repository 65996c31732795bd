"""JAX: what XLA compiles by itself, and its transformations; expectations from numpy and from JAX's own CPU backend."""

import for_jax  # noqa: F401, before anything of JAX's

import jax
import jax.numpy as jnp
import numpy as np

from check import check, main

RANDOM = np.random.default_rng(7)


def close(found, expected, tolerance):
    expected = np.asarray(expected)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


def as_on_cpu(function, *arguments):
    """What JAX itself makes of it without the device."""
    with jax.default_device(jax.devices("cpu")[0]):
        return jax.device_get(function(*arguments))


@check
def elementwise():
    for kind, tolerance in ((np.float32, 1e-5), (np.float64, 1e-14)):
        x = RANDOM.random(1000).astype(kind)
        close(jax.jit(lambda x: jnp.sin(x) * jnp.exp(x) + jnp.log1p(x))(x), np.sin(x) * np.exp(x) + np.log1p(x), tolerance)


@check
def integers():
    a = RANDOM.integers(-1000, 1000, 300)
    b = RANDOM.integers(1, 50, 300)
    found = jax.jit(lambda a, b: (a // b, a % b, a ^ b, a << 3, a >> 2))(a, b)
    for mine, expected in zip(found, (a // b, a % b, a ^ b, a << 3, a >> 2)):
        np.testing.assert_array_equal(np.asarray(mine), expected)


@check
def narrow_floats():
    x = RANDOM.random(500).astype(np.float32)
    for kind in (jnp.float16, jnp.bfloat16, jnp.float8_e4m3fn, jnp.float8_e5m2):
        there = np.asarray(jnp.asarray(x).astype(kind))
        np.testing.assert_array_equal(there.view(np.uint8), x.astype(kind).view(np.uint8))


@check
def complex_numbers():
    x = RANDOM.random(200) + 1j * RANDOM.random(200)
    close(jax.jit(lambda x: jnp.exp(x) / x + jnp.conj(x))(x), np.exp(x) / x + np.conj(x), 1e-13)


@check
def gradients():
    x = RANDOM.random(50)
    close(jax.grad(lambda x: (x**3).sum())(x), 3 * x**2, 1e-14)
    close(jax.jit(jax.hessian(lambda x: jnp.prod(x)))(x[:3]), [
        [0, x[2], x[1]],
        [x[2], 0, x[0]],
        [x[1], x[0], 0],
    ], 1e-14)  # fmt: skip
    value, slope = jax.jvp(jnp.tanh, (x,), (np.ones(50),))
    close(slope, 1 - np.tanh(x) ** 2, 1e-13)


@check
def mapped_over_an_axis():
    a, b = RANDOM.random((2, 8, 5))
    close(jax.jit(jax.vmap(lambda a, b: (a * b).sum()))(a, b), (a * b).sum(1), 1e-14)
    close(jax.vmap(jax.grad(lambda x: jnp.sum(x**2)))(a), 2 * a, 1e-14)


@check
def reductions():
    x = RANDOM.random((300, 200))
    there = jnp.asarray(x)
    close(there.sum(0), x.sum(0), 1e-13)
    close(there.mean(), x.mean(), 1e-13)
    close(there.std(1), x.std(1), 1e-13)
    np.testing.assert_array_equal(np.asarray(there.max(1)), x.max(1))
    np.testing.assert_array_equal(np.asarray(there.argmin(0)), x.argmin(0))


@check
def running_sums():
    x = RANDOM.integers(0, 100, 3000)
    np.testing.assert_array_equal(np.asarray(jnp.cumsum(x)), np.cumsum(x))
    y = RANDOM.random((20, 30))
    close(jnp.cumprod(y, axis=1), np.cumprod(y, axis=1), 1e-13)
    close(jax.lax.associative_scan(jnp.maximum, y), np.maximum.accumulate(y), 0)


@check
def sorting():
    for x in (RANDOM.random(5000).astype(np.float32), RANDOM.integers(0, 50, 700), RANDOM.random((30, 40))):
        np.testing.assert_array_equal(np.asarray(jnp.sort(x)), np.sort(x))
    x = RANDOM.integers(0, 20, 400)
    np.testing.assert_array_equal(np.asarray(jnp.argsort(x, stable=True)), np.argsort(x, stable=True))
    values, places = jax.lax.top_k(jnp.asarray(RANDOM.permutation(1000)), 5)
    np.testing.assert_array_equal(np.asarray(values), [999, 998, 997, 996, 995])
    np.testing.assert_array_equal(np.asarray(jnp.unique(x)), np.unique(x))


@check
def places():
    x, i = RANDOM.random(100), RANDOM.integers(0, 100, 50)
    np.testing.assert_array_equal(np.asarray(jnp.asarray(x)[i]), x[i])
    np.testing.assert_array_equal(np.asarray(jnp.zeros(100).at[i].add(1.0)), np.bincount(i, minlength=100))
    np.testing.assert_array_equal(np.asarray(jnp.where(x > 0.5, x, 0)), np.where(x > 0.5, x, 0))
    y = RANDOM.random((6, 7, 8))
    np.testing.assert_array_equal(np.asarray(jnp.asarray(y).transpose(2, 0, 1)[::-1, 1:3]), y.transpose(2, 0, 1)[::-1, 1:3])


@check
def random_numbers():
    """The generator is defined by its bits, which the CPU backend has, too."""
    key = jax.random.key(3)
    for draw in (jax.random.bits, jax.random.uniform):
        np.testing.assert_array_equal(np.asarray(draw(key, (1000,))), as_on_cpu(lambda: draw(jax.random.key(3), (1000,))))
    np.testing.assert_array_equal(
        np.asarray(jax.random.permutation(key, 500)), as_on_cpu(lambda: jax.random.permutation(jax.random.key(3), 500))
    )
    normal = np.asarray(jax.random.normal(key, (20000,)))
    assert abs(normal.mean()) < 5 / 20000**0.5 and abs(normal.var() - 1) < 5 * (2 / 20000) ** 0.5


@check
def scan():
    last, all_of_them = jax.lax.scan(lambda carry, x: (carry + x, carry * x), 0.0, jnp.arange(20.0))
    assert last == 190
    sums = np.concatenate([[0], np.cumsum(np.arange(19.0))])
    np.testing.assert_array_equal(np.asarray(all_of_them), sums * np.arange(20))


@check
def while_loop():
    assert jax.lax.while_loop(lambda x: x < 1000, lambda x: x * 2, 1) == 1024
    collatz = jax.jit(lambda n: jax.lax.while_loop(
        lambda state: state[0] != 1,
        lambda state: (jnp.where(state[0] % 2 == 0, state[0] // 2, 3 * state[0] + 1), state[1] + 1),
        (n, 0),
    )[1])  # fmt: skip
    assert collatz(27) == 111


@check
def branches():
    choose = jax.jit(lambda n, x: jax.lax.switch(n, (jnp.sin, jnp.cos, lambda x: -x), x))
    x = RANDOM.random(10)
    for n, expected in enumerate((np.sin(x), np.cos(x), -x)):
        close(choose(n, x), expected, 1e-14)
    assert jax.jit(lambda x: jax.lax.cond(x > 2, lambda: 1, lambda: 2))(3) == 1


@check
def calls_of_python():
    def host(x):
        return np.sort(x)[::-1].copy()

    x = RANDOM.random(30)
    found = jax.jit(lambda x: 2 * jax.pure_callback(host, jax.ShapeDtypeStruct(x.shape, x.dtype), x))(x)
    np.testing.assert_array_equal(np.asarray(found), 2 * host(x))


@check
def donated_buffers_and_copies():
    step = jax.jit(lambda x: x * 2 + 1, donate_argnums=0)
    x = jnp.arange(100.0)
    for _ in range(5):
        x = step(x)
    np.testing.assert_array_equal(np.asarray(x), np.arange(100) * 32 + 31)
    here = jax.device_put(x, jax.devices("cpu")[0])
    np.testing.assert_array_equal(np.asarray(jax.device_put(here, jax.devices()[0])), np.asarray(x))


@check
def descent():
    """A line is fitted to points on it."""
    x = RANDOM.random(64)
    y = 3 * x - 2

    @jax.jit
    def step(weights):
        return weights - 0.5 * jax.grad(lambda w: jnp.mean((w[0] * x + w[1] - y) ** 2))(weights)

    weights = jnp.zeros(2)
    for _ in range(600):
        weights = step(weights)
    close(weights, [3, -2], 1e-6)


main()
