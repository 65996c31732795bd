// Global memory, which blocks share without being in any order.
#include "check.h"

// All in one launch, a block reads what another has not written yet; the end of a launch is a barrier for all.
__global__ void one_launch_for_two(int *cells, int *out, bool writes, bool reads)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (writes) cells[i] = i + 1;          // race cells: write
    if (reads) out[i] = cells[255 - i];    // race cells: read
}

TEST(one_launch_for_two)
{
    Array cells(256), out(256);
    BROKEN(one_launch_for_two<<<4, 64>>>(cells, out, true, true));
    MENDED(one_launch_for_two<<<4, 64>>>(cells, out, true, false));
    MENDED(one_launch_for_two<<<4, 64>>>(cells, out, false, true));
    expect(out, [](int i) { return 256 - i; });
}

// The first block sets to zero what others count in already.
__global__ void set_while_counted(int *count)
{
    BROKEN(if (blockIdx.x == 0 && threadIdx.x == 0) *count = 0);  // race count: write
    __syncthreads();
    atomicAdd(count, 1);                                          // race count: atomic
}

TEST(set_while_counted)
{
    Array count(1);
    set_while_counted<<<4, 64>>>(count);
    expect(count, [](int) { return 256; });
}

// What others add to is not read by an atomic operation, nor as volatile.
__global__ void read_while_counted(int *count, int *out)
{
    atomicAdd(count, 1);                                              // race count: atomic
    out[blockIdx.x] = EITHER(*count, *(volatile int *)count) > 0;     // race count: read
}

TEST(read_while_counted)
{
    Array count(1), out(8);
    read_while_counted<<<8, 1>>>(count, out);
    expect(out, [](int) { return 1; });
}

// A plain read is no less one because an atomic operation of the same thread comes behind it.
__global__ void read_and_count(int *count, int *out)
{
    if (blockIdx.x == 0) *out = EITHER(*count, *(volatile int *)count);  // race count: read
    atomicAdd(count, 1);                                                 // race count: atomic
}

TEST(read_and_count)
{
    Array count(1), out(1);
    read_and_count<<<2, 1>>>(count, out);
    expect(count, [](int) { return 2; });
}

// Nor because a strong one comes.
__global__ void read_twice(int *count, int *out)
{
    if (blockIdx.x == 0) {
        out[0] = EITHER(*count, *(volatile int *)count);                 // race count: read
        out[1] = *(volatile int *)count;
    } else {
        atomicAdd(count, 1);                                             // race count: atomic
    }
}

TEST(read_twice)
{
    Array count(1), out(2);
    read_twice<<<2, 1>>>(count, out);
    expect(count, [](int) { return 1; });
}

// Each cell becomes the sum of its neighbours, in place.
__global__ void in_place(int *cells, int *next)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < 255) EITHER(cells, next)[i] = cells[i - 1] + cells[i + 1];  // race cells: write, cells: read
}

TEST(in_place)
{
    Array cells(256), next(256);
    in_place<<<4, 64>>>(cells.number(), next);
    expect(next, [&](int i) { return i == 0 || i == 255 ? 0 : cells[i - 1] + cells[i + 1]; });
}

// Additions that are no atomic operations.
__global__ void histogram(const int *in, int *bins)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    BROKEN(bins[in[i] % 4] += i);           // race both: write, both: read, two: write, two: write
    MENDED(atomicAdd(&bins[in[i] % 4], i));
}

TEST(histogram)
{
    Array in(256), bins(4);
    histogram<<<4, 64>>>(in.number(), bins);
    expect(bins, [&](int bin) {
        int sum = 0;
        for (int i = 0; i < in.count(); i++) sum += in[i] % 4 == bin ? i : 0;
        return sum;
    });
}

// The last to write decides.
__global__ void last_one_wins(int *winner)
{
    BROKEN(*winner = blockIdx.x + 1);       // race winner: write, winner: write
    MENDED(atomicMax(winner, blockIdx.x + 1));
}

TEST(last_one_wins)
{
    Array winner(1);
    last_one_wins<<<4, 1>>>(winner);
    expect(winner, [](int) { return 4; });
}

// A barrier of the block is none between blocks.
__global__ void barrier_of_the_block(int *cells, int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    cells[i] = i + 1;                                                 // race cells: write
    __syncthreads();
    out[i] = cells[EITHER(i ^ 64, i ^ 32)];                           // race cells: read
}

TEST(barrier_of_the_block)
{
    Array cells(256), out(256);
    barrier_of_the_block<<<4, 64>>>(cells, out);
    expect(out, [](int i) { return (i ^ 32) + 1; });
}

// Old values from a compare-and-swap loop; a plain store gets in between.
__global__ void store_into_a_loop(float *largest, float value)
{
    if (blockIdx.x == 0) {
        BROKEN(*largest = value);          // race largest: write
        return;
    }
    int *word = (int *)largest;
    int old = __float_as_int(0), seen;
    while ((seen = atomicCAS(word, old, __float_as_int(__int_as_float(old) + 1))) != old) old = seen;  // race largest: atomic
}

TEST(store_into_a_loop)
{
    Array<float> largest(1);
    store_into_a_loop<<<8, 1>>>(largest, 100);
    expect(largest, [](int) { return 7; });
}
