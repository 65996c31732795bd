// Inclusive prefix sums of a long array: scan per block (warp shuffles and shared memory), scan of the sums, addition.
#include "check.h"

#include <vector>

__device__ int scan_warp(int v)
{
    for (int offset = 1; offset < 32; offset *= 2) {
        int below = __shfl_up_sync(0xFFFFFFFF, v, offset);
        if ((threadIdx.x & 31) >= offset) v += below;
    }
    return v;
}

__global__ void scan_blocks(int *data, int *sums, int n)
{
    __shared__ int warps[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int v = scan_warp(i < n ? data[i] : 0);
    if (lane == 31) warps[warp] = v;
    __syncthreads();
    if (warp == 0) warps[lane] = scan_warp(warps[lane]);
    __syncthreads();
    if (warp > 0) v += warps[warp - 1];
    if (i < n) data[i] = v;
    if (sums && threadIdx.x == blockDim.x - 1) sums[blockIdx.x] = v;
}

// Hillis and Steele, double-buffered, in one block.
__global__ void scan_simple(int *data, int n)
{
    extern __shared__ int buffers[];
    int *from = buffers, *to = buffers + n;
    int t = threadIdx.x;
    from[t] = data[t];
    __syncthreads();
    for (int offset = 1; offset < n; offset *= 2) {
        to[t] = t >= offset ? from[t] + from[t - offset] : from[t];
        __syncthreads();
        int *swap = from;
        from = to;
        to = swap;
    }
    data[t] = from[t];
}

__global__ void add_sums(int *data, const int *sums, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && blockIdx.x > 0) data[i] += sums[blockIdx.x - 1];
}

int main()
{
    const int n = 100000, block = 1024, blocks = (n + block - 1) / block;
    std::vector<int> in(n), got(n);
    Random random(4);
    for (int &v : in) v = (int)(random.next() % 201) - 100;
    int *data, *sums;
    CUDA(cudaMalloc(&data, n * sizeof(int)));
    CUDA(cudaMalloc(&sums, blocks * sizeof(int)));
    CUDA(cudaMemcpy(data, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    scan_blocks<<<blocks, block>>>(data, sums, n);
    LAUNCHED();
    scan_simple<<<1, blocks, 2 * blocks * sizeof(int)>>>(sums, blocks);
    LAUNCHED();
    add_sums<<<blocks, block>>>(data, sums, n);
    LAUNCHED();
    CUDA(cudaMemcpy(got.data(), data, n * sizeof(int), cudaMemcpyDeviceToHost));
    int want = 0;
    for (int i = 0; i < n; i++) {
        want += in[i];
        if (got[i] != want) fail("sum up to %d is %d, not %d", i, got[i], want);
    }
    return pass();
}
