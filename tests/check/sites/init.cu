// Values that nobody has written, where something depends on them.
#include <cuda_pipeline.h>
#include "check.h"

const int threads = 64;

// Device memory of which nothing has been written.
template <class T = int> class Raw {
  public:
    explicit Raw(int count) : count_(count) { CUDA(cudaMalloc(&start_, count * sizeof(T))); }
    ~Raw() { cudaFree(start_); }
    Raw(const Raw &) = delete;
    operator T *() const { return start_; }
    Raw &zeros()
    {
        CUDA(cudaMemset(start_, 0, count_ * sizeof(T)));
        return *this;
    }

  private:
    T *start_;
    int count_;
};

static void done()
{
    CUDA(cudaGetLastError());
    CUDA(cudaDeviceSynchronize());
}

// One member of a structure is set, the other one decides.
struct Pair {
    int key, value;
};

__global__ void set_keys(Pair *pairs)
{
    int t = threadIdx.x;
    pairs[t].key = t;
    MENDED(pairs[t].value = -t);
}

__global__ void count_positive(const Pair *pairs, int *out)
{
    Pair pair = pairs[threadIdx.x];
    if (pair.value > 0)                                 // init value
        atomicAdd(out, pair.key);
}

TEST(half_a_structure)
{
    Raw<Pair> pairs(threads);
    Array out(1);
    set_keys<<<1, threads>>>(pairs);
    count_positive<<<1, threads>>>(pairs, out);
    done();
}

// Whole vectors are loaded from an array that is not a multiple of them long.
__global__ void sum_vectors(const int4 *in, int *out, int count)
{
    int t = threadIdx.x;
    int4 v = in[t];
    int sum = v.x;
    if (4 * t + 1 < count) sum += v.y;
    if (4 * t + 2 < count) sum += v.z;
    if (4 * t + 3 < EITHER(count + 1, count)) sum += v.w;
    if (sum > 10)                                       // init tail
        out[t] = 1;
}

TEST(tail_of_a_vector)
{
    const int count = 4 * threads - 1;
    Raw in(4 * threads);
    Array out(threads);
    CUDA(cudaMemset(in, 0, count * sizeof(int)));
    sum_vectors<<<1, threads>>>((const int4 *)(int *)in, out, count);
    done();
}

// A tile has a border that nobody fills.
__global__ void stencil(const int *in, int *out)
{
    __shared__ int tile[threads + 2];
    int t = threadIdx.x;
    tile[t + 1] = in[t];
    MENDED(if (t < 2) tile[t * (threads + 1)] = 0);
    __syncthreads();
    int sum = tile[t] + tile[t + 1] + tile[t + 2];
    if (sum > 4)                                        // init border
        out[t] = sum;
}

TEST(border_of_a_tile)
{
    Array in(threads), out(threads);
    stencil<<<1, threads>>>(in.number(), out);
    done();
}

// A histogram in a thread's own memory, one of whose bins is not set to zero.
__global__ void histogram(const int *in, int *out, int bins)
{
    int count[16];
    for (int i = EITHER(1, 0); i < bins; i++) count[i] = 0;
    for (int i = 0; i < 32; i++) count[in[i] % bins]++;
    int most = 0;
    for (int i = 0; i < bins; i++)
        if (count[i] > count[most])                     // init bin
            most = i;
    out[threadIdx.x] = most;
}

TEST(local_array)
{
    Array in(32), out(threads);
    histogram<<<1, threads>>>(in.number(), out, 16);
    done();
}

// An array in memory that nobody has ever written, and an index from there.
__global__ void gather(const int *index, const int *in, int *out)
{
    int t = threadIdx.x;
    out[t] = in[index[t]];                              // init index
}

TEST(index)
{
    Raw index(threads);
    MENDED(index.zeros());
    Array in(threads), out(threads);
    gather<<<1, threads>>>(index, in, out);
    done();
}

// Two bit-fields of a word, of which one is set; what the other one is decides.
struct Flags {
    unsigned kind : 4, level : 12, more : 16;
};

__global__ void set_kinds(Flags *flags)
{
    flags[threadIdx.x].kind = 5;
}

__global__ void by_kind(const Flags *flags, int *out)
{
    Flags f = flags[threadIdx.x];
    if (f.kind == 5) out[threadIdx.x] = 1;
    BROKEN(if (f.level == 3) out[threadIdx.x] = 2);     // init level
}

TEST(bit_fields)
{
    Raw<Flags> flags(threads);
    Array out(threads);
    set_kinds<<<1, threads>>>(flags);
    by_kind<<<1, threads>>>(flags, out);
    done();
}

