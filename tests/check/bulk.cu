// Bulk copies and mbarriers: who may read, or write again, and when; and what the asynchronous proxy sees.
#include "check.h"

const int threads = 64;
const int bytes = threads * sizeof(int);

__device__ unsigned at(const void *shared)
{
    return (unsigned)__cvta_generic_to_shared(shared);
}

#define PTX(...) asm volatile(__VA_ARGS__ : "memory")
#define INIT(barrier, count) PTX("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at(barrier)), "r"(count))
#define EXPECT(barrier, bytes) PTX("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(at(barrier)), "r"(bytes))
#define ARRIVE(barrier) PTX("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(at(barrier)))
#define LOAD(to, from, bytes, barrier)                                                                                 \
    PTX("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(at(to)),       \
        "l"(from), "r"(bytes), "r"(at(barrier)))
#define STORE(to, from, bytes)                                                                                         \
    PTX("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(at(from)), "r"(bytes))
#define ADD(to, from, bytes)                                                                                           \
    PTX("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], %2;" ::"l"(to), "r"(at(from)), "r"(bytes))
#define COMMIT() PTX("cp.async.bulk.commit_group;" ::)
#define WAIT() PTX("cp.async.bulk.wait_group 0;" ::)
#define WAIT_READ() PTX("cp.async.bulk.wait_group.read 0;" ::)
#define PROXY_FENCE() PTX("fence.proxy.async;" ::)

__device__ void wait(const unsigned long long *barrier, int parity)
{
    int over = 0;
    while (!over)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.s32 %0, 1, 0, p; }"
                     : "=r"(over) : "r"(at(barrier)), "r"(parity) : "memory");
}

// By one thread, with a barrier of the block behind: the mbarrier is there for all, and for the asynchronous proxy.
__device__ void begin(unsigned long long *barrier, int count)
{
    if (threadIdx.x == 0) {
        INIT(barrier, count);
        PROXY_FENCE();
    }
    __syncthreads();
}

// Nobody waits for the copy; all threads meet, but that is no end of it.
__global__ void read_without_wait(const int *in, int *out)
{
    __shared__ alignas(16) int tile[threads];
    __shared__ unsigned long long full;
    int t = threadIdx.x;
    begin(&full, 1);
    if (t == 0) {
        EXPECT(&full, bytes);
        LOAD(tile, in, bytes, &full);      // race tile: write
    }
    BROKEN(__syncthreads());
    MENDED(wait(&full, 0));
    out[t] = tile[t];                      // race tile: read
    wait(&full, 0);
}

TEST(read_without_wait)
{
    Array in(threads), out(threads);
    read_without_wait<<<1, threads>>>(in.number(), out);
    expect(out, [&](int i) { return in[i]; });
}

// The wait is for the phase before the first, which is over: the first cannot end before this thread has arrived, too.
__global__ void wait_for_the_phase_before(const int *in, int *out)
{
    __shared__ alignas(16) int tile[threads];
    __shared__ unsigned long long full;
    int t = threadIdx.x;
    begin(&full, threads + 1);
    if (t == 0) {
        EXPECT(&full, bytes);
        LOAD(tile, in, bytes, &full);      // race tile: write
    }
    MENDED(ARRIVE(&full));
    wait(&full, EITHER(1, 0));
    out[t] = tile[t];                      // race tile: read
    BROKEN(ARRIVE(&full));
    wait(&full, 0);
}

TEST(wait_for_the_phase_before)
{
    Array in(threads), out(threads);
    wait_for_the_phase_before<<<1, threads>>>(in.number(), out);
    expect(out, [&](int i) { return in[i]; });
}

// One thread waits; the others do not wait for him.
__global__ void one_thread_waits(const int *in, int *out)
{
    __shared__ alignas(16) int tile[threads];
    __shared__ unsigned long long full;
    int t = threadIdx.x;
    begin(&full, 1);
    if (t == 0) {
        EXPECT(&full, bytes);
        LOAD(tile, in, bytes, &full);      // race tile: write
        wait(&full, 0);
    }
    MENDED(__syncthreads());
    out[t] = tile[t];                      // race tile: read
}

