// Stream capture through the runtime: a fork and join recorded once and launched often, the same work as by hand.
#include "check.h"

#include <vector>

__global__ void fill(unsigned *data, int n, unsigned seed)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = (data[i] ^ seed) * 2654435761u + i;
}

__global__ void combine(unsigned *a, const unsigned *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = a[i] * 31 + b[i];
}

static int calls;
static void CUDART_CB count(void *by) { calls += *(int *)by; }

int main()
{
    const int n = 5000, blocks = (n + 255) / 256, rounds = 7;
    size_t bytes = n * sizeof(unsigned);
    unsigned *a, *b, *result;
    CUDA(cudaMalloc(&a, bytes));
    CUDA(cudaMalloc(&b, bytes));
    CUDA(cudaMallocHost(&result, bytes));
    CUDA(cudaMemset(a, 0, bytes));
    CUDA(cudaDeviceSynchronize());

    cudaStream_t main_stream, side;
    cudaEvent_t fork, join;
    CUDA(cudaStreamCreateWithFlags(&main_stream, cudaStreamNonBlocking));
    CUDA(cudaStreamCreate(&side));
    CUDA(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    CUDA(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));

    int step = 3;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA(cudaStreamBeginCapture(main_stream, cudaStreamCaptureModeThreadLocal));
    CUDA(cudaEventRecord(fork, main_stream));
    CUDA(cudaStreamWaitEvent(side, fork, 0));
    CUDA(cudaMemsetAsync(b, 0x11, bytes, side));
    fill<<<blocks, 256, 0, side>>>(b, n, 77);
    LAUNCHED();
    fill<<<blocks, 256, 0, main_stream>>>(a, n, 5);
    LAUNCHED();
    CUDA(cudaEventRecord(join, side));
    CUDA(cudaStreamWaitEvent(main_stream, join, 0));
    combine<<<blocks, 256, 0, main_stream>>>(a, b, n);
    LAUNCHED();
    CUDA(cudaMemcpyAsync(result, a, bytes, cudaMemcpyDeviceToHost, main_stream));
    CUDA(cudaLaunchHostFunc(main_stream, count, &step));
    cudaStreamCaptureStatus status;
    CUDA(cudaStreamIsCapturing(side, &status));
    EXPECT_EQ(status, cudaStreamCaptureStatusActive);
    CUDA(cudaStreamEndCapture(main_stream, &graph));

    size_t nodes = 0;
    CUDA(cudaGraphGetNodes(graph, nullptr, &nodes));
    EXPECT_EQ(nodes, 6);
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (int round = 0; round < rounds; round++) CUDA(cudaGraphLaunch(exec, main_stream));
    CUDA(cudaStreamSynchronize(main_stream));
    EXPECT_EQ(calls, rounds * step);

    for (int i = 0; i < n; i++) {
        unsigned x = 0;
        for (int round = 0; round < rounds; round++) {
            unsigned y = (0x11111111u ^ 77) * 2654435761u + i;
            x = ((x ^ 5) * 2654435761u + i) * 31 + y;
        }
        if (result[i] != x) fail("element %d is %u, not %u", i, result[i], x);
    }

    // What cannot be recorded: the capture is invalid, and ends with an error.
    CUDA(cudaStreamBeginCapture(main_stream, cudaStreamCaptureModeGlobal));
    fill<<<blocks, 256, 0, main_stream>>>(a, n, 5);
    LAUNCHED();
    void *memory;
    EXPECT_ERROR(cudaMalloc(&memory, 16), cudaErrorStreamCaptureUnsupported);
    (void)cudaGetLastError();
    cudaGraph_t none = (cudaGraph_t)1;
    EXPECT_ERROR(cudaStreamEndCapture(main_stream, &none), cudaErrorStreamCaptureInvalidated);
    EXPECT(none == nullptr);
    (void)cudaGetLastError();
    CUDA(cudaMalloc(&memory, 16));
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaDeviceSynchronize());
    return pass();
}
