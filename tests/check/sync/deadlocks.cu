// Deadlocks of the whole program: who waits for something that only comes behind it. Each takes ten seconds to be found.
#include "../check.h"

#include <chrono>
#include <thread>

__global__ void wait_for(volatile int *flag, int value)
{
    while (*flag < value) {}                  // fails fill
}

__global__ void set(volatile int *flag) { *flag = 1; }

// Streams that wait for nobody else.
struct Stream {
    cudaStream_t stream;
    Stream() { CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)); }
    operator cudaStream_t() const { return stream; }
};

struct Words {
    int *start;
    explicit Words(int count)
    {
        CUDA(cudaMalloc(&start, count * sizeof(int)));
        CUDA(cudaMemset(start, 0, count * sizeof(int)));
        CUDA(cudaDeviceSynchronize());
    }
    operator int *() const { return start; }
};

// The flag comes by a fill behind the kernel that waits for it.
TEST(fill_behind)
{
    Words flag(1);
    Stream one, other;
    wait_for<<<1, 32, 0, one>>>(flag, 1);
    CUDA(cudaMemsetAsync(flag, 1, 4, EITHER(one, other)));
    CUDA(cudaDeviceSynchronize());
}

// Two streams, each of which sets the other's flag when its own is set.
__global__ void wait_for_other(volatile int *flag)
{
    while (*flag == 0) __nanosleep(100);      // fails circle
}

TEST(two_streams)
{
    Words flags(2);
    Stream one, other;
    if (EITHER(true, false)) {
        wait_for_other<<<1, 64, 0, one>>>(flags + 1);
        set<<<1, 1, 0, one>>>(flags);
    } else {
        set<<<1, 1, 0, one>>>(flags);
        wait_for_other<<<1, 64, 0, one>>>(flags + 1);
    }
    wait_for_other<<<1, 64, 0, other>>>(flags);
    set<<<1, 1, 0, other>>>(flags + 1);
    CUDA(cudaStreamSynchronize(one));
    CUDA(cudaStreamSynchronize(other));
}

// A barrier of all blocks, of which not all fit at a time.
__global__ void meet(int *count, int blocks)
{
    if (threadIdx.x == 0) {
        atomicAdd(count, 1);
        while (atomicAdd(count, 0) < blocks) {}  // fails blocks
    }
    __syncthreads();
}

TEST(blocks_that_do_not_fit)
{
    setenv("MARGAY_MULTIPROCESSORS", "2", 1);
    // With a seed more blocks are there at a time.
    unsetenv("MARGAY_SEED");
    Words count(1);
    int blocks = EITHER(16, 2);
    meet<<<blocks, 1024>>>(count, blocks);
    CUDA(cudaDeviceSynchronize());
}

// A stream that waits for a value which comes behind.
TEST(value_behind)                            // stuck value
{
    typedef int Call(cudaStream_t, unsigned long long, unsigned, unsigned);
    Call *wait = nullptr, *write = nullptr;
    CUDA(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", (void **)&wait, 12000, cudaEnableDefault));
    CUDA(cudaGetDriverEntryPointByVersion("cuStreamWriteValue32", (void **)&write, 12000, cudaEnableDefault));
    Words flag(1);
    Stream one, other;
    auto address = (unsigned long long)(int *)flag;
    if (wait(one, address, 7, 0) || write(EITHER(one, other), address, 7, 0)) exit(3);
    CUDA(cudaDeviceSynchronize());
}

// The host takes its time: it is there, and nothing is wrong.
TEST(slow_host)
{
    int *flag;
    CUDA(cudaMallocHost(&flag, sizeof(int)));
    *flag = 0;
    std::thread later([flag] {
        std::this_thread::sleep_for(std::chrono::seconds(14));
        *(volatile int *)flag = 1;
    });
    wait_for<<<1, 32>>>(flag, 1);
    CUDA(cudaDeviceSynchronize());
    later.join();
}

// So does a kernel that computes while another one waits for it.
__global__ void compute(int *flag, int turns)
{
    unsigned x = 1;
    for (int i = 0; i < turns; i++) {
        x = x * 1664525u + 1013904223u;
        asm volatile("" : "+r"(x));
    }
    *(volatile int *)flag = x != 0;
}

TEST(slow_kernel)
{
    Words flag(1);
    Stream one, other;
    wait_for<<<1, 32, 0, one>>>(flag, 1);
    compute<<<1, 1, 0, other>>>(flag, 2000000000);
    CUDA(cudaDeviceSynchronize());
}

// A thread that does nothing but look, and counts: it ends by itself, after longer than a deadlock needs to be found.
__global__ void look(volatile int *flag, int rounds)
{
    for (int i = 0; i < rounds && *flag == 0; i++) {}
}

// The same by way of a function, which knows nothing of the count, and with the count in local memory.
__device__ __noinline__ int looks(volatile int *flag) { return *flag; }

__global__ void look_by_calls(volatile int *flag, int rounds)
{
    volatile int left = rounds;
    while (looks(flag) == 0 && left > 0) left = left - 1;
}

static void for_long(void kernel(volatile int *, int))
{
    Words flag(1);
    auto seconds = [&](int rounds) {
        auto start = std::chrono::steady_clock::now();
        kernel<<<1, 1>>>(flag, rounds);
        CUDA(cudaDeviceSynchronize());
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    seconds(1);
    int rounds = 10000;
    double took;
    while ((took = seconds(rounds)) < 0.5) rounds *= 2;
    seconds(int(rounds / took * 14));
}

TEST(patient_reader) { for_long(look); }

TEST(patient_caller) { for_long(look_by_calls); }
