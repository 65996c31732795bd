// What the host does by itself to managed and pinned memory, while an operation may still use it. It is named `the_host`.
#include <atomic>
#include <fcntl.h>
#include <unistd.h>

#include "check.h"
#include <cuda.h>

const int count = 4096;
const size_t bytes = count * sizeof(int);

#define INDEX int(blockIdx.x * blockDim.x + threadIdx.x)
#define SHAPE count / 128, 128

struct Stream {
    cudaStream_t stream;
    explicit Stream(unsigned flags = cudaStreamNonBlocking) { CUDA(cudaStreamCreateWithFlags(&stream, flags)); }
    ~Stream()
    {
        CUDA(cudaStreamSynchronize(stream));
        cudaStreamDestroy(stream);
    }
    Stream(const Stream &) = delete;
    operator cudaStream_t() const { return stream; }
};

// Freed when nobody uses it.
template <class T = int> struct Memory {
    T *start;
    enum Kind { DEVICE, MANAGED, PINNED } kind;
    explicit Memory(Kind kind, size_t bytes = ::bytes) : kind(kind)
    {
        switch (kind) {
        case DEVICE: CUDA(cudaMalloc(&start, bytes)); break;
        case MANAGED: CUDA(cudaMallocManaged(&start, bytes)); break;
        case PINNED: CUDA(cudaMallocHost((void **)&start, bytes)); break;
        }
        if (kind != DEVICE) memset((void *)start, 0, bytes);
    }
    ~Memory()
    {
        CUDA(cudaDeviceSynchronize());
        CUDA(kind == PINNED ? cudaFreeHost((void *)start) : cudaFree((void *)start));
    }
    Memory(const Memory &) = delete;
    operator T *() const { return start; }
};
const auto DEVICE = Memory<>::DEVICE;
const auto MANAGED = Memory<>::MANAGED;
const auto PINNED = Memory<>::PINNED;

// What the host makes of it matters to nobody.
static volatile int sink;

namespace read_too_early {
__global__ void fill(int *x) { x[INDEX] = 1; }  // race x: write, x: the_host
}
TEST(read_too_early)
{
    Memory<> x(MANAGED);
    read_too_early::fill<<<SHAPE>>>(x);
    MENDED(CUDA(cudaDeviceSynchronize());)
    sink = x[17];
    MENDED(if (sink != 1) exit(2);)
}

namespace written_too_early {
__global__ void take(const int *x, int *y) { y[INDEX] = x[INDEX]; }  // race x: read, x: the_host
}
TEST(written_too_early)
{
    Memory<> x(MANAGED), y(DEVICE);
    Stream a;
    written_too_early::take<<<SHAPE, 0, a>>>(x, y);
    MENDED(CUDA(cudaStreamSynchronize(a));)
    for (int i = 0; i < count; i++) x[i] = i;
}

// It takes turns with the kernel, but waits for another stream.
namespace other_stream {
__global__ void fill(int *x) { x[INDEX] = 1; }  // race x: write, x: the_host
}
TEST(other_stream)
{
    Memory<> x(PINNED);
    Stream a, b;
    other_stream::fill<<<SHAPE, 0, a>>>(x);
    CUDA(cudaStreamSynchronize(EITHER(b, a)));
    sink = x[count - 1];
}

// One number, of which the device counts up.
namespace counter {
__global__ void count_up(int *x) { atomicAdd(x, 1); }  // race x: strong, x: the_host
}
TEST(counter)
{
    Memory<> x(MANAGED, sizeof(int));
    cudaEvent_t event;
    CUDA(cudaEventCreate(&event));
    counter::count_up<<<SHAPE>>>(x);
    CUDA(cudaEventRecord(event));
    MENDED(while (cudaEventQuery(event) == cudaErrorNotReady);)
    sink = *x;
    MENDED(if (sink != count) exit(2);)
    CUDA(cudaEventDestroy(event));
}

namespace copied_to {
__global__ void fill(int *x) { x[INDEX] = 1; }
}
// race y: cuMemcpyDtoHAsync, y: the_host
TEST(copied_to)
{
    Memory<> x(DEVICE), y(PINNED);
    Stream a;
    copied_to::fill<<<SHAPE, 0, a>>>(x);
    CUDA(cudaMemcpyAsync(y, x, bytes, cudaMemcpyDeviceToHost, a));
    MENDED(while (cudaStreamQuery(a) == cudaErrorNotReady);)
    sink = y[0];
    MENDED(if (sink != 1) exit(2);)
}

// The next part is put where the copy of the last one may still read.
// race y: cuMemcpyHtoDAsync, y: the_host
TEST(copied_from)
{
    Memory<> x(DEVICE), y(PINNED);
    Stream a;
    CUDA(cudaMemcpyAsync(x, y, bytes, cudaMemcpyHostToDevice, a));
    MENDED(CUDA(cudaStreamSynchronize(a));)
    y[5] = 7;
}

// race x: cuMemsetD8Async, x: the_host
TEST(set)
{
    Memory<> x(MANAGED);
    CUDA(cudaMemsetAsync(x, 1, bytes));
    MENDED(CUDA(cudaDeviceSynchronize());)
    sink = x[3];
}

