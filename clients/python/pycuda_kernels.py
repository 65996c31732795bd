"""PyCUDA: kernels that nvcc compiles, memory, streams, events, textures, what is linked, errors."""

import ctypes
import os
import subprocess
import sys
import tempfile

import numpy as np

# Another process, for `memory_of_another_process`, says its handle before this one has a context.
import pycuda.autoinit
import pycuda.driver as drv
from pycuda.compiler import DynamicModule, SourceModule, compile

from check import Skip, check, main

RANDOM = np.random.default_rng(6)

# Each module is a run of nvcc: one serves most of the checks.
SOURCE = r"""
#include <cstdio>

extern "C++" { template <typename T> __device__ T twice(T x) { return x + x; } }

__constant__ int shift[4];
__device__ int counter;

struct Pair { int n; float *x; };

__global__ void axpy(float a, const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
__global__ void doubled(int *x) { x[blockIdx.x * blockDim.x + threadIdx.x] *= 2; }
__global__ void reverse(int *x)
{
    extern __shared__ int copy[];
    copy[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = copy[blockDim.x - 1 - threadIdx.x];
}
__global__ void shifted(int *x) { x[threadIdx.x] += shift[threadIdx.x % 4]; atomicAdd(&counter, 1); }
__global__ void places(int *x)
{
    int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    x[block * blockDim.x * blockDim.y * blockDim.z + thread] = 1000 * block + thread;
}
__global__ void packed(char a, double b, Pair e, short c, float2 d, double *x)
{
    x[0] = a; x[1] = b; x[2] = c; x[3] = d.x; x[4] = d.y; x[5] = e.n; e.x[0] = twice(e.x[0]);
}
__global__ void spoken(int n) { printf("thread %d of %d\n", threadIdx.x, n); }
__global__ void outside(int *x) { x[1L << 40] = 1; }
"""


def module(made=[]):
    if not made:
        made.append(SourceModule(SOURCE))
    return made[0]


def function(name):
    return module().get_function(name)


@check
def in_out_and_device_arguments():
    x, y = RANDOM.integers(0, 100, (2, 1000)).astype(np.float32)
    expected = 3 * x + y
    there = drv.mem_alloc(y.nbytes)
    drv.memcpy_htod(there, y)
    function("axpy")(np.float32(3), drv.In(x), there, np.int32(1000), block=(128, 1, 1), grid=(8, 1))
    np.testing.assert_array_equal(drv.from_device_like(there, y), expected)
    function("axpy")(np.float32(3), drv.In(x), drv.InOut(y), np.int32(1000), block=(128, 1, 1), grid=(8, 1))
    np.testing.assert_array_equal(y, expected)


@check
def three_dimensional_grids_and_dynamic_shared_memory():
    x = np.zeros(2 * 3 * 2 * 4 * 2 * 3, np.int32)
    function("places")(drv.Out(x), block=(4, 2, 3), grid=(2, 3, 2))
    np.testing.assert_array_equal(x.reshape(12, 24), 1000 * np.arange(12)[:, None] + np.arange(24))
    x = np.arange(200, dtype=np.int32)
    function("reverse")(drv.InOut(x), block=(200, 1, 1), shared=800)
    np.testing.assert_array_equal(x, np.arange(200)[::-1])


@check
def globals_and_constants():
    shift, size = module().get_global("shift")
    assert size == 16
    drv.memcpy_htod(shift, np.array([10, 20, 30, 40], np.int32))
    counter, size = module().get_global("counter")
    drv.memset_d32(counter, 7, 1)
    x = np.arange(64, dtype=np.int32)
    function("shifted")(drv.InOut(x), block=(64, 1, 1))
    np.testing.assert_array_equal(x, np.arange(64) + np.tile([10, 20, 30, 40], 16))
    assert drv.from_device(counter, 1, np.int32)[0] == 71


