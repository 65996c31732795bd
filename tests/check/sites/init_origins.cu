// compute_90a
// From which load, and by which thread, an element of a product has what is missing: of two that have brought something, the one from which
// the element is made, and not the last.
#include <cuda_fp16.h>
#include "check.h"

static void done()
{
    CUDA(cudaGetLastError());
    CUDA(cudaDeviceSynchronize());
}

// All but one element.
template <class T> static T *all_but(int missing, int count)
{
    T *start;
    CUDA(cudaMalloc(&start, count * sizeof(T)));
    CUDA(cudaMemset(start, 0, missing * sizeof(T)));
    CUDA(cudaMemset(start + missing + 1, 0, (count - missing - 1) * sizeof(T)));
    return start;
}

// m8n8k4 of doubles: thread t has row t / 4 of A, column t / 4 of B, and columns 2 (t mod 4) and one more of row t / 4 of D.
__global__ void doubles(const double *a, const double *b, int *out)
{
    int t = threadIdx.x;
    double of_a = a[t];
    double of_b = b[t];
    double d[2];
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%4, %4};"
                 : "=d"(d[0]), "=d"(d[1]) : "d"(of_a), "d"(of_b), "d"(0.0));
    if (t == EITHER(4, 8) && d[0] == 7)                 // init row
        out[0] = 1;
    if (t == EITHER(0, 3) && d[1] == 7)                 // init column
        out[1] = 1;
}

TEST(doubles)
{
    doubles<<<1, 32>>>(all_but<double>(5, 32), all_but<double>(5, 32), Array(2));
    done();
}

// m8n8k4 of halves, by threads 0 to 3 and 16 to 19: thread t of the first four has row t of A, column t of B, and in d[0] row t mod 2 and
// column 2 (t / 2) of D.
__global__ void quads(const uint2 *a, const uint2 *b, int *out)
{
    int t = threadIdx.x;
    uint2 of_a = a[t];
    uint2 of_b = b[t];
    float d[8];
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9}, {%10, %11}, {%12, %12, %12, %12, %12, %12, %12, %12};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]), "=f"(d[7])
                 : "r"(of_a.x), "r"(of_a.y), "r"(of_b.x), "r"(of_b.y), "f"(0.0f));
    if (t == EITHER(1, 0) && d[0] == 7)                 // init row
        out[0] = 1;
    if (t == EITHER(2, 0) && d[0] == 7)                 // init column
        out[1] = 1;
}

TEST(quads)
{
    quads<<<1, 32>>>(all_but<uint2>(1, 32), all_but<uint2>(2, 32), Array(2));
    done();
}

// wgmma with A in registers: the first has row t mod 32 / 4 of each warp's sixteen, the second the one eight rows on. What thread 70 has of
// the first, threads 68 to 71 have in d[0]; what thread 74 has of the second, threads 72 to 75 in d[2].
__global__ void registers(const unsigned *first, const unsigned *second, int *out)
{
    __shared__ alignas(128) __half b[8 * 16];
    float d[4];
    int t = threadIdx.x;
    if (t < 128) b[t] = __half(1.f);
    unsigned a[2];
    a[0] = first[t];
    a[1] = second[t];
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
    __syncthreads();
    unsigned long long descriptor = (unsigned long long)__cvta_generic_to_shared(b) >> 4 | 128ull >> 4 << 16 | 256ull >> 4 << 32;
    asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %5, %6, %6}, %7, 0, 1, 1, 0;"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(0), "l"(descriptor) : "memory");
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" : : : "memory");
    if (t == EITHER(68, 72) && d[0] == 7)               // init row
        out[0] = 1;
    if (t == EITHER(72, 68) && d[2] == 7)               // init below
        out[1] = 1;
}

TEST(wgmma)
{
    registers<<<1, 128>>>(all_but<unsigned>(70, 128), all_but<unsigned>(74, 128), Array(2));
    done();
}
