// Kernels, copies, sets and frees of different streams: one event, synchronisation or edge too few.
//
// What races with a kernel's line is often no kernel; the comment then names the call, as in `x: cuMemsetD8Async`.
#include <atomic>
#include <thread>

#include "check.h"

const int count = 1024;
const size_t bytes = count * sizeof(int);

struct Stream {
    cudaStream_t stream;
    explicit Stream(unsigned flags = cudaStreamNonBlocking) { CUDA(cudaStreamCreateWithFlags(&stream, flags)); }
    ~Stream() { cudaStreamDestroy(stream); }
    Stream(const Stream &) = delete;
    operator cudaStream_t() const { return stream; }
};

struct Event {
    cudaEvent_t event;
    Event() { CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming)); }
    ~Event() { cudaEventDestroy(event); }
    Event(const Event &) = delete;
    operator cudaEvent_t() const { return event; }
    void record(cudaStream_t stream) { CUDA(cudaEventRecord(event, stream)); }
    void hold_up(cudaStream_t stream) { CUDA(cudaStreamWaitEvent(stream, event, 0)); }
};

// What comes next in `later` waits for all that is in `earlier`.
static void order(cudaStream_t earlier, cudaStream_t later)
{
    Event event;
    event.record(earlier);
    event.hold_up(later);
}

// A device's memory, freed when nobody uses it.
struct Memory {
    int *start;
    explicit Memory(int count = ::count) { CUDA(cudaMalloc(&start, count * sizeof(int))); }
    ~Memory()
    {
        CUDA(cudaDeviceSynchronize());
        CUDA(cudaFree(start));
    }
    Memory(const Memory &) = delete;
    operator int *() const { return start; }
};

struct Pinned {
    int *start;
    Pinned() { CUDA(cudaMallocHost(&start, bytes)); }
    ~Pinned()
    {
        CUDA(cudaDeviceSynchronize());
        CUDA(cudaFreeHost(start));
    }
    Pinned(const Pinned &) = delete;
    operator int *() const { return start; }
};

#define INDEX int(blockIdx.x * blockDim.x + threadIdx.x)
#define SHAPE count / 128, 128

namespace missing_event {
__global__ void fill(int *x) { x[INDEX] = 1; }                   // race x: write
__global__ void take(const int *x, int *y) { y[INDEX] = x[INDEX]; }  // race x: read
}
TEST(missing_event)
{
    Memory x, y;
    Stream a, b;
    missing_event::fill<<<SHAPE, 0, a>>>(x);
    MENDED(order(a, b);)
    missing_event::take<<<SHAPE, 0, b>>>(x, y);
}

// Two kernels write; nothing says which value stays.
namespace two_writers {
__global__ void one(int *x) { x[INDEX] = 1; }  // race x: write
__global__ void two(int *x) { x[INDEX] = 2; }  // race x: write
}
TEST(two_writers)
{
    Memory x;
    Stream a, b;
    two_writers::one<<<SHAPE, 0, a>>>(x);
    MENDED(CUDA(cudaStreamSynchronize(a));)
    two_writers::two<<<SHAPE, 0, b>>>(x);
}

// The event says where the stream was before the kernel.
namespace early_event {
__global__ void fill(int *x) { x[INDEX] = 1; }                   // race x: write
__global__ void take(const int *x, int *y) { y[INDEX] = x[INDEX]; }  // race x: read
}
TEST(early_event)
{
    Memory x, y;
    Stream a, b;
    Event event;
    BROKEN(event.record(a);)
    early_event::fill<<<SHAPE, 0, a>>>(x);
    MENDED(event.record(a);)
    event.hold_up(b);
    early_event::take<<<SHAPE, 0, b>>>(x, y);
}

// An event is its last recording, which is another stream's by then.
namespace reused_event {
__global__ void fill(int *x) { x[INDEX] = 1; }                   // race x: write
__global__ void take(const int *x, int *y) { y[INDEX] = x[INDEX]; }  // race x: read
}
TEST(reused_event)
{
    Memory x, y;
    Stream a, b, c;
    Event event, other;
    reused_event::fill<<<SHAPE, 0, a>>>(x);
    event.record(a);
    EITHER(event, other).record(c);
    event.hold_up(b);
    reused_event::take<<<SHAPE, 0, b>>>(x, y);
}

namespace wrong_stream {
__global__ void fill(int *x) { x[INDEX] = 1; }                   // race x: write
__global__ void take(const int *x, int *y) { y[INDEX] = x[INDEX]; }  // race x: read
}
TEST(wrong_stream)
{
    Memory x, y;
    Stream a, b, c;
    Event event;
    wrong_stream::fill<<<SHAPE, 0, a>>>(x);
    event.record(a);
    event.hold_up(EITHER(c, b));
    wrong_stream::take<<<SHAPE, 0, b>>>(x, y);
}