@check
def prepared_calls_with_mixed_arguments():
    pair = np.zeros((), np.dtype([("n", np.int32), ("x", np.uintp)], align=True))
    there = drv.to_device(np.array([2.5], np.float32))
    pair["n"], pair["x"] = 77, int(there)
    x = drv.mem_alloc(6 * 8)
    packed = function("packed").prepare([np.int8, np.float64, pair.dtype, np.int16, np.int32, np.complex64, np.intp])
    # PyCUDA aligns a complex number, and a structure, less than CUDA: the integer after the short one fills the gap.
    packed.prepared_call((1, 1), (1, 1, 1), -3, 0.1, pair, -500, 0, np.complex64(1.5 - 2j), x)
    np.testing.assert_array_equal(drv.from_device(x, 6, np.float64), [-3, 0.1, -500, 1.5, -2, 77])
    assert drv.from_device(there, 1, np.float32)[0] == 5
    doubled = function("doubled").prepare("P")
    there, stream = drv.to_device(np.arange(256, dtype=np.int32)), drv.Stream()
    doubled.prepared_async_call((2, 1), (128, 1, 1), stream, there)
    stream.synchronize()
    assert doubled.prepared_timed_call((2, 1), (128, 1, 1), there)() >= 0
    np.testing.assert_array_equal(drv.from_device(there, 256, np.int32), 4 * np.arange(256))


@check
def the_launch_calls_of_old():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        axpy = function("axpy")
        x, y = drv.to_device(np.full(64, 2, np.float32)), drv.to_device(np.full(64, 5, np.float32))
        axpy._set_block_shape(64, 1, 1)
        axpy._set_shared_size(0)
        # As the alignment of each argument has it.
        axpy._param_setf(0, 4.0)
        axpy._param_setv(8, np.array([int(x), int(y)], np.uintp))
        axpy._param_seti(24, 64)
        axpy._param_set_size(28)
        axpy._launch_grid(1, 1)
        drv.Context.synchronize()
    np.testing.assert_array_equal(drv.from_device(y, 64, np.float32), np.full(64, 13))


@check
def attributes_of_functions_and_devices():
    axpy, device = function("axpy"), drv.Context.get_device()
    assert axpy.max_threads_per_block == device.max_threads_per_block == 1024
    assert (axpy.shared_size_bytes, axpy.local_size_bytes) == (0, 0) and axpy.num_regs > 0
    assert device.get_attribute(drv.device_attribute.WARP_SIZE) == 32
    assert all(isinstance(value, (int, float)) or value is not None for value in device.get_attributes().values())
    assert drv.Device(device.pci_bus_id()).pci_bus_id() == device.pci_bus_id()
    free, total = drv.mem_get_info()
    assert 0 < free <= total == device.total_memory()
    assert drv.get_driver_version() >= 13000 and drv.Context.get_current().get_api_version() > 0


@check
def copies_of_all_kinds():
    a = RANDOM.integers(0, 1000, (20, 30)).astype(np.int32)
    there, pitch = drv.mem_alloc_pitch(30 * 4, 20, 4)
    assert pitch >= 120
    copy = drv.Memcpy2D()
    copy.set_src_host(a)
    copy.set_dst_device(there)
    copy.src_pitch, copy.dst_pitch, copy.width_in_bytes, copy.height = a.strides[0], pitch, 120, 20
    copy(aligned=True)
    back = np.zeros((5, 7), np.int32)
    copy = drv.Memcpy2D()
    copy.set_src_device(there)
    copy.set_dst_host(back)
    copy.src_pitch, copy.src_x_in_bytes, copy.src_y = pitch, 4 * 11, 3
    copy.dst_pitch, copy.width_in_bytes, copy.height = back.strides[0], 28, 5
    copy(aligned=False)
    np.testing.assert_array_equal(back, a[3:8, 11:18])
    other = drv.mem_alloc(a.nbytes)
    drv.memset_d16(other, 0x1234, 600)
    drv.memset_d8(int(other) + 1200, 0xAB, 1200)
    bytes_there = drv.from_device(other, 2400, np.uint8)
    np.testing.assert_array_equal(bytes_there, [0x34, 0x12] * 600 + [0xAB] * 1200)
    drv.memset_d2d32(there, pitch, 9, 2, 20)
    drv.memcpy_dtod(other, there, 8)
    np.testing.assert_array_equal(drv.from_device(other, 2, np.int32), [9, 9])
    assert drv.mem_get_address_range(int(other) + 100) == (int(other), 2400)


