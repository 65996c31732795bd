"""cuda.core: programs and linking, launches, memory, events, textures, what the device says of itself."""

import ctypes
import threading

import numpy as np
from cuda.bindings import driver
from cuda.core import (
    Device,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    EventOptions,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Linker,
    LinkerOptions,
    ManagedMemoryResource,
    ManagedMemoryResourceOptions,
    ObjectCode,
    PinnedMemoryResource,
    Program,
    ProgramOptions,
    StreamOptions,
    VirtualMemoryResource,
    launch,
    system,
    texture,
)
from cuda.core.utils import StridedMemoryView, copy_batch

from check import check, main

RANDOM = np.random.default_rng(11)
DEVICE = Device(0)
DEVICE.set_current()
STREAM = DEVICE.create_stream()

SCALE = r"""
template <typename T> __global__ void scale(T *a, T by, size_t n) {
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) a[i] *= by;
}
"""


def view(buffer, kind=np.uint8):
    """What the host may look at, as an array."""
    raw = (ctypes.c_uint8 * buffer.size).from_address(int(buffer.handle))
    return np.frombuffer(raw, kind)


PINNED = LegacyPinnedMemoryResource()


def to_device(values):
    staging, there = PINNED.allocate(values.nbytes, stream=STREAM), DEVICE.allocate(values.nbytes, stream=STREAM)
    view(staging)[:] = values.view(np.uint8).ravel()
    there.copy_from(staging, stream=STREAM)
    STREAM.sync()
    return there


def to_host(buffer, kind):
    staging = PINNED.allocate(buffer.size, stream=STREAM)
    buffer.copy_to(staging, stream=STREAM)
    STREAM.sync()
    return view(staging, kind).copy()


def compiled(source, name, target="cubin", **options):
    options.setdefault("std", "c++17")
    options.setdefault("arch", f"sm_{DEVICE.arch}")
    return Program(source, "c++", options=ProgramOptions(**options)).compile(target, name_expressions=(name,)).get_kernel(name)


def scaled(kernel):
    values = RANDOM.random(1000).astype(np.float32)
    there = to_device(values)
    launch(STREAM, LaunchConfig(grid=4, block=128), kernel, there, np.float32(2), np.uint64(1000))
    np.testing.assert_array_equal(to_host(there, np.float32), 2 * values)


@check
def programs_as_ptx_and_machine_code():
    for target in ("ptx", "cubin"):
        scaled(compiled(SCALE, "scale<float>", target))


@check
def templates_by_name():
    program = Program(SCALE, "c++", options=ProgramOptions(std="c++17"))
    code = program.compile("ptx", name_expressions=("scale<int>", "scale<double>"))
    values = np.arange(100)
    for name, kind in (("scale<int>", np.int32), ("scale<double>", np.float64)):
        there = to_device(values.astype(kind))
        launch(STREAM, LaunchConfig(grid=1, block=64), code.get_kernel(name), there, kind(3), np.uint64(100))
        np.testing.assert_array_equal(to_host(there, kind), 3 * values)


PARTS = (
    "extern __device__ int twice(int); extern __device__ int more(int);"
    'extern "C" __global__ void call(int *a) { a[threadIdx.x] = twice(more(a[threadIdx.x])); }',
    "__device__ int twice(int x) { return 2 * x; }",
    "__device__ int more(int x) { return x + 7; }",
)


def linked(target, **options):
    flags = {"relocatable_device_code": True} | ({"link_time_optimization": True} if target == "ltoir" else {})
    parts = [Program(part, "c++", options=ProgramOptions(**flags)).compile(target) for part in PARTS]
    code = Linker(*parts, options=LinkerOptions(arch=f"sm_{DEVICE.arch}", **options)).link(options.pop("as_", "cubin"))
    there = to_device(np.arange(32, dtype=np.int32))
    launch(STREAM, LaunchConfig(grid=1, block=32), code.get_kernel("call"), there)
    np.testing.assert_array_equal(to_host(there, np.int32), 2 * (np.arange(32) + 7))


@check
def linked_ptx():
    linked("ptx")


@check
def linked_machine_code():
    linked("cubin")


@check
def linked_in_the_intermediate_language():
    linked("ltoir", link_time_optimization=True)


@check
def code_by_hand():
    text = b"""
.version 8.0
.target sm_75
.address_size 64
.visible .entry seven(.param .u64 out) {
    .reg .u64 %a;
    ld.param.u64 %a, [out];
    st.global.u32 [%a], 7;
    ret;
}
"""
    there = to_device(np.zeros(1, np.uint32))
    launch(STREAM, LaunchConfig(grid=1, block=1), ObjectCode.from_ptx(text).get_kernel("seven"), there)
    assert to_host(there, np.uint32) == 7


