// nvcc: -arch=sm_90 -diag-suppress 20054
// device: sm_90
// cuda::barrier, cuda::pipeline, cuda::memcpy_async and bulk copies of cuda::ptx: staged sums, a ring of tiles, a
// producer warp with consumers, reductions into global memory.
#include "check.h"

#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>

#include <vector>

namespace cg = cooperative_groups;
using barrier = cuda::barrier<cuda::thread_scope_block>;

const int threads = 128, tiles = 24;

// Every thread arrives with a token, and waits; some drop out half way.
__global__ void phases(int *out)
{
    __shared__ barrier bar;
    __shared__ int cells[threads];
    int t = threadIdx.x;
    if (t == 0) init(&bar, threads);
    __syncthreads();
    int sum = 0;
    for (int round = 0; round < 6; round++) {
        if (round == 3 && t >= threads / 2) {
            bar.arrive_and_drop();
            break;
        }
        cells[t] = t + round;
        auto token = bar.arrive();
        sum += round;
        bar.wait(std::move(token));
        int living = round < 3 ? threads : threads / 2;
        sum += cells[(t + 1) % living];
        bar.arrive_and_wait();
    }
    out[t] = sum;
}

// Tiles through two stages of a pipeline, by all threads of the block.
__global__ void piped(const int *in, int *out)
{
    __shared__ int stage[2][threads];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> shared;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &shared);
    int sum = 0;
    for (int fetch = 0, tile = 0; tile < tiles; tile++) {
        for (; fetch < tiles && fetch < tile + 2; fetch++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, stage[fetch % 2], in + fetch * threads, cuda::aligned_size_t<16>(sizeof(stage[0])), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        sum += stage[tile % 2][threads - 1 - threadIdx.x] * (tile + 1);
        pipe.consumer_release();
    }
    out[threadIdx.x] = sum;
}

// A thread's own pipeline: cp.async and its groups.
__global__ void own_pipeline(const int *in, int *out)
{
    __shared__ int stage[4][threads];
    auto pipe = cuda::make_pipeline();
    int t = threadIdx.x, sum = 0;
    for (int fetch = 0, tile = 0; tile < tiles; tile++) {
        for (; fetch < tiles && fetch < tile + 4; fetch++) {
            pipe.producer_acquire();
            cuda::memcpy_async(&stage[fetch % 4][t], in + fetch * threads + t, sizeof(int), pipe);
            pipe.producer_commit();
        }
        cuda::pipeline_consumer_wait_prior<3>(pipe);
        if (tile > tiles - 4) cuda::pipeline_consumer_wait_prior<0>(pipe);
        sum = sum * 3 + stage[tile % 4][t];
        pipe.consumer_release();
    }
    out[t] = sum;
}

// Bulk copies: one warp brings tiles, the others add them up and send sums to global memory.
__global__ void bulk(const int *in, int *out, int *total)
{
    namespace ptx = cuda::ptx;
    __shared__ alignas(128) int stage[2][threads];
    __shared__ alignas(128) int result[threads];
    __shared__ barrier full[2], empty[2];
    int t = threadIdx.x;
    const int consumers = threads - 32;
    if (t == 0) {
        for (int i = 0; i < 2; i++) init(&full[i], 1), init(&empty[i], consumers);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncthreads();
    if (t < 32) {
        if (t == 0) {
            for (int tile = 0; tile < tiles; tile++) {
                int s = tile % 2;
                if (tile >= 2) empty[s].wait_parity((tile / 2 - 1) & 1);
                uint64_t *native = cuda::device::barrier_native_handle(full[s]);
                ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, stage[s], in + tile * threads, sizeof(stage[0]), native);
                (void)ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, native,
                                                     sizeof(stage[0]));
            }
        }
    } else {
        int sum = 0;
        for (int tile = 0; tile < tiles; tile++) {
            int s = tile % 2;
            full[s].wait_parity((tile / 2) & 1);
            sum += stage[s][t] + (t < 64 ? stage[s][t - 32] : 0);
            (void)empty[s].arrive();
        }
        result[t] = sum;
        if (t < 64) result[t - 32] = -sum;
    }
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (t == 0) {
        if (blockIdx.x == 0) ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, result, sizeof(result));
        ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, total, result, sizeof(result));
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    }
}

