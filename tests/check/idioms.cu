// What is right, or is done everywhere: nothing may be reported.
#include "check.h"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

__global__ void block_sums(const int *in, int *out)
{
    __shared__ int partial[256];
    int t = threadIdx.x;
    partial[t] = in[blockIdx.x * 256 + t];
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (t < half) partial[t] += partial[t + half];
    }
    if (t == 0) atomicAdd(out, partial[0]);
}

TEST(block_sums)
{
    Array in(2048), out(1);
    block_sums<<<8, 256>>>(in.number(), out);
    expect(out, [](int) { return 2048 + 3 * 2047 * 1024; });
}

// A product of matrices by tiles.
const int side = 32, tile = 16;

__global__ void product(const float *a, const float *b, float *c)
{
    __shared__ float as[tile][tile], bs[tile][tile];
    int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * tile + x, row = blockIdx.y * tile + y;
    float sum = 0;
    for (int k = 0; k < side; k += tile) {
        as[y][x] = a[row * side + k + x];
        bs[y][x] = b[(k + y) * side + column];
        __syncthreads();
        for (int i = 0; i < tile; i++) sum += as[y][i] * bs[i][x];
        __syncthreads();
    }
    c[row * side + column] = sum;
}

TEST(product)
{
    Array<float> a(side * side), b(side * side), c(side * side);
    for (int i = 0; i < side * side; i++) {
        a[i] = i % 7;
        b[i] = i % 5;
    }
    product<<<dim3(side / tile, side / tile), dim3(tile, tile)>>>(a, b, c);
    expect(c, [&](int i) {
        float sum = 0;
        for (int k = 0; k < side; k++) sum += a[i / side * side + k] * b[k * side + i % side];
        return sum;
    });
}

__global__ void transpose(const int *in, int *out)
{
    __shared__ int part[32][33];
    for (int y = threadIdx.y; y < 32; y += blockDim.y)
        part[y][threadIdx.x] = in[(blockIdx.y * 32 + y) * 64 + blockIdx.x * 32 + threadIdx.x];
    __syncthreads();
    for (int y = threadIdx.y; y < 32; y += blockDim.y)
        out[(blockIdx.x * 32 + y) * 64 + blockIdx.y * 32 + threadIdx.x] = part[threadIdx.x][y];
}

TEST(transpose)
{
    Array in(64 * 64), out(64 * 64);
    transpose<<<dim3(2, 2), dim3(32, 8)>>>(in.number(), out);
    expect(out, [&](int i) { return in[i % 64 * 64 + i / 64]; });
}

__device__ int sum_of_warp(int value)
{
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffff, value, distance);
    return value;
}

__global__ void shuffled_sums(const int *in, int *out)
{
    __shared__ int warps[32];
    int t = threadIdx.x;
    int sum = sum_of_warp(in[blockIdx.x * blockDim.x + t]);
    if (t % 32 == 0) warps[t / 32] = sum;
    __syncthreads();
    if (t < 32) {
        sum = sum_of_warp(t < blockDim.x / 32 ? warps[t] : 0);
        if (t == 0) out[blockIdx.x] = sum;
    }
}

TEST(shuffled_sums)
{
    Array in(1024), out(4);
    shuffled_sums<<<4, 256>>>(in.number(), out);
    expect(out, [&](int b) {
        int sum = 0;
        for (int i = 0; i < 256; i++) sum += in[b * 256 + i];
        return sum;
    });
}

// As it was done before there was __syncwarp(): whether the result is right is left to the lanes' going in step, but volatile
// accesses are strong, and do not race.
__global__ void volatile_tree(const int *in, int *out)
{
    __shared__ volatile int partial[64];
    int t = threadIdx.x;
    partial[t] = in[t];
    __syncthreads();
    if (t < 32) {
        for (int half = 32; half > 0; half /= 2) partial[t] = partial[t] + partial[t + half];
        if (t == 0) *out = partial[0];
    }
}

TEST(volatile_tree)
{
    Array in(64), out(1);
    volatile_tree<<<1, 64>>>(in.number(), out);
    CUDA(cudaDeviceSynchronize());
}

