// nvcc: -arch=sm_80 -diag-suppress 20054
// libcu++'s copies that do not wait: cuda::memcpy_async of threads, groups and blocks into shared memory, completed by barriers
// and by pipelines (of a thread, of a block, with producers and consumers), of sizes that do and do not fit cp.async.
#include "check.h"

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>

#include <vector>

namespace cg = cooperative_groups;

const int threads = 96;

static int *in, *out;
const int cells = 9000;

// Each thread its own: 4, 8 and 16 bytes at once, and seven bytes, which no instruction copies.
__global__ void by_threads(const int *in, int *out)
{
    __shared__ alignas(16) int room[threads * 4];
    __shared__ alignas(16) char bytes[threads * 16];
    int t = threadIdx.x;
    cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
    pipe.producer_acquire();
    cuda::memcpy_async(room + t, in + t, sizeof(int), pipe);
    pipe.producer_commit();
    pipe.producer_acquire();
    cuda::memcpy_async(room + threads + 2 * t, in + threads + 2 * t, cuda::aligned_size_t<8>(8), pipe);
    pipe.producer_commit();
    pipe.producer_acquire();
    cuda::memcpy_async(bytes + 16 * t, (const char *)(in + 4 * threads) + 16 * t, cuda::aligned_size_t<16>(16), pipe);
    pipe.producer_commit();
    pipe.consumer_wait();
    int first = room[t];
    pipe.consumer_release();
    pipe.consumer_wait();
    int second = room[threads + 2 * t] + room[threads + 2 * t + 1];
    pipe.consumer_release();
    pipe.consumer_wait();
    int third = 0;
    for (int i = 0; i < 16; i++) third += (unsigned char)bytes[16 * t + i] * (i + 1);
    pipe.consumer_release();
    pipe.producer_acquire();
    cuda::memcpy_async(bytes + 16 * t + 3, (const char *)in + 11 * t + 1, 7, pipe);
    pipe.producer_commit();
    pipe.consumer_wait();
    int fourth = 0;
    for (int i = 0; i < 7; i++) fourth += (unsigned char)bytes[16 * t + 3 + i] * (i + 1);
    pipe.consumer_release();
    out[4 * t] = first, out[4 * t + 1] = second, out[4 * t + 2] = third, out[4 * t + 3] = fourth;
}

static void check_threads()
{
    by_threads<<<1, threads>>>(in, out);
    FINISHED();
    for (int t = 0; t < threads; t++) {
        EXPECT_EQ(out[4 * t], in[t]);
        EXPECT_EQ(out[4 * t + 1], in[threads + 2 * t] + in[threads + 2 * t + 1]);
        const unsigned char *wide = (const unsigned char *)(in + 4 * threads) + 16 * t, *odd = (const unsigned char *)in + 11 * t + 1;
        int third = 0, fourth = 0;
        for (int i = 0; i < 16; i++) third += wide[i] * (i + 1);
        for (int i = 0; i < 7; i++) fourth += odd[i] * (i + 1);
        EXPECT_EQ(out[4 * t + 2], third);
        EXPECT_EQ(out[4 * t + 3], fourth);
    }
}

