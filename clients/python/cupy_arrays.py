"""CuPy: array functions, most compiled when first used, some prebuilt (CUB, Thrust)."""

import cupy as cp
import numpy as np

from check import check, main

RANDOM = np.random.default_rng(3)


@check
def sum_of_elementwise():
    a, b = RANDOM.integers(0, 100, (2, 1000)).astype(np.float32)
    assert float((cp.asarray(a) + cp.asarray(b)).sum()) == (a + b).sum()


@check
def elementwise_functions():
    x = RANDOM.random(777)
    y = cp.asarray(x)
    for name in ("sqrt", "exp", "log1p", "sin", "arctan", "floor"):
        expected = getattr(np, name)(x)
        np.testing.assert_allclose(getattr(cp, name)(y).get(), expected, rtol=1e-14, err_msg=name)
    np.testing.assert_array_equal((y * 2 - 1 > 0).get(), x * 2 - 1 > 0)


@check
def types():
    a = np.arange(-20, 20)
    for kind in (np.int8, np.uint16, np.int64, np.float16, np.float32, np.complex64, np.bool_):
        expected = (a.astype(kind) + a.astype(kind)).astype(np.complex64)
        there = cp.asarray(a.astype(kind))
        np.testing.assert_array_equal((there + there).astype(np.complex64).get(), expected, err_msg=str(kind))


@check
def reductions():
    a = RANDOM.integers(-50, 50, (20, 30))
    there = cp.asarray(a)
    for name in ("sum", "max", "min", "argmax", "mean", "any"):
        for axis in (None, 0, 1):
            expected = getattr(a, name)(axis=axis)
            np.testing.assert_array_equal(getattr(there, name)(axis=axis).get(), expected, err_msg=f"{name} {axis}")


@check
def broadcasting_and_views():
    a, b = RANDOM.random((4, 1, 6)), RANDOM.random((5, 1))
    x, y = cp.asarray(a), cp.asarray(b)
    np.testing.assert_array_equal((x * y).get(), a * b)
    np.testing.assert_array_equal((x[::2, :, ::-1].transpose(2, 0, 1) + 1).get(), a[::2, :, ::-1].transpose(2, 0, 1) + 1)


@check
def cumulated():
    a = RANDOM.integers(0, 9, 1000)
    np.testing.assert_array_equal(cp.cumsum(cp.asarray(a)).get(), np.cumsum(a))
    b = RANDOM.integers(0, 9, (13, 17))
    np.testing.assert_array_equal(cp.cumsum(cp.asarray(b), axis=1).get(), np.cumsum(b, axis=1))


@check
def sorted_():
    a = RANDOM.integers(0, 500, 1000).astype(np.int32)
    np.testing.assert_array_equal(cp.sort(cp.asarray(a)).get(), np.sort(a))
    order = cp.argsort(cp.asarray(a)).get()
    np.testing.assert_array_equal(a[order], np.sort(a))


@check
def distinct_values():
    a = RANDOM.integers(0, 40, 300)
    values, counts = cp.unique(cp.asarray(a), return_counts=True)
    expected = np.unique(a, return_counts=True)
    np.testing.assert_array_equal(values.get(), expected[0])
    np.testing.assert_array_equal(counts.get(), expected[1])


@check
def fancy_indexing():
    a, index = RANDOM.random((20, 10)), RANDOM.integers(0, 20, 7)
    there, where = cp.asarray(a), cp.asarray(index)
    np.testing.assert_array_equal(there[where].get(), a[index])
    np.testing.assert_array_equal(there[there > 0.5].get(), a[a > 0.5])
    there[where, 2] = 5
    a[index, 2] = 5
    np.testing.assert_array_equal(there.get(), a)
    np.testing.assert_array_equal(cp.where(there > 1, there, -there).get(), np.where(a > 1, a, -a))
    np.testing.assert_array_equal(cp.take(there, where, axis=0).get(), np.take(a, index, axis=0))


@check
def scattered_sums():
    index, values = RANDOM.integers(0, 10, 200), RANDOM.integers(0, 10, 200).astype(np.float32)
    sums, expected = cp.zeros(10, np.float32), np.zeros(10, np.float32)
    cp.add.at(sums, cp.asarray(index), cp.asarray(values))
    np.add.at(expected, index, values)
    np.testing.assert_array_equal(sums.get(), expected)
    np.testing.assert_array_equal(cp.bincount(cp.asarray(index)).get(), np.bincount(index))


@check
def joined_and_repeated():
    a, b = RANDOM.random((3, 4)), RANDOM.random((2, 4))
    there = cp.concatenate([cp.asarray(a), cp.asarray(b)])
    np.testing.assert_array_equal(there.get(), np.concatenate([a, b]))
    np.testing.assert_array_equal(cp.tile(there, (2, 1)).get(), np.tile(np.concatenate([a, b]), (2, 1)))


@check
def random_numbers_of_its_own_generators():
    generator = cp.random.Generator(cp.random.Philox4x3210(seed=7))
    numbers = generator.random(2000).get()
    # Five standard deviations of the mean of 2,000 uniform numbers.
    assert 0 <= numbers.min() and numbers.max() < 1 and abs(numbers.mean() - 0.5) < 0.033
    assert len(np.unique(numbers)) > 1900


main()