@check
def what_a_mistake_says():
    try:
        Program('extern "C" __global__ void bad() { nobody(); }', "c++").compile("ptx")
    except Exception as error:
        assert "nobody" in str(error), error
    else:
        raise AssertionError("it was compiled")
    try:
        ObjectCode.from_ptx(b".version 8.0\n.target sm_75\n.address_size 64\n.entry bad { nonsense; }").get_kernel("bad")
    except Exception as error:
        assert "INVALID_PTX" in str(error), error
    else:
        raise AssertionError("it was loaded")


@check
def parameters_of_kernels():
    kernel = compiled('extern "C" __global__ void k(char a, double b, short c, int *d) { *d = a + b + c; }', "k", "ptx")
    assert kernel.num_arguments == 4
    assert [(info.offset, info.size) for info in kernel.arguments_info] == [(0, 1), (8, 8), (16, 2), (24, 8)]
    there = to_device(np.zeros(1, np.int32))
    launch(STREAM, LaunchConfig(grid=1, block=1), kernel, np.int8(-3), 10.0, np.int16(100), there)
    assert to_host(there, np.int32) == 107
    assert kernel.attributes.max_threads_per_block == 1024
    assert kernel.occupancy.max_active_blocks_per_multiprocessor(256, 0) >= 1


@check
def clusters():
    source = r"""
    #include <cooperative_groups.h>
    namespace cg = cooperative_groups;
    extern "C" __global__ void k(int *out) {
        __shared__ int mine;
        auto cluster = cg::this_cluster();
        mine = 10 * blockIdx.x;
        cluster.sync();
        int neighbour = (cluster.block_rank() + 1) % cluster.num_blocks();
        out[blockIdx.x] = *cluster.map_shared_rank(&mine, neighbour);
        cluster.sync();
    }"""
    import pathlib

    import nvidia

    include = next(str(f) for f in (pathlib.Path(f) / "cu13" / "include" for f in nvidia.__path__) if f.exists())
    kernel = compiled(source, "k", "ptx", include_path=[include, f"{include}/cccl"])
    there = to_device(np.zeros(8, np.int32))
    launch(STREAM, LaunchConfig(grid=2, cluster=4, block=1), kernel, there)
    np.testing.assert_array_equal(to_host(there, np.int32), [10, 20, 30, 0, 50, 60, 70, 40])


@check
def cooperative_launches():
    # Each block waits for all others; they are counted.
    source = r"""
    extern "C" __global__ void k(unsigned *count, unsigned *seen) {
        if (threadIdx.x == 0) {
            atomicAdd(count, 1u);
            while (atomicAdd(count, 0u) < gridDim.x) {}
            seen[blockIdx.x] = atomicAdd(count, 0u);
        }
    }"""
    count, seen = to_device(np.zeros(1, np.uint32)), to_device(np.zeros(6, np.uint32))
    config = LaunchConfig(grid=6, block=32, is_cooperative=True)
    launch(STREAM, config, compiled(source, "k"), count, seen)
    np.testing.assert_array_equal(to_host(seen, np.uint32), [6] * 6)


@check
def dynamic_shared_memory():
    source = r"""extern "C" __global__ void k(int *a, int n) {
        extern __shared__ int s[];
        for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = a[i];
        __syncthreads();
        for (int i = threadIdx.x; i < n; i += blockDim.x) a[i] = s[n - 1 - i];
    }"""
    values = RANDOM.integers(0, 1000, 3000).astype(np.int32)
    there = to_device(values)
    launch(STREAM, LaunchConfig(grid=1, block=256, shmem_size=12000), compiled(source, "k"), there, np.int32(3000))
    np.testing.assert_array_equal(to_host(there, np.int32), values[::-1])


@check
def streams_and_events():
    kernel = compiled(SCALE, "scale<float>")
    values = RANDOM.random(500).astype(np.float32)
    there = to_device(values)
    other = DEVICE.create_stream(options=StreamOptions(nonblocking=True, priority=0))
    first = STREAM.record(options=EventOptions(timing_enabled=True))
    for stream, before in ((STREAM, other), (other, STREAM), (STREAM, other)):
        stream.wait(before)
        launch(stream, LaunchConfig(grid=4, block=128), kernel, there, np.float32(2), np.uint64(500))
    last = STREAM.record(options=EventOptions(timing_enabled=True))
    last.sync()
    assert last.is_done and last - first >= 0
    np.testing.assert_array_equal(to_host(there, np.float32), 8 * values)