// A block copies a tile as one, two tiles ahead of the sums; the last tile is shorter.
template <int stages, int tile> __global__ void in_stages(const int *in, int *out, int n)
{
    __shared__ alignas(16) int room[stages][tile];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int tiles = (n + tile - 1) / tile;
    unsigned sum = 0;
    auto size = [&](int k) { return k + 1 < tiles ? tile : n - k * tile; };
    for (int next = 0, k = 0; k < tiles; k++) {
        for (; next < tiles && next < k + stages; next++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, room[next % stages], in + next * tile, sizeof(int) * size(next), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        // Each thread reads what others copied.
        for (int i = threads - 1 - threadIdx.x; i < size(k); i += threads) sum = sum * 3 + (unsigned)room[k % stages][i];
        pipe.consumer_release();
    }
    out[threadIdx.x] = (int)sum;
}

template <int stages, int tile> static void check_stages(int n)
{
    in_stages<stages, tile><<<1, threads>>>(in, out, n);
    FINISHED();
    for (int t = 0; t < threads; t++) {
        unsigned sum = 0;
        for (int start = 0; start < n; start += tile)
            for (int i = threads - 1 - t; i < tile && start + i < n; i += threads) sum = sum * 3 + (unsigned)in[start + i];
        EXPECT_EQ(out[t], (int)sum);
    }
}

// The first warp copies, the two others add.
__global__ void by_roles(const int *in, int *out, int tiles)
{
    const int tile = 256, stages = 3;
    __shared__ alignas(16) int room[stages][tile];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    auto role = threadIdx.x < 32 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
    auto pipe = cuda::make_pipeline(block, &state, role);
    if (role == cuda::pipeline_role::producer) {
        for (int k = 0; k < tiles; k++) {
            pipe.producer_acquire();
            cuda::memcpy_async(warp, room[k % stages], in + k * tile, cuda::aligned_size_t<16>(sizeof(int) * tile), pipe);
            pipe.producer_commit();
        }
    } else {
        unsigned sum = 0;
        for (int k = 0; k < tiles; k++) {
            pipe.consumer_wait();
            for (int i = threadIdx.x - 32; i < tile; i += 64) sum = sum * 5 + (unsigned)room[k % stages][i];
            pipe.consumer_release();
        }
        out[threadIdx.x - 32] = (int)sum;
    }
}

static void check_roles()
{
    const int tiles = 20;
    by_roles<<<1, threads>>>(in, out, tiles);
    FINISHED();
    for (int t = 0; t < 64; t++) {
        unsigned sum = 0;
        for (int i = t; i < tiles * 256; i += 64) sum = sum * 5 + (unsigned)in[i];
        EXPECT_EQ(out[t], (int)sum);
    }
}

// Barriers count the bytes that are under way; groups have a wait of their own.
__global__ void by_barriers(const int *in, int *out)
{
    __shared__ alignas(16) int room[2][threads * 3];
    __shared__ cuda::barrier<cuda::thread_scope_block> full[2];
    auto block = cg::this_thread_block();
    int t = threadIdx.x;
    if (t < 2) init(&full[t], threads);
    block.sync();
    unsigned sum = 0;
    for (int k = 0; k < 2; k++) cuda::memcpy_async(block, room[k], in + k * threads * 3, sizeof room[k], full[k]);
    for (int k = 2; k < 12; k++) {
        full[k % 2].arrive_and_wait();
        for (int i = 0; i < 3; i++) sum = sum * 7 + (unsigned)room[k % 2][(t * 3 + 1 + i) % (threads * 3)];
        block.sync();
        if (k < 10) cuda::memcpy_async(block, room[k % 2], in + k * threads * 3, sizeof room[0], full[k % 2]);
    }
    out[t] = (int)sum;
    block.sync();
    cg::memcpy_async(block, room[0], in + 5, sizeof(int) * 200);
    cg::memcpy_async(block, room[1], threads * 3, in + 300, threads * 3);
    cg::wait_prior<1>(block);
    int first = room[0][(t * 2 + 1) % 200];
    cg::wait(block);
    out[threads + t] = first + room[1][threads * 3 - 1 - t];
    // Between places in global memory there is nothing asynchronous, but it works.
    cuda::barrier<cuda::thread_scope_block> &last = full[0];
    block.sync();
    cuda::memcpy_async(block, out + 2 * threads, in + 1, sizeof(int) * threads, last);
    last.arrive_and_wait();
}

static void check_barriers()
{
    by_barriers<<<1, threads>>>(in, out);
    FINISHED();
    for (int t = 0; t < threads; t++) {
        unsigned sum = 0;
        for (int k = 0; k < 10; k++)
            for (int i = 0; i < 3; i++) sum = sum * 7 + (unsigned)in[k * threads * 3 + (t * 3 + 1 + i) % (threads * 3)];
        EXPECT_EQ(out[t], (int)sum);
        EXPECT_EQ(out[threads + t], in[5 + (t * 2 + 1) % 200] + in[300 + threads * 3 - 1 - t]);
        EXPECT_EQ(out[2 * threads + t], in[1 + t]);
    }
}

int main()
{
    CUDA(cudaMallocManaged(&in, cells * sizeof(int)));
    CUDA(cudaMallocManaged(&out, 4 * threads * sizeof(int)));
    Random random(26);
    for (int i = 0; i < cells; i++) in[i] = (int)random.next() >> 4;
    check_threads();
    check_stages<2, 128>(8999);
    check_stages<4, 256>(2048);
    check_stages<3, 100>(777);
    check_roles();
    check_barriers();
    return pass();
}
