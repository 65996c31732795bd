// older nvcc: -arch=sm_75
// Some blocks publish pairs and quadruples by vector stores while others read them: a vector of up to 16 bytes moves
// whole, as CUB's look-back scans expect of every device.
#include "check.h"

__device__ unsigned pair[2];
__device__ __align__(16) unsigned quadruple[4];
__device__ __align__(16) unsigned long long wide[2];

__global__ void run(unsigned *torn, unsigned rounds)
{
    if (threadIdx.x != 0) return;
    if (blockIdx.x % 2 == 0) {
        for (unsigned k = 1; k <= rounds; k++) {
            asm volatile("st.relaxed.gpu.v2.u32 [%0], {%1, %2};" ::"l"(pair), "r"(k), "r"(k * 3) : "memory");
            asm volatile("st.relaxed.gpu.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(quadruple), "r"(k), "r"(k * 3), "r"(k * 5), "r"(k * 7) : "memory");
            asm volatile("st.relaxed.gpu.v2.u64 [%0], {%1, %2};" ::"l"(wide), "l"((unsigned long long)k), "l"(k * 5000000000ull) : "memory");
        }
    } else {
        // Neither waits for the other: whether they overlap is up to the device.
        for (unsigned k = 0; k < rounds; k++) {
            unsigned a, b, c, d;
            unsigned long long p, q;
            asm volatile("ld.relaxed.gpu.v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "l"(pair) : "memory");
            if (b != a * 3) atomicAdd(&torn[0], 1u);
            asm volatile("ld.relaxed.gpu.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(quadruple) : "memory");
            if (b != a * 3 || c != a * 5 || d != a * 7) atomicAdd(&torn[1], 1u);
            asm volatile("ld.relaxed.gpu.v2.u64 {%0, %1}, [%2];" : "=l"(p), "=l"(q) : "l"(wide) : "memory");
            if (q != p * 5000000000ull) atomicAdd(&torn[2], 1u);
            if (a != 0 && a != rounds) atomicAdd(&torn[3], 1u);
        }
    }
}

int main()
{
    unsigned *torn;
    CUDA(cudaMallocManaged(&torn, 4 * sizeof *torn));
    memset(torn, 0, 4 * sizeof *torn);
    unsigned rounds = 10000;
    run<<<64, 32>>>(torn, rounds);
    FINISHED();
    printf("%u looks while it was written: %u, %u and %u torn\n", torn[3], torn[0], torn[1], torn[2]);
    EXPECT_EQ(torn[0] + torn[1] + torn[2], 0);
    unsigned last[4];
    CUDA(cudaMemcpyFromSymbol(last, quadruple, sizeof last));
    EXPECT(last[0] == rounds && last[1] == 3 * rounds && last[2] == 5 * rounds && last[3] == 7 * rounds);
    return pass();
}