TEST(one_thread_waits)
{
    Array in(threads), out(threads);
    one_thread_waits<<<1, threads>>>(in.number(), out);
    expect(out, [&](int i) { return in[i]; });
}

// The next tile is fetched while others still read this one: the barrier is for the copy, and not for them.
__global__ void refilled_too_early(const int *in, int *out)
{
    __shared__ alignas(16) int tile[threads];
    __shared__ unsigned long long full;
    int t = threadIdx.x, sum = 0;
    begin(&full, 1);
    for (int k = 0; k < 3; k++) {
        if (t == 0) {
            EXPECT(&full, bytes);
            LOAD(tile, in + k * threads, bytes, &full);  // race tile: write
        }
        wait(&full, k % 2);
        BROKEN(__syncthreads());
        sum += tile[t ^ 32];                             // race tile: read
        MENDED(__syncthreads());
    }
    out[t] = sum;
}

TEST(refilled_too_early)
{
    Array in(3 * threads), out(threads);
    refilled_too_early<<<1, threads>>>(in.number(), out);
    expect(out, [&](int i) {
        i ^= 32;
        return in[i] + in[threads + i] + in[2 * threads + i];
    });
}

// The tile is cleared before it is filled: without a fence the zeros may come last.
__global__ void cleared_without_fence(const int *in, int *out)
{
    __shared__ alignas(16) int tile[threads];
    __shared__ unsigned long long full;
    int t = threadIdx.x;
    tile[t] = 0;                           // race tile: write
    MENDED(PROXY_FENCE());
    begin(&full, 1);
    if (t == 0) {
        EXPECT(&full, bytes / 2);
        LOAD(tile, in, bytes / 2, &full);  // race tile: write
    }
    wait(&full, 0);
    out[t] = tile[t];
}

TEST(cleared_without_fence)
{
    Array in(threads), out(threads);
    cleared_without_fence<<<1, threads>>>(in.number(), out);
    expect(out, [&](int i) { return i < threads / 2 ? in[i] : 0; });
}

// The asynchronous proxy does not see generic stores without a fence, not even those of its own thread.
__global__ void store_without_fence(int *out)
{
    __shared__ alignas(16) int tile[4];
    for (int i = 0; i < 4; i++) tile[i] = i + 1;  // race tile: write
    MENDED(PROXY_FENCE());
    STORE(out, tile, 16);                         // race tile: read
    COMMIT();
    WAIT();
}

TEST(store_without_fence)
{
    Array out(4);
    store_without_fence<<<1, 1>>>(out);
    expect(out, [](int i) { return i + 1; });
}

__global__ void fence_before_the_stores(int *out)
{
    __shared__ alignas(16) int tile[threads];
    int t = threadIdx.x;
    BROKEN(PROXY_FENCE());
    tile[t] = t + 1;                       // race tile: write
    MENDED(PROXY_FENCE());
    __syncthreads();
    if (t == 0) {
        STORE(out, tile, bytes);           // race tile: read
        COMMIT();
        WAIT();
    }
}

TEST(fence_before_the_stores)
{
    Array out(threads);
    fence_before_the_stores<<<1, threads>>>(out);
    expect(out, [](int i) { return i + 1; });
}

// One thread's fence is for what it knows of: behind the barrier for all stores, before it for its own.
__global__ void fence_of_one_thread(int *out)
{
    __shared__ alignas(16) int tile[threads];
    int t = threadIdx.x;
    tile[t] = t + 1;                       // race tile: write
    BROKEN(if (t == 0) PROXY_FENCE());
    __syncthreads();
    if (t == 0) {
        MENDED(PROXY_FENCE());
        STORE(out, tile, bytes);           // race tile: read
        COMMIT();
        WAIT();
    }
}

TEST(fence_of_one_thread)
{
    Array out(threads);
    fence_of_one_thread<<<1, threads>>>(out);
    expect(out, [](int i) { return i + 1; });
}

