// compute_90a
// Values that nobody has written, through products of four warps (PTX ISA, wgmma.mma_async): of 64 rows each warp has 16, in the layout of
// m16n8k16. Tiles lie in shared memory without a swizzle, in blocks of eight rows of 16 bytes, two along k, then eight rows on.
#include <cuda_fp16.h>
#include "check.h"

const int threads = 128;

static void done()
{
    CUDA(cudaGetLastError());
    CUDA(cudaDeviceSynchronize());
}

// Where an element of a tile lies, in halves.
__device__ int place(int line, int k) { return line / 8 * 128 + k / 8 * 64 + line % 8 * 8 + k % 8; }

__device__ unsigned long long descriptor(const void *tile)
{
    // Blocks along k lie 128 bytes apart, those of other rows 256.
    unsigned long long start = __cvta_generic_to_shared(tile) >> 4, leading = 128 >> 4, stride = 256 >> 4;
    return start | leading << 16 | stride << 32;
}

// All of a tile but one element.
__device__ void fill(__half *tile, int lines, int line = -1, int k = 0)
{
    for (int i = threadIdx.x; i < lines * 16; i += threads)
        if (i / 16 != line || i % 16 != k) tile[place(i / 16, i % 16)] = __half(1.f);
}

__device__ void ready()
{
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
    __syncthreads();
    asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
}

__device__ void wait() { asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" : : : "memory"); }

// m64n8k16 of halves; `add`: to what is there.
__device__ void multiply(float (&d)[4], const __half *a, const __half *b, int add)
{
    ready();
    asm volatile("{ .reg .pred p;\nsetp.ne.b32 p, %6, 0;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0; }"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "l"(descriptor(a)), "l"(descriptor(b)), "r"(add) : "memory");
    wait();
}

// Row 37 is row 5 of the third warp.
__global__ void row(int *out)
{
    __shared__ alignas(128) __half a[64 * 16], b[8 * 16];
    float d[4] = {};
    int t = threadIdx.x;
    fill(a, 64, 37, 3);
    fill(b, 8);
    multiply(d, a, b, 0);
    bool has_row = t / 32 == 2 && t % 32 / 4 == 5;
    if (d[2] == 7 || d[3] == 7) out[0] = 1;
    if (!has_row && d[0] == 7) out[1] = 1;
    if (has_row && d[EITHER(1, 3)] == 7)                // init row
        out[2] = 1;
}

TEST(wgmma_row)
{
    row<<<1, threads>>>(Array(3));
    done();
}

// Column 6 of B, which every fourth thread has in d[0] and d[2].
__global__ void column(int *out)
{
    __shared__ alignas(128) __half a[64 * 16], b[8 * 16];
    float d[4] = {};
    int t = threadIdx.x;
    fill(a, 64);
    fill(b, 8, 6, 15);
    multiply(d, a, b, 1);
    if (d[1] == 7 || d[3] == 7) out[0] = 1;
    if (t % 4 != 3 && (d[0] == 7 || d[2] == 7)) out[1] = 1;
    if (t % 4 == 3 && d[EITHER(2, 3)] == 7)             // init column
        out[2] = 1;
}

TEST(wgmma_column)
{
    column<<<1, threads>>>(Array(3));
    done();
}

// A sum that nobody has written counts where it is added to, and not where it is overwritten.
__global__ void sum(const float *in, int *out, int add)
{
    __shared__ alignas(128) __half a[64 * 16], b[8 * 16];
    int t = threadIdx.x;
    float d[4] = {in[t], 0, 0, 0};
    fill(a, 64);
    fill(b, 8);
    multiply(d, a, b, add);
    if (d[1] == 7 || d[2] == 7 || d[3] == 7) out[0] = 1;
    if (d[0] == 7)                                      // init sum
        out[1] = 1;
}

TEST(wgmma_sum)
{
    float *in;
    CUDA(cudaMalloc(&in, threads * sizeof(float)));
    sum<<<1, threads>>>(in, Array(2), EITHER(1, 0));
    done();
}

// A in registers: thread 70 holds a part of row 32 + 1 + 8 in its second register, which goes to d[2] and d[3] of threads 68 to 71 of
// the third warp.
__global__ void registers(const unsigned *in, int *out)
{
    __shared__ alignas(128) __half b[8 * 16];
    float d[4] = {};
    int t = threadIdx.x;
    fill(b, 8);
    ready();
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %5, %4, %4}, %6, 1, 1, 1, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(0), "r"(in[t]), "l"(descriptor(b)) : "memory");
    wait();
    bool has_row = t / 4 == 17;
    if (d[0] == 7 || d[1] == 7) out[0] = 1;
    if (!has_row && d[2] == 7) out[1] = 1;
    if (has_row && d[EITHER(3, 1)] == 7)                // init row
        out[2] = 1;
}

TEST(wgmma_registers)
{
    unsigned *in;
    CUDA(cudaMalloc(&in, threads * sizeof(unsigned)));
    CUDA(cudaMemset(in, 0, 70 * sizeof(unsigned)));
    CUDA(cudaMemset(in + 71, 0, (threads - 71) * sizeof(unsigned)));
    registers<<<1, threads>>>(in, Array(3));
    done();
}