// The order of a passes on by way of c.
namespace by_way_of_another {
__global__ void fill(int *x) { x[INDEX] = 1; }                   // race x: write
__global__ void take(const int *x, int *y) { y[INDEX] = x[INDEX]; }  // race x: read
}
TEST(by_way_of_another)
{
    Memory x, y;
    Stream a, b, c;
    by_way_of_another::fill<<<SHAPE, 0, a>>>(x);
    MENDED(order(a, c);)
    order(c, b);
    by_way_of_another::take<<<SHAPE, 0, b>>>(x, y);
}

namespace synchronised_another {
__global__ void fill(int *x) { x[INDEX] = 1; }                   // race x: write
__global__ void take(const int *x, int *y) { y[INDEX] = x[INDEX]; }  // race x: read
}
TEST(synchronised_another)
{
    Memory x, y;
    Stream a, b, c;
    synchronised_another::fill<<<SHAPE, 0, a>>>(x);
    CUDA(cudaStreamSynchronize(EITHER(c, a)));
    synchronised_another::take<<<SHAPE, 0, b>>>(x, y);
}

// The default stream waits for blocking streams, and they for it; non-blocking ones are apart.
namespace non_blocking {
__global__ void fill(int *x) { x[INDEX] = 1; }                   // race x: write
__global__ void take(const int *x, int *y) { y[INDEX] = x[INDEX]; }  // race x: read
}
TEST(non_blocking)
{
    Memory x, y;
    Stream a(EITHER(cudaStreamNonBlocking, cudaStreamDefault));
    non_blocking::fill<<<SHAPE>>>(x);
    non_blocking::take<<<SHAPE, 0, a>>>(x, y);
}

namespace default_stream_later {
__global__ void fill(int *x) { x[INDEX] = 1; }                   // race x: write
__global__ void take(const int *x, int *y) { y[INDEX] = x[INDEX]; }  // race x: read
}
TEST(default_stream_later)
{
    Memory x, y;
    Stream a(EITHER(cudaStreamNonBlocking, cudaStreamDefault));
    default_stream_later::fill<<<SHAPE, 0, a>>>(x);
    default_stream_later::take<<<SHAPE>>>(x, y);
}

// Two blocking streams are no more in order than others, unless the default stream has something in between.
namespace blocking_streams {
__global__ void fill(int *x) { x[INDEX] = 1; }                   // race x: write
__global__ void take(const int *x, int *y) { y[INDEX] = x[INDEX]; }  // race x: read
__global__ void nothing() {}
}
TEST(blocking_streams)
{
    Memory x, y;
    Stream a(cudaStreamDefault), b(cudaStreamDefault);
    blocking_streams::fill<<<SHAPE, 0, a>>>(x);
    MENDED((blocking_streams::nothing<<<1, 1>>>());)
    blocking_streams::take<<<SHAPE, 0, b>>>(x, y);
}

// Each thread has a default stream of its own.
namespace per_thread {
__global__ void fill(int *x) { x[INDEX] = 1; }                   // race x: write
__global__ void take(const int *x, int *y) { y[INDEX] = x[INDEX]; }  // race x: read
}
TEST(per_thread)
{
    Memory x, y;
    std::thread([&] {
        per_thread::fill<<<SHAPE, 0, cudaStreamPerThread>>>(x);
        MENDED(CUDA(cudaStreamSynchronize(cudaStreamPerThread));)
    }).join();
    per_thread::take<<<SHAPE, 0, cudaStreamPerThread>>>(x, y);
}

// A set of device memory is not done when the call returns.
namespace set_by_default {
__global__ void add(int *x) { x[INDEX] += 1; }  // race x: write, x: cuMemsetD8
}
TEST(set_by_default)
{
    Memory x;
    Stream a;
    CUDA(cudaMemset(x, 0, bytes));
    MENDED(CUDA(cudaDeviceSynchronize());)
    set_by_default::add<<<SHAPE, 0, a>>>(x);
}

namespace set_in_another {
__global__ void add(int *x) { x[INDEX] += 1; }  // race x: write, x: cuMemsetD8Async
}
TEST(set_in_another)
{
    Memory x;
    Stream a, b;
    CUDA(cudaMemsetAsync(x, 0, bytes, EITHER(b, a)));
    set_in_another::add<<<SHAPE, 0, a>>>(x);
}

