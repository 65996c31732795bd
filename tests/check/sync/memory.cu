// Barriers in memory, and asynchronous operations for whose end nobody waits.
#include "../check.h"

#define PTX(...) asm volatile(__VA_ARGS__ : "memory")
typedef unsigned long long Barrier;

__device__ unsigned at(const void *shared) { return unsigned(__cvta_generic_to_shared(shared)); }

#define INIT(barrier, count) PTX("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at(barrier)), "r"(count))
#define ARRIVE(barrier) PTX("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(at(barrier)))
#define EXPECT(barrier, bytes) PTX("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(at(barrier)), "r"(bytes))
#define INVALIDATE(barrier) PTX("mbarrier.inval.shared.b64 [%0];" ::"r"(at(barrier)))
#define LOOK(over, barrier, parity)                                                                                    \
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.s32 %0, 1, 0, p; }"           \
                 : "=r"(over) : "r"(at(barrier)), "r"(parity) : "memory")
#define LOAD(to, from, bytes, barrier)                                                                                 \
    PTX("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(at(to)),       \
        "l"(from), "r"(bytes), "r"(at(barrier)))
#define STORE(to, from, bytes)                                                                                         \
    PTX("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(at(from)), "r"(bytes))

__device__ void wait(const Barrier *barrier, int parity)
{
    int over = 0;
    while (!over) LOOK(over, barrier, parity);
}

// One of two arrivals is there, and the barrier begins anew.
__global__ void again_while_pending(int *out)
{
    __shared__ Barrier barrier;
    INIT(&barrier, 2);
    ARRIVE(&barrier);
    MENDED(ARRIVE(&barrier));
    INIT(&barrier, 1);                        // sync again
    ARRIVE(&barrier);
    *out = 1;
}

TEST(again_while_pending)
{
    Array out(1);
    again_while_pending<<<1, 1>>>(out);
    expect(out, [](int) { return 1; });
}

// Another thread waits there.
__global__ void again_while_somebody_waits(int *out)
{
    __shared__ Barrier barrier;
    int t = threadIdx.x, over = 1;
    if (t == 0) INIT(&barrier, 1);
    __syncthreads();
    if (t == 32) {
        BROKEN(LOOK(over, &barrier, 0));
        MENDED(LOOK(over, &barrier, 1));
    }
    __syncthreads();
    if (t == 0) {
        INIT(&barrier, 1);                    // sync again
        ARRIVE(&barrier);
    }
    __syncthreads();
    wait(&barrier, 0);
    out[t] = over;
}

TEST(again_while_somebody_waits)
{
    Array out(64);
    again_while_somebody_waits<<<1, 64>>>(out);
    expect(out, [](int) { return 1; });
}

// A token is good for a phase and the one behind it.
__global__ void old_token(int *out)
{
    __shared__ Barrier barrier;
    unsigned long long token, next;
    int over;
    INIT(&barrier, 1);
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(token) : "r"(at(&barrier)) : "memory");
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(next) : "r"(at(&barrier)) : "memory");
    asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.s32 %0, 1, 0, p; }"  // sync token
                 : "=r"(over) : "r"(at(&barrier)), "l"(EITHER(token, next)) : "memory");
    *out = over;
}

TEST(old_token)
{
    Array out(1);
    old_token<<<1, 1>>>(out);
    expect(out, [](int) { return 1; });
}

// Two phases go by while a thread waits for the first.
__global__ void overtaken(int *out)
{
    __shared__ Barrier barrier;
    int t = threadIdx.x, over;
    if (t == 0) INIT(&barrier, 1);
    __syncthreads();
    if (t == 32) LOOK(over, &barrier, 0);
    __syncthreads();
    if (t == 0) {
        ARRIVE(&barrier);
        BROKEN(ARRIVE(&barrier));
    }
    __syncthreads();
    if (t == 32) {
        LOOK(over, &barrier, 0);              // sync late
        *out = over;
    }
}

TEST(overtaken)
{
    Array out(1);
    overtaken<<<1, 64>>>(out);
    expect(out, [](int) { return 1; });
}

// Bytes are announced that do not come.
__global__ void bytes_to_come(const int *in, int *out)
{
    __shared__ alignas(16) int tile[8];
    __shared__ Barrier barrier;
    INIT(&barrier, 1);
    EXPECT(&barrier, EITHER(32, 16));         // sync bytes
    LOAD(tile, in, 16, &barrier);
    MENDED(wait(&barrier, 0));
    *out = 1;
}

TEST(bytes_to_come)
{
    Array in(8), out(1);
    bytes_to_come<<<1, 1>>>(in, out);
    expect(out, [](int) { return 1; });
}

// Bytes come that nobody has announced.
__global__ void unannounced_bytes(const int *in, int *out)
{
    __shared__ alignas(16) int tile[8];
    __shared__ Barrier barrier;
    INIT(&barrier, 1);
    MENDED(EXPECT(&barrier, 16));
    LOAD(tile, in, 16, &barrier);             // sync bytes
    BROKEN(ARRIVE(&barrier));
    MENDED(wait(&barrier, 0));
    *out = 1;
}

TEST(unannounced_bytes)
{
    Array in(8), out(1);
    unannounced_bytes<<<1, 1>>>(in, out);
    expect(out, [](int) { return 1; });
}

