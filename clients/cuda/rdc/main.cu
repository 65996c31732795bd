// Separate compilation: variables, functions, function pointers and kernels across three files, linked by the driver
// from the PTX of each.
#include "check.h"
#include "shared.h"

// Of the same name as those of the other files.
__device__ static int helper(int x) { return -x; }

__device__ __noinline__ int twice(int x) { return 2 * x + helper(1); }

__global__ void use_pointer(int *out) { out[threadIdx.x] = current(threadIdx.x) + weigh(threadIdx.x); }
__global__ void set_pointer() { current = twice; }
__global__ void add_managed(int by) { managed_total += by; }

int main()
{
    int *out;
    CUDA(cudaMallocManaged(&out, 16 * sizeof *out));
    int weight[4] = {1, 10, 100, 1000};
    auto weighed = [&](int x) {
        int sum = 100;
        for (int i = 0; i < 4; i++) sum += weight[i] * ((x >> i) & 1);
        return sum;
    };
    from_state<<<1, 16>>>(out);
    FINISHED();
    for (int i = 0; i < 16; i++) EXPECT_EQ(out[i], weighed(i) + 202);
    use_pointer<<<1, 16>>>(out);
    FINISHED();
    for (int i = 0; i < 16; i++) EXPECT_EQ(out[i], 3 * i + weighed(i));
    weight[2] = -7;
    CUDA(cudaMemcpyToSymbol(weights, weight, sizeof weight));
    set_pointer<<<1, 1>>>();
    use_pointer<<<1, 16>>>(out);
    add_managed<<<1, 1>>>(30);
    FINISHED();
    for (int i = 0; i < 16; i++) EXPECT_EQ(out[i], 2 * i - 1 + weighed(i));
    Counter seen;
    CUDA(cudaMemcpyFromSymbol(&seen, counter, sizeof seen));
    EXPECT_EQ(seen.calls, 1000 + 48);
    EXPECT_EQ(seen.sum, -5 + 120);
    EXPECT_EQ(managed_total, 11 + 1 + 30);
    return pass();
}