// Nor does it see generic stores to global memory.
__global__ void load_without_fence(int *data, int *out)
{
    __shared__ alignas(16) int tile[threads];
    __shared__ unsigned long long full;
    int t = threadIdx.x;
    data[t] = t + 1;                       // race data: write
    MENDED(PROXY_FENCE());
    begin(&full, 1);
    if (t == 0) {
        EXPECT(&full, bytes);
        LOAD(tile, data, bytes, &full);    // race data: read
    }
    wait(&full, 0);
    out[t] = tile[t];
}

TEST(load_without_fence)
{
    Array data(threads), out(threads);
    load_without_fence<<<1, threads>>>(data, out);
    expect(out, [](int i) { return i + 1; });
}

// All have their fence, but nobody waits for the others.
__global__ void fences_without_barrier(int *out)
{
    __shared__ alignas(16) int tile[threads];
    int t = threadIdx.x;
    tile[t] = t + 1;                       // race tile: write
    PROXY_FENCE();
    MENDED(__syncthreads());
    if (t == 0) {
        STORE(out, tile, bytes);           // race tile: read
        COMMIT();
        WAIT();
    }
}

TEST(fences_without_barrier)
{
    Array out(threads);
    fences_without_barrier<<<1, threads>>>(out);
    expect(out, [](int i) { return i + 1; });
}

// The tile is written again while it may still be read.
__global__ void source_changed(int *out)
{
    __shared__ alignas(16) int tile[threads];
    int t = threadIdx.x;
    for (int k = 0; k < 3; k++) {
        tile[t] = k * threads + t;                // race tile: write
        PROXY_FENCE();
        __syncthreads();
        if (t == 0) {
            STORE(out + k * threads, tile, bytes);  // race tile: read
            COMMIT();
            MENDED(WAIT_READ());
        }
        __syncthreads();
    }
    if (t == 0) WAIT();
}

TEST(source_changed)
{
    Array out(3 * threads);
    source_changed<<<1, threads>>>(out);
    expect(out, [](int i) { return i; });
}

// The source has been read, so it may be written again; that the target is there, is another wait.
__global__ void target_not_yet_written(int *out, int *copy)
{
    __shared__ alignas(16) int tile[threads];
    int t = threadIdx.x;
    tile[t] = t + 1;
    PROXY_FENCE();
    __syncthreads();
    if (t == 0) {
        STORE(out, tile, bytes);           // race out: write
        COMMIT();
        BROKEN(WAIT_READ());
        MENDED(WAIT());
    }
    __syncthreads();
    tile[t] = 0;
    copy[t] = out[t];                      // race out: read
}

TEST(target_not_yet_written)
{
    Array out(threads), copy(threads);
    target_not_yet_written<<<1, threads>>>(out, copy);
    expect(copy, [](int i) { return i + 1; });
}

// Another block is told of the copy before its end.
__global__ void flag_before_the_end(int *data, int *flag, int *out)
{
    __shared__ alignas(16) int tile[4];
    if (blockIdx.x == 0) {
        for (int i = 0; i < 4; i++) tile[i] = i + 5;
        PROXY_FENCE();
        STORE(data, tile, 16);             // race data: write
        COMMIT();
        MENDED(WAIT());
        __threadfence();
        atomicExch(flag, 1);
        WAIT();
    } else {
        while (atomicAdd(flag, 0) == 0) {}
        __threadfence();
        for (int i = 0; i < 4; i++) out[i] = data[i];  // race data: read
    }
}

TEST(flag_before_the_end)
{
    Array data(4), flag(1), out(4);
    flag_before_the_end<<<2, 1>>>(data, flag, out);
    expect(out, [](int i) { return i + 5; });
}

