// compute_100a
// tcgen05 of two blocks that work as a pair (PTX ISA, tcgen05, CTA pair): what the first begins reads the same variable in the shared memory
// of both, and touches the same columns of both tensor memories. Tiles lie in blocks of eight rows of 16 bytes, two along k, then eight rows
// on.
#include <cuda_fp16.h>
#include "../check.h"

const int threads = 128;

static void ends() { CUDA(EITHER((cudaDeviceSynchronize(), cudaSuccess), cudaDeviceSynchronize())); }

static __device__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

static __device__ bool is_first()
{
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank == 0 && threadIdx.x == 0;
}

static __device__ void meet() { asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" : : : "memory"); }

// Blocks along k lie 128 bytes apart, those of other rows 256.
static __device__ unsigned long long descriptor(const void *tile)
{
    return (unsigned long long)shared_address(tile) >> 4 | 128ull >> 4 << 16 | 256ull >> 4 << 32 | 1ull << 46;
}

static __device__ void fill(__half *tile, int count)
{
    for (int i = threadIdx.x; i < count; i += threads) tile[i] = __half(1.f);
}

// 32 columns in both blocks.
static __device__ void allocate(unsigned *to)
{
    if (threadIdx.x < 32) asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], 32;" : : "r"(shared_address(to)) : "memory");
}

static __device__ void give_back(unsigned address)
{
    meet();
    if (threadIdx.x < 32) asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, 32;" : : "r"(address) : "memory");
}

static __device__ void ready(unsigned long long *barrier)
{
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" : : "r"(shared_address(barrier)) : "memory");
    asm volatile("fence.proxy.async.shared::cta;\ntcgen05.fence::before_thread_sync;" : : : "memory");
    meet();
    asm volatile("tcgen05.fence::after_thread_sync;" : : : "memory");
}

// All that the first thread of the pair has begun is complete, which it tells both blocks.
static __device__ void wait(unsigned long long *barrier)
{
    unsigned at = shared_address(barrier);
    if (is_first())
        asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" : : "r"(at), "h"((short)3) : "memory");
    asm volatile("{ .reg .pred p;\nl: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n@!p bra l; }" : : "r"(at) : "memory");
    asm volatile("tcgen05.fence::after_thread_sync;" : : : "memory");
}

static __device__ unsigned load(unsigned address)
{
    unsigned value;
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];\ntcgen05.wait::ld.sync.aligned;" : "=r"(value) : "r"(address + (threadIdx.x / 32 << 21)));
    return value;
}

// m256n32k16 of halves with a sum of floats: f32 (1) at bit 4, n / 8 at bit 17, m / 16 at bit 24.
const unsigned instruction = 1 << 4 | (32 >> 3) << 17 | (256 >> 4) << 24;

// Half of A's 256 rows in each block, in a variable of 120.
__global__ void __cluster_dims__(2) rows(unsigned *out)
{
    __shared__ alignas(128) __half a[EITHER(120, 128) * 16], b[16 * 16], more[16 * 16];
    __shared__ alignas(8) unsigned long long barrier;
    __shared__ unsigned columns;
    fill(a, sizeof a / 2);
    fill(b, 16 * 16);
    fill(more, 16 * 16);
    allocate(&columns);
    ready(&barrier);
    if (is_first())
        asm volatile("tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, 0;" // found: made from that of the shared variable rows(unsigned int*)::a
                     : : "r"(columns), "l"(descriptor(a)), "l"(descriptor(b)), "r"(instruction) : "memory");
    wait(&barrier);
    out[threadIdx.x] = load(columns) + unsigned(float(more[threadIdx.x]));
    give_back(columns);
}
TEST(mma_rows)
{
    rows<<<2, threads>>>(Array<unsigned>(threads));
    ends();
}

// Half of B's 32 columns in each block, in a variable of 8.
__global__ void __cluster_dims__(2) columns_of_b(unsigned *out)
{
    __shared__ alignas(128) __half a[128 * 16], b[EITHER(8, 16) * 16], more[16 * 16];
    __shared__ alignas(8) unsigned long long barrier;
    __shared__ unsigned columns;
    fill(a, 128 * 16);
    fill(b, sizeof b / 2);
    fill(more, 16 * 16);
    allocate(&columns);
    ready(&barrier);
    if (is_first())
        asm volatile("tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, 0;" // found: made from that of the shared variable columns_of_b(unsigned int*)::b
                     : : "r"(columns), "l"(descriptor(a)), "l"(descriptor(b)), "r"(instruction) : "memory");
    wait(&barrier);
    out[threadIdx.x] = load(columns) + unsigned(float(more[threadIdx.x]));
    give_back(columns);
}
TEST(mma_columns)
{
    columns_of_b<<<2, threads>>>(Array<unsigned>(threads));
    ends();
}

// D of 32 columns goes into the next allocation.
__global__ void __cluster_dims__(2) sums(unsigned *out, int by)
{
    __shared__ alignas(128) __half a[128 * 16], b[16 * 16];
    __shared__ alignas(8) unsigned long long barrier;
    __shared__ unsigned first, second;
    fill(a, 128 * 16);
    fill(b, 16 * 16);
    allocate(&first);
    allocate(&second);
    ready(&barrier);
    if (is_first())
        asm volatile("tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, 0;" // found: columns 8 to 39 of tensor memory, which are not all of the allocation from whose address theirs was made: columns 0 to 31
                     : : "r"(first + by), "l"(descriptor(a)), "l"(descriptor(b)), "r"(instruction) : "memory");
    wait(&barrier);
    out[threadIdx.x] = load(first) + load(second);
    give_back(first);
    give_back(second);
}
TEST(mma_sums)
{
    sums<<<2, threads>>>(Array<unsigned>(threads), EITHER(8, 0));
    ends();
}

__global__ void __cluster_dims__(2) copy(unsigned *out)
{
    __shared__ alignas(128) __half from[EITHER(120, 128) * 16], more[16 * 16];
    __shared__ alignas(8) unsigned long long barrier;
    __shared__ unsigned columns;
    fill(from, sizeof from / 2);
    fill(more, 16 * 16);
    allocate(&columns);
    ready(&barrier);
    if (is_first())
        asm volatile("tcgen05.cp.cta_group::2.128x256b [%0], %1;" // found: made from that of the shared variable copy(unsigned int*)::from
                     : : "r"(columns), "l"(descriptor(from)) : "memory");
    wait(&barrier);
    out[threadIdx.x] = load(columns) + unsigned(float(more[threadIdx.x]));
    give_back(columns);
}
TEST(cp)
{
    copy<<<2, threads>>>(Array<unsigned>(threads));
    ends();
}
