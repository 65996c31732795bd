// cp.async: copies that are still under way.
#include "check.h"

#include <cuda_pipeline.h>

const int threads = 64;

#define COPY(to, from) \
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(but) asm volatile("cp.async.wait_group %0;" ::"n"(but) : "memory")

__global__ void read_without_wait(const int *in, int *out)
{
    __shared__ int tile[threads];
    int t = threadIdx.x;
    COPY(&tile[t], &in[t]);                // race tile: write
    COMMIT();
    MENDED(WAIT(0));
    out[t] = tile[t];                      // race tile: read
}

TEST(read_without_wait)
{
    Array in(threads), out(threads);
    read_without_wait<<<1, threads>>>(in.number(), out);
    expect(out, [&](int i) { return in[i]; });
}

// The group that is read is the last that was committed, which the wait leaves out.
__global__ void wait_for_one_less(const int *in, int *out)
{
    __shared__ int tiles[2][threads];
    int t = threadIdx.x;
    COPY(&tiles[0][t], &in[t]);
    COMMIT();
    COPY(&tiles[1][t], &in[threads + t]);  // race second: write
    COMMIT();
    WAIT(EITHER(1, 0));
    out[t] = tiles[0][t];
    out[threads + t] = tiles[1][t];        // race second: read
}

TEST(wait_for_one_less)
{
    Array in(2 * threads), out(2 * threads);
    wait_for_one_less<<<1, threads>>>(in.number(), out);
    expect(out, [&](int i) { return in[i]; });
}

// A group that was never committed is not waited for.
__global__ void wait_without_commit(const int *in, int *out)
{
    __shared__ int tile[threads];
    int t = threadIdx.x;
    COPY(&tile[t], &in[t]);                // race tile: write
    MENDED(COMMIT());
    WAIT(0);
    out[t] = tile[t];                      // race tile: read
}

TEST(wait_without_commit)
{
    Array in(threads), out(threads);
    wait_without_commit<<<1, threads>>>(in.number(), out);
    expect(out, [&](int i) { return in[i]; });
}

// A thread's wait is for its own copies; for those of others there must be a barrier behind it.
__global__ void wait_without_barrier(const int *in, int *out)
{
    __shared__ int tile[threads];
    int t = threadIdx.x;
    COPY(&tile[t], &in[t]);                // race tile: write
    COMMIT();
    WAIT(0);
    MENDED(__syncthreads());
    out[t] = tile[t ^ 32];                 // race tile: read
}

TEST(wait_without_barrier)
{
    Array in(threads), out(threads);
    wait_without_barrier<<<1, threads>>>(in.number(), out);
    expect(out, [&](int i) { return in[i ^ 32]; });
}

// As before, but the barrier is there, only too early.
__global__ void barrier_before_wait(const int *in, int *out)
{
    __shared__ int tile[threads];
    int t = threadIdx.x;
    COPY(&tile[t], &in[t]);                // race tile: write
    COMMIT();
    BROKEN(__syncthreads());
    WAIT(0);
    MENDED(__syncthreads());
    out[t] = tile[t ^ 32];                 // race tile: read
}

TEST(barrier_before_wait)
{
    Array in(threads), out(threads);
    barrier_before_wait<<<1, threads>>>(in.number(), out);
    expect(out, [&](int i) { return in[i ^ 32]; });
}

// What is copied is overwritten.
__global__ void source_changed(int *in, int *out)
{
    __shared__ int tile[threads];
    int t = threadIdx.x;
    COPY(&tile[t], &in[t]);                // race in: read
    COMMIT();
    MENDED(WAIT(0));
    in[t] = -1;                            // race in: write
    WAIT(0);
    out[t] = tile[t];
}

TEST(source_changed)
{
    Array in(threads), out(threads);
    source_changed<<<1, threads>>>(in.number(), out);
    expect(out, [](int i) { return i * 3 + 1; });
}

// And so is where it is copied to.
__global__ void target_changed(const int *in, int *out)
{
    __shared__ int tile[threads];
    int t = threadIdx.x;
    COPY(&tile[t], &in[t]);                // race tile: write
    COMMIT();
    MENDED(WAIT(0));
    tile[t] = t;                           // race tile: write
    WAIT(0);
    out[t] = tile[t];
}

TEST(target_changed)
{
    Array in(threads), out(threads);
    target_changed<<<1, threads>>>(in.number(), out);
    expect(out, [](int i) { return i; });
}

// The usual two stages: the next tile is fetched into the one that others may still read.
__global__ void next_stage_too_early(const int *in, int *out)
{
    __shared__ int stages[2][threads];
    int t = threadIdx.x, sum = 0;
    COPY(&stages[0][t], &in[t]);
    COMMIT();
    for (int k = 0; k < 4; k++) {
        if (k < 3) COPY(&stages[(k + 1) % 2][t], &in[(k + 1) * threads + t]);  // race stage: write
        COMMIT();
        WAIT(1);
        __syncthreads();
        sum += stages[k % 2][t ^ 32];                                          // race stage: read
        MENDED(__syncthreads());
    }
    out[t] = sum;
}

TEST(next_stage_too_early)
{
    Array in(4 * threads), out(threads);
    next_stage_too_early<<<1, threads>>>(in.number(), out);
    expect(out, [&](int i) {
        i ^= 32;
        return in[i] + in[threads + i] + in[2 * threads + i] + in[3 * threads + i];
    });
}

// By the functions of cuda_pipeline.h, 16 bytes at a time.
__global__ void pipeline(const int4 *in, int4 *out)
{
    __shared__ int4 tile[2][threads];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&tile[0][t], &in[t], 16);
    __pipeline_commit();
    __pipeline_memcpy_async(&tile[1][t], &in[threads + t], 16);  // race second: write
    __pipeline_commit();
    __pipeline_wait_prior(EITHER(1, 0));
    out[t] = tile[0][t];
    out[threads + t] = tile[1][t];                               // race second: read
}

TEST(pipeline)
{
    Array in(8 * threads), out(8 * threads);
    pipeline<<<1, threads>>>((const int4 *)(int *)in.number(), (int4 *)(int *)out);
    expect(out, [&](int i) { return in[i]; });
}

// An mbarrier at which the copies themselves arrive, or only the threads that have begun them.
__global__ void arrival_of_the_thread(const int *in, int *out)
{
    __shared__ int tile[threads];
    __shared__ unsigned long long full;
    unsigned at = (unsigned)__cvta_generic_to_shared(&full);
    int t = threadIdx.x;
    if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(threads) : "memory");
    __syncthreads();
    COPY(&tile[t], &in[t]);                // race tile: write
    BROKEN(asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(at) : "memory"));
    MENDED(asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(at) : "memory"));
    int over = 0;
    while (!over)
        asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.s32 %0, 1, 0, p; }"
                     : "=r"(over) : "r"(at) : "memory");
    out[t] = tile[t ^ 32];                 // race tile: read
}

TEST(arrival_of_the_thread)
{
    Array in(threads), out(threads);
    arrival_of_the_thread<<<1, threads>>>(in.number(), out);
    expect(out, [&](int i) { return in[i ^ 32]; });
}