// Tiles of a block that meet by themselves.
__global__ void tiles(const int *in, int *out)
{
    __shared__ int shared[128];
    int t = threadIdx.x;
    auto four = cg::tiled_partition<4>(cg::this_thread_block());
    auto half = cg::tiled_partition<16>(cg::this_thread_block());
    shared[t] = in[t];
    four.sync();
    int sum = shared[t ^ 3];
    four.sync();
    shared[t] = sum;
    half.sync();
    sum += shared[t / 16 * 16 + 15 - t % 16];
    sum += cg::reduce(half, t, cg::plus<int>());
    sum += cg::inclusive_scan(four, 1);
    out[t] = sum;
}

TEST(tiles)
{
    Array in(128), out(128);
    tiles<<<1, 128>>>(in.number(), out);
    expect(out, [&](int i) {
        int first = i / 16 * 16, mirrored = first + 15 - i % 16;
        return in[i ^ 3] + in[mirrored ^ 3] + 16 * first + 120 + i % 4 + 1;
    });
}

// A tile of two warps meets by a word that CUDA keeps for it. In such words it also leaves sums, each of them by all lanes of a warp.
__global__ void wide_tiles(const int *in, int *out)
{
    __shared__ cg::block_tile_memory<256> memory;
    __shared__ int shared[256];
    int t = threadIdx.x;
    auto tile = cg::tiled_partition<64>(cg::this_thread_block(memory));
    shared[t] = in[t];
    tile.sync();
    int sum = shared[t / 64 * 64 + 63 - t % 64];
    tile.sync();
    shared[t] = sum;
    sum += EITHER(cg::reduce(tile, t, cg::plus<int>()), t / 64 * 64 * 64 + 63 * 32);  // benign sum: write, sum: write
    tile.sync();
    out[t] = sum + shared[t ^ 32];
}

TEST(wide_tiles)
{
    Array in(256), out(256);
    wide_tiles<<<1, 256>>>(in.number(), out);
    expect(out, [&](int i) {
        int first = i / 64 * 64;
        return in[first + 63 - i % 64] + 64 * first + 63 * 32 + in[first + 63 - (i ^ 32) % 64];
    });
}

// Barriers of a block that are no __syncthreads().
__global__ void other_barriers(int *out)
{
    __shared__ int shared[128];
    int t = threadIdx.x;
    auto block = cg::this_thread_block();
    shared[t] = t;
    auto token = block.barrier_arrive();
    block.barrier_wait(std::move(token));
    int sum = shared[t ^ 32] + __syncthreads_count(t % 4 == 0);
    shared[t] = sum;
    sum += __syncthreads_or(t == 5) != 0;
    out[t] = sum + shared[t ^ 64];
}

TEST(other_barriers)
{
    Array out(128);
    other_barriers<<<1, 128>>>(out);
    expect(out, [](int i) { return (i ^ 32) + 32 + 1 + (i ^ 96) + 32; });
}

// Two blocks keep each other out by a flag of each, and a word that says whose turn it is (Peterson's algorithm).
__global__ void taking_turns(volatile int *flags, volatile int *turn, int *sum)
{
    int own = blockIdx.x, other = 1 - own;
    for (int k = 0; k < 5; k++) {
        flags[own] = 1;
        *turn = other;
        __threadfence();
        while (flags[other] && *turn == other) {}
        __threadfence();
        *sum += 1;
        __threadfence();
        flags[own] = 0;
    }
}

TEST(taking_turns)
{
    Array flags(2), turn(1), sum(1);
    taking_turns<<<2, 1>>>(flags, turn, sum);
    expect(sum, [](int) { return 10; });
}

// Lanes that are at one place by chance count as one.
__global__ void coalesced(const int *in, int *count, int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (in[i] % 2) {
        auto group = cg::coalesced_threads();
        int first = 0;
        if (group.thread_rank() == 0) first = atomicAdd(count, group.size());
        out[group.shfl(first, 0) + group.thread_rank()] = in[i];
    }
}

TEST(coalesced)
{
    Array in(512), count(1), out(512);
    coalesced<<<4, 128>>>(in.number(), count, out);
    expect(count, [](int) { return 256; });
}

