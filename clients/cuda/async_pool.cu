// Stream-ordered allocation: cudaMallocAsync, cudaFreeAsync, pools and their attributes.
#include "check.h"

#include <vector>

__global__ void fill(int *data, int n, int base)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = base + i;
}
__global__ void add(int *to, const int *from, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] += from[i];
}

int main()
{
    int supported = 0;
    CUDA(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
    EXPECT_EQ(supported, 1);
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    cudaMemPool_t pool;
    CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
    const int n = 10000, rounds = 20;
    std::vector<int> got(n);
    int *sum;
    CUDA(cudaMallocAsync(&sum, n * sizeof(int), stream));
    CUDA(cudaMemsetAsync(sum, 0, n * sizeof(int), stream));
    for (int r = 0; r < rounds; r++) {
        int *part;
        CUDA(cudaMallocAsync(&part, n * sizeof(int), stream));
        fill<<<(n + 255) / 256, 256, 0, stream>>>(part, n, r);
        add<<<(n + 255) / 256, 256, 0, stream>>>(sum, part, n);
        CUDA(cudaFreeAsync(part, stream)); // the kernels may still be to run
    }
    LAUNCHED();
    CUDA(cudaMemcpyAsync(got.data(), sum, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
    CUDA(cudaFreeAsync(sum, stream));
    CUDA(cudaStreamSynchronize(stream));
    for (int i = 0; i < n; i++) EXPECT_EQ(got[i], rounds * i + rounds * (rounds - 1) / 2);

    uint64_t threshold = 1 << 20, value = 0;
    CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &value));
    EXPECT_EQ(value, 1 << 20);
    CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value));
    EXPECT_EQ(value, 0);
    CUDA(cudaMemPoolTrimTo(pool, 0));

    // A pool of one's own.
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = 0;
    cudaMemPool_t own;
    CUDA(cudaMemPoolCreate(&own, &properties));
    int *data;
    CUDA(cudaMallocFromPoolAsync((void **)&data, n * sizeof(int), own, stream));
    fill<<<(n + 255) / 256, 256, 0, stream>>>(data, n, 7);
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaMemPoolGetAttribute(own, cudaMemPoolAttrUsedMemCurrent, &value));
    EXPECT(value >= n * sizeof(int));
    CUDA(cudaMemcpy(got.data(), data, n * sizeof(int), cudaMemcpyDeviceToHost));
    EXPECT_EQ(got[n - 1], 7 + n - 1);
    CUDA(cudaFreeAsync(data, stream));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaMemPoolDestroy(own));
    // Memory of either kind may be freed by either call.
    CUDA(cudaMallocAsync(&data, 100, stream));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaFree(data));
    CUDA(cudaMalloc(&data, 100));
    CUDA(cudaFreeAsync(data, stream));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaStreamDestroy(stream));
    return pass();
}
