"""Numba and CuPy after `import margay`, with no variable set."""

import margay  # noqa: F401, first on purpose

import cupy
import numpy
from numba import cuda


@cuda.jit
def twice(numbers):
    i = cuda.grid(1)
    if i < numbers.size:
        numbers[i] *= 2


numbers = numpy.arange(1000, dtype=numpy.int64)
twice[4, 256](numbers)
assert numbers.tolist() == list(range(0, 2000, 2))
squares = cupy.arange(1000, dtype=cupy.int64) ** 2
assert int(squares.sum()) == 999 * 1000 * 1999 // 6
print("PASS clients")
