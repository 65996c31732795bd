"""cuda.bindings: the driver, the runtime, NVRTC, nvJitLink, NVVM, nvFatbin and NVML, called as from C."""

import ctypes

import numpy as np
from cuda.bindings import driver, nvfatbin, nvjitlink, nvml, nvrtc, nvvm, runtime

from check import check, main

RANDOM = np.random.default_rng(13)


def ok(result):
    """What a call gives besides success."""
    error, *rest = result
    assert int(error) == 0, error
    return rest[0] if len(rest) == 1 else rest


ok(driver.cuInit(0))
DEVICE = ok(driver.cuDeviceGet(0))
CONTEXT = ok(driver.cuDevicePrimaryCtxRetain(DEVICE))
ok(driver.cuCtxSetCurrent(CONTEXT))
ARCHITECTURE = "".join(
    str(ok(driver.cuDeviceGetAttribute(attribute, DEVICE)))
    for attribute in (
        driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
        driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
    )
)

SAXPY = b"""
extern "C" __global__ void saxpy(float a, const float *x, float *y, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) y[i] = __fadd_rn(__fmul_rn(a, x[i]), y[i]);
}
__device__ int counter = 40;
extern "C" __global__ void count() { atomicAdd(&counter, 1); }
"""


def compiled(source, what="PTX", *options):
    program = ok(nvrtc.nvrtcCreateProgram(source, b"program.cu", 0, None, None))
    options = [f"--gpu-architecture=sm_{ARCHITECTURE}".encode(), *options]
    ended = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if int(ended[0]):
        log = b" " * ok(nvrtc.nvrtcGetProgramLogSize(program))
        ok(nvrtc.nvrtcGetProgramLog(program, log))
        raise ValueError(log.decode())
    image = b" " * ok(getattr(nvrtc, f"nvrtcGet{what}Size")(program))
    ok(getattr(nvrtc, f"nvrtcGet{what}")(program, image))
    ok(nvrtc.nvrtcDestroyProgram(program))
    return image


class Array:
    def __init__(self, values):
        self.values = values
        self.place = ok(driver.cuMemAlloc(values.nbytes))
        ok(driver.cuMemcpyHtoD(self.place, values.ctypes.data, values.nbytes))

    def get(self):
        found = np.empty_like(self.values)
        ok(driver.cuMemcpyDtoH(found.ctypes.data, self.place, found.nbytes))
        return found


def saxpy_is_right(module):
    function = ok(driver.cuModuleGetFunction(module, b"saxpy"))
    x, y = RANDOM.random((2, 1000)).astype(np.float32)
    a, there, result = np.float32(2.5), Array(x), Array(y)
    arguments = (
        (float(a), there.place, result.place, 1000),
        (ctypes.c_float, None, None, ctypes.c_size_t),
    )
    ok(driver.cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, 0, arguments, 0))
    ok(driver.cuCtxSynchronize())
    np.testing.assert_array_equal(result.get(), a * x + y)


@check
def nvrtc_to_ptx_and_machine_code():
    for what in ("PTX", "CUBIN"):
        saxpy_is_right(ok(driver.cuModuleLoadData(compiled(SAXPY, what))))


@check
def pointers_to_arguments():
    module = ok(driver.cuModuleLoadData(compiled(SAXPY)))
    x = Array(np.arange(10, dtype=np.float32))
    y = Array(np.ones(10, np.float32))
    values = [np.array(value, kind) for value, kind in
              ((3, np.float32), (int(x.place), np.uint64), (int(y.place), np.uint64), (10, np.uint64))]  # fmt: skip
    pointers = np.array([value.ctypes.data for value in values], np.uint64)
    function = ok(driver.cuModuleGetFunction(module, b"saxpy"))
    ok(driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, pointers.ctypes.data, 0))
    np.testing.assert_array_equal(y.get(), 3 * np.arange(10) + 1)


@check
def variables_of_modules():
    module = ok(driver.cuModuleLoadData(compiled(SAXPY)))
    place, size = ok(driver.cuModuleGetGlobal(module, b"counter"))
    assert size == 4
    function = ok(driver.cuModuleGetFunction(module, b"count"))
    ok(driver.cuLaunchKernel(function, 2, 1, 1, 4, 1, 1, 0, 0, 0, 0))
    found = np.zeros(1, np.int32)
    ok(driver.cuMemcpyDtoH(found.ctypes.data, place, 4))
    assert found[0] == 48


@check
def libraries_and_kernels():
    library = ok(driver.cuLibraryLoadData(compiled(SAXPY), [], [], 0, [], [], 0))
    assert ok(driver.cuLibraryGetKernelCount(library)) == 2
    kernels = ok(driver.cuLibraryEnumerateKernels(2, library))
    assert sorted(ok(driver.cuKernelGetName(kernel)) for kernel in kernels) == [b"count", b"saxpy"]
    saxpy_is_right(ok(driver.cuLibraryGetModule(library)))
    ok(driver.cuLibraryUnload(library))


