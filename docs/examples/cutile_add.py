import ctypes

import cuda.tile as ct
import numpy as np

driver = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
driver.cuInit(0)
driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
driver.cuCtxSetCurrent(context)


class Buffer:
    """What cuTile asks of an array: its address and its type."""

    def __init__(self, array):
        address = ctypes.c_uint64()
        driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(array.nbytes))
        driver.cuMemcpyHtoD_v2(address, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes))
        interface = {"shape": array.shape, "typestr": array.dtype.str, "data": (address.value, False), "version": 3}
        self.__cuda_array_interface__ = interface

    def numpy(self, like):
        back = np.empty_like(like)
        address = ctypes.c_uint64(self.__cuda_array_interface__["data"][0])
        driver.cuMemcpyDtoH_v2(ctypes.c_void_p(back.ctypes.data), address, ctypes.c_size_t(back.nbytes))
        return back


@ct.kernel
def add(x, y, out, SIZE: ct.Constant[int]):
    at = ct.bid(0)
    ct.store(out, (at,), ct.load(x, (at,), (SIZE,)) + ct.load(y, (at,), (SIZE,)))


x, y = np.arange(5000, dtype=np.float32), np.ones(5000, np.float32)
out = Buffer(np.zeros_like(x))
ct.launch(0, (20,), add, (Buffer(x), Buffer(y), out, 256))
driver.cuCtxSynchronize()
print(np.array_equal(out.numpy(x), x + y))