// Rows of a set lie apart: what is between them is nobody's.
namespace columns {
__global__ void right(int *x) { x[threadIdx.x * 64 + EITHER(31, 32)] = 1; }  // race x: write, x: cuMemsetD2D8Async
}
TEST(columns)
{
    Memory x;
    Stream a, b;
    CUDA(cudaMemset2DAsync(x, 64 * sizeof(int), 0, 32 * sizeof(int), 16, a));
    columns::right<<<1, 16, 0, b>>>(x);
}

namespace read_back {
__global__ void fill(int *x) { x[INDEX] = 1; }  // race x: write, x: cuMemcpyDtoHAsync
}
TEST(read_back)
{
    Memory x;
    Pinned host;
    Stream a, b;
    read_back::fill<<<SHAPE, 0, a>>>(x);
    CUDA(cudaMemcpyAsync(host, x, bytes, cudaMemcpyDeviceToHost, EITHER(b, a)));
}

// race x: cuMemcpyHtoDAsync, x: cuMemcpyHtoDAsync
TEST(upload_twice)
{
    Memory x;
    Pinned first, second;
    Stream a, b;
    CUDA(cudaMemcpyAsync(x, first, bytes, cudaMemcpyHostToDevice, a));
    MENDED(order(a, b);)
    CUDA(cudaMemcpyAsync(x, second, bytes, cudaMemcpyHostToDevice, b));
}

// The results of the first are still on their way into the buffer that the second reads.
// race x: cuMemcpyDtoHAsync, x: cuMemcpyHtoDAsync
TEST(host_buffer)
{
    Memory x, y;
    Pinned host;
    Stream a, b;
    CUDA(cudaMemcpyAsync(host, x, bytes, cudaMemcpyDeviceToHost, a));
    MENDED(CUDA(cudaStreamSynchronize(a));)
    CUDA(cudaMemcpyAsync(y, host, bytes, cudaMemcpyHostToDevice, b));
}

// Two copies on the device, of which one reads what the other writes.
// race x: cuMemcpyDtoDAsync, x: cuMemcpyDtoDAsync
TEST(copies_on_the_device)
{
    Memory x, y, z;
    Stream a, b;
    CUDA(cudaMemcpyAsync(y, x, bytes, cudaMemcpyDeviceToDevice, a));
    CUDA(cudaMemcpyAsync(z, y, bytes, cudaMemcpyDeviceToDevice, EITHER(b, a)));
}

// Halves of one array are two kernels' own.
namespace halves {
__global__ void fill(int *x) { x[INDEX] = 1; }         // race x: write
__global__ void fill_more(int *x) { x[INDEX] = 2; }    // race x: write
}
TEST(halves)
{
    Memory x(2 * count);
    Stream a, b;
    halves::fill<<<SHAPE, 0, a>>>(x);
    halves::fill_more<<<SHAPE, 0, b>>>(x + EITHER(count - 1, count));
}

// Both count, and that is no race; the one that looks is too early.
namespace counters {
__global__ void add(int *x) { atomicAdd(x, 1); }                       // race x: strong
__global__ void look(int *x, int *y) { EITHER(*y = *x, atomicAdd(x, 1)); }  // race x: read
}
TEST(counters)
{
    Memory x, y;
    Stream a, b;
    CUDA(cudaMemset(x, 0, bytes));
    CUDA(cudaDeviceSynchronize());
    counters::add<<<SHAPE, 0, a>>>(x);
    counters::look<<<1, 1, 0, b>>>(x, y);
}

// Kernels that run at the same time and tell each other so.
namespace talk {
__global__ void say(volatile int *x)
{
    x[1] = 42;
    __threadfence();
    x[0] = 1;
}
__global__ void hear(volatile int *x, int *y)
{
    while (x[0] == 0) {}
    __threadfence();
    *y = ((int *)x)[1];
}
}
TEST(talk)
{
    Memory x, y;
    Stream a, b;
    CUDA(cudaMemset(x, 0, bytes));
    CUDA(cudaDeviceSynchronize());
    talk::say<<<1, 1, 0, a>>>(x);
    talk::hear<<<1, 1, 0, b>>>(x, y);
}

// Whoever asks until an event is complete has waited for it.
namespace query {
__global__ void fill(int *x) { x[INDEX] = 1; }                   // race x: write
__global__ void take(const int *x, int *y) { y[INDEX] = x[INDEX]; }  // race x: read
}
TEST(query)
{
    Memory x, y;
    Stream a, b;
    Event event;
    query::fill<<<SHAPE, 0, a>>>(x);
    event.record(a);
    MENDED(while (cudaEventQuery(event) == cudaErrorNotReady) {})
    query::take<<<SHAPE, 0, b>>>(x, y);
}

