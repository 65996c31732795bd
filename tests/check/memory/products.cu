// compute_90a
// Matrices of wgmma in shared memory, which descriptors name: PTX ISA, Matrix-descriptor format. Each goes beyond its variable, and lands
// in the next one. Tiles lie in blocks of eight rows of 16 bytes, two along k, then eight rows on.
#include <cuda_fp16.h>
#include "../check.h"

const int threads = 128;

static void ends() { CUDA(EITHER((cudaDeviceSynchronize(), cudaSuccess), cudaDeviceSynchronize())); }

// Blocks along k lie 128 bytes apart, those of other rows 256, or what else is said.
static __device__ unsigned long long descriptor(const void *tile, unsigned stride = 256)
{
    unsigned long long start = (__cvta_generic_to_shared(tile) & 0x3ffff) >> 4;
    return start | (unsigned long long)(128 >> 4) << 16 | (unsigned long long)(stride >> 4) << 32;
}

static __device__ void fill(__half *tile, int count)
{
    for (int i = threadIdx.x; i < count; i += threads) tile[i] = __half(1.f);
}

static __device__ void ready()
{
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
    __syncthreads();
    asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
}

static __device__ void wait() { asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" : : : "memory"); }

// A of 64 rows in a variable of 56.
__global__ void rows(float *out)
{
    __shared__ alignas(128) __half a[EITHER(56, 64) * 16], b[8 * 16], more[8 * 16];
    float d[4];
    fill(a, sizeof a / 2);
    fill(b, 8 * 16);
    fill(more, 8 * 16);
    ready();
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 0, 1, 1, 0, 0;" // found: made from that of the shared variable rows(float*)::a
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]) : "l"(descriptor(a)), "l"(descriptor(b)) : "memory");
    wait();
    out[threadIdx.x] = d[0] + float(more[threadIdx.x]);
}
TEST(wgmma_rows)
{
    rows<<<1, threads>>>(Array<float>(threads));
    ends();
}

// B's second step along k, by a descriptor that was moved on: of two steps there are two, and the third is another variable's.
__global__ void steps(float *out, int count)
{
    __shared__ alignas(128) __half a[64 * 16], b[2][8 * 16], more[8 * 16];
    float d[4] = {};
    fill(a, 64 * 16);
    fill(b[0], 2 * 8 * 16);
    fill(more, 8 * 16);
    unsigned long long of_a = descriptor(a), of_b = descriptor(b);
    for (int k = 0; k < count; k++) {
        ready();
        asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;" // found: made from that of the shared variable steps(float*, int)::b
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(of_a), "l"(of_b + k * (256 >> 4)) : "memory");
        wait();
    }
    out[threadIdx.x] = d[0] + float(more[threadIdx.x]);
}
TEST(wgmma_columns)
{
    steps<<<1, threads>>>(Array<float>(threads), EITHER(3, 2));
    ends();
}

// A in registers, and a stride that is too large for B.
__global__ void registers(float *out, int stride)
{
    __shared__ alignas(128) __half b[16 * 16], more[32 * 16];
    float d[8];
    fill(b, 16 * 16);
    fill(more, 32 * 16);
    ready();
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %8, %8, %8}, %9, 0, 1, 1, 0;" // found: illegal read of 16 bytes
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]), "=f"(d[7])
                 : "r"(0), "l"(descriptor(b, stride)) : "memory");
    wait();
    out[threadIdx.x] = d[0] + float(more[threadIdx.x]);
}
TEST(wgmma_registers)
{
    registers<<<1, threads>>>(Array<float>(threads), EITHER(512, 256));
    ends();
}
