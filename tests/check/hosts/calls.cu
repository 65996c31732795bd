// Mistakes whose reports say where on the host they come from. A comment at the end of a line says for which heading of a report of
// which test it is the innermost line: `// beyond: launched`.
#include <cuda.h>
#include <thread>

#include "../check.h"

static void end() { cudaDeviceSynchronize(); }

__global__ void fill(int *x, int stride) { x[threadIdx.x * stride] = 1; }

static int *make(int count)
{
    int *x;
    CUDA(cudaMalloc(&x, count * sizeof(int))); // beyond: allocation, freed: allocation
    return x;
}

static void apply(int *x, int stride)
{
    fill<<<1, 32>>>(x, stride); // beyond: launched, freed: launched
}

// 23 more threads, one after the other.
TEST(beyond)
{
    apply(make(8), 1);
    end();
}

TEST(freed)
{
    int *x = make(32);
    CUDA(cudaFree(x)); // freed: freed
    apply(x, 1);
    end();
}

// Every second thread of the last eight: those between them take no part.
__global__ void some(int *x) { if (threadIdx.x % 2 == 0) x[threadIdx.x] = 1; }
TEST(in_stream_order)
{
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    int *x;
    CUDA(cudaMallocAsync(&x, 24 * sizeof(int), stream)); // in_stream_order: allocation
    some<<<1, 32, 0, stream>>>(x);                       // in_stream_order: launched
    end();
}

TEST(freed_in_stream_order)
{
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    int *x;
    CUDA(cudaMallocAsync(&x, 128, stream)); // freed_in_stream_order: allocation
    CUDA(cudaFreeAsync(x, stream));         // freed_in_stream_order: freed
    fill<<<1, 32, 0, stream>>>(x, 1);       // freed_in_stream_order: launched
    end();
}

// The line of the node counts, not that of the graph's launch.
TEST(captured)
{
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    int *x;
    CUDA(cudaMallocManaged(&x, 16)); // captured: allocation
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    fill<<<1, 32, 0, stream>>>(x, 1); // captured: node
    cudaGraph_t graph;
    CUDA(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t exec;
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphLaunch(exec, stream));
    end();
}

TEST(thread)
{
    int *x = nullptr;
    CUDA(cudaMallocHost(&x, 4)); // thread: allocation
    std::thread([&] {
        fill<<<1, 2>>>(x, 1); // thread: launched
        end();
    }).join();
}

TEST(twice)
{
    int *x;
    CUDA(cudaMalloc(&x, 128)); // twice: allocation
    CUDA(cudaFree(x));         // twice: freed
    cudaFree(x);               // twice: called
    cudaGetLastError();
}

TEST(leak)
{
    static int *one, *other;
    CUDA(cudaMalloc(&one, 4096)); // leak: allocation
    cudaArray_t array;
    auto format = cudaCreateChannelDesc<float>();
    CUDA(cudaMallocArray(&array, &format, 64, 64)); // leak: allocation
    CUDA(cudaMalloc(&other, 4096));                 // leak: allocation
}

__global__ void reverse(int *x)
{
    __shared__ int tile[64];
    tile[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = tile[63 - threadIdx.x];
}
TEST(race)
{
    int *x;
    CUDA(cudaMalloc(&x, 256));
    CUDA(cudaMemset(x, 0, 256));
    reverse<<<1, 64>>>(x); // race: launched
    end();
}

TEST(operations)
{
    cudaStream_t one, other;
    CUDA(cudaStreamCreate(&one));
    CUDA(cudaStreamCreate(&other));
    int *x, *host;
    CUDA(cudaMalloc(&x, 128)); // operations: allocation
    CUDA(cudaMallocHost(&host, 128));
    fill<<<1, 32, 0, one>>>(x, 1);                                   // operations: write
    CUDA(cudaMemcpyAsync(host, x, 128, cudaMemcpyDeviceToHost, other)); // operations: read
    end();
}

// The host reads by itself what nobody has waited for.
__attribute__((noinline)) static int sum(const int *x)
{
    int all = 0;
    for (int i = 0; i < 32; i++)
        all += x[i]; // itself: host
    return all;
}
TEST(itself)
{
    int *x;
    CUDA(cudaMallocManaged(&x, 128)); // itself: allocation
    fill<<<1, 32>>>(x, 1);            // itself: write
    printf("%d\n", sum(x));
    end();
}
