// compute_103a
// tcgen05: matrices in shared memory that go beyond their variable, and columns of tensor memory of another allocation (PTX ISA, tcgen05,
// Tensor Memory; Shared memory descriptor; Instruction descriptor). Tiles lie in blocks of eight rows of 16 bytes, two along k, then
// eight rows on.
#include <cuda_fp16.h>
#include "../check.h"

const int threads = 128;

static void ends() { CUDA(EITHER((cudaDeviceSynchronize(), cudaSuccess), cudaDeviceSynchronize())); }

static __device__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

// Blocks along k lie 128 bytes apart, those of other rows 256, or what else is said.
static __device__ unsigned long long descriptor(const void *tile, unsigned stride = 256)
{
    unsigned long long start = (shared_address(tile) & 0x3ffff) >> 4;
    return start | (unsigned long long)(128 >> 4) << 16 | (unsigned long long)(stride >> 4) << 32 | 1ull << 46;
}

static __device__ void fill(__half *tile, int count)
{
    for (int i = threadIdx.x; i < count; i += threads) tile[i] = __half(1.f);
}

// 32 columns; by the first warp.
static __device__ void allocate(unsigned *to)
{
    if (threadIdx.x < 32) asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" : : "r"(shared_address(to)) : "memory");
}

static __device__ void give_back(unsigned address)
{
    __syncthreads();
    if (threadIdx.x < 32) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" : : "r"(address) : "memory");
}

static __device__ void ready()
{
    asm volatile("fence.proxy.async.shared::cta;\ntcgen05.fence::before_thread_sync;" : : : "memory");
    __syncthreads();
    asm volatile("tcgen05.fence::after_thread_sync;" : : : "memory");
}

// All that thread 0 has begun is complete.
static __device__ void wait(unsigned long long *barrier)
{
    unsigned at = shared_address(barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" : : "r"(at) : "memory");
        asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" : : "r"(at) : "memory");
    }
    __syncthreads();
    asm volatile("{ .reg .pred p;\nl: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n@!p bra l; }" : : "r"(at) : "memory");
    asm volatile("tcgen05.fence::after_thread_sync;" : : : "memory");
}

// Column `column` of the thread's lane.
static __device__ unsigned load(unsigned address)
{
    unsigned value;
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];\ntcgen05.wait::ld.sync.aligned;" : "=r"(value) : "r"(address + ((threadIdx.x / 32 * 32) << 16)));
    return value;
}

// m128n16k16 of halves with a sum of floats: f32 (1) at bit 4, n / 8 at bit 17, m / 16 at bit 24.
const unsigned instruction = 1 << 4 | (16 >> 3) << 17 | (128 >> 4) << 24;

// A of 128 rows in a variable of 120.
__global__ void rows(unsigned *out)
{
    __shared__ alignas(128) __half a[EITHER(120, 128) * 16], b[16 * 16], more[16 * 16];
    __shared__ alignas(8) unsigned long long barrier;
    __shared__ unsigned columns;
    fill(a, sizeof a / 2);
    fill(b, 16 * 16);
    fill(more, 16 * 16);
    allocate(&columns);
    ready();
    if (threadIdx.x == 0)
        asm volatile("tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, 0;" // found: made from that of the shared variable rows(unsigned int*)::a
                     : : "r"(columns), "l"(descriptor(a)), "l"(descriptor(b)), "r"(instruction) : "memory");
    wait(&barrier);
    out[threadIdx.x] = load(columns) + unsigned(float(more[threadIdx.x]));
    give_back(columns);
}
TEST(mma_rows)
{
    rows<<<1, threads>>>(Array<unsigned>(threads));
    ends();
}