// Structures are copied with the bytes between their members, which nobody has written and nobody looks at.
struct Padded {
    char letter;
    double number;
};

__global__ void fill_padded(Padded *out)
{
    out[threadIdx.x].letter = 'a';
    out[threadIdx.x].number = threadIdx.x;
}

__global__ void copy_padded(const uint4 *from, uint4 *to)
{
    to[threadIdx.x] = from[threadIdx.x];
}

__global__ void look_at_padded(const Padded *in, int *out)
{
    Padded p = in[threadIdx.x];
    if (p.letter == 'a' && p.number > 3) out[threadIdx.x] = 1;
    BROKEN(if (((const int *)&in[threadIdx.x])[1] == 7) out[threadIdx.x] = 2); // init padding
}

TEST(padding)
{
    Raw<Padded> one(threads), other(threads);
    Array out(threads);
    static Padded host[threads];
    fill_padded<<<1, threads>>>(one);
    copy_padded<<<1, threads>>>((const uint4 *)(Padded *)one, (uint4 *)(Padded *)other);
    look_at_padded<<<1, threads>>>(other, out);
    CUDA(cudaMemcpy(host, other, sizeof host, cudaMemcpyDeviceToHost));
    done();
}

// A sum over a block in which the last element is missing, by shuffles within warps.
__global__ void reduce(const int *in, int *out)
{
    int sum = in[threadIdx.x];
    for (int n = 16; n; n /= 2) sum += __shfl_down_sync(~0u, sum, n);
    if (threadIdx.x % 32 == 0 && sum > 100)             // init sum
        *out = sum;
}

TEST(shuffles)
{
    Raw in(threads);
    CUDA(cudaMemset(in, 0, EITHER(threads - 1, threads) * sizeof(int)));
    Array out(1);
    reduce<<<1, threads>>>(in, out);
    done();
}

// A counter that nobody has set.
__global__ void count(int *counter)
{
    atomicAdd(counter, 1);                              // init counter
}

TEST(counter)
{
    Raw counter(1);
    MENDED(counter.zeros());
    count<<<1, threads>>>(counter);
    done();
}

// What an atomic adds.
__global__ void accumulate(const float *in, float *sum)
{
    atomicAdd(sum, in[threadIdx.x]);                    // init addend
}

TEST(addend)
{
    Raw<float> in(threads), sum(1);
    MENDED(in.zeros());
    accumulate<<<1, threads>>>(in, sum.zeros());
    done();
}

// Results that are not there.
__global__ void some(int *out)
{
    if (threadIdx.x < EITHER(threads / 2, threads)) out[threadIdx.x] = 1;
}

TEST(results)
{
    Raw out(threads);
    int host[threads];
    some<<<1, threads>>>(out);
    CUDA(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost)); // init host
}

// Memory of a pool that has been used before.
__global__ void put(int *out) { out[threadIdx.x] = 1; }

__global__ void look(const int *in, int *out)
{
    if (in[threadIdx.x] == 1)                           // init used_before
        out[threadIdx.x] = 2;
}

TEST(memory_of_a_pool)
{
    Array out(threads);
    int *memory;
    for (int round = 0; round < 2; round++) {
        CUDA(cudaMallocAsync(&memory, threads * sizeof(int), 0));
        if (EITHER(round == 0, true)) put<<<1, threads>>>(memory);
        look<<<1, threads>>>(memory, out);
        CUDA(cudaFreeAsync(memory, 0));
    }
    done();
}

// An asynchronous copy brings along what was not there.
__global__ void by_pipeline(const int *in, int *out)
{
    __shared__ int tile[threads];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&tile[t], &in[t], sizeof(int));
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    if (tile[t ^ 1] > 0)                                // init copied
        out[t] = 1;
}

TEST(asynchronous_copies)
{
    Raw in(threads);
    MENDED(in.zeros());
    Array out(threads);
    by_pipeline<<<1, threads>>>(in, out);
    done();
}

// A copy on the device does not make it any better.
__global__ void by_copy(const int *in, int *out)
{
    if (in[threadIdx.x] == 1)                           // init copied
        out[threadIdx.x] = 2;
}

TEST(copies_of_copies)
{
    Raw in(threads), other(threads);
    MENDED(in.zeros());
    Array out(threads);
    CUDA(cudaMemcpy(other, in, threads * sizeof(int), cudaMemcpyDeviceToDevice));
    by_copy<<<1, threads>>>(other, out);
    done();
}

// Through a function that is not inlined, which takes a structure and gives one.
struct Two {
    int a, b;
};