@check
def volumes_in_arrays():
    a = RANDOM.integers(0, 1000, (4, 5, 6)).astype(np.float32)
    described = drv.ArrayDescriptor3D()
    described.width, described.height, described.depth = 6, 5, 4
    described.format, described.num_channels, described.flags = drv.array_format.FLOAT, 1, 0
    array = drv.Array(described)
    copy = drv.Memcpy3D()
    copy.set_src_host(a)
    copy.set_dst_array(array)
    copy.src_pitch, copy.src_height, copy.width_in_bytes, copy.height, copy.depth = 24, 5, 24, 5, 4
    copy()
    back = np.zeros((2, 3, 4), np.float32)
    copy = drv.Memcpy3D()
    copy.set_src_array(array)
    copy.set_dst_host(back)
    copy.src_x_in_bytes, copy.src_y, copy.src_z = 8, 1, 2
    copy.dst_pitch, copy.dst_height, copy.width_in_bytes, copy.height, copy.depth = 16, 3, 16, 3, 2
    copy()
    np.testing.assert_array_equal(back, a[2:4, 1:4, 2:6])


@check
def page_locked_and_mapped_memory():
    doubled = function("doubled")
    stream = drv.Stream()
    locked = drv.pagelocked_empty(256, np.int32)
    locked[:] = np.arange(256)
    there = drv.mem_alloc(locked.nbytes)
    drv.memcpy_htod_async(there, locked, stream)
    doubled(there, block=(128, 1, 1), grid=(2, 1), stream=stream)
    drv.memcpy_dtoh_async(locked, there, stream)
    stream.synchronize()
    np.testing.assert_array_equal(locked, 2 * np.arange(256))

    mapped = drv.pagelocked_empty(128, np.int32, mem_flags=drv.host_alloc_flags.DEVICEMAP)
    mapped[:] = np.arange(128)
    doubled(np.intp(mapped.base.get_device_pointer()), block=(128, 1, 1))
    drv.Context.synchronize()
    np.testing.assert_array_equal(mapped, 2 * np.arange(128))


@check
def managed_memory():
    managed = drv.managed_empty(256, np.int32, mem_flags=drv.mem_attach_flags.GLOBAL)
    managed[:] = np.arange(256)
    for times in (2, 4):
        function("doubled")(managed, block=(128, 1, 1), grid=(2, 1))
        drv.Context.synchronize()
        np.testing.assert_array_equal(managed, times * np.arange(256))


@check
def streams_and_events():
    doubled, streams = function("doubled"), [drv.Stream() for _ in range(3)]
    there = [drv.to_device(np.full(256, n, np.int32)) for n in (1, 2, 3)]
    first, last = drv.Event(), drv.Event()
    first.record(streams[0])
    for _ in range(5):
        for a, stream in zip(there, streams):
            doubled(a, block=(128, 1, 1), grid=(2, 1), stream=stream)
    # The first array goes on, in another stream, when that of the first has ended.
    last.record(streams[0])
    streams[1].wait_for_event(last)
    doubled(there[0], block=(128, 1, 1), grid=(2, 1), stream=streams[1])
    for stream in streams:
        stream.synchronize()
    assert all(stream.is_done() for stream in streams) and last.query() and last.time_since(first) >= 0
    for a, expected in zip(there, (64, 64, 96)):
        np.testing.assert_array_equal(drv.from_device(a, 256, np.int32), np.full(256, expected))