// The host goes on when a host function says so: one that comes after the kernel, or one in a stream that has nothing to do with it.
namespace host_function {
__global__ void fill(int *x) { x[INDEX] = 1; }                   // race x: write
__global__ void take(const int *x, int *y) { y[INDEX] = x[INDEX]; }  // race x: read
}
TEST(host_function)
{
    Memory x, y;
    Stream a, b, c;
    std::atomic<bool> called{false};
    host_function::fill<<<SHAPE, 0, a>>>(x);
    CUDA(cudaLaunchHostFunc(EITHER(c, a), [](void *called) { *(std::atomic<bool> *)called = true; }, &called));
    while (!called) std::this_thread::yield();
    host_function::take<<<SHAPE, 0, b>>>(x, y);
    CUDA(cudaDeviceSynchronize());
}

static cudaGraphNode_t kernel_node(cudaGraph_t graph, void *function, void **arguments, const cudaGraphNode_t *before, size_t how_many)
{
    cudaKernelNodeParams node = {};
    node.func = function;
    node.gridDim = count / 128;
    node.blockDim = 128;
    node.kernelParams = arguments;
    cudaGraphNode_t made;
    CUDA(cudaGraphAddKernelNode(&made, graph, before, how_many, &node));
    return made;
}

static void launch(cudaGraph_t graph, cudaStream_t stream)
{
    cudaGraphExec_t exec;
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphLaunch(exec, stream));
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
}

namespace branches {
__global__ void fill(int *x) { x[INDEX] = 1; }                   // race x: write
__global__ void take(const int *x, int *y) { y[INDEX] = x[INDEX]; }  // race x: read
}
TEST(branches)
{
    Memory x, y;
    Stream a;
    cudaGraph_t graph;
    CUDA(cudaGraphCreate(&graph, 0));
    void *arguments[] = {(void *)&x.start, (void *)&y.start};
    cudaGraphNode_t fill = kernel_node(graph, (void *)branches::fill, arguments, nullptr, 0);
    kernel_node(graph, (void *)branches::take, arguments, &fill, EITHER(0, 1));
    launch(graph, a);
}

namespace set_node {
__global__ void add(int *x) { x[INDEX] += 1; }  // race x: write, x: memset_node
}
TEST(set_node)
{
    Memory x;
    Stream a;
    cudaGraph_t graph;
    CUDA(cudaGraphCreate(&graph, 0));
    cudaMemsetParams set = {};
    set.dst = x;
    set.elementSize = 4;
    set.width = count;
    set.height = 1;
    cudaGraphNode_t node;
    CUDA(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &set));
    void *arguments[] = {(void *)&x.start};
    kernel_node(graph, (void *)set_node::add, arguments, &node, EITHER(0, 1));
    launch(graph, a);
}

// A second stream is forked from the one that is captured: before or after the kernel.
namespace capture {
__global__ void fill(int *x) { x[INDEX] = 1; }                   // race x: write
__global__ void take(const int *x, int *y) { y[INDEX] = x[INDEX]; }  // race x: read
}
TEST(capture)
{
    Memory x, y;
    Stream a, b;
    cudaGraph_t graph;
    CUDA(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    BROKEN(order(a, b);)
    capture::fill<<<SHAPE, 0, a>>>(x);
    MENDED(order(a, b);)
    capture::take<<<SHAPE, 0, b>>>(x, y);
    order(b, a);
    CUDA(cudaStreamEndCapture(a, &graph));
    launch(graph, a);
}

// A graph is in the order of the stream that it is launched into, and of no other.
namespace graph_beside_stream {
__global__ void fill(int *x) { x[INDEX] = 1; }                   // race x: write
__global__ void take(const int *x, int *y) { y[INDEX] = x[INDEX]; }  // race x: read
}
TEST(graph_beside_stream)
{
    Memory x, y;
    Stream a, b;
    cudaGraph_t graph;
    CUDA(cudaGraphCreate(&graph, 0));
    void *arguments[] = {(void *)&x.start, (void *)&y.start};
    kernel_node(graph, (void *)graph_beside_stream::take, arguments, nullptr, 0);
    graph_beside_stream::fill<<<SHAPE, 0, EITHER(b, a)>>>(x);
    launch(graph, a);
}

// Launches of one executable graph follow each other, whatever stream they are in.
namespace launched_twice {
__global__ void add(int *x) { x[INDEX] += 1; }
}
TEST(launched_twice)
{
    Memory x;
    Stream a, b;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA(cudaGraphCreate(&graph, 0));
    void *arguments[] = {(void *)&x.start};
    kernel_node(graph, (void *)launched_twice::add, arguments, nullptr, 0);
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphLaunch(exec, a));
    CUDA(cudaGraphLaunch(exec, b));
    CUDA(cudaDeviceSynchronize());
}

