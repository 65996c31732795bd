// older nvcc: -arch=sm_75
// Atomic operations of every kind and type, in global and in shared memory, with values returned; libcu++ atomics.
#include "check.h"

#include <cuda/atomic>
#include <cuda_fp16.h>

#include <algorithm>
#include <vector>

typedef unsigned long long u64;

struct Cells {
    int add, sub, most, least, both, either, differ, exchanged, swapped;
    unsigned inc, dec, umost, uleast;
    u64 add64, most64, both64, either64, differ64, exchanged64, swapped64;
    long long smost64, sleast64;
    float addf;
    double addd;
    __half2 addh;
    unsigned short swapped16;
};

template <typename C> __device__ void apply(C *c, int v, int i)
{
    atomicAdd(&c->add, v);
    atomicSub(&c->sub, v);
    atomicMax(&c->most, v);
    atomicMin(&c->least, v);
    atomicAnd(&c->both, v | 0x100);
    atomicOr(&c->either, 1 << (v & 15));
    atomicXor(&c->differ, v);
    atomicInc(&c->inc, 100);
    atomicDec(&c->dec, 77);
    atomicMax(&c->umost, (unsigned)v);
    atomicMin(&c->uleast, (unsigned)v);
    atomicAdd(&c->add64, (u64)v << 20);
    atomicMax(&c->most64, (u64)v * 5000000000ull);
    atomicMax(&c->smost64, -(long long)v * 5000000000ll);
    atomicMin(&c->sleast64, -(long long)v * 5000000000ll);
    atomicAnd(&c->both64, ~(1ull << (v & 63)));
    atomicOr(&c->either64, 1ull << (v & 63));
    atomicXor(&c->differ64, (u64)v << 30);
    atomicAdd(&c->addf, (float)v);        // small integers: exact in any order
    atomicAdd(&c->addd, v * 0.5);
    atomicAdd(&c->addh, __floats2half2_rn((i & 3) == 0 ? 1.0f : 0.0f, (i & 15) == 0 ? -1.0f : 0.0f));
    // Increments by compare and swap.
    int seen = c->swapped;
    for (;;) {
        int old = atomicCAS(&c->swapped, seen, seen + 3);
        if (old == seen) break;
        seen = old;
    }
    u64 wide = c->swapped64;
    for (;;) {
        u64 old = atomicCAS(&c->swapped64, wide, wide + 5000000000ull);
        if (old == wide) break;
        wide = old;
    }
    unsigned short narrow = c->swapped16;
    for (;;) {
        unsigned short old = atomicCAS(&c->swapped16, narrow, (unsigned short)(narrow + 7));
        if (old == narrow) break;
        narrow = old;
    }
}

__device__ Cells initial()
{
    Cells c;
    memset(&c, 0, sizeof c);
    c.most = -1000;
    c.least = 1000000;
    c.both = -1;
    c.both64 = ~0ull;
    c.uleast = ~0u;
    c.smost64 = -(1ll << 62);
    c.sleast64 = 1ll << 62;
    return c;
}

__global__ void set(Cells *c) { *c = initial(); }
__global__ void in_global(Cells *c, const int *values)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    apply(c, values[i], i);
}
__global__ void in_shared(Cells *out, const int *values, int n)
{
    __shared__ Cells c;
    if (threadIdx.x == 0) c = initial();
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) apply(&c, values[i], i);
    __syncthreads();
    if (threadIdx.x == 0) *out = c;
}

// Tickets: every thread gets its own; a chain of exchanges loses nothing.
__global__ void tickets(unsigned *taken, unsigned *next, u64 *chain, u64 *sum)
{
    unsigned mine = atomicAdd(next, 1u);
    taken[mine] += 1;
    u64 before = atomicExch(chain, (u64)mine + 1);
    atomicAdd_system(sum, before);
}

__global__ void libcuxx(int *out)
{
    __shared__ cuda::atomic<int, cuda::thread_scope_block> flag;
    __shared__ int payload;
    if (threadIdx.x == 0) flag.store(0, cuda::memory_order_relaxed);
    __syncthreads();
    if (threadIdx.x == 64) {
        payload = 42;
        flag.store(1, cuda::memory_order_release);
    }
    if (threadIdx.x < 32) {
        while (flag.load(cuda::memory_order_acquire) == 0) {
        }
        out[threadIdx.x] = payload;
    }
    cuda::atomic_ref<int, cuda::thread_scope_device> total(out[32]);
    total.fetch_add(threadIdx.x, cuda::memory_order_acq_rel);
    // Not negative: the libcu++ of CUDA 11.8 compares as unsigned.
    cuda::atomic_ref<int, cuda::thread_scope_system> most(out[33]);
    most.fetch_max((int)threadIdx.x);
    int expected = 0;
    cuda::atomic_ref<int> first(out[34]);
    if (first.compare_exchange_strong(expected, threadIdx.x + 1000, cuda::memory_order_seq_cst)) out[35] = threadIdx.x + 1000;
}

