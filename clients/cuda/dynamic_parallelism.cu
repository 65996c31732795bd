// nvcc: -rdc=true
// Kernels that launch kernels, second generation: streams, tail and fire-and-forget launches, children of children, what
// the device runtime has besides, and its errors.
#include "check.h"

#include <vector>

__global__ void add(int *data, int n, int value)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] += value;
}

// A quicksort that recurses on the device, to any depth.
__global__ void sort_range(unsigned *data, int left, int right)
{
    if (right - left < 16) {
        for (int i = left + 1; i <= right; i++) {
            unsigned v = data[i];
            int j = i - 1;
            for (; j >= left && data[j] > v; j--) data[j + 1] = data[j];
            data[j + 1] = v;
        }
        return;
    }
    unsigned pivot = data[(left + right) / 2];
    int i = left, j = right;
    while (i <= j) {
        while (data[i] < pivot) i++;
        while (data[j] > pivot) j--;
        if (i <= j) {
            unsigned t = data[i];
            data[i++] = data[j];
            data[j--] = t;
        }
    }
    cudaStream_t a, b;
    cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
    if (left < j) sort_range<<<1, 1, 0, a>>>(data, left, j);
    if (i < right) sort_range<<<1, 1, 0, b>>>(data, i, right);
    cudaStreamDestroy(a);
    cudaStreamDestroy(b);
}

// Shared memory of the child, large arguments, and a launch by every thread of every block.
struct Wide {
    long long values[40];
};

__global__ void scatter(int *out, Wide wide, int offset)
{
    extern __shared__ int window[];
    window[threadIdx.x] = (int)wide.values[threadIdx.x] + offset;
    __syncthreads();
    out[offset + threadIdx.x] = window[blockDim.x - 1 - threadIdx.x];
}

__global__ void every_thread(int *out)
{
    Wide wide;
    int me = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < 40; i++) wide.values[i] = me * 1000 + i;
    scatter<<<1, 40, 40 * sizeof(int)>>>(out, wide, me * 40);
}

// Order: children in one stream follow each other; a tail comes when all else is complete, tails in their order.
__device__ int order[16], order_count;

__global__ void note(int what)
{
    order[atomicAdd(&order_count, 1)] = what;
}

__global__ void note_and_child(int what)
{
    note<<<1, 1>>>(what + 1);
    note<<<1, 1, 0, cudaStreamTailLaunch>>>(what + 2);
    order[atomicAdd(&order_count, 1)] = what;
}

__global__ void ordered()
{
    note<<<1, 1, 0, cudaStreamTailLaunch>>>(90);
    note_and_child<<<1, 1, 0, cudaStreamTailLaunch>>>(100);
    note<<<1, 1, 0, cudaStreamTailLaunch>>>(110);
    note_and_child<<<1, 1>>>(10);
    note<<<1, 1>>>(20);
    order[atomicAdd(&order_count, 1)] = 0;
}

// A chain of tail launches, far longer than anything that is nested.
__global__ void countdown(int left, int *count)
{
    *count += 1;
    if (left > 0) countdown<<<1, 1, 0, cudaStreamTailLaunch>>>(left - 1, count);
}

// A chain of children, too.
__global__ void deeper(int left, int *deepest)
{
    *deepest += 1;
    if (left > 0) deeper<<<1, 1, 0, cudaStreamFireAndForget>>>(left - 1, deepest);
}

struct Answers {
    int attribute, device, count, version, blocks, shared_static, max_threads, caught, peeked, cleared;
    int bad_stream, too_many_threads, bad_kind, bad_event;
    size_t heap;
    char name[32], text[32];
};

__global__ void window_user(int *p)
{
    __shared__ int s[100];
    s[threadIdx.x] = p[threadIdx.x];
    __syncthreads();
    p[threadIdx.x] = s[99 - threadIdx.x];
}

__device__ void copy_text(char *to, const char *from)
{
    int i = 0;
    for (; from[i] && i < 31; i++) to[i] = from[i];
    to[i] = 0;
}

