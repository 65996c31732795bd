#include "shared.h"

__device__ Counter counter = {1000, -5};
__constant__ int weights[4] = {1, 10, 100, 1000};
__managed__ int managed_total = 11;
static __device__ int local_calls = 200;

__device__ static int helper(int x) { return x * 2 + local_calls; }

__device__ void note(long long value) { atomicAdd((unsigned long long *)&counter.sum, (unsigned long long)value); }

__global__ void from_state(int *out)
{
    out[threadIdx.x] = weigh(threadIdx.x) + helper(1);
    if (threadIdx.x == 0) managed_total += 1;
}
