"""Numba: a kernel that adds two arrays."""
import numpy as np
from numba import cuda


@cuda.jit
def add(a, b, total):
    i = cuda.grid(1)
    if i < total.size:
        total[i] = a[i] + b[i]


a, b = np.arange(100000.0), np.ones(100000)
total = cuda.device_array(100000)
add[391, 256](cuda.to_device(a), cuda.to_device(b), total)
print((total.copy_to_host() == a + b).all())
