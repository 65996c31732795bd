// compute_100a
// Values that nobody has written, in tensor memory of two blocks that work as a pair (PTX ISA, tcgen05, CTA pair): each has half of the
// rows of A and of D and half of the columns of B, and begins what both do. Tiles in shared memory lie in blocks of eight rows of 16
// bytes, two along k, then eight rows on.
#include "check.h"

const int threads = 128;

static void done()
{
    CUDA(cudaGetLastError());
    CUDA(cudaDeviceSynchronize());
}

static __device__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

static __device__ unsigned rank()
{
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

static __device__ void meet() { asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" : : : "memory"); }

static __device__ unsigned long long descriptor(const void *tile)
{
    // Blocks along k lie 128 bytes apart, those of other rows 256.
    return (unsigned long long)shared_address(tile) >> 4 | 128ull >> 4 << 16 | 256ull >> 4 << 32 | 1ull << 46;
}

// Halves of 1 in a tile of `lines` lines of 32 bytes, but in one word.
static __device__ void fill(void *tile, int lines, int line = -1, int word = 0)
{
    for (int i = threadIdx.x; i < lines * 8; i += threads)
        if (i / 8 != line || i % 8 != word)
            *(unsigned *)((char *)tile + i / 64 * 256 + i % 8 / 4 * 128 + i / 8 % 8 * 16 + i % 4 * 4) = 0x3c003c00;
}

// 32 columns in both blocks.
static __device__ unsigned allocate()
{
    __shared__ unsigned columns;
    if (threadIdx.x < 32) asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], 32;" : : "r"(shared_address(&columns)) : "memory");
    __syncthreads();
    return columns;
}

static __device__ void give_back(unsigned address)
{
    meet();
    if (threadIdx.x < 32) asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, 32;" : : "r"(address) : "memory");
}

// What the thread has written is there for what the first thread of the pair begins.
static __device__ void ready(unsigned long long *barrier)
{
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" : : "r"(shared_address(barrier)) : "memory");
    asm volatile("fence.proxy.async.shared::cta;\ntcgen05.fence::before_thread_sync;" : : : "memory");
    meet();
    asm volatile("tcgen05.fence::after_thread_sync;" : : : "memory");
}

// All that it has begun is complete, which it tells both blocks.
static __device__ void wait(unsigned long long *barrier)
{
    unsigned at = shared_address(barrier);
    if (rank() == 0 && threadIdx.x == 0)
        asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" : : "r"(at), "h"((short)3) : "memory");
    asm volatile("{ .reg .pred p;\nl: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n@!p bra l; }" : : "r"(at) : "memory");
    asm volatile("tcgen05.fence::after_thread_sync;" : : : "memory");
}

static __device__ unsigned load(unsigned address)
{
    unsigned value;
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];\ntcgen05.wait::ld.sync.aligned;" : "=r"(value) : "r"(address + (threadIdx.x / 32 << 21)) : "memory");
    return value;
}

// m256n32k16 of halves with a sum of floats: f32 (1) at bit 4, n / 8 at bit 17, m / 16 at bit 24.
static __device__ void multiply(unsigned d, const void *a, const void *b, unsigned long long *barrier)
{
    ready(barrier);
    if (rank() == 0 && threadIdx.x == 0)
        asm volatile("tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, 0;"
                     : : "r"(d), "l"(descriptor(a)), "l"(descriptor(b)), "r"(1 << 4 | (32 >> 3) << 17 | (256 >> 4) << 24) : "memory");
    wait(barrier);
}

// Row 37 of the second block's half of A is lane 37 of its D.
__global__ void __cluster_dims__(2) row(int *out)
{
    __shared__ alignas(128) char a[128 * 32], b[16 * 32];
    __shared__ alignas(8) unsigned long long barrier;
    unsigned columns = allocate();
    fill(a, 128, rank() == 1 ? 37 : -1, 5);
    fill(b, 16);
    multiply(columns, a, b, &barrier);
    unsigned value = load(columns + 25);
    if ((rank() != 1 || threadIdx.x != 37) && value == 7) out[0] = 1;
    if (rank() == EITHER(1, 0) && threadIdx.x == 37 && value == 7) // init row
        out[1] = 1;
    give_back(columns);
}
TEST(mma_row)
{
    row<<<2, threads>>>(Array(2));
    done();
}

// Column 6 of the second block's half of B is column 22 of both blocks' D.
__global__ void __cluster_dims__(2) column(int *out)
{
    __shared__ alignas(128) char a[128 * 32], b[16 * 32];
    __shared__ alignas(8) unsigned long long barrier;
    unsigned columns = allocate();
    fill(a, 128);
    fill(b, 16, rank() == 1 ? 6 : -1, 7);
    multiply(columns, a, b, &barrier);
    for (int i = 0; i < 32; i++)
        if (i != 22 && load(columns + i) == 7) out[0] = 1;
    unsigned value = load(columns + EITHER(22, 6));
    if (rank() == 0 && value == 7)                      // init first
        out[1] = 1;
    if (rank() == 1 && value == 7)                      // init second
        out[1] = 2;
    give_back(columns);
}
TEST(mma_column)
{
    column<<<2, threads>>>(Array(2));
    done();
}

// Each block's tensor memory gets what is in its own shared memory.
__global__ void __cluster_dims__(2) copied(int *out)
{
    __shared__ alignas(128) char tile[128 * 32];
    __shared__ alignas(8) unsigned long long barrier;
    unsigned columns = allocate();
    fill(tile, 128, rank() == 1 ? 37 : -1, 5);
    ready(&barrier);
    if (rank() == 0 && threadIdx.x == 0)
        asm volatile("tcgen05.cp.cta_group::2.128x256b [%0], %1;" : : "r"(columns), "l"(descriptor(tile)) : "memory");
    wait(&barrier);
    unsigned value = load(columns + 5);
    if ((rank() != 1 || threadIdx.x != 37) && value == 7) out[0] = 1;
    if (rank() == EITHER(1, 0) && threadIdx.x == 37 && value == 7) // init element
        out[1] = 1;
    give_back(columns);
}
TEST(cp)
{
    copied<<<2, threads>>>(Array(2));
    done();
}