@check
def memory_that_the_host_shares():
    kernel = compiled(SCALE, "scale<float>")
    managed = ManagedMemoryResource(options=ManagedMemoryResourceOptions(preferred_location=0))
    pinned = PinnedMemoryResource()
    # Devices reach the memory of a pool of the host's once they are let.
    let = driver.CUmemAccessDesc()
    let.location.type, let.location.id = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, 0
    let.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    assert driver.cuMemPoolSetAccess(driver.CUmemoryPool(int(pinned.handle)), [let], 1) == (0,)
    for resource in (managed, PINNED, pinned):
        buffer = resource.allocate(400, stream=STREAM)
        STREAM.sync()
        view(buffer, np.float32)[:] = np.arange(100)
        launch(STREAM, LaunchConfig(grid=1, block=128), kernel, buffer, np.float32(5), np.uint64(100))
        STREAM.sync()
        np.testing.assert_array_equal(view(buffer, np.float32), 5 * np.arange(100))
        assert buffer.is_host_accessible and buffer.is_device_accessible
        buffer.close(STREAM)


@check
def pools():
    pool = DeviceMemoryResource(DEVICE, options=DeviceMemoryResourceOptions(max_size=1 << 26))
    buffers = [pool.allocate(1 << 20, stream=STREAM) for _ in range(4)]
    assert pool.attributes.used_mem_current == 4 << 20
    for buffer in buffers:
        buffer.fill(7, stream=STREAM)
    np.testing.assert_array_equal(to_host(buffers[2], np.uint8), np.full(1 << 20, 7))
    for buffer in buffers:
        buffer.close(STREAM)
    STREAM.sync()
    assert pool.attributes.used_mem_current == 0 and pool.attributes.used_mem_high == 4 << 20


@check
def virtual_memory_that_grows():
    resource = VirtualMemoryResource(DEVICE)
    buffer = resource.allocate(1 << 21)
    buffer.fill(np.uint8(3), stream=STREAM)
    STREAM.sync()
    grown = resource.modify_allocation(buffer, 1 << 22)
    assert grown.size >= 1 << 22
    np.testing.assert_array_equal(to_host(grown, np.uint8)[: 1 << 21], np.full(1 << 21, 3))
    grown.fill(np.uint8(4), stream=STREAM)
    np.testing.assert_array_equal(to_host(grown, np.uint8)[:100], np.full(100, 4))
    grown.close()


@check
def patterns_and_batches():
    a, b = DEVICE.allocate(4096, stream=STREAM), DEVICE.allocate(4096, stream=STREAM)
    a.fill(np.uint16(0x1234), stream=STREAM)
    b.fill(np.uint32(0x89ABCDEF), stream=STREAM)
    c, d = DEVICE.allocate(4096, stream=STREAM), DEVICE.allocate(4096, stream=STREAM)
    copy_batch(STREAM, [a, b], [c, d])
    np.testing.assert_array_equal(to_host(c, np.uint16), np.full(2048, 0x1234))
    np.testing.assert_array_equal(to_host(d, np.uint32), np.full(1024, 0x89ABCDEF))


def array_of(values):
    """An array for textures, with these values: rows of the host's array are rows of it."""
    options = texture.OpaqueArrayOptions(shape=values.shape[::-1], format=values.dtype, num_channels=1, is_surface_load_store=True)
    array = DEVICE.create_opaque_array(options)
    array.copy_from(to_device(values), stream=STREAM)
    STREAM.sync()
    return array


@check
def textures():
    values = RANDOM.random((8, 16)).astype(np.float32)
    source = r"""extern "C" __global__ void k(cudaTextureObject_t t, float *out) {
        int x = threadIdx.x, y = threadIdx.y;
        out[16 * y + x] = tex2D<float>(t, x + 0.5f, y + 0.5f);
        out[128 + 16 * y + x] = tex2D<float>(t, x + 1.0f, y + 0.5f);
    }"""
    array = array_of(values)
    for mode, right in (("point", lambda v: np.pad(v[:, 1:], ((0, 0), (0, 1)), "edge")), ("linear", None)):
        options = texture.TextureObjectOptions(filter_mode=mode, address_mode="clamp")
        sampled = DEVICE.create_texture_object(resource=texture.ResourceDescriptor.from_opaque_array(array), options=options)
        out = to_device(np.zeros(256, np.float32))
        launch(STREAM, LaunchConfig(grid=1, block=(16, 8)), compiled(source, "k"), np.uint64(int(sampled.handle)), out)
        found = to_host(out, np.float32).reshape(2, 8, 16)
        np.testing.assert_array_equal(found[0], values)
        if right:
            np.testing.assert_array_equal(found[1], right(values))
        else:
            # Half of each neighbour: weights have 8 bits, of which a half needs one.
            np.testing.assert_allclose(found[1][:, :-1], (values[:, :-1] + values[:, 1:]) / 2, rtol=1e-6)


