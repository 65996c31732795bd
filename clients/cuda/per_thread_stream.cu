// nvcc: --default-stream per-thread
// Compiled with --default-stream per-thread: each host thread's default stream is its own and does not wait for the
// others'.
#include "check.h"

#include <thread>
#include <vector>

__global__ void add(int *data, int n, int by)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] += by;
}

static void body(int id)
{
    const int n = 2000;
    std::vector<int> host(n, id);
    int *data;
    CUDA(cudaMalloc(&data, n * sizeof(int)));
    CUDA(cudaMemcpyAsync(data, host.data(), n * sizeof(int), cudaMemcpyHostToDevice, 0));
    for (int k = 0; k < 10; k++) add<<<(n + 127) / 128, 128>>>(data, n, k);
    LAUNCHED();
    CUDA(cudaMemcpyAsync(host.data(), data, n * sizeof(int), cudaMemcpyDeviceToHost, 0));
    CUDA(cudaStreamSynchronize(0));
    for (int v : host) EXPECT_EQ(v, id + 45);
    CUDA(cudaStreamSynchronize(cudaStreamPerThread));
    CUDA(cudaFree(data));
}

// Waits for the host.
__global__ void wait_for(volatile int *flag)
{
    while (*flag == 0) {
    }
}

// What is polled is written by a volatile store: a plain one would race.
__global__ void raise_flag(volatile int *flag) { *flag = 1; }

int main()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; i++) threads.emplace_back(body, i * 100);
    for (std::thread &t : threads) t.join();

    // A kernel in this thread's default stream waits for what another thread's default stream does.
    int *flag, *data;
    CUDA(cudaMallocHost(&flag, sizeof *flag));
    CUDA(cudaMallocHost(&data, sizeof *data));
    *flag = *data = 0;
    wait_for<<<1, 1>>>(flag);
    LAUNCHED();
    EXPECT_ERROR(cudaStreamQuery(0), cudaErrorNotReady);
    std::thread other([&] {
        add<<<1, 1>>>(data, 1, 5);
        raise_flag<<<1, 1>>>(flag);
        LAUNCHED();
        CUDA(cudaStreamSynchronize(0));
    });
    other.join();
    CUDA(cudaStreamSynchronize(0));
    EXPECT_EQ(*data, 5);
    return pass();
}