__device__ __noinline__ Two swap(Two two) { return {two.b, two.a}; }

__global__ void call(const int *in, int *out)
{
    int t = threadIdx.x;
    Two two = swap({in[t], t});
    if (two.a == 3) out[t] = 1;
    if (two.b > 0)                                      // init argument
        out[t] = 2;
}

TEST(calls)
{
    Raw in(threads);
    MENDED(in.zeros());
    Array out(threads);
    call<<<1, threads>>>(in, out);
    done();
}

// printf of what is not there.
__global__ void print(const int *in)
{
    printf("%d %d\n", threadIdx.x, in[threadIdx.x]);    // init printed
}

TEST(printed)
{
    Raw in(threads);
    MENDED(in.zeros());
    print<<<1, threads>>>(in);
    done();
}

// Memory of the device's own heap.
__global__ void allocate(int *out)
{
    int *p = (int *)malloc(4 * sizeof(int));
    p[0] = 1;
    MENDED(p[1] = 1);
    if (p[threadIdx.x & 1] == 1)                        // init heap
        out[threadIdx.x] = 1;
    free(p);
}

TEST(heap)
{
    Array out(threads);
    allocate<<<1, threads>>>(out);
    done();
}

// Masks, selections and ballots of what is partly there.
__global__ void masks(const unsigned *in, int *out)
{
    int t = threadIdx.x;
    unsigned x = in[t] & 0xff00ff, y = 0;
    y |= x << 8;
    y = __byte_perm(x, y, 0x3120);
    if ((y & EITHER(~0u, 0)) == 1) out[t] = 1;          // init mask
    unsigned there = __ballot_sync(~0u, t & 1 ? true : in[t] == 0);
    if ((there & 0xaaaaaaaa) == 0xaaaaaaaa) out[t] = 2;
}

TEST(masks)
{
    Raw<unsigned> in(threads);
    Array out(threads);
    masks<<<1, threads>>>(in, out);
    done();
}

// A register that only some threads have written.
__global__ void by_branch(int *out)
{
    int x;
    asm volatile("{ .reg .pred p; .reg .b32 r;\n"
                 "setp.lt.u32 p, %1, 32;\n" MENDED("mov.b32 r, 0;\n") "@p mov.b32 r, 7;\n"
                 "mov.b32 %0, r; }"
                 : "=r"(x)
                 : "r"(threadIdx.x));
    if (x == 7)                                         // init x
        out[threadIdx.x] = 1;
}

TEST(register_by_branch)
{
    Array out(threads);
    by_branch<<<1, threads>>>(out);
    done();
}

// What a comparison finds does not depend on bits that are missing, where others decide, and a product's low bits are there.
__global__ void certain(const unsigned char *in, int *out)
{
    int t = threadIdx.x;
    unsigned x = in[t] | 0x100, y = in[t] * 256;
    if (x < 0x100) out[t] = 1;
    if (x == 0x80) out[t] = 2;
    if ((y & 0xff) != 0) out[t] = 3;
    if (x < EITHER(0x180, 0x200))                       // init x
        out[t] = 4;
}

TEST(certain_whatever_is_missing)
{
    Raw<unsigned char> in(threads);
    Array out(threads);
    certain<<<1, threads>>>(in, out);
    done();
}

// A vote that one thread decides, and one that nobody does.
__global__ void vote(const int *in, int *out)
{
    int t = threadIdx.x;
    if (__any_sync(~0u, t % 32 == 3 || in[t] > 5)) out[t] = 1;
    if (__all_sync(~0u, t % 32 != 3 && in[t] > 5)) out[t] = 2;
    if (__any_sync(~0u, (in[t] & EITHER(1, 0)) != 0))   // init open
        out[t] = 3;
}

TEST(votes)
{
    Raw in(threads);
    Array out(threads);
    vote<<<1, threads>>>(in, out);
    done();
}

// Reductions of a warp: bits that are there may decide, and a sum's low bits are there.
__global__ void reductions(const unsigned *in, int *out)
{
    unsigned t = threadIdx.x;
    if (__reduce_and_sync(~0u, t % 32 == 3 ? 0xf0 : in[t]) & 0xf) out[t] = 1;
    if (~__reduce_or_sync(~0u, t % 32 == 3 ? 0xf0 : in[t]) & 0xf0) out[t] = 2;
    if (__reduce_add_sync(~0u, in[t] * 256) & 0xff) out[t] = 3;
    if (__reduce_xor_sync(~0u, in[t] & ~7u) & EITHER(8, 7)) // init bit
        out[t] = 4;
}

