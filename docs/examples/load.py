"""Loads a file of PTX as programs do: `python3 load.py kernel.ptx`."""
import ctypes
import sys

cuda = ctypes.CDLL("libcuda.so.1")
device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
cuda.cuInit(0)
cuda.cuDeviceGet(ctypes.byref(device), 0)
cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device)
error = cuda.cuModuleLoadData(ctypes.byref(module), open(sys.argv[1], "rb").read() + b"\0")
print("cuModuleLoadData:", error)