@check
def mistakes_are_told():
    try:
        compiled(b"__global__ void k() { nobody(); }")
    except ValueError as error:
        assert "nobody" in str(error)
    else:
        raise AssertionError("it was compiled")
    assert driver.cuModuleLoadData(b"nonsense\0")[0] in (
        driver.CUresult.CUDA_ERROR_INVALID_IMAGE,
        driver.CUresult.CUDA_ERROR_INVALID_PTX,
    )
    assert driver.cuDeviceGet(99)[0] == driver.CUresult.CUDA_ERROR_INVALID_DEVICE
    assert ok(driver.cuGetErrorName(driver.CUresult.CUDA_ERROR_INVALID_DEVICE)) == b"CUDA_ERROR_INVALID_DEVICE"
    assert runtime.cudaSetDevice(99)[0] == runtime.cudaError_t.cudaErrorInvalidDevice
    assert runtime.cudaGetLastError()[0] == runtime.cudaError_t.cudaErrorInvalidDevice
    assert runtime.cudaGetLastError()[0] == runtime.cudaError_t.cudaSuccess


PARTS = (
    b'extern __device__ int twice(int); extern "C" __global__ void k(int *a) { a[threadIdx.x] = twice(a[threadIdx.x]); }',
    b"__device__ int twice(int x) { return 2 * x; }",
)


def linked(what, kind, *options):
    handle = nvjitlink.create(1 + len(options), [f"-arch=sm_{ARCHITECTURE}", *options])
    for part in PARTS:
        image = compiled(part, what, b"-rdc=true", *([b"-dlto"] if what == "LTOIR" else []))
        nvjitlink.add_data(handle, kind, image, len(image), "part")
    nvjitlink.complete(handle)
    image = bytearray(nvjitlink.get_linked_cubin_size(handle))
    nvjitlink.get_linked_cubin(handle, image)
    nvjitlink.destroy(handle)
    module = ok(driver.cuModuleLoadData(bytes(image)))
    a = Array(np.arange(32, dtype=np.int32))
    function = ok(driver.cuModuleGetFunction(module, b"k"))
    ok(driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, ((a.place,), (None,)), 0))
    np.testing.assert_array_equal(a.get(), 2 * np.arange(32))


@check
def nvjitlink_of_ptx():
    linked("PTX", nvjitlink.InputType.PTX)


@check
def nvjitlink_of_machine_code():
    linked("CUBIN", nvjitlink.InputType.CUBIN)


@check
def nvjitlink_of_intermediate_code():
    linked("LTOIR", nvjitlink.InputType.LTOIR, "-lto")


@check
def links_of_the_driver():
    options = [driver.CUjit_option.CU_JIT_TARGET_FROM_CUCONTEXT]
    state = ok(driver.cuLinkCreate(1, options, [0]))
    for part in PARTS:
        image = compiled(part, "PTX", b"-rdc=true")
        ok(driver.cuLinkAddData(state, driver.CUjitInputType.CU_JIT_INPUT_PTX, image, len(image), b"part", 0, [], []))
    image, size = ok(driver.cuLinkComplete(state))
    assert size > 0
    module = ok(driver.cuModuleLoadData(image))
    ok(driver.cuLinkDestroy(state))
    a = Array(np.arange(32, dtype=np.int32))
    function = ok(driver.cuModuleGetFunction(module, b"k"))
    ok(driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, ((a.place,), (None,)), 0))
    np.testing.assert_array_equal(a.get(), 2 * np.arange(32))


@check
def nvfatbin_of_ptx():
    text = compiled(SAXPY)
    handle = nvfatbin.create(["-64"], 1)
    nvfatbin.add_ptx(handle, text, len(text), ARCHITECTURE, "saxpy", f"-arch=sm_{ARCHITECTURE}")
    image = bytearray(nvfatbin.size(handle))
    nvfatbin.get(handle, image)
    nvfatbin.destroy(handle)
    saxpy_is_right(ok(driver.cuModuleLoadFatBinary(bytes(image))))


@check
def nvvm_to_ptx():
    major, minor, debug_major, debug_minor = nvvm.ir_version()
    text = f"""
target triple = "nvptx64-nvidia-cuda"
target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-\
v32:32:32-v64:64:64-v128:128:128-n16:32:64"
define void @seven(ptr %out) {{
    store i32 7, ptr %out
    ret void
}}
!nvvmir.version = !{{!0}}
!0 = !{{i32 {major}, i32 {minor}, i32 {debug_major}, i32 {debug_minor}}}
!nvvm.annotations = !{{!1}}
!1 = !{{ptr @seven, !"kernel", i32 1}}
""".encode()
    program = nvvm.create_program()
    nvvm.add_module_to_program(program, text, len(text), "seven")
    options = [f"-arch=compute_{ARCHITECTURE}"]
    nvvm.compile_program(program, len(options), options)
    image = bytearray(nvvm.get_compiled_result_size(program))
    nvvm.get_compiled_result(program, image)
    nvvm.destroy_program(program)
    a = Array(np.zeros(1, np.int32))
    function = ok(driver.cuModuleGetFunction(ok(driver.cuModuleLoadData(bytes(image))), b"seven"))
    ok(driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, ((a.place,), (None,)), 0))
    assert a.get() == 7


