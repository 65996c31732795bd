// Streams, events, asynchronous copies and host functions: what runs before what.
#include "check.h"

#include <atomic>
#include <vector>

#include <time.h>

__global__ void scale(int *data, int n, int by, int plus)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = data[i] * by + plus;
}

// Keeps a stream busy for a while.
__global__ void wait(long long nanoseconds)
{
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < nanoseconds);
}

__global__ void combine(const int *a, const int *b, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] - b[i];
}

static std::atomic<int> step{0};
struct Note {
    int seen;
};
static void CUDART_CB take_step(void *data) { ((Note *)data)->seen = step.fetch_add(1); }
static void CUDART_CB pause_host(void *)
{
    timespec t = {0, 20000000};
    nanosleep(&t, nullptr);
}
static void CUDART_CB old_callback(cudaStream_t, cudaError_t status, void *data)
{
    ((Note *)data)->seen = status == cudaSuccess ? step.fetch_add(1) : -1;
}

int main()
{
    const int n = 20000;
    const size_t bytes = n * sizeof(int);
    cudaStream_t first, second;
    CUDA(cudaStreamCreate(&first));
    CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    cudaEvent_t ready, start, stop;
    CUDA(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
    CUDA(cudaEventCreate(&start));
    CUDA(cudaEventCreate(&stop));

    int *pinned, *back, *a, *b, *out;
    CUDA(cudaMallocHost(&pinned, bytes));
    CUDA(cudaMallocHost(&back, bytes));
    CUDA(cudaMalloc(&a, bytes));
    CUDA(cudaMalloc(&b, bytes));
    CUDA(cudaMalloc(&out, bytes));
    for (int i = 0; i < n; i++) pinned[i] = i;

    // Order inside a stream.
    Note notes[4] = {};
    CUDA(cudaEventRecord(start, first));
    CUDA(cudaMemcpyAsync(a, pinned, bytes, cudaMemcpyHostToDevice, first));
    CUDA(cudaLaunchHostFunc(first, take_step, &notes[0]));
    for (int k = 0; k < 10; k++) scale<<<(n + 127) / 128, 128, 0, first>>>(a, n, 3, k);
    CUDA(cudaLaunchHostFunc(first, take_step, &notes[1]));
    wait<<<1, 1, 0, first>>>(5000000);
    CUDA(cudaStreamAddCallback(first, old_callback, &notes[2], 0));
    CUDA(cudaEventRecord(ready, first));
    CUDA(cudaEventRecord(stop, first));

    // The second stream waits for the first by the event.
    CUDA(cudaMemsetAsync(b, 1, bytes, second));
    CUDA(cudaStreamWaitEvent(second, ready, 0));
    combine<<<(n + 127) / 128, 128, 0, second>>>(a, b, out, n);
    CUDA(cudaMemcpyAsync(back, out, bytes, cudaMemcpyDeviceToHost, second));
    CUDA(cudaLaunchHostFunc(second, take_step, &notes[3]));
    LAUNCHED();
    CUDA(cudaStreamSynchronize(second));
    for (int i = 0; i < n; i++) {
        int want = i;
        for (int k = 0; k < 10; k++) want = (int)((unsigned)want * 3u + (unsigned)k);
        want = (int)((unsigned)want - 0x01010101u);
        if (back[i] != want) fail("after two streams, [%d] is %d, not %d", i, back[i], want);
    }
    for (int i = 0; i < 4; i++)
        if (notes[i].seen != i) fail("host function %d ran as number %d", i, notes[i].seen);
    CUDA(cudaEventQuery(ready));
    CUDA(cudaEventSynchronize(stop)); // recorded behind the event that the second stream waited for
    CUDA(cudaStreamQuery(first));
    float milliseconds = -1;
    CUDA(cudaEventElapsedTime(&milliseconds, start, stop));
    if (!(milliseconds >= 4.9f && milliseconds < 60000)) fail("elapsed time %g ms", milliseconds);
    EXPECT_ERROR(cudaEventElapsedTime(&milliseconds, start, ready), cudaErrorInvalidResourceHandle);
    cudaGetLastError();

    // Launching does not wait: the stream is busy while the host function sleeps.
    CUDA(cudaLaunchHostFunc(first, pause_host, nullptr));
    CUDA(cudaEventRecord(ready, first));
    EXPECT_ERROR(cudaStreamQuery(first), cudaErrorNotReady);
    EXPECT_ERROR(cudaEventQuery(ready), cudaErrorNotReady);
    CUDA(cudaEventSynchronize(ready));
    CUDA(cudaEventQuery(ready));
    cudaGetLastError();

    // An event of two streams at once, many times over: a ring of increments.
    CUDA(cudaMemset(a, 0, sizeof(int)));
    cudaEvent_t hop[2];
    CUDA(cudaEventCreateWithFlags(&hop[0], cudaEventDisableTiming));
    CUDA(cudaEventCreateWithFlags(&hop[1], cudaEventDisableTiming));
    CUDA(cudaDeviceSynchronize());
    unsigned want = 0;
    for (int k = 0; k < 200; k++) {
        cudaStream_t here = k & 1 ? second : first, next = k & 1 ? first : second;
        scale<<<1, 1, 0, here>>>(a, 1, 5, k);
        want = want * 5 + k;
        CUDA(cudaEventRecord(hop[k & 1], here));
        CUDA(cudaStreamWaitEvent(next, hop[k & 1], 0));
    }
    CUDA(cudaDeviceSynchronize());
    int last;
    CUDA(cudaMemcpy(&last, a, sizeof last, cudaMemcpyDeviceToHost));
    EXPECT_EQ((unsigned)last, want);

    int low, high;
    CUDA(cudaDeviceGetStreamPriorityRange(&low, &high));
    EXPECT(low >= high);
    cudaStream_t third;
    CUDA(cudaStreamCreateWithPriority(&third, cudaStreamNonBlocking, high));
    int priority = 99;
    unsigned flags = 99;
    CUDA(cudaStreamGetPriority(third, &priority));
    CUDA(cudaStreamGetFlags(third, &flags));
    EXPECT_EQ(priority, high);
    EXPECT_EQ(flags, cudaStreamNonBlocking);

    // Destroying a stream with work in it lets the work finish.
    CUDA(cudaMemsetAsync(a, 0, bytes, third));
    wait<<<1, 1, 0, third>>>(2000000);
    scale<<<(n + 127) / 128, 128, 0, third>>>(a, n, 1, 9);
    CUDA(cudaStreamDestroy(third));
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaMemcpy(back, a, bytes, cudaMemcpyDeviceToHost));
    EXPECT_EQ(back[n - 1], 9);

    CUDA(cudaStreamDestroy(first));
    CUDA(cudaStreamDestroy(second));
    for (cudaEvent_t event : {ready, start, stop, hop[0], hop[1]}) CUDA(cudaEventDestroy(event));
    CUDA(cudaFreeHost(pinned));
    CUDA(cudaFreeHost(back));
    return pass();
}
