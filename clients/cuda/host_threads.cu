// Many host threads use the device at once: the default stream, streams of their own, allocations, modules' first use.
#include "check.h"

#include <atomic>
#include <thread>
#include <vector>

__device__ int total;

template <int K> __global__ void work(int *data, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = data[i] * K + i;
    if (i == 0) atomicAdd(&total, K);
}

static void body(int id, int rounds)
{
    CUDA(cudaSetDevice(0));
    const int n = 3000 + id;
    cudaStream_t stream = 0;
    if (id % 2) CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    std::vector<int> host(n), want(n);
    for (int r = 0; r < rounds; r++) {
        int *data;
        CUDA(cudaMalloc(&data, n * sizeof(int)));
        for (int i = 0; i < n; i++) {
            host[i] = id * 1000 + i + r;
            want[i] = ((host[i] * 3 + i) * 5 + i) * 7 + i;
        }
        CUDA(cudaMemcpyAsync(data, host.data(), n * sizeof(int), cudaMemcpyHostToDevice, stream));
        work<3><<<(n + 255) / 256, 256, 0, stream>>>(data, n);
        work<5><<<(n + 63) / 64, 64, 0, stream>>>(data, n);
        work<7><<<(n + 99) / 100, 100, 0, stream>>>(data, n);
        LAUNCHED();
        CUDA(cudaMemcpyAsync(host.data(), data, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
        CUDA(cudaStreamSynchronize(stream));
        if (host != want) fail("thread %d, round %d: wrong data", id, r);
        CUDA(cudaFree(data));
    }
    if (stream) CUDA(cudaStreamDestroy(stream));
    // The last error belongs to the thread.
    if (id == 3) EXPECT_ERROR(cudaSetDevice(1000), cudaErrorInvalidDevice);
}

int main()
{
    const int threads = 16, rounds = 8;
    std::vector<std::thread> all;
    for (int i = 0; i < threads; i++) all.emplace_back(body, i, rounds);
    for (std::thread &t : all) t.join();
    CUDA(cudaGetLastError());
    int got;
    CUDA(cudaMemcpyFromSymbol(&got, total, sizeof got));
    EXPECT_EQ(got, threads * rounds * (3 + 5 + 7));
    return pass();
}