__global__ void ask(Answers *out, int *data)
{
    cudaDeviceGetAttribute(&out->attribute, cudaDevAttrMaxThreadsPerBlock, 0);
    cudaGetDevice(&out->device);
    cudaGetDeviceCount(&out->count);
    cudaRuntimeGetVersion(&out->version);
    cudaDeviceGetLimit(&out->heap, cudaLimitMallocHeapSize);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&out->blocks, window_user, 128, 0);
    cudaFuncAttributes attributes;
    cudaFuncGetAttributes(&attributes, (const void *)window_user);
    out->shared_static = (int)attributes.sharedSizeBytes;
    out->max_threads = attributes.maxThreadsPerBlock;

    add<<<1, 4096>>>(data, 0, 1);
    out->peeked = cudaPeekAtLastError();
    out->too_many_threads = cudaGetLastError();
    out->cleared = cudaGetLastError();
    add<<<1, 1, 0, (cudaStream_t)0x1230>>>(data, 0, 1);
    out->bad_stream = cudaGetLastError();
    out->bad_kind = cudaMemcpyAsync(data, data + 64, 16, cudaMemcpyHostToDevice, 0);
    cudaEvent_t event;
    out->bad_event = cudaEventCreateWithFlags(&event, cudaEventDefault);
    out->caught = cudaGetLastError();
    copy_text(out->name, cudaGetErrorName(cudaErrorInvalidConfiguration));
    copy_text(out->text, cudaGetErrorString(cudaErrorInvalidConfiguration));
}

// Memory of the device runtime, copies and sets of every shape, ordered by events.
__global__ void fill_heap(int *p, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x) p[i] = i * 3;
}

__global__ void drop(int *p)
{
    cudaFree(p);
}

__global__ void memory(int *out, int n)
{
    int *p;
    if (cudaMalloc((void **)&p, n * sizeof(int)) != cudaSuccess) return;
    cudaStream_t a, b;
    cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
    cudaEvent_t ready;
    cudaEventCreateWithFlags(&ready, cudaEventDisableTiming);
    fill_heap<<<1, 32, 0, a>>>(p, n);
    cudaEventRecord(ready, a);
    cudaStreamWaitEvent(b, ready, 0);
    cudaMemcpyAsync(out, p, n * sizeof(int), cudaMemcpyDeviceToDevice, b);
    cudaMemsetAsync(out + n, 0x5a, n, b);
    // Rows of 8 bytes, 16 apart, to rows 8 apart; then every second such row is set.
    cudaMemcpy2DAsync(out + 2 * n, 8, p, 16, 8, 4, cudaMemcpyDeviceToDevice, b);
    cudaMemset2DAsync(out + 3 * n, 16, 1, 8, 4, b);
    cudaMemset3DAsync(cudaPitchedPtr{out + 4 * n, 8, 8, 2}, 2, cudaExtent{4, 2, 3}, b);
    cudaMemcpy3DParms box = {};
    box.srcPtr = cudaPitchedPtr{p, 16, 16, 2};
    box.dstPtr = cudaPitchedPtr{out + 5 * n, 8, 8, 2};
    box.srcPos = cudaPos{4, 1, 0};
    box.extent = cudaExtent{8, 1, 2};
    box.kind = cudaMemcpyDefault;
    cudaMemcpy3DAsync(&box, b);
    cudaEventDestroy(ready);
    cudaStreamDestroy(a);
    cudaStreamDestroy(b);
    drop<<<1, 1, 0, cudaStreamTailLaunch>>>(p);
}

// What runs last waits in line: there is a limit to it.
__global__ void many_tails(int *results, int *done, int launches)
{
    for (int i = 0; i < launches; i++) {
        add<<<1, 1, 0, cudaStreamTailLaunch>>>(done, 1, 1);
        results[i] = cudaGetLastError();
    }
}

__global__ void many_children(int *done, int launches)
{
    for (int i = 0; i < launches; i++) add<<<1, 1>>>(done, 1, 1);
}

// Nobody promises that a child runs while its parent waits, but programs hope so.
__global__ void raise(volatile int *flag)
{
    *flag = 1;
}

__global__ void wait_for_child(volatile int *flag)
{
    raise<<<1, 1, 0, cudaStreamFireAndForget>>>(flag);
    while (*flag == 0) {
    }
}

