// The legacy default stream waits for the blocking streams and they wait for it; non-blocking streams do neither.
#include "check.h"

__global__ void wait(long long nanoseconds)
{
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < nanoseconds);
}
__global__ void set(int *p, int value) { *p = value; }
__global__ void copy_plus(int *to, const int *from, int plus) { *to = *from + plus; }
__global__ void wait_for(volatile int *flag)
{
    while (*flag == 0) {
    }
}

// What is polled is written by a volatile store: a plain one would race.
__global__ void raise_flag(volatile int *flag) { *flag = 1; }

int main()
{
    int *cells;
    CUDA(cudaMallocHost(&cells, 16 * sizeof(int)));
    memset(cells, 0, 16 * sizeof(int));
    cudaStream_t first, second, apart;
    CUDA(cudaStreamCreate(&first));
    CUDA(cudaStreamCreate(&second));
    CUDA(cudaStreamCreateWithFlags(&apart, cudaStreamNonBlocking));

    // first -> default -> second, by the default stream's rule alone.
    for (int round = 0; round < 20; round++) {
        wait<<<1, 1, 0, first>>>(200000);
        set<<<1, 1, 0, first>>>(&cells[0], round);
        copy_plus<<<1, 1>>>(&cells[1], &cells[0], 1);
        copy_plus<<<1, 1, 0, second>>>(&cells[2], &cells[1], 1);
        wait<<<1, 1, 0, second>>>(100000);
        copy_plus<<<1, 1, 0, second>>>(&cells[3], &cells[2], 1);
        copy_plus<<<1, 1, 0, cudaStreamLegacy>>>(&cells[4], &cells[3], 1);
        LAUNCHED();
        int seen;
        CUDA(cudaMemcpy(&seen, &cells[4], sizeof seen, cudaMemcpyDefault)); // in the default stream as well
        EXPECT_EQ(seen, round + 4);
    }

    // A non-blocking stream goes on while the default stream is stuck, and the per-thread one does not.
    cells[5] = cells[6] = cells[7] = 0;
    wait_for<<<1, 1>>>(&cells[5]);
    set<<<1, 1, 0, cudaStreamPerThread>>>(&cells[7], 1);
    LAUNCHED();
    set<<<1, 1, 0, apart>>>(&cells[6], 9);
    CUDA(cudaStreamSynchronize(apart));
    EXPECT_EQ(cells[6], 9);
    EXPECT_ERROR(cudaStreamQuery(cudaStreamPerThread), cudaErrorNotReady);
    EXPECT_ERROR(cudaStreamQuery(0), cudaErrorNotReady);
    cudaGetLastError();
    EXPECT_EQ(*(volatile int *)&cells[7], 0);
    raise_flag<<<1, 1, 0, apart>>>(&cells[5]);
    LAUNCHED();
    CUDA(cudaDeviceSynchronize());
    EXPECT_EQ(cells[7], 1);
    CUDA(cudaStreamQuery(0));
    for (cudaStream_t s : {first, second, apart}) CUDA(cudaStreamDestroy(s));
    return pass();
}