// A scan in one pass: each block waits for what the one before it has found. Blocks are numbered as they come.
__global__ void chained_scan(const int *in, int *tickets, int *sums, volatile int *flags, int *out)
{
    __shared__ int number, before;
    int t = threadIdx.x;
    if (t == 0) number = atomicAdd(tickets, 1);
    __syncthreads();
    int i = number * 32 + t, own = in[i];
    for (int distance = 1; distance < 32; distance *= 2) {
        int left = __shfl_up_sync(0xffffffff, own, distance);
        if (t >= distance) own += left;
    }
    if (t == 31) {
        before = 0;
        if (number > 0) {
            while (flags[number - 1] == 0) {}
            __threadfence();
            before = sums[number - 1];
        }
        sums[number] = before + own;
        __threadfence();
        flags[number] = 1;
    }
    __syncthreads();
    out[i] = before + own;
}

TEST(chained_scan)
{
    const int blocks = 64;
    Array in(blocks * 32), tickets(1), sums(blocks), flags(blocks), out(blocks * 32);
    chained_scan<<<blocks, 32>>>(in.number(), tickets, sums, flags, out);
    expect(out, [](int i) { return i + 1 + 3 * i * (i + 1) / 2; });
}

// The same with a look further back: a flag says whether there is a block's own sum, or already that of all before it. Flag and
// sum are one word of 8 bytes, so that no fence is needed.
__global__ void look_back(const int *in, int *tickets, unsigned long long *states, int *out)
{
    __shared__ int number, before;
    int t = threadIdx.x;
    if (t == 0) number = atomicAdd(tickets, 1);
    __syncthreads();
    int i = number * 32 + t, own = in[i];
    for (int distance = 1; distance < 32; distance *= 2) {
        int left = __shfl_up_sync(0xffffffff, own, distance);
        if (t >= distance) own += left;
    }
    const unsigned long long partial = 1ull << 32, inclusive = 2ull << 32;
    if (t == 31) {
        atomicExch(&states[number], (number ? partial : inclusive) | unsigned(own));
        int sum = 0;
        for (int other = number - 1; other >= 0;) {
            unsigned long long state = *(volatile unsigned long long *)&states[other];
            if (state == 0) continue;
            sum += int(unsigned(state));
            if (state & inclusive) break;
            other--;
        }
        before = sum;
        if (number) atomicExch(&states[number], inclusive | unsigned(sum + own));
    }
    __syncthreads();
    out[i] = before + own;
}

TEST(look_back)
{
    const int blocks = 64;
    Array in(blocks * 32), tickets(1), out(blocks * 32);
    Array<unsigned long long> states(blocks);
    look_back<<<blocks, 32>>>(in.number(), tickets, states, out);
    expect(out, [](int i) { return i + 1 + 3 * i * (i + 1) / 2; });
}

// First in shared memory, then in global.
__global__ void histogram(const int *in, int *bins)
{
    __shared__ int own[16];
    if (threadIdx.x < 16) own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 2048; i += gridDim.x * blockDim.x) atomicAdd(&own[in[i] % 16], 1);
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

TEST(histogram)
{
    Array in(2048), bins(16);
    histogram<<<4, 128>>>(in.number(), bins);
    expect(bins, [](int) { return 128; });
}

// A warp that fills two buffers and two that use them, by barriers with numbers: 1 and 2 for full, 3 and 4 for empty.
#define BARRIER(what, number) asm volatile("barrier." what " %0, 96;" ::"r"(number) : "memory")

__global__ void full_and_empty(const int *in, int *out)
{
    __shared__ int buffers[2][32];
    int t = threadIdx.x, sum = 0;
    const int tiles = 6;
    for (int k = 0; k < tiles; k++) {
        int b = k % 2;
        if (t < 32) {
            if (k >= 2) BARRIER("sync", 3 + b);
            buffers[b][t] = in[k * 32 + t];
            BARRIER("arrive", 1 + b);
        } else {
            BARRIER("sync", 1 + b);
            sum += buffers[b][31 - t % 32];
            if (k < tiles - 2) BARRIER("arrive", 3 + b);
        }
    }
    if (t >= 32) out[t - 32] = sum;
}

