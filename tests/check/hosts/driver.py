"""A client of the driver API that reads past an allocation: who calls from Python, by ctypes."""

import ctypes
import sys

# ctypes' CDLL lets go of the interpreter's lock during a call; PyDLL keeps it.
cuda = (ctypes.PyDLL if sys.argv[1:] == ["locked"] else ctypes.CDLL)("libcuda.so.1")
PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry take(.param .u64 at)
{
    .reg .u64 %at;
    .reg .u32 %value;
    ld.param.u64 %at, [at];
    ld.global.u32 %value, [%at+8];
    st.global.u32 [%at], %value;
    ret;
}
"""


def call(name, *arguments):
    if error := getattr(cuda, name)(*arguments):
        raise SystemExit(f"{name}: {error}")


def allocate(count):
    memory = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(count))
    return memory


def launch(function, memory):
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
    cuda.cuLaunchKernel(function, *[ctypes.c_uint(1)] * 6, ctypes.c_uint(0), None, arguments, None)
    cuda.cuCtxSynchronize()


def main():
    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    call("cuModuleLoadData", ctypes.byref(module), PTX)
    call("cuModuleGetFunction", ctypes.byref(function), module, b"take")
    launch(function, allocate(8))


main()
