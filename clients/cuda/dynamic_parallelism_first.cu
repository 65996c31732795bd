// nvcc: -rdc=true -arch=sm_75 -DCUDA_FORCE_CDP1_IF_SUPPORTED -diag-suppress 1444
// Kernels that launch kernels, first generation: threads wait for their children, and grids nest to a limit.
#include "check.h"

__global__ void child(int *data, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = data[i] * 2 + 1;
}

// The parent sees what its child did, and goes on with it.
__global__ void parent(int *data, int n, int *sums)
{
    __shared__ int error;
    if (threadIdx.x == 0) {
        child<<<(n + 63) / 64, 64>>>(data, n);
        error = cudaDeviceSynchronize();
    }
    __syncthreads();
    int sum = error;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += data[i];
    sums[threadIdx.x] = sum;
}

__global__ void nest(int depth, int *errors, int *sync_errors)
{
    if (depth == 30) return;
    nest<<<1, 1>>>(depth + 1, errors, sync_errors);
    errors[depth] = cudaGetLastError();
    sync_errors[depth] = cudaDeviceSynchronize();
    cudaGetLastError();
}

int main()
{
    const int n = 1000;
    int *data;
    CUDA(cudaMallocManaged(&data, (n + 256) * sizeof(int)));
    for (int i = 0; i < n; i++) data[i] = i;
    int *sums = data + n;
    parent<<<1, 32>>>(data, n, sums);
    FINISHED();
    for (int t = 0; t < 32; t++) {
        int expected = 0;
        for (int i = t; i < n; i += 32) expected += i * 2 + 1;
        EXPECT_EQ(sums[t], expected);
    }

    // 24 levels, the host's launch included; waiting at two of them unless more was asked for.
    size_t limit;
    CUDA(cudaDeviceGetLimit(&limit, cudaLimitDevRuntimeSyncDepth));
    EXPECT_EQ(limit, 2);
    for (int i = 0; i < 64; i++) data[i] = -1;
    nest<<<1, 1>>>(0, data, data + 32);
    FINISHED();
    for (int i = 0; i < 24; i++) {
        EXPECT_EQ(data[i], i == 23 ? cudaErrorLaunchMaxDepthExceeded : cudaSuccess);
        EXPECT_EQ(data[32 + i], i < 2 ? cudaSuccess : cudaErrorSyncDepthExceeded);
    }
    EXPECT_EQ(data[24], -1);

    CUDA(cudaDeviceSetLimit(cudaLimitDevRuntimeSyncDepth, 23));
    nest<<<1, 1>>>(0, data, data + 32);
    FINISHED();
    for (int i = 0; i < 24; i++) EXPECT_EQ(data[32 + i], i < 23 ? cudaSuccess : cudaErrorSyncDepthExceeded);
    return pass();
}