static void check(const char *where, const Cells &c, const std::vector<int> &values)
{
    int n = (int)values.size(), sum = 0, differ = 0, least = 1 << 30, most = 0, either = 0, both = -1;
    u64 both64 = ~0ull, differ64 = 0;
    for (int v : values) {
        sum += v;
        differ ^= v;
        differ64 ^= (u64)v << 30;
        least = std::min(least, v);
        most = std::max(most, v);
        either |= 1 << (v & 15);
        both &= v | 0x100;
        both64 &= ~(1ull << (v & 63));
    }
    unsigned dec = 0;
    for (int i = 0; i < n; i++) dec = dec == 0 || dec > 77 ? 77 : dec - 1;
    int wrong = 0;
    auto same = [&](long long got, long long want, const char *what) {
        if (got != want && !wrong++) fail("%s memory: %s gives %lld, not %lld", where, what, got, want);
    };
    same(c.add, sum, "add");
    same(c.sub, -sum, "sub");
    same(c.most, most, "max");
    same(c.least, least, "min");
    same(c.umost, most, "unsigned max");
    same(c.uleast, least, "unsigned min");
    same(c.both, both, "and");
    same(c.either, either, "or");
    same(c.differ, differ, "xor");
    same(c.inc, n % 101, "inc");
    same(c.dec, dec, "dec");
    same(c.add64, (u64)sum << 20, "64-bit add");
    same(c.most64, (u64)most * 5000000000ull, "64-bit max");
    same(c.smost64, -(long long)least * 5000000000ll, "64-bit signed max");
    same(c.sleast64, -(long long)most * 5000000000ll, "64-bit signed min");
    same(c.both64, both64, "64-bit and");
    same(c.either64, ~both64, "64-bit or");
    same(c.differ64, differ64, "64-bit xor");
    same((long long)c.addf, sum, "float add");
    same((long long)(c.addd * 2), sum, "double add");
    same((long long)__low2float(c.addh), n / 4, "half2 add, low");
    same((long long)__high2float(c.addh), -n / 16, "half2 add, high");
    same(c.swapped, 3 * n, "compare and swap");
    same(c.swapped64, n * 5000000000ll, "64-bit compare and swap");
    same(c.swapped16, (unsigned short)(7 * n), "16-bit compare and swap");
}

int main()
{
    const int n = 4096;
    std::vector<int> values(n);
    Random random(13);
    for (int &v : values) v = (int)(random.next() % 1000) + 1;
    int *din;
    Cells *cells;
    CUDA(cudaMalloc(&din, n * sizeof(int)));
    CUDA(cudaMallocManaged(&cells, sizeof *cells));
    CUDA(cudaMemcpy(din, values.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    set<<<1, 1>>>(cells);
    in_global<<<n / 128, 128>>>(cells, din);
    FINISHED();
    check("global", *cells, values);
    in_shared<<<1, 256>>>(cells, din, n);
    FINISHED();
    check("shared", *cells, values);

    unsigned *taken, *next;
    u64 *chain;
    CUDA(cudaMallocManaged(&taken, n * sizeof *taken));
    CUDA(cudaMallocManaged(&next, sizeof *next));
    CUDA(cudaMallocManaged(&chain, 2 * sizeof *chain));
    memset(taken, 0, n * sizeof *taken);
    *next = 0;
    chain[0] = chain[1] = 0;
    tickets<<<n / 64, 64>>>(taken, next, &chain[0], &chain[1]);
    FINISHED();
    for (int i = 0; i < n; i++) EXPECT_EQ(taken[i], 1);
    // What was given out plus what is left: every ticket once.
    EXPECT_EQ(chain[0] + chain[1], (u64)n * (n + 1) / 2);

    int *out;
    CUDA(cudaMallocManaged(&out, 64 * sizeof *out));
    memset(out, 0, 64 * sizeof *out);
    libcuxx<<<1, 128>>>(out);
    FINISHED();
    for (int i = 0; i < 32; i++) EXPECT_EQ(out[i], 42);
    EXPECT_EQ(out[32], 127 * 128 / 2);
    EXPECT_EQ(out[33], 127);
    EXPECT(out[34] >= 1000 && out[34] == out[35]);
    return pass();
}