TEST(reductions)
{
    Raw<unsigned> in(threads);
    Array out(threads);
    reductions<<<1, threads>>>(in, out);
    done();
}

// The largest of a warp's values.
__global__ void largest(const int *in, int *out)
{
    if (__reduce_max_sync(~0u, in[threadIdx.x]) > 5)    // init largest
        *out = 1;
}

TEST(largest_of_a_warp)
{
    Raw in(threads);
    Array out(1);
    CUDA(cudaMemset(in, 0, EITHER(threads - 1, threads) * sizeof(int)));
    largest<<<1, threads>>>(in, out);
    done();
}

// Threads with the same value.
__global__ void same(const int *in, int *out)
{
    if (__match_any_sync(~0u, in[threadIdx.x]) != ~0u)  // init same
        *out = 1;
}

TEST(equal_values_of_a_warp)
{
    Raw in(threads);
    Array out(1);
    CUDA(cudaMemset(in, 0, EITHER(threads - 1, threads) * sizeof(int)));
    same<<<1, threads>>>(in, out);
    done();
}

__global__ void all_same(const long long *in, int *out)
{
    int are_same;
    __match_all_sync(~0u, in[threadIdx.x], &are_same);
    if (are_same)                                       // init equal
        *out = 1;
}

TEST(one_value_of_a_warp)
{
    Raw<long long> in(threads);
    Array out(1);
    CUDA(cudaMemset(in, 0, EITHER(threads - 1, threads) * sizeof(long long)));
    all_same<<<1, threads>>>(in, out);
    done();
}

// Bits that are there tell threads apart, whatever the rest of their values is: here the lowest five, or all but one of these.
__global__ void apart(const unsigned *in, int *out)
{
    unsigned t = threadIdx.x, lane = t % 32;
    unsigned own = __match_any_sync(~0u, in[t] & ~31u | EITHER(lane & ~1u, lane));
    if (own >> lane & 1) out[t] = 1;
    if (own >> (lane ^ 2) & 1) out[t] = 2;
    if (own != 1u << lane)                              // init neighbour
        out[t] = 3;
}

TEST(values_told_apart_by_some_bits)
{
    Raw<unsigned> in(threads);
    Array out(threads);
    apart<<<1, threads>>>(in, out);
    done();
}

// Of 64 bits the upper half is there; both threads of a pair, or only one, lack the lower one.
__global__ void halves(const unsigned *in, int *out)
{
    unsigned t = threadIdx.x, lane = t % 32;
    unsigned long long value = (unsigned long long)(lane / EITHER(2, 1)) << 32 | (lane & 1 ? in[t] : 5);
    if (__match_any_sync(~0u, value) != 1u << lane)     // init half
        out[t] = 1;
}

TEST(wide_values_told_apart_by_some_bits)
{
    Raw<unsigned> in(threads);
    Array out(threads);
    halves<<<1, threads>>>(in, out);
    done();
}

// Two threads are enough for a warp not to be all the same.
__global__ void two_differ(const long long *in, int *out)
{
    int t = threadIdx.x, are_same;
    long long value = in[t] & ~1LL | EITHER(1, t % 32 == 7);
    unsigned mask = __match_all_sync(~0u, value, &are_same);
    if (are_same)                                       // init predicate
        out[t] = 1;
    if (mask)                                           // init mask
        out[t] = 2;
}

TEST(two_threads_that_differ)
{
    Raw<long long> in(threads);
    Array out(threads);
    two_differ<<<1, threads>>>(in, out);
    done();
}

// Threads that compare among themselves: only what these lack counts, and who is not among them is in no mask. One alone has its own
// value, whatever that is.
__global__ void among(const int *in, int *out)
{
    int t = threadIdx.x, lane = t % 32, are_same;
    unsigned half = lane < 16 ? 0xffff : 0xffff0000;
    unsigned same = __match_any_sync(half, in[t]), all = __match_all_sync(half, in[t], &are_same);
    if ((same | all) & ~half) out[t] = 1;
    if (lane < 16) {
        if (same != half || !are_same) out[t] = 2;
    } else {
        if (all == half)                                // init half
            out[t] = 3;
    }
    __match_all_sync(1u << lane, in[t], &are_same);
    if (!are_same) out[t] = 4;
    if (__match_any_sync(1u << lane, in[t]) != 1u << lane) out[t] = 5;
}

TEST(values_of_half_a_warp)
{
    Raw in(32);
    Array out(32);
    CUDA(cudaMemset(in, 0, EITHER(16, 32) * sizeof(int)));
    among<<<1, 32>>>(in, out);
    done();
}
