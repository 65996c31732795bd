// libcu++: its atomics, barriers and pipelines, with mistakes and without.
#include "check.h"

#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>

namespace cg = cooperative_groups;
using barrier = cuda::barrier<cuda::thread_scope_block>;
template <cuda::thread_scope scope> using word = cuda::atomic_ref<int, scope>;

const int threads = 64;

__global__ void relaxed_flag(int *data, int *flag, int *out)
{
    word<cuda::thread_scope_device> ready(*flag);
    if (blockIdx.x == 0) {
        *data = 42;                        // race data: write
        ready.store(1, EITHER(cuda::memory_order_relaxed, cuda::memory_order_release));
    } else {
        while (ready.load(cuda::memory_order_acquire) == 0) {}
        *out = *data;                      // race data: read
    }
}

TEST(relaxed_flag)
{
    Array data(1), flag(1), out(1);
    relaxed_flag<<<2, 1>>>(data, flag, out);
    expect(out, [](int) { return 42; });
}

__global__ void flag_of_the_block(int *data, int *flag, int *out)
{
    word<EITHER(cuda::thread_scope_block, cuda::thread_scope_device)> ready(*flag);
    if (blockIdx.x == 0) {
        *data = 42;                        // race data: write
        ready.store(1);                    // race flag: write
    } else {
        while (ready.load() == 0) {}       // race flag: read
        *out = *data;                      // race data: read
    }
}

TEST(flag_of_the_block)
{
    Array data(1), flag(1), out(1);
    flag_of_the_block<<<2, 1>>>(data, flag, out);
    expect(out, [](int) { return 42; });
}

// A word that wakes those who sleep on it.
__global__ void wait_and_notify(int *data, cuda::atomic<int, cuda::thread_scope_device> *flag, int *out)
{
    if (blockIdx.x == 0) {
        data[threadIdx.x] = threadIdx.x + 1;            // race data: write
        MENDED(__syncthreads());
        if (threadIdx.x == 0) {
            flag->store(1);
            flag->notify_all();
        }
    } else {
        flag->wait(0);
        out[threadIdx.x] = data[threads - 1 - threadIdx.x];  // race data: read
    }
}

TEST(wait_and_notify)
{
    Array data(threads), out(threads);
    Array<cuda::atomic<int, cuda::thread_scope_device>> flag(1);
    wait_and_notify<<<2, threads>>>(data, flag, out);
    expect(out, [](int i) { return threads - i; });
}

// A barrier of which some only arrive.
__global__ void arrive_and_wait(int *out)
{
    __shared__ barrier both;
    __shared__ int tile[threads];
    int t = threadIdx.x;
    if (t == 0) init(&both, threads);
    __syncthreads();
    if (t < 32) {
        BROKEN((void)both.arrive());
        tile[t] = t + 1;                   // race tile: write
        MENDED((void)both.arrive());
    } else {
        both.arrive_and_wait();
        out[t - 32] = tile[63 - t];        // race tile: read
    }
}

TEST(arrive_and_wait)
{
    Array out(32);
    arrive_and_wait<<<1, threads>>>(out);
    expect(out, [](int i) { return 32 - i; });
}

// Tiles in two stages; whoever has used one gives it back, or forgets to.
__global__ void pipeline(const int *in, int *out)
{
    __shared__ int stages[2][threads];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int sum = 0;
    for (int k = 0, fetched = 0; k < 6; k++) {
        for (; fetched < 6 && fetched < k + 2; fetched++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, stages[fetched % 2], in + fetched * threads, sizeof(stages[0]), pipe);  // race stage: write
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        BROKEN(pipe.consumer_release());
        sum += stages[k % 2][threads - 1 - threadIdx.x] * (k + 1);                                            // race stage: read
        MENDED(pipe.consumer_release());
    }
    out[threadIdx.x] = sum;
}

TEST(pipeline)
{
    Array in(6 * threads), out(threads);
    pipeline<<<1, threads>>>(in.number(), out);
    expect(out, [&](int i) {
        int sum = 0;
        for (int k = 0; k < 6; k++) sum += in[k * threads + threads - 1 - i] * (k + 1);
        return sum;
    });
}

// A bulk copy, by memcpy_async with a barrier.
__global__ void copy_with_barrier(const int *in, int *out)
{
    __shared__ alignas(16) int tile[threads];
    __shared__ barrier full;
    int t = threadIdx.x;
    if (t == 0) init(&full, threads);
    __syncthreads();
    if (t == 0) cuda::memcpy_async(tile, in, cuda::aligned_size_t<16>(sizeof(tile)), full);  // race tile: write
    auto token = full.arrive();
    MENDED(full.wait(std::move(token)));
    out[t] = tile[threads - 1 - t];                                                          // race tile: read
    BROKEN(full.wait(std::move(token)));
}

TEST(copy_with_barrier)
{
    Array in(threads), out(threads);
    copy_with_barrier<<<1, threads>>>(in.number(), out);
    expect(out, [&](int i) { return in[threads - 1 - i]; });
}
