// Which bytes two accesses have in common: races are told by them, and not by words.
#include "check.h"

#include <cuda_fp16.h>

const int threads = 128;

// Each its own byte or halfword: four, or two, threads to a word.
__global__ void own_bytes(unsigned char *bytes, unsigned short *halves, int *out)
{
    __shared__ unsigned char own[threads];
    int i = blockIdx.x * threads + threadIdx.x;
    bytes[i] = i;
    halves[i] = i;
    bytes[i] += 1;
    own[threadIdx.x] = bytes[i];
    out[i] = own[threadIdx.x] + halves[i];
}

TEST(own_bytes)
{
    Array<unsigned char> bytes(2 * threads);
    Array<unsigned short> halves(2 * threads);
    Array out(2 * threads);
    own_bytes<<<2, threads>>>(bytes, halves, out);
    expect(out, [](int i) { return (i + 1) % 256 + i; });
}

// A thread's neighbours in the word are other warps'; so is one byte too far.
__global__ void next_byte(unsigned char *out)
{
    __shared__ unsigned char bytes[threads + 1];
    int t = threadIdx.x, warp = t / 32, place = t % 32 * 4 + warp;
    bytes[place] = t;                                             // race bytes: write
    BROKEN(out[place] = bytes[place + (t % 32 == 7 && warp == 2)]);  // race bytes: read
    MENDED(out[place] = bytes[place]);
}

TEST(next_byte)
{
    Array<unsigned char> out(threads);
    next_byte<<<1, threads>>>(out);
    expect(out, [](int i) { return i / 4 + i % 4 * 32; });
}

// Fields of bits are no bytes: who writes one writes the word that they lie in.
struct Two {
    BROKEN(unsigned low : 12, high : 20);
    MENDED(unsigned short low, high);
};

__global__ void fields_of_bits(int *out)
{
    __shared__ Two two;
    int t = threadIdx.x;
    if (t == 0) two = {1, 2};
    __syncthreads();
    if (t == 0) two.low += 5;              // race word: write
    if (t == 32) out[0] = two.high;        // race word: read
    __syncthreads();
    if (t == 0) out[1] = two.low;
}

TEST(fields_of_bits)
{
    Array out(2);
    fields_of_bits<<<1, 64>>>(out);
    expect(out, [](int i) { return i == 0 ? 2 : 6; });
}

// A store of 8 bytes and a read of their second half, or of the 4 bytes behind them.
__global__ void half_of_a_long(long long *longs, int *out)
{
    if (blockIdx.x == 0) longs[1] = 0x500000006;             // race longs: write
    else *out = ((int *)longs)[EITHER(3, 4)];                // race longs: read
}

TEST(half_of_a_long)
{
    Array<long long> longs(4);
    Array out(1);
    half_of_a_long<<<2, 1>>>(longs, out);
    expect(out, [](int) { return 0; });
}

// Of a vector's 16 bytes one word is written by another.
__global__ void word_of_a_vector(int4 *vectors, int *out)
{
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        int4 v = vectors[t];                                 // race vectors: read
        out[t] = v.x + v.y + v.z + v.w;
    } else if (t == 0) {
        ((int *)vectors)[EITHER(5, 4 * 32)] = 1;             // race vectors: write
    }
}

TEST(word_of_a_vector)
{
    Array words(4 * 33), out(32);
    word_of_a_vector<<<2, 32>>>((int4 *)(int *)words, out);
    expect(out, [](int) { return 0; });
}

// Vectors that lie over one another by half, each by another thread.
__global__ void vectors_by_halves(int *out)
{
    __shared__ alignas(16) int words[4 * threads + 4];
    int t = threadIdx.x;
    *(int4 *)&words[4 * t] = {t, t, t, t};                                       // race words: write
    MENDED(__syncthreads());
    int2 v = *(int2 *)&words[4 * ((t + 32) % threads) + 2];                      // race words: read
    out[t] = v.x + v.y;
}

TEST(vectors_by_halves)
{
    Array out(threads);
    vectors_by_halves<<<1, threads>>>(out);
    expect(out, [](int i) { return (i + 32) % threads * 2; });
}

// Vectors side by side have no byte in common.
__global__ void vectors_side_by_side(int4 *vectors, int2 *pairs, int *out)
{
    int i = blockIdx.x * threads + threadIdx.x;
    vectors[i] = {i, i + 1, i + 2, i + 3};
    pairs[i] = {i, 7};
    int4 v = vectors[i];
    out[i] = v.x + v.w + pairs[i].y;
}

TEST(vectors_side_by_side)
{
    Array vectors(8 * threads), pairs(4 * threads), out(2 * threads);
    vectors_side_by_side<<<2, threads>>>((int4 *)(int *)vectors, (int2 *)(int *)pairs, out);
    expect(out, [](int i) { return 2 * i + 10; });
}

// Atomic operations on the two halves of a word, by different threads.
__global__ void atomic_halves(__half *halves)
{
    atomicAdd(&halves[threadIdx.x % 2], __float2half(1));
}

TEST(atomic_halves)
{
    Array<__half> halves(2);
    atomic_halves<<<2, 32>>>(halves);
    CUDA(cudaDeviceSynchronize());
    MENDED(if (__half2float(halves[0]) != 32 || __half2float(halves[1]) != 32) exit(2));
}

// Strong accesses that lie over one another by half are not strong for each other.
__global__ void atomics_of_two_sizes(unsigned long long *counts)
{
    if (blockIdx.x == 0) {
        atomicAdd(counts, 1ull << 32);                                  // race counts: atomic
    } else {
        BROKEN(atomicAdd((unsigned *)counts, 1));                       // race counts: atomic
        MENDED(atomicAdd(counts, 1));
    }
}

TEST(atomics_of_two_sizes)
{
    Array<unsigned long long> counts(1);
    atomics_of_two_sizes<<<2, 1>>>(counts);
    expect(counts, [](int) { return (1ull << 32) + 1; });
}

// A flag and a value in 8 bytes, stored at once: read by halves it is a race, at once it is none.
__global__ void flag_and_value(volatile unsigned long long *both, int *out)
{
    if (blockIdx.x == 0) {
        *both = 42ull << 32 | 1;                                        // race both: write
    } else {
        unsigned long long seen;
        do seen = EITHER(*(volatile unsigned *)both, *both);            // race both: read
        while (!seen);
        *out = EITHER(0, seen >> 32);
    }
}

TEST(flag_and_value)
{
    Array<unsigned long long> both(1);
    Array out(1);
    flag_and_value<<<2, 1>>>(both, out);
    expect(out, [](int) { return 42; });
}

// The elements of a strong vector are strong accesses of their own.
__global__ void elements_of_a_vector(int *pair, int *out)
{
    if (blockIdx.x == 0) {
        asm volatile("st.relaxed.gpu.s32 [%0], 42;" ::"l"(pair) : "memory");
        asm volatile("st.relaxed.gpu.s32 [%0], 43;" ::"l"(pair + 1) : "memory");
    } else {
        int x = 0, y = 0;
        while (!x || !y) asm volatile("ld.relaxed.gpu.v2.s32 {%0, %1}, [%2];" : "=r"(x), "=r"(y) : "l"(pair) : "memory");
        out[0] = x;
        out[1] = y;
    }
}

TEST(elements_of_a_vector)
{
    Array pair(2), out(2);
    elements_of_a_vector<<<2, 1>>>(pair, out);
    expect(out, [](int i) { return 42 + i; });
}