// 32 lanes store, one arrives: the others' stores may come behind.
__global__ void one_arrives_for_all(int *out)
{
    __shared__ int tile[32];
    __shared__ unsigned long long full;
    int t = threadIdx.x;
    begin(&full, 1);
    if (t < 32) {
        tile[t] = t + 1;                   // race tile: write
        MENDED(__syncwarp());
        if (t == 0) ARRIVE(&full);
    } else {
        wait(&full, 0);
        out[t - 32] = tile[t - 32];        // race tile: read
    }
}

TEST(one_arrives_for_all)
{
    Array out(32);
    one_arrives_for_all<<<1, 64>>>(out);
    expect(out, [](int i) { return i + 1; });
}

// All arrive, some before they store.
__global__ void arrives_too_early(int *out)
{
    __shared__ int tile[32];
    __shared__ unsigned long long full;
    int t = threadIdx.x;
    begin(&full, 32);
    if (t < 32) {
        BROKEN(ARRIVE(&full));
        tile[t] = t + 1;                   // race tile: write
        MENDED(ARRIVE(&full));
    } else {
        wait(&full, 0);
        out[t - 32] = tile[t - 32];        // race tile: read
    }
}

TEST(arrives_too_early)
{
    Array out(32);
    arrives_too_early<<<1, 64>>>(out);
    expect(out, [](int i) { return i + 1; });
}

// An arrival that is relaxed counts, and releases nothing.
__global__ void relaxed_arrival(int *out)
{
    __shared__ int tile[32];
    __shared__ unsigned long long full;
    int t = threadIdx.x;
    begin(&full, 32);
    if (t < 32) {
        tile[t] = t + 1;                   // race tile: write
        BROKEN(PTX("mbarrier.arrive.relaxed.cta.shared.b64 _, [%0];" ::"r"(at(&full))));
        MENDED(ARRIVE(&full));
    } else {
        wait(&full, 0);
        out[t - 32] = tile[t - 32];        // race tile: read
    }
}

TEST(relaxed_arrival)
{
    Array out(32);
    relaxed_arrival<<<1, 64>>>(out);
    expect(out, [](int i) { return i + 1; });
}

// A ring of stages, each of which is given back before it has been read.
__global__ void ring(const int *in, int *out)
{
    const int stages = 2, tiles = 6;
    __shared__ alignas(16) int ring[stages][32];
    __shared__ unsigned long long full[stages], empty[stages];
    int t = threadIdx.x, sum = 0;
    for (int stage = 0; stage < stages; stage++) {
        begin(&full[stage], 1);
        begin(&empty[stage], 32);
    }
    if (t == 32) {
        for (int k = 0; k < tiles; k++) {
            int stage = k % stages, round = k / stages;
            wait(&empty[stage], (round + 1) % 2);
            EXPECT(&full[stage], 128);
            LOAD(ring[stage], in + k * 32, 128, &full[stage]);  // race ring: write
        }
    } else if (t < 32) {
        for (int k = 0; k < tiles; k++) {
            int stage = k % stages, round = k / stages;
            wait(&full[stage], round % 2);
            BROKEN(ARRIVE(&empty[stage]));
            sum += ring[stage][31 - t] * (k + 1);               // race ring: read
            MENDED(ARRIVE(&empty[stage]));
        }
        out[t] = sum;
    }
}

TEST(ring)
{
    Array in(6 * 32), out(32);
    ring<<<1, 64>>>(in.number(), out);
    expect(out, [&](int i) {
        int sum = 0;
        for (int k = 0; k < 6; k++) sum += in[k * 32 + 31 - i] * (k + 1);
        return sum;
    });
}

// Sums of several blocks in one place, each addition of which is atomic.
__global__ void bulk_sums(int *sums)
{
    __shared__ alignas(16) int tile[threads];
    int t = threadIdx.x;
    tile[t] = t + blockIdx.x;
    PROXY_FENCE();
    __syncthreads();
    if (t == 0) {
        ADD(sums, tile, bytes);
        COMMIT();
        WAIT();
    }
}

TEST(bulk_sums)
{
    Array sums(threads);
    bulk_sums<<<4, threads>>>(sums);
    expect(sums, [](int i) { return 4 * i + 6; });
}