@check
def memory_of_the_runtime():
    values = RANDOM.random((20, 30))
    place, pitch = ok(runtime.cudaMallocPitch(30 * 8, 20))
    assert pitch >= 240
    to_device = runtime.cudaMemcpyKind.cudaMemcpyHostToDevice
    ok(runtime.cudaMemcpy2D(place, pitch, values.ctypes.data, 240, 240, 20, to_device))
    back = np.zeros_like(values)
    stream = ok(runtime.cudaStreamCreate())
    to_host = runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost
    ok(runtime.cudaMemcpy2DAsync(back.ctypes.data, 240, place, pitch, 240, 20, to_host, stream))
    ok(runtime.cudaStreamSynchronize(stream))
    np.testing.assert_array_equal(back, values)
    ok(runtime.cudaMemset2D(place, pitch, 0, 16, 20))
    ok(runtime.cudaMemcpy2D(back.ctypes.data, 240, place, pitch, 240, 20, to_host))
    values[:, :2] = 0
    np.testing.assert_array_equal(back, values)
    ok(runtime.cudaFree(place))
    free, total = ok(runtime.cudaMemGetInfo())
    assert 0 < free <= total


@check
def streams_and_events_of_the_runtime():
    stream = ok(runtime.cudaStreamCreateWithFlags(runtime.cudaStreamNonBlocking))
    first, last = ok(runtime.cudaEventCreate()), ok(runtime.cudaEventCreate())
    place = ok(runtime.cudaMallocAsync(1 << 20, stream))
    ok(runtime.cudaEventRecord(first, stream))
    ok(runtime.cudaMemsetAsync(place, 5, 1 << 20, stream))
    ok(runtime.cudaEventRecord(last, stream))
    ok(runtime.cudaEventSynchronize(last))
    assert ok(runtime.cudaEventElapsedTime(first, last)) >= 0
    found = np.zeros(1 << 20, np.uint8)
    ok(runtime.cudaMemcpyAsync(found.ctypes.data, place, 1 << 20, runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost, stream))
    ok(runtime.cudaFreeAsync(place, stream))
    ok(runtime.cudaStreamSynchronize(stream))
    assert (found == 5).all()


@check
def graphs_of_the_runtime():
    found = np.zeros(64, np.uint8)
    place = ok(runtime.cudaMalloc(64))
    graph = ok(runtime.cudaGraphCreate(0))
    parameters = runtime.cudaMemsetParams()
    parameters.dst, parameters.value, parameters.elementSize, parameters.width, parameters.height = place, 9, 1, 64, 1
    filled = ok(runtime.cudaGraphAddMemsetNode(graph, None, 0, parameters))
    to_host = runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost
    ok(runtime.cudaGraphAddMemcpyNode1D(graph, [filled], 1, found.ctypes.data, place, 64, to_host))
    ready = ok(runtime.cudaGraphInstantiate(graph, 0))
    ok(runtime.cudaGraphLaunch(ready, 0))
    ok(runtime.cudaDeviceSynchronize())
    assert (found == 9).all()


def name():
    # The rest of the buffer is what it was.
    return ok(driver.cuDeviceGetName(128, DEVICE)).partition(b"\0")[0]


@check
def device_of_the_runtime():
    properties = ok(runtime.cudaGetDeviceProperties(0))
    assert f"{properties.major}{properties.minor}" == ARCHITECTURE and properties.warpSize == 32
    assert properties.name.partition(b"\0")[0] == name()
    assert ok(runtime.cudaDriverGetVersion()) == ok(driver.cuDriverGetVersion())


@check
def nvml_of_the_device():
    nvml.init_v2()
    assert nvml.device_get_count_v2() >= 1
    handle = nvml.device_get_handle_by_index_v2(0)
    assert nvml.device_get_name(handle) == name().decode()
    assert "".join(map(str, nvml.device_get_cuda_compute_capability(handle))) == ARCHITECTURE
    assert nvml.device_get_handle_by_uuid(nvml.device_get_uuid(handle)) == handle
    memory = nvml.device_get_memory_info_v2(handle)
    assert memory.total == memory.used + memory.free + memory.reserved
    try:
        nvml.device_get_handle_by_index_v2(99)
    except nvml.InvalidArgumentError:
        pass
    else:
        raise AssertionError("there is a hundredth device")
    nvml.shutdown()


main()
