"""Launches a kernel through `import margay` and nothing else: no variable is set, and no compiler is there."""

import ctypes
import os
import subprocess
import sys

import margay

PTX = b"""
.version 7.0
.target sm_75
.address_size 64

.visible .entry squares(.param .u64 out)
{
    .reg .b32 %i;
    .reg .b64 %out, %offset, %square;

    mov.u32 %i, %tid.x;
    ld.param.u64 %out, [out];
    cvta.to.global.u64 %out, %out;
    mul.wide.u32 %square, %i, %i;
    mul.wide.u32 %offset, %i, 8;
    add.s64 %out, %out, %offset;
    st.global.u64 [%out], %square;
    ret;
}
"""
COUNT = 1000


def main():
    # By the names that clients use: CuPy and cuda-bindings the first, Numba and Warp the second.
    for name in ["libcuda.so.1", "libcuda.so"]:
        launch(ctypes.CDLL(name))
    count = ctypes.c_uint()
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0 and count.value == 1
    libraries = {line.split()[-1] for line in open("/proc/self/maps") if "libcuda.so.1" in line}
    assert libraries == {margay.library_path()}, libraries
    assert margay.library_path() in margay.info()
    # Programs that this one starts find it, too.
    for program in sys.argv[1:]:
        subprocess.run([program], check=True)
    companions = os.path.join(os.path.dirname(margay.library_path()), "companions")
    assert os.environ["LD_LIBRARY_PATH"].split(":")[0] == os.path.dirname(margay.library_path())
    assert os.environ["CUDA_ROOT"] == companions
    for variable in ["TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"]:
        told = subprocess.run([os.environ[variable], "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
        assert "release 13.5" in told, told
    listed = subprocess.run(["nvidia-smi", "-L"], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert listed.startswith("GPU 0:"), listed
    print("PASS launch")


def launch(cuda):
    def check(code):
        assert code == 0, code

    device, context, module, kernel = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    memory = ctypes.c_uint64()
    check(cuda.cuInit(0))
    check(cuda.cuDeviceGet(ctypes.byref(device), 0))
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    check(cuda.cuCtxSetCurrent(context))
    check(cuda.cuModuleLoadData(ctypes.byref(module), PTX))
    check(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"squares"))
    check(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(8 * COUNT)))
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
    check(cuda.cuLaunchKernel(kernel, 1, 1, 1, COUNT, 1, 1, 0, None, arguments, None))
    numbers = (ctypes.c_uint64 * COUNT)()
    check(cuda.cuMemcpyDtoH_v2(numbers, memory, ctypes.c_size_t(8 * COUNT)))
    assert list(numbers) == [i * i for i in range(COUNT)]


main()