@check
def texture_references():
    # nvcc 13 has no texture references any more: PTX has.
    ptx = b"""
        .version 7.0
        .target sm_75
        .address_size 64
        .global .texref image;
        .visible .entry look(.param .u64 out, .param .u32 width)
        {
            .reg .u32 %x, %y, %w, %at;
            .reg .f32 %u, %v, %r<4>;
            .reg .u64 %out, %place;
            ld.param.u64 %out, [out];
            ld.param.u32 %w, [width];
            mov.u32 %x, %tid.x;
            mov.u32 %y, %ctaid.x;
            cvt.rn.f32.u32 %u, %x;
            cvt.rn.f32.u32 %v, %y;
            add.f32 %u, %u, 0f3F000000;
            add.f32 %v, %v, 0f3F000000;
            tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [image, {%u, %v}];
            mad.lo.u32 %at, %y, %w, %x;
            mul.wide.u32 %place, %at, 4;
            add.u64 %place, %out, %place;
            st.global.f32 [%place], %r0;
            ret;
        }
    """
    made = drv.module_from_buffer(ptx)
    image, look = made.get_texref("image"), made.get_function("look")
    a = RANDOM.random((6, 8)).astype(np.float32)
    drv.matrix_to_texref(a, image, order="C")
    back = np.zeros((7, 10), np.float32)
    # Past its edges the picture is as at them.
    look(drv.Out(back), np.int32(10), block=(10, 1, 1), grid=(7, 1), texrefs=[image])
    np.testing.assert_array_equal(back, np.pad(a, ((0, 1), (0, 2)), mode="edge"))
    image.set_address_mode(0, drv.address_mode.BORDER)
    image.set_address_mode(1, drv.address_mode.BORDER)
    look(drv.Out(back), np.int32(10), block=(10, 1, 1), grid=(7, 1), texrefs=[image])
    np.testing.assert_array_equal(back, np.pad(a, ((0, 1), (0, 2))))
    # Bytes, read as fractions.
    small = RANDOM.integers(0, 256, (6, 8)).astype(np.uint8)
    drv.matrix_to_texref(small, image, order="C")
    image.set_flags(0)
    look(drv.Out(back), np.int32(10), block=(8, 1, 1), grid=(6, 1), texrefs=[image])
    np.testing.assert_allclose(back[:6, :8], small / np.float32(255), rtol=1e-6)


@check
def surface_references():
    ptx = b"""
        .version 7.0
        .target sm_75
        .address_size 64
        .global .surfref image;
        .visible .entry turn()
        {
            .reg .u32 %x, %y, %to, %v;
            mov.u32 %x, %tid.x;
            mov.u32 %y, %tid.y;
            shl.b32 %to, %x, 2;
            suld.b.2d.b32.trap {%v}, [image, {%to, %y}];
            neg.s32 %v, %v;
            sust.b.2d.b32.trap [image, {%to, %y}], {%v};
            ret;
        }
    """
    made = drv.module_from_buffer(ptx)
    a = RANDOM.integers(0, 1000, (4, 8)).astype(np.int32)
    array = drv.np_to_array(a, order="C", allowSurfaceBind=True)
    image = made.get_surfref("image")
    image.set_array(array)
    turn = made.get_function("turn")
    turn(block=(8, 4, 1))
    back = np.zeros((4, 8), np.int32)
    copy = drv.Memcpy2D()
    copy.set_src_array(array)
    copy.set_dst_host(back)
    copy.dst_pitch, copy.width_in_bytes, copy.height = 32, 32, 4
    copy(aligned=True)
    np.testing.assert_array_equal(back, -a)


@check
def modules_linked_of_two():
    linked = DynamicModule()
    linked.add_source("__device__ int three(int x) { return 3 * x; }", nvcc_options=["-rdc=true", "-lcudadevrt"])
    linked.add_source(
        'extern __device__ int three(int); extern "C" __global__ void f(int *x) { x[threadIdx.x] = three(x[threadIdx.x]); }',
        nvcc_options=["-rdc=true", "-lcudadevrt"],
    )
    linked.link()
    x = np.arange(40, dtype=np.int32)
    linked.get_function("f")(drv.InOut(x), block=(40, 1, 1))
    np.testing.assert_array_equal(x, 3 * np.arange(40))