// memcpy_async of a group completes a barrier.
__global__ void copied(const int *in, int *out)
{
    __shared__ alignas(16) int tile[threads];
    __shared__ barrier bar;
    auto block = cg::this_thread_block();
    if (threadIdx.x == 0) init(&bar, threads);
    block.sync();
    for (int i = 0; i < tiles; i++) {
        cuda::memcpy_async(block, tile, in + i * threads, cuda::aligned_size_t<16>(sizeof(tile)), bar);
        bar.arrive_and_wait();
        out[i * threads + threadIdx.x] = tile[(threadIdx.x * 5 + i) % threads];
        block.sync();
    }
}

int main()
{
    std::vector<int> in(tiles * threads), got(tiles * threads), totals(threads);
    for (size_t i = 0; i < in.size(); i++) in[i] = int(i * 2654435761u >> 12) % 1000;
    int *d_in, *d_out, *d_total;
    CUDA(cudaMalloc(&d_in, in.size() * 4));
    CUDA(cudaMalloc(&d_out, in.size() * 4));
    CUDA(cudaMalloc(&d_total, threads * 4));
    CUDA(cudaMemcpy(d_in, in.data(), in.size() * 4, cudaMemcpyHostToDevice));
    auto fetch = [&](size_t count) {
        CUDA(cudaGetLastError());
        CUDA(cudaMemcpy(got.data(), d_out, count * 4, cudaMemcpyDeviceToHost));
    };

    phases<<<1, threads>>>(d_out);
    fetch(threads);
    for (int t = 0; t < threads; t++) {
        int sum = 0;
        for (int round = 0; round < 6; round++) {
            if (round == 3 && t >= threads / 2) break;
            sum += round + (t + 1) % (round < 3 ? threads : threads / 2) + round;
        }
        if (got[t] != sum) fail("phases: thread %d has %d, not %d", t, got[t], sum);
    }

    piped<<<1, threads>>>(d_in, d_out);
    fetch(threads);
    for (int t = 0; t < threads; t++) {
        int sum = 0;
        for (int i = 0; i < tiles; i++) sum += in[i * threads + threads - 1 - t] * (i + 1);
        if (got[t] != sum) fail("piped: thread %d has %d, not %d", t, got[t], sum);
    }

    own_pipeline<<<1, threads>>>(d_in, d_out);
    fetch(threads);
    for (int t = 0; t < threads; t++) {
        unsigned sum = 0;
        for (int i = 0; i < tiles; i++) sum = sum * 3 + in[i * threads + t];
        if (got[t] != int(sum)) fail("own_pipeline: thread %d has %d, not %d", t, got[t], int(sum));
    }

    CUDA(cudaMemset(d_total, 0, threads * 4));
    const int blocks = 5;
    bulk<<<blocks, threads>>>(d_in, d_out, d_total);
    fetch(threads);
    CUDA(cudaMemcpy(totals.data(), d_total, threads * 4, cudaMemcpyDeviceToHost));
    for (int t = 0; t < threads; t++) {
        int sum = 0, c = t < 32 ? t + 32 : t;
        for (int i = 0; i < tiles; i++) sum += in[i * threads + c] + (c < 64 ? in[i * threads + c - 32] : 0);
        if (t < 32) sum = -sum;
        if (got[t] != sum) fail("bulk: element %d is %d, not %d", t, got[t], sum);
        if (totals[t] != blocks * sum) fail("bulk: total %d is %d, not %d", t, totals[t], blocks * sum);
    }

    copied<<<1, threads>>>(d_in, d_out);
    fetch(in.size());
    for (int i = 0; i < tiles; i++)
        for (int t = 0; t < threads; t++)
            if (got[i * threads + t] != in[i * threads + (t * 5 + i) % threads]) fail("copied: tile %d, thread %d", i, t);
    return pass();
}
