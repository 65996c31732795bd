// Histograms with atomics in shared memory and in global memory.
#include "check.h"

#include <vector>

__global__ void shared_histogram(const unsigned char *data, int n, unsigned *bins)
{
    __shared__ unsigned mine[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) mine[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&mine[data[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], mine[i]);
}

__global__ void global_histogram(const unsigned char *data, int n, unsigned *bins)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[data[i]], 1u);
}

int main()
{
    const int n = 200000;
    std::vector<unsigned char> data(n);
    unsigned want[256] = {}, got[256];
    Random random(5);
    for (unsigned char &v : data) {
        // Skewed, so that lanes of a warp collide.
        uint32_t r = random.next();
        v = (unsigned char)(r & 1 ? 42 : r >> 24);
        want[v]++;
    }
    unsigned char *d;
    unsigned *bins;
    CUDA(cudaMalloc(&d, n));
    CUDA(cudaMalloc(&bins, sizeof got));
    CUDA(cudaMemcpy(d, data.data(), n, cudaMemcpyHostToDevice));
    for (int shared = 0; shared < 2; shared++) {
        CUDA(cudaMemset(bins, 0, sizeof got));
        if (shared)
            shared_histogram<<<16, 256>>>(d, n, bins);
        else
            global_histogram<<<16, 256>>>(d, n, bins);
        LAUNCHED();
        CUDA(cudaMemcpy(got, bins, sizeof got, cudaMemcpyDeviceToHost));
        for (int i = 0; i < 256; i++)
            if (got[i] != want[i])
                fail("%s: bin %d holds %u, not %u", shared ? "shared" : "global", i, got[i], want[i]);
    }
    return pass();
}