// A in tensor memory, and a stride that is too large for B.
__global__ void stride(unsigned *out, int stride)
{
    __shared__ alignas(128) __half b[16 * 16], more[32 * 16];
    __shared__ alignas(8) unsigned long long barrier;
    __shared__ unsigned columns;
    fill(b, 16 * 16);
    fill(more, 32 * 16);
    allocate(&columns);
    ready();
    if (threadIdx.x == 0)
        asm volatile("tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, 0;" // found: made from that of the shared variable stride(unsigned int*, int)::b
                     : : "r"(columns), "r"(columns + 16), "l"(descriptor(b, stride)), "r"(instruction) : "memory");
    wait(&barrier);
    out[threadIdx.x] = load(columns) + unsigned(float(more[threadIdx.x]));
    give_back(columns);
}
TEST(mma_columns)
{
    stride<<<1, threads>>>(Array<unsigned>(threads), EITHER(512, 256));
    ends();
}

__global__ void copy(unsigned *out)
{
    __shared__ alignas(128) __half from[EITHER(120, 128) * 16], more[16 * 16];
    __shared__ alignas(8) unsigned long long barrier;
    __shared__ unsigned columns;
    fill(from, sizeof from / 2);
    fill(more, 16 * 16);
    allocate(&columns);
    ready();
    if (threadIdx.x == 0)
        asm volatile("tcgen05.cp.cta_group::1.128x256b [%0], %1;" // found: made from that of the shared variable copy(unsigned int*)::from
                     : : "r"(columns), "l"(descriptor(from)) : "memory");
    wait(&barrier);
    out[threadIdx.x] = load(columns) + unsigned(float(more[threadIdx.x]));
    give_back(columns);
}
TEST(cp)
{
    copy<<<1, threads>>>(Array<unsigned>(threads));
    ends();
}

// The second of two allocations lies behind the first.
__global__ void copy_to(unsigned *out, int by)
{
    __shared__ alignas(128) __half from[128 * 16];
    __shared__ alignas(8) unsigned long long barrier;
    __shared__ unsigned first, second;
    fill(from, 128 * 16);
    allocate(&first);
    allocate(&second);
    ready();
    if (threadIdx.x == 0)
        asm volatile("tcgen05.cp.cta_group::1.128x256b [%0], %1;" // found: columns 28 to 35 of tensor memory, which are not all of the allocation from whose address theirs was made: columns 0 to 31
                     : : "r"(first + by), "l"(descriptor(from)) : "memory");
    wait(&barrier);
    out[threadIdx.x] = load(first) + load(second);
    give_back(first);
    give_back(second);
}
TEST(cp_to)
{
    copy_to<<<1, threads>>>(Array<unsigned>(threads), EITHER(28, 24));
    ends();
}

__global__ void load_from(unsigned *out, int by)
{
    __shared__ unsigned first, second;
    allocate(&first);
    allocate(&second);
    ready();
    unsigned value;
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];\ntcgen05.wait::ld.sync.aligned;" // found: columns 32 to 32 of tensor memory, which are not all of the allocation from whose address theirs was made: columns 0 to 31
                 : "=r"(value) : "r"((first | threadIdx.x / 32 << 21) + by));
    out[threadIdx.x] = value + load(second);
    give_back(first);
    give_back(second);
}
TEST(ld)
{
    load_from<<<1, threads>>>(Array<unsigned>(threads), EITHER(32, 31));
    ends();
}

// Column by column, in a loop.
__global__ void store_to(int count)
{
    __shared__ unsigned first, second;
    allocate(&first);
    allocate(&second);
    ready();
    for (unsigned i = 0; i < count; i++) {
        asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" // found: columns 32 to 32 of tensor memory
                     : : "r"(first + (threadIdx.x / 32 << 21) + i), "r"(i) : "memory");
        asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" : : "r"(second + (threadIdx.x / 32 << 21)), "r"(i) : "memory");
    }
    asm volatile("tcgen05.wait::st.sync.aligned;" : : : "memory");
    give_back(first);
    give_back(second);
}
TEST(st)
{
    store_to<<<1, threads>>>(EITHER(33, 32));
    ends();
}