namespace graph {
__global__ void fill(int *x) { x[INDEX] = 1; }  // race x: write, x: the_host
}
TEST(graph)
{
    Memory<> x(MANAGED);
    Stream a;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    graph::fill<<<SHAPE, 0, a>>>(x);
    CUDA(cudaStreamEndCapture(a, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphLaunch(exec, a));
    MENDED(CUDA(cudaStreamSynchronize(a));)
    sink = x[0];
    CUDA(cudaStreamSynchronize(a));
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
}

// A page has been opened by a kernel that came later in the stream, and it is hidden again.
namespace again {
__global__ void fill(int *x) { x[INDEX] = 1; }
__global__ void add(int *x) { x[INDEX] += 1; }  // race x: write, x: the_host
}
TEST(again)
{
    Memory<> x(MANAGED);
    again::fill<<<SHAPE>>>(x);
    again::add<<<SHAPE>>>(x);
    MENDED(CUDA(cudaDeviceSynchronize());)
    sink = x[0];
}

// Calls that are not asynchronous have done with managed and pinned memory when they return.
namespace at_once {
__global__ void fill(int *x) { x[INDEX] = 3; }
}
TEST(at_once)
{
    Memory<> x(MANAGED), y(PINNED), z(DEVICE);
    CUDA(cudaMemset(x, 1, bytes));
    if (x[7] != 0x01010101) exit(2);
    CUDA(cudaMemset(y, 2, bytes));
    if (y[7] != 0x02020202) exit(2);
    at_once::fill<<<SHAPE>>>(z);
    CUDA(cudaMemcpy(x, z, bytes, cudaMemcpyDefault));
    if (x[7] != 3) exit(2);
    x[7] = 4;
    CUDA(cudaMemcpy(z, x, bytes, cudaMemcpyDefault));
    x[7] = 5;
    CUDA(cudaMemcpy(y, z, bytes, cudaMemcpyDefault));
    if (y[7] != 4) exit(2);
}

// The host waits while it is told by a function of its own.
namespace told {
__global__ void fill(int *x) { x[INDEX] = 1; }
static std::atomic<bool> done;
static void tell(void *x)
{
    sink = *(int *)x;
    done = true;
}
}
TEST(told)
{
    Memory<> x(MANAGED);
    Stream a;
    told::fill<<<SHAPE, 0, a>>>(x);
    CUDA(cudaLaunchHostFunc(a, told::tell, x.start));
    while (!told::done);
    if (sink != 1 || x[7] != 1) exit(2);
}

// The kernel tells the host that the data are there, while it runs.
namespace flag {
__global__ void fill(int *x, volatile int *flag)
{
    x[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence_system();
        *flag = 1;
        while (*flag != 2);
    }
}
}
TEST(flag)
{
    Memory<> x(MANAGED, 1024 * sizeof(int));
    Memory<volatile int> flag(Memory<volatile int>::PINNED, sizeof(int));
    flag::fill<<<1, 1024>>>(x, flag);
    while (*flag != 1);
    if (x[1023] != 1) exit(2);
    *flag = 2;
    CUDA(cudaDeviceSynchronize());
}

// The stream sets a word behind the kernel.
namespace word {
__global__ void fill(int *x) { x[INDEX] = 1; }
}
TEST(word)
{
    using Write = CUresult(CUstream, CUdeviceptr, cuuint32_t, unsigned);
    void *write;
    cudaDriverEntryPointQueryResult found;
    CUDA(cudaGetDriverEntryPointByVersion("cuStreamWriteValue32", &write, 12000, cudaEnableDefault, &found));
    Memory<> x(MANAGED);
    Memory<volatile int> flag(Memory<volatile int>::PINNED, sizeof(int));
    Stream a;
    word::fill<<<SHAPE, 0, a>>>(x);
    if (((Write *)write)(a, (CUdeviceptr)flag.start, 1, 0) != CUDA_SUCCESS) exit(2);
    while (*flag != 1);
    if (x[7] != 1) exit(2);
}

// Parts of one allocation that share a page: the next one is read from a file while the device uses the last one.
namespace parts {
__global__ void take(const char *x, char *y) { y[INDEX] = x[INDEX]; }
}
TEST(parts)
{
    const int part = 6016, parts = 4;
    Memory<char> x(Memory<char>::PINNED, part * parts), y(Memory<char>::DEVICE, part * parts);
    Stream a;
    int file = open("/dev/zero", O_RDONLY);
    for (int i = 0; i < parts; i++) {
        if (read(file, x + part * i, part) != part) exit(2);
        x[part * i] = 1;
        parts::take<<<part / 64, 64, 0, a>>>(x + part * i, y + part * i);
    }
    close(file);
    CUDA(cudaStreamSynchronize(a));
    if (read(open("/dev/zero", O_RDONLY), x, part * parts) != part * parts) exit(2);
}

// Memory that is given back and handed out again is open.
namespace handed_out_again {
__global__ void fill(int *x) { x[INDEX] = 1; }
}
TEST(handed_out_again)
{
    for (int i = 0; i < 300; i++) {
        int *x;
        CUDA(cudaMallocManaged(&x, bytes));
        x[0] = i;
        handed_out_again::fill<<<SHAPE>>>(x);
        CUDA(cudaFree(x));
    }
}