TEST(full_and_empty)
{
    Array in(6 * 32), out(64);
    full_and_empty<<<1, 96>>>(in.number(), out);
    expect(out, [&](int i) {
        int sum = 0;
        for (int k = 0; k < 6; k++) sum += in[k * 32 + 31 - i % 32];
        return sum;
    });
}

// All store the same: by the letter a race, in practice none.
__global__ void same_value(int *out)
{
    *out = 7;                              // benign out: write, out: write
}

TEST(same_value)
{
    Array out(1);
    BROKEN(same_value<<<4, 64>>>(out));
    MENDED(same_value<<<1, 1>>>(out));
    expect(out, [](int) { return 7; });
}

// Anybody may say that there was a change.
__global__ void changed(int *labels, const int *neighbours, bool *again)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (neighbours[i] < labels[i]) {
        labels[i] = neighbours[i];
        EITHER(*again, *(volatile bool *)again) = true;  // benign again: write, again: write
    }
}

TEST(changed)
{
    Array labels(256), neighbours(256);
    Array<bool> again(1);
    changed<<<4, 64>>>(labels.number(), neighbours, again);
    expect(again, [](int) { return true; });
}

// Different values are another matter, also where they are stored by one instruction.
__global__ void other_value(int *out)
{
    *out = EITHER(threadIdx.x, 7);         // race out: write, out: write
}

TEST(other_value)
{
    Array out(1);
    BROKEN(other_value<<<1, 64>>>(out));
    MENDED(other_value<<<1, 1>>>(out));
    expect(out, [](int) { return 7; });
}

// Who comes first initialises, and the others wait for him.
__global__ void once(int *state, int *table, int *out)
{
    if (threadIdx.x == 0) {
        if (atomicCAS(state, 0, 1) == 0) {
            for (int i = 0; i < 8; i++) table[i] = i * i;
            __threadfence();
            atomicExch(state, 2);
        } else {
            while (atomicAdd(state, 0) != 2) {}
        }
        __threadfence();
    }
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = table[threadIdx.x % 8];
}

TEST(once)
{
    Array state(1), table(8), out(256);
    once<<<8, 32>>>(state, table, out);
    expect(out, [](int i) { return i % 8 * (i % 8); });
}

// A list whose nodes are pushed by compare-and-swap, and taken off behind.
struct Node {
    int value, next;
};

__global__ void push_and_pop(Node *nodes, int *head, int *popped, int *sum)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x + 1, old, seen = *(volatile int *)head;
    nodes[i].value = i;
    do {
        old = seen;
        nodes[i].next = old;
        __threadfence();
        seen = atomicCAS(head, old, i);
    } while (seen != old);
    // All of them at once, by whoever comes here.
    for (int at = atomicExch(head, 0); at; at = nodes[at].next) {
        __threadfence();
        atomicAdd(sum, nodes[at].value);
        atomicAdd(popped, 1);
    }
}

TEST(push_and_pop)
{
    Array<Node> nodes(129);
    Array head(1), popped(1), sum(1);
    push_and_pop<<<4, 32>>>(nodes, head, popped, sum);
    expect(popped, [](int) { return 128; });
    expect(sum, [](int) { return 128 * 129 / 2; });
}

// Launches of one stream follow each other.
__global__ void add_to_next(const int *in, int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[(i + 1) % 256] + 1;
}

TEST(launches_in_order)
{
    Array a(256), b(256);
    a.number();
    for (int k = 0; k < 4; k++) {
        add_to_next<<<4, 64>>>(a, b);
        add_to_next<<<4, 64>>>(b, a);
    }
    expect(a, [](int i) { return (i + 8) % 256 * 3 + 1 + 8; });
}

// Memory of the kernel's heap, which others get after it was freed.
__global__ void heap(int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 4; k++) {
        int *own = (int *)malloc(16);
        own[0] = i;
        own[3] = k;
        out[i] += own[0] + own[3];
        free(own);
    }
}

TEST(heap)
{
    Array out(128);
    heap<<<4, 32>>>(out);
    expect(out, [](int i) { return 4 * i + 6; });
}