@check
def what_nvcc_makes():
    ptx = compile("__global__ void f() {}", target="ptx", options=["-O1"])
    assert b".entry" in ptx
    # PyCUDA asks for machine code; the stand-in keeps PTX.
    assert b".entry" in compile("__global__ void g() {}", target="cubin")
    with tempfile.NamedTemporaryFile(suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        assert drv.module_from_file(file.name).get_function("f").max_threads_per_block == 1024
    try:
        SourceModule("__global__ void f() { nonsense; }")
    except drv.CompileError as error:
        assert "nonsense" in error.stderr
    else:
        raise AssertionError("no CompileError")


@check
def contexts():
    mine = drv.Context.get_current()
    other = drv.Device(0).make_context()
    try:
        assert drv.Context.get_current() == other != mine
        there = drv.to_device(np.arange(10))
        np.testing.assert_array_equal(drv.from_device(there, 10, np.arange(10).dtype), np.arange(10))
        there.free()
    finally:
        other.pop()
        other.detach()
    assert drv.Context.get_current() == mine
    primary = drv.Device(0).retain_primary_context()
    primary.push()
    assert drv.Context.get_current() == primary
    # That pops it; left to itself, PyCUDA gives it back by a call that is not for primary contexts.
    primary.detach()
    assert drv.Context.get_current() == mine
    drv.Context.set_limit(drv.limit.STACK_SIZE, 8192)
    assert drv.Context.get_limit(drv.limit.STACK_SIZE) == 8192


@check
def errors():
    for wrong, call in (
        (drv.LogicError, lambda: module().get_function("nothing")),
        (drv.LogicError, lambda: drv.Context.set_limit(drv.limit.STACK_SIZE, 1 << 40)),
        (drv.MemoryError, lambda: drv.mem_alloc(1 << 50)),
        (drv.LogicError, lambda: drv.module_from_buffer(b".version 7.0\n.target sm_75\n.visible .entry f() { nothing; }")),
        (drv.LogicError, lambda: drv.Device(99)),
        (drv.LogicError, lambda: function("doubled")(np.intp(0), block=(2048, 1, 1))),
    ):
        try:
            call()
        except (wrong, drv.LaunchError, drv.RuntimeError) as error:
            assert "cu" in str(error), error
        else:
            raise AssertionError(f"no error of {call}")


def another(what):
    """This file in another process, which does `what` alone."""
    return subprocess.Popen([sys.executable, __file__, what], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@check
def a_kernel_that_reads_outside_ends_the_context():
    process = another("--outside")
    said, _ = process.communicate(timeout=200)
    assert "outside: " in said and "illegal" in said, said


@check
def printing():
    process = another("--speaks")
    said, _ = process.communicate(timeout=200)
    assert [line for line in said.splitlines() if line.startswith("thread")] == [f"thread {n} of 3" for n in range(3)], said


@check
def memory_of_another_process():
    process = another("--shares")
    handle = bytearray.fromhex(process.stdout.readline())
    there = drv.IPCMemoryHandle(handle)
    np.testing.assert_array_equal(drv.from_device(int(there), 256, np.int32), np.arange(256))
    function("doubled")(np.intp(int(there)), block=(128, 1, 1), grid=(2, 1))
    drv.Context.synchronize()
    there.close()
    said, _ = process.communicate("\n", timeout=200)
    np.testing.assert_array_equal(np.array(said.split(), int), 2 * np.arange(256))


def shares():
    there = drv.to_device(np.arange(256, dtype=np.int32))
    print(bytes(drv.mem_get_ipc_handle(there)).hex(), flush=True)
    sys.stdin.readline()
    print(*drv.from_device(there, 256, np.int32))


def outside():
    try:
        function("outside")(drv.mem_alloc(4), block=(1, 1, 1))
        drv.Context.synchronize()
    except drv.Error as error:
        print("outside:", error, flush=True)
    # What PyCUDA would put away at the end has gone with the context.
    os._exit(0)


def speaks():
    function("spoken")(np.int32(3), block=(3, 1, 1))
    drv.Context.synchronize()


if __name__ == "__main__":
    others = {"--shares": shares, "--outside": outside, "--speaks": speaks}
    others.get(sys.argv[-1], main)()