// D of 16 columns; A before it in another allocation.
__global__ void sums(unsigned *out, int by)
{
    __shared__ alignas(128) __half b[16 * 16];
    __shared__ alignas(8) unsigned long long barrier;
    __shared__ unsigned first, second;
    fill(b, 16 * 16);
    allocate(&first);
    allocate(&second);
    ready();
    if (threadIdx.x == 0)
        asm volatile("tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, 0;" // found: columns 24 to 39 of tensor memory
                     : : "r"(first + by), "r"(second), "l"(descriptor(b)), "r"(instruction) : "memory");
    wait(&barrier);
    out[threadIdx.x] = load(first);
    give_back(first);
    give_back(second);
}
TEST(mma_sums)
{
    sums<<<1, threads>>>(Array<unsigned>(threads), EITHER(24, 16));
    ends();
}

// m128n16k32 of e4m3 with a factor a row: four columns for A's rows, one for B's columns. The type of factors, ue8m0 (1), is at bit 23.
__global__ void factors(unsigned *out, int by)
{
    __shared__ alignas(128) char a[128 * 32], b[16 * 32];
    __shared__ alignas(8) unsigned long long barrier;
    __shared__ unsigned first, second;
    fill((__half *)a, 128 * 16);
    fill((__half *)b, 16 * 16);
    allocate(&first);
    allocate(&second);
    ready();
    if (threadIdx.x == 0)
        asm volatile("tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%0], %1, %2, %3, [%4], [%5], 0;" // found: columns 32 to 32 of tensor memory, which are not all of the allocation from whose address theirs was made: columns 0 to 31
                     : : "r"(first), "l"(descriptor(a)), "l"(descriptor(b)), "r"(1 << 23 | (16 >> 3) << 17 | (128 >> 4) << 24), "r"(second), "r"(first + by) : "memory");
    wait(&barrier);
    out[threadIdx.x] = load(first);
    give_back(first);
    give_back(second);
}
TEST(mma_factors)
{
    factors<<<1, threads>>>(Array<unsigned>(threads), EITHER(32, 31));
    ends();
}

// A zero-column mask says in bits 56 to 61 at which column B begins: of 72 the 64 from the eighth on, or from the sixteenth on.
__global__ void shifted(unsigned *out, unsigned long long by)
{
    __shared__ alignas(128) __half a[128 * 16], b[72 * 16], more[64 * 16];
    __shared__ alignas(8) unsigned long long barrier;
    __shared__ unsigned columns;
    fill(a, 128 * 16);
    fill(b, 72 * 16);
    fill(more, 64 * 16);
    if (threadIdx.x < 32) asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 64;" : : "r"(shared_address(&columns)) : "memory");
    ready();
    if (threadIdx.x == 0)
        asm volatile("tcgen05.mma.ws.cta_group::1.kind::f16 [%0], %1, %2, %3, 0, %4;" // found: made from that of the shared variable shifted(unsigned int*, unsigned long long)::b
                     : : "r"(columns), "l"(descriptor(a)), "l"(descriptor(b)), "r"(1 << 4 | (64 >> 3) << 17 | (128 >> 4) << 24), "l"(by << 56) : "memory");
    wait(&barrier);
    out[threadIdx.x] = load(columns) + unsigned(float(more[threadIdx.x]));
    __syncthreads();
    if (threadIdx.x < 32) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 64;" : : "r"(columns) : "memory");
}
TEST(mma_zero_columns)
{
    shifted<<<1, threads>>>(Array<unsigned>(threads), EITHER(16, 8));
    ends();
}

// The least of two columns.
__global__ void least(unsigned *out, int by)
{
    __shared__ unsigned first, second;
    allocate(&first);
    allocate(&second);
    ready();
    unsigned value, found;
    asm volatile("tcgen05.ld.red.sync.aligned.32x32b.x2.min.u32 {%0, %0}, %1, [%2];\ntcgen05.wait::ld.sync.aligned;" // found: columns 31 to 32 of tensor memory, which are not all of the allocation from whose address theirs was made: columns 0 to 31
                 : "=r"(value), "=r"(found) : "r"((first | threadIdx.x / 32 << 21) + by));
    out[threadIdx.x] = found + load(second);
    give_back(first);
    give_back(second);
}
TEST(ld_red)
{
    least<<<1, threads>>>(Array<unsigned>(threads), EITHER(31, 30));
    ends();
}
