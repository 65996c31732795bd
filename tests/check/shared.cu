// Shared memory of a block: one __syncthreads() too few.
#include "check.h"

const int threads = 128;

// Another warp's element is read, which may not have written yet.
__global__ void read_after_write(int *out)
{
    __shared__ int tile[threads];
    int t = threadIdx.x;
    tile[t] = t * t;                       // race tile: write
    MENDED(__syncthreads());
    out[t] = tile[t ^ 32];                 // race tile: read
}

TEST(read_after_write)
{
    Array out(threads);
    read_after_write<<<1, threads>>>(out);
    expect(out, [](int i) { return (i ^ 32) * (i ^ 32); });
}

// The next tile comes while others still read this one.
__global__ void write_after_read(const int *in, int *out)
{
    __shared__ int tile[threads];
    int t = threadIdx.x, sum = 0;
    for (int first = 0; first < 4 * threads; first += threads) {
        tile[t] = in[first + t];           // race tile: write
        __syncthreads();
        sum += tile[t ^ 32];               // race tile: read
        MENDED(__syncthreads());
    }
    out[t] = sum;
}

TEST(write_after_read)
{
    Array in(4 * threads), out(threads);
    write_after_read<<<1, threads>>>(in.number(), out);
    expect(out, [&](int i) {
        i ^= 32;
        return in[i] + in[threads + i] + in[2 * threads + i] + in[3 * threads + i];
    });
}

// Whose value stays is open.
__global__ void write_after_write(int *out)
{
    __shared__ int tile[threads];
    int t = threadIdx.x;
    tile[t] = 0;                           // race tile: write
    MENDED(__syncthreads());
    tile[t ^ 32] = t + 1;                  // race tile: write
    __syncthreads();
    out[t] = tile[t];
}

TEST(write_after_write)
{
    Array out(threads);
    write_after_write<<<1, threads>>>(out);
    expect(out, [](int i) { return (i ^ 32) + 1; });
}

// The levels of a tree of sums follow each other without a barrier.
__global__ void tree(const int *in, int *out)
{
    __shared__ int partial[threads];
    int t = threadIdx.x;
    partial[t] = in[t];
    __syncthreads();
    for (int half = threads / 2; half > 0; half /= 2) {
        if (t < half) partial[t] += partial[t + half];  // race partial: write, partial: read
        MENDED(__syncthreads());
    }
    if (t == 0) *out = partial[0];
}

TEST(tree)
{
    Array in(threads), out(1);
    tree<<<1, threads>>>(in.number(), out);
    expect(out, [](int) { return threads + 3 * (threads - 1) * threads / 2; });
}

// A scan reads what its neighbours overwrite in the same round.
__global__ void scan(const int *in, int *out)
{
    __shared__ int sums[threads];
    int t = threadIdx.x;
    sums[t] = in[t];
    __syncthreads();
    for (int distance = 1; distance < threads; distance *= 2) {
        int left = t >= distance ? sums[t - distance] : 0;  // race sums: read
        MENDED(__syncthreads());
        sums[t] += left;                                    // race sums: write
        __syncthreads();
    }
    out[t] = sums[t];
}

TEST(scan)
{
    Array in(threads), out(threads);
    scan<<<1, threads>>>(in.number(), out);
    expect(out, [](int i) { return i + 1 + 3 * i * (i + 1) / 2; });
}

// The barrier is for the first two warps, and they read what the third has written.
__global__ void barrier_of_some(int *out)
{
    const int who = EITHER(64, 96);
    __shared__ int tile[96];
    int t = threadIdx.x;
    tile[t] = t + 5;                       // race tile: write
    if (t < who) asm volatile("bar.sync 1, %0;" ::"n"(who) : "memory");
    if (t < 64) out[t] = tile[t + 32];     // race tile: read
}

TEST(barrier_of_some)
{
    Array out(64);
    barrier_of_some<<<1, 96>>>(out);
    expect(out, [](int i) { return i + 37; });
}

// A product of matrices by tiles, of which one is still used when the next comes.
const int side = 32, part = 16;

__global__ void product(const float *a, const float *b, float *c)
{
    __shared__ float as[part][part], bs[part][part];
    int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * part + x, row = blockIdx.y * part + y;
    float sum = 0;
    for (int k = 0; k < side; k += part) {
        as[y][x] = a[row * side + k + x];                                   // race as: write
        bs[y][x] = b[(k + y) * side + column];                              // race bs: write
        __syncthreads();
        for (int i = 0; i < part; i++) sum += as[y][i] * bs[i][x];          // race as: read, bs: read
        MENDED(__syncthreads());
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
    product<<<dim3(side / part, side / part), dim3(part, part)>>>(a, b, c);
    expect(c, [&](int i) {
        float sum = 0;
        for (int k = 0; k < side; k++) sum += a[i / side * side + k] * b[k * side + i % side];
        return sum;
    });
}

// Nothing lies between the last read of the table's first use and its second.
__global__ void used_again(const int *in, int *out)
{
    extern __shared__ int table[];
    int t = threadIdx.x;
    table[t] = in[t];
    __syncthreads();
    int sum = table[threads - 1 - t];      // race table: read
    MENDED(__syncthreads());
    if (t < 32) table[t] = sum;            // race table: write
    __syncthreads();
    out[t] = sum + table[t % 32];
}

TEST(used_again)
{
    Array in(threads), out(threads);
    used_again<<<1, threads, threads * sizeof(int)>>>(in.number(), out);
    expect(out, [&](int i) { return in[threads - 1 - i] + in[threads - 1 - i % 32]; });
}