namespace freed_early {
__global__ void fill(int *x) { x[INDEX] = 1; }  // race x: write, x: cuMemFreeAsync
}
TEST(freed_early)
{
    Stream a, b;
    int *x;
    CUDA(cudaMallocAsync(&x, bytes, a));
    order(a, b);
    freed_early::fill<<<SHAPE, 0, b>>>(x);
    MENDED(order(b, a);)
    CUDA(cudaFreeAsync(x, a));
    CUDA(cudaDeviceSynchronize());
}

namespace used_early {
__global__ void fill(int *x) { x[INDEX] = 1; }  // race x: write, x: cuMemAllocAsync
}
TEST(used_early)
{
    Stream a, b;
    int *x;
    CUDA(cudaMallocAsync(&x, bytes, a));
    MENDED(order(a, b);)
    used_early::fill<<<SHAPE, 0, b>>>(x);
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaFreeAsync(x, a));
    CUDA(cudaDeviceSynchronize());
}

// A stream has its own frees back at once. What came before them in another stream has been waited for, or not.
namespace used_again {
__global__ void fill(int *x) { x[INDEX] = 1; }  // race x: write, x: cuMemFreeAsync
__global__ void more(int *x) { x[INDEX] = 2; }
}
TEST(used_again)
{
    Stream a, b;
    int *x;
    CUDA(cudaMallocAsync(&x, bytes, a));
    order(a, b);
    used_again::fill<<<SHAPE, 0, b>>>(x);
    MENDED(order(b, a);)
    CUDA(cudaFreeAsync(x, a));
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaMallocAsync(&x, bytes, b));
    used_again::more<<<SHAPE, 0, b>>>(x);
    CUDA(cudaFreeAsync(x, b));
    CUDA(cudaDeviceSynchronize());
}

// cudaFree waits for what cudaMalloc gave, and not for what cudaMallocAsync did.
namespace freed_by_the_host {
__global__ void fill(int *x) { x[INDEX] = 1; }  // race x: write, x: cuMemFree
}
TEST(freed_by_the_host)
{
    Stream a;
    int *x;
    BROKEN(CUDA(cudaMallocAsync(&x, bytes, a));)
    MENDED(CUDA(cudaMalloc(&x, bytes));)
    freed_by_the_host::fill<<<SHAPE, 0, a>>>(x);
    CUDA(cudaFree(x));
}

namespace host_memory_freed_early {
__global__ void fill(int *x) { x[INDEX] = 1; }  // race x: write, x: cuMemFreeHost
}
TEST(host_memory_freed_early)
{
    Stream a;
    int *host;
    CUDA(cudaMallocHost(&host, bytes));
    host_memory_freed_early::fill<<<SHAPE, 0, a>>>(host);
    MENDED(CUDA(cudaStreamSynchronize(a));)
    CUDA(cudaFreeHost(host));
}

// A copy between two devices is in the order of its stream, which is one of the first device.
namespace peers {
__global__ void add(int *x) { x[INDEX] += 1; }  // race x: write, x: cuMemcpyPeerAsync
}
TEST(peers)
{
    setenv("MARGAY_DEVICES", "2", 1);
    Memory x;
    Stream a;
    CUDA(cudaSetDevice(1));
    Memory y;
    Stream b;
    CUDA(cudaMemcpyPeerAsync(y, 1, x, 0, bytes, a));
    MENDED(CUDA(cudaStreamSynchronize(a));)
    peers::add<<<SHAPE, 0, b>>>(y);
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaSetDevice(0));
    CUDA(cudaDeviceSynchronize());
}

// Results are double-buffered: each half is waited for before it is written again.
namespace pipeline {
__global__ void work(int *x, int step) { x[INDEX] += step; }  // race x: write, x: cuMemcpyDtoHAsync
}
TEST(pipeline)
{
    Memory buffers[2];
    Pinned host;
    Stream work, copy;
    Event done[2], copied[2];
    for (int step = 0; step < 6; step++) {
        int i = step % 2;
        MENDED(if (step >= 2) copied[i].hold_up(work);)
        pipeline::work<<<SHAPE, 0, work>>>(buffers[i], step);
        done[i].record(work);
        done[i].hold_up(copy);
        CUDA(cudaMemcpyAsync(host, buffers[i], bytes, cudaMemcpyDeviceToHost, copy));
        copied[i].record(copy);
    }
}
