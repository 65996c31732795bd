"""Triton without torch: what it asks of an array is an address and a type."""
import ctypes

import numpy as np
import triton
import triton.language as tl

driver = ctypes.CDLL("libcuda.so.1")


class Array:
    """A copy of an array of numpy's in the device's memory."""

    def __init__(self, array):
        # Triton makes the driver's context current.
        triton.runtime.driver.active.get_current_device()
        self.dtype, self.array, self.address = str(array.dtype), array, ctypes.c_uint64()
        assert driver.cuMemAlloc_v2(ctypes.byref(self.address), ctypes.c_size_t(array.nbytes)) == 0
        assert driver.cuMemcpyHtoD_v2(self.address, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes)) == 0

    def data_ptr(self):
        return self.address.value

    def get(self):
        out = np.empty_like(self.array)
        assert driver.cuMemcpyDtoH_v2(out.ctypes.data_as(ctypes.c_void_p), self.address, ctypes.c_size_t(out.nbytes)) == 0
        return out


@triton.jit
def add(a, b, total, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(total + at, tl.load(a + at, mask=inside) + tl.load(b + at, mask=inside), mask=inside)


a, b = np.arange(10000, dtype=np.float32), np.ones(10000, dtype=np.float32)
x, y, total = Array(a), Array(b), Array(np.zeros_like(a))
add[(triton.cdiv(10000, 256),)](x, y, total, 10000, BLOCK=256)
print((total.get() == a + b).all())
