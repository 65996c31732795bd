"""JAX on two devices: arrays in pieces, and what they say to each other (through NVIDIA's NCCL)."""

import os

os.environ["MARGAY_DEVICES"] = "2"

import for_jax  # noqa: E402, F401, before anything of JAX's

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

from check import check, main  # noqa: E402

RANDOM = np.random.default_rng(9)
MESH = Mesh(np.array(jax.devices()), ("halves",))
HALVES, WHOLE = NamedSharding(MESH, PartitionSpec("halves")), NamedSharding(MESH, PartitionSpec())


def by_device(function):
    return jax.jit(jax.shard_map(function, mesh=MESH, in_specs=PartitionSpec("halves"), out_specs=PartitionSpec("halves")))


@check
def there_are_two():
    assert len(jax.devices()) == 2
    for device in jax.devices():
        x = jax.device_put(np.arange(10), device)
        assert x.devices() == {device}
        np.testing.assert_array_equal(np.asarray(x * 2), np.arange(10) * 2)


@check
def copies_between_them():
    x = jax.device_put(RANDOM.random(1000), jax.devices()[0])
    np.testing.assert_array_equal(np.asarray(jax.device_put(x, jax.devices()[1])), np.asarray(x))


@check
def halves():
    x = RANDOM.random(512)
    there = jax.device_put(x, HALVES)
    assert [piece.data.shape for piece in there.addressable_shards] == [(256,), (256,)]
    np.testing.assert_array_equal(np.asarray(jax.jit(lambda x: x * 2 + 1)(there)), x * 2 + 1)


@check
def all_reduce():
    x = RANDOM.integers(0, 100, (2, 300)).astype(np.float32)
    found = by_device(lambda x: jax.lax.psum(x, "halves"))(x)
    np.testing.assert_array_equal(np.asarray(found), np.stack([x.sum(0)] * 2))
    np.testing.assert_array_equal(np.asarray(jnp.sum(jax.device_put(x, HALVES))), x.sum())


@check
def all_gather():
    x = RANDOM.random(512)
    found = jax.jit(lambda x: x, out_shardings=WHOLE)(jax.device_put(x, HALVES))
    assert found.sharding == WHOLE
    np.testing.assert_array_equal(np.asarray(found), x)


@check
def ring():
    x = RANDOM.random((2, 50))
    found = by_device(lambda x: jax.lax.ppermute(x, "halves", [(0, 1), (1, 0)]))(x)
    np.testing.assert_array_equal(np.asarray(found), x[::-1])


@check
def reduce_scatter():
    x = RANDOM.integers(0, 100, (2, 100)).astype(np.float64)
    found = by_device(lambda x: jax.lax.psum_scatter(x[0], "halves", tiled=True))(x)
    np.testing.assert_array_equal(np.asarray(found), x.sum(0))


main()
