// Recursion on the device: plain, mutual, with local arrays, with a depth that differs from lane to lane.
#include "check.h"

__host__ __device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__host__ __device__ __noinline__ int ackermann(int m, int n)
{
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

__host__ __device__ bool odd(unsigned n);
__host__ __device__ __noinline__ bool even(unsigned n) { return n == 0 ? true : odd(n - 1); }
__host__ __device__ __noinline__ bool odd(unsigned n) { return n == 0 ? false : even(n - 1); }

// Every frame has its own array, and its address goes down to the next.
__host__ __device__ __noinline__ int chain(const int *above, int depth)
{
    int mine[4] = {depth, above ? above[0] + above[1] : 1, depth * depth, 0};
    if (depth == 0) return mine[1];
    mine[3] = chain(mine, depth - 1);
    return mine[3] + mine[0] * 3 - mine[2];
}

// Number of ways to place n queens.
__host__ __device__ __noinline__ int queens(unsigned all, unsigned columns, unsigned left, unsigned right)
{
    if (columns == all) return 1;
    int count = 0;
    for (unsigned free = all & ~(columns | left | right); free;) {
        unsigned bit = free & -free;
        free ^= bit;
        count += queens(all, columns | bit, (left | bit) << 1, (right | bit) >> 1);
    }
    return count;
}

__global__ void run(int *out)
{
    int i = threadIdx.x;
    int *row = out + i * 5;
    row[0] = fibonacci(i % 13);
    row[1] = ackermann(2, i % 6);
    row[2] = even(i * 3) ? 1 : 2;
    row[3] = chain(nullptr, i % 17);
    unsigned all = (1u << (4 + i % 3)) - 1;
    row[4] = queens(all, 0, 0, 0);
}

int main()
{
    const int n = 64;
    int *out;
    CUDA(cudaMallocManaged(&out, n * 5 * sizeof *out));
    size_t stack = 0;
    CUDA(cudaDeviceSetLimit(cudaLimitStackSize, 16 << 10));
    CUDA(cudaDeviceGetLimit(&stack, cudaLimitStackSize));
    EXPECT(stack >= 16 << 10);
    run<<<1, n>>>(out);
    FINISHED();
    for (int i = 0; i < n; i++) {
        EXPECT_EQ(out[i * 5 + 0], fibonacci(i % 13));
        EXPECT_EQ(out[i * 5 + 1], ackermann(2, i % 6));
        EXPECT_EQ(out[i * 5 + 2], i * 3 % 2 ? 2 : 1);
        EXPECT_EQ(out[i * 5 + 3], chain(nullptr, i % 17));
        static const int known[] = {2, 10, 4}; // for 4, 5 and 6 queens
        EXPECT_EQ(out[i * 5 + 4], known[i % 3]);
    }
    return pass();
}