int main()
{
    const int n = 5000;
    unsigned *numbers;
    CUDA(cudaMallocManaged(&numbers, n * sizeof(unsigned)));
    unsigned seed = 12345;
    std::vector<unsigned> expected(n);
    for (int i = 0; i < n; i++) expected[i] = numbers[i] = (seed = seed * 1664525u + 1013904223u) >> 8;
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && expected[j - 1] > expected[j]; j--) {
            unsigned t = expected[j];
            expected[j] = expected[j - 1];
            expected[j - 1] = t;
        }
    sort_range<<<1, 1>>>(numbers, 0, n - 1);
    FINISHED();
    for (int i = 0; i < n; i++) EXPECT_EQ(numbers[i], expected[i]);

    int *out;
    CUDA(cudaMallocManaged(&out, 6 * 100 * 1024));
    every_thread<<<3, 32>>>(out);
    FINISHED();
    for (int me = 0; me < 96; me++)
        for (int i = 0; i < 40; i++) EXPECT_EQ(out[me * 40 + i], me * 1000 + 39 - i + me * 40);

    ordered<<<1, 1>>>();
    FINISHED();
    int got[16], count;
    CUDA(cudaMemcpyFromSymbol(got, order, sizeof got));
    CUDA(cudaMemcpyFromSymbol(&count, order_count, sizeof count));
    EXPECT_EQ(count, 10);
    auto at = [&](int what) {
        for (int i = 0; i < count; i++)
            if (got[i] == what) return i;
        fail("%d is missing", what);
    };
    // A child may start before what its parent does next (CUDA programming guide, CUDA Dynamic Parallelism: Ordering and
    // Concurrency): 10 and 11, 100 and 101 are in no order.
    EXPECT(at(10) < at(12) && at(11) < at(12) && at(12) < at(20));
    EXPECT(at(20) < at(90) && at(0) < at(90));
    EXPECT(at(90) < at(100) && at(90) < at(101) && at(100) < at(102) && at(101) < at(102) && at(102) < at(110));

    out[0] = out[1] = 0;
    countdown<<<1, 1>>>(20000, out);
    FINISHED();
    EXPECT_EQ(out[0], 20001);
    deeper<<<1, 1>>>(3000, out + 1);
    FINISHED();
    EXPECT_EQ(out[1], 3001);

    Answers *answers;
    CUDA(cudaMallocManaged(&answers, sizeof *answers));
    ask<<<1, 1>>>(answers, out);
    FINISHED();
    int value;
    CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrMaxThreadsPerBlock, 0));
    EXPECT_EQ(answers->attribute, value);
    CUDA(cudaGetDeviceCount(&value));
    EXPECT_EQ(answers->count, value);
    EXPECT_EQ(answers->device, 0);
    EXPECT(answers->version >= 12000);
    size_t heap;
    CUDA(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
    EXPECT_EQ(answers->heap, heap);
    CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&value, window_user, 128, 0));
    EXPECT_EQ(answers->blocks, value);
    EXPECT_EQ(answers->shared_static, 400);
    EXPECT_EQ(answers->max_threads, 1024);
    EXPECT_EQ(answers->too_many_threads, cudaErrorInvalidConfiguration);
    EXPECT_EQ(answers->peeked, cudaErrorInvalidConfiguration);
    EXPECT_EQ(answers->cleared, cudaSuccess);
    EXPECT_EQ(answers->bad_stream, cudaErrorInvalidResourceHandle);
    EXPECT_EQ(answers->bad_kind, cudaErrorInvalidMemcpyDirection);
    EXPECT_EQ(answers->bad_event, cudaErrorInvalidValue);
    EXPECT_EQ(answers->caught, cudaErrorInvalidValue);
    EXPECT(strcmp(answers->name, "cudaErrorInvalidConfiguration") == 0);
    EXPECT(strcmp(answers->text, "invalid configuration argument") == 0);

    const int m = 64;
    memset(out, 0, 6 * m * sizeof(int));
    memory<<<1, 1>>>(out, m);
    FINISHED();
    for (int i = 0; i < m; i++) EXPECT_EQ(out[i], i * 3);
    for (int i = 0; i < m; i++) EXPECT_EQ(out[m + i], i < m / 4 ? 0x5a5a5a5a : 0);
    for (int i = 0; i < 8; i++) EXPECT_EQ(out[2 * m + i], (i / 2 * 4 + i % 2) * 3);
    for (int i = 0; i < 16; i++) EXPECT_EQ(out[3 * m + i], i % 4 < 2 ? 0x01010101 : 0);
    for (int i = 0; i < 12; i++) EXPECT_EQ(out[4 * m + i], i % 2 == 0 ? 0x02020202 : 0);
    for (int z = 0; z < 2; z++)
        for (int x = 0; x < 2; x++) EXPECT_EQ(out[5 * m + z * 4 + x], (z * 8 + 4 + 1 + x) * 3);

    // The default is room for 2048 launches that cannot start.
    size_t limit;
    CUDA(cudaDeviceGetLimit(&limit, cudaLimitDevRuntimePendingLaunchCount));
    EXPECT_EQ(limit, 2048);
    CUDA(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 100));
    int *results = out + 10;
    out[0] = 0;
    many_tails<<<1, 1>>>(results, out, 130);
    FINISHED();
    for (int i = 0; i < 130; i++) EXPECT_EQ(results[i], i < 100 ? cudaSuccess : cudaErrorLaunchOutOfResources);
    EXPECT_EQ(out[0], 100);
    out[0] = 0;
    many_children<<<1, 1>>>(out, 1000);
    FINISHED();
    EXPECT_EQ(out[0], 1000);

    out[0] = 0;
    wait_for_child<<<1, 1>>>(out);
    FINISHED();
    EXPECT_EQ(out[0], 1);
    return pass();
}