// Nobody waits for what was fetched.
__global__ void fetched_in_vain(const int *in, int *out)
{
    __shared__ alignas(16) int tile[8];
    __shared__ Barrier barrier;
    INIT(&barrier, 1);
    EXPECT(&barrier, 16);
    LOAD(tile, in, 16, &barrier);             // sync fetched
    MENDED(wait(&barrier, 0));
    *out = 1;
}

TEST(fetched_in_vain)
{
    Array in(8), out(1);
    fetched_in_vain<<<1, 1>>>(in, out);
    expect(out, [](int) { return 1; });
}

// Nobody has made it one.
__global__ void no_barrier(int *out)
{
    __shared__ Barrier barrier;
    MENDED(INIT(&barrier, 1));
    ARRIVE(&barrier);                         // fails none
    *out = 1;
}

TEST(no_barrier)
{
    Array out(1);
    no_barrier<<<1, 1>>>(out);
    expect(out, [](int) { return 1; });
}

// It is one no more.
__global__ void invalid(int *out)
{
    __shared__ Barrier barrier;
    INIT(&barrier, 1);
    BROKEN(INVALIDATE(&barrier));
    ARRIVE(&barrier);                         // fails invalid
    MENDED(INVALIDATE(&barrier));
    *out = 1;
}

TEST(invalid)
{
    Array out(1);
    invalid<<<1, 1>>>(out);
    expect(out, [](int) { return 1; });
}

// More arrivals than the phase waits for.
__global__ void too_many_arrivals(int *out)
{
    __shared__ Barrier barrier;
    INIT(&barrier, 2);
    PTX("mbarrier.arrive.shared.b64 _, [%0], %1;" ::"r"(at(&barrier)), "r"(EITHER(3, 2)));  // fails arrivals
    *out = 1;
}

TEST(too_many_arrivals)
{
    Array out(1);
    too_many_arrivals<<<1, 1>>>(out);
    expect(out, [](int) { return 1; });
}

// A count of nobody.
__global__ void nobody(int *out, int count)
{
    __shared__ Barrier barrier;
    INIT(&barrier, count);                    // fails count
    *out = 1;
}

TEST(nobody)
{
    Array out(1);
    nobody<<<1, 1>>>(out, EITHER(0, 1));
    expect(out, [](int) { return 1; });
}

#define COPY(to, from) PTX("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at(to)), "l"(from))

// A copy in no group.
__global__ void no_group(const int *in, int *out)
{
    __shared__ int tile[32];
    int t = threadIdx.x;
    COPY(&tile[t], &in[t]);                   // sync group
    MENDED(asm volatile("cp.async.wait_all;" ::: "memory"));
    out[t] = MENDED(tile[t] - in[t] +) 1;
}

TEST(no_group)
{
    Array in(32), out(32);
    no_group<<<1, 32>>>(in, out);
    expect(out, [](int) { return 1; });
}

// A group for which nobody waits: the last one of a pipeline.
__global__ void no_wait(const int *in, int *out)
{
    __shared__ int tile[64];
    int t = threadIdx.x;
    COPY(&tile[t], &in[t]);
    asm volatile("cp.async.commit_group;" ::: "memory");
    COPY(&tile[t + 32], &in[t]);              // sync group
    asm volatile("cp.async.commit_group;" ::: "memory");
    BROKEN(asm volatile("cp.async.wait_group 1;" ::: "memory"));
    MENDED(asm volatile("cp.async.wait_group 0;" ::: "memory"));
    out[t] = tile[t] - in[t] + 1;
}

TEST(no_wait)
{
    Array in(32), out(32);
    no_wait<<<1, 32>>>(in, out);
    expect(out, [](int) { return 1; });
}

// Copies of which a barrier tells need no group.
__global__ void told_by_a_barrier(const int *in, int *out)
{
    __shared__ int tile[32];
    __shared__ Barrier barrier;
    int t = threadIdx.x;
    if (t == 0) INIT(&barrier, 32);
    __syncthreads();
    COPY(&tile[t], &in[t]);
    PTX("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(at(&barrier)));
    wait(&barrier, 0);
    out[t] = tile[t ^ 1] - in[t ^ 1] + 1;
}

TEST(told_by_a_barrier)
{
    Array in(32), out(32);
    told_by_a_barrier<<<1, 32>>>(in, out);
    expect(out, [](int) { return 1; });
}

// A store of shared memory that is in no group.
__global__ void bulk_without_group(int *out)
{
    __shared__ alignas(16) int tile[4];
    for (int i = 0; i < 4; i++) tile[i] = 1;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    STORE(out, tile, 16);                     // sync bulk
    MENDED(asm volatile("cp.async.bulk.commit_group;\n cp.async.bulk.wait_group.read 0;" ::: "memory"));
}

TEST(bulk_without_group)
{
    Array out(4);
    bulk_without_group<<<1, 1>>>(out);
    expect(out, [](int) { return 1; });
}

// A store for which nobody waits.
__global__ void bulk_without_wait(int *out)
{
    __shared__ alignas(16) int tile[4];
    for (int i = 0; i < 4; i++) tile[i] = 1;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    STORE(out, tile, 16);                     // sync bulk
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    MENDED(asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"));
}

TEST(bulk_without_wait)
{
    Array out(4);
    bulk_without_wait<<<1, 1>>>(out);
    expect(out, [](int) { return 1; });
}