@check
def surfaces():
    values = RANDOM.integers(0, 1000, (4, 32)).astype(np.int32)
    source = r"""extern "C" __global__ void k(cudaSurfaceObject_t s) {
        int x = threadIdx.x, y = threadIdx.y, v;
        surf2Dread(&v, s, 4 * x, y);
        surf2Dwrite(3 * v + 1, s, 4 * x, y);
    }"""
    array = array_of(values)
    surface = DEVICE.create_surface_object(resource=texture.ResourceDescriptor.from_opaque_array(array))
    launch(STREAM, LaunchConfig(grid=1, block=(32, 4)), compiled(source, "k"), np.uint64(int(surface.handle)))
    back = DEVICE.allocate(values.nbytes, stream=STREAM)
    array.copy_to(back, stream=STREAM)
    np.testing.assert_array_equal(to_host(back, np.int32).reshape(4, 32), 3 * values + 1)


@check
def tensor_maps():
    """One thread copies a tile of a matrix by its map, from a place that lies partly outside of it: that is zeros."""
    source = r"""
    struct alignas(64) Map { char bytes[128]; };
    extern "C" __global__ void k(const __grid_constant__ Map map, float *out, int x, int y) {
        __shared__ alignas(128) float tile[8 * 16];
        __shared__ alignas(8) unsigned long long barrier;
        unsigned bar = __cvta_generic_to_shared(&barrier), to = __cvta_generic_to_shared(tile);
        if (threadIdx.x == 0) {
            asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(bar));
            asm volatile("fence.proxy.async;");
            asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(bar), "r"(8 * 16 * 4));
            asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                :: "r"(to), "l"(&map), "r"(x), "r"(y), "r"(bar) : "memory");
        }
        __syncthreads();
        asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra again; }" :: "r"(bar) : "memory");
        for (int i = threadIdx.x; i < 8 * 16; i += blockDim.x) out[i] = tile[i];
    }"""
    values = RANDOM.random((32, 64)).astype(np.float32)
    there, out = to_device(values), to_device(np.zeros(128, np.float32))

    class Matrix:
        __cuda_array_interface__ = {
            "shape": values.shape, "typestr": "<f4", "data": (int(there.handle), False), "version": 3, "strides": None,
        }  # fmt: skip

    shown = StridedMemoryView.from_cuda_array_interface(Matrix(), stream_ptr=-1)
    tile_map = shown.as_tensor_map(box_dim=(8, 16))
    kernel = compiled(source, "k", "ptx")
    padded = np.pad(values, 16)
    for x, y in ((0, 0), (32, 8), (-4, 28), (60, -3)):
        launch(STREAM, LaunchConfig(grid=1, block=32), kernel, tile_map, out, np.int32(x), np.int32(y))
        found = to_host(out, np.float32).reshape(8, 16)
        np.testing.assert_array_equal(found, padded[16 + y : 24 + y, 16 + x : 32 + x])


@check
def threads_with_a_device_each():
    kernel = compiled(SCALE, "scale<double>")
    left = set(range(4))

    def work(seed):
        mine = Device(0)
        mine.set_current()
        stream = mine.create_stream()
        buffer = ManagedMemoryResource().allocate(8000, stream=stream)
        stream.sync()
        view(buffer, np.float64)[:] = seed
        for _ in range(5):
            launch(stream, LaunchConfig(grid=4, block=64), kernel, buffer, np.float64(2), np.uint64(1000))
        stream.sync()
        if (view(buffer, np.float64) == 32 * seed).all():
            left.remove(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not left, left


@check
def green_contexts():
    from cuda.core import ContextOptions, SMResourceOptions

    groups, rest = DEVICE.resources.sm.split(SMResourceOptions(count=8))
    context = DEVICE.create_context(ContextOptions(resources=[groups[0]]))
    stream = context.create_stream()
    assert stream.resources.sm.sm_count == groups[0].sm_count >= 8
    kernel = compiled(SCALE, "scale<float>")
    values = RANDOM.random(100).astype(np.float32)
    there = to_device(values)
    launch(stream, LaunchConfig(grid=1, block=128), kernel, there, np.float32(3), np.uint64(100))
    stream.sync()
    np.testing.assert_array_equal(to_host(there, np.float32), np.float32(3) * values)


@check
def the_device():
    properties = DEVICE.properties
    assert DEVICE.compute_capability >= (7, 5) and properties.warp_size == 32 and properties.max_threads_per_block == 1024
    assert properties.multiprocessor_count > 0 and properties.unified_addressing
    assert system.get_num_devices() == len(list(Device.get_all_devices())) >= 1
    major, minor = system.get_user_mode_driver_version()[:2]
    assert (major, minor) >= (13, 0)
    there = DEVICE.to_system_device()
    assert there.name == DEVICE.name and there.pci_info.bus_id.lower().endswith(DEVICE.pci_bus_id.lower())
    assert there.uuid.removeprefix("GPU-") == DEVICE.uuid.removeprefix("GPU-")
    memory = there.memory_info
    assert memory.total == memory.used + memory.free + memory.reserved


main()
