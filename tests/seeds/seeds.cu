// Programs whose result depends on the order of threads, and the same mended (`IS_MENDED`): `tests/check/check.h` has how they are
// made. `margay check --seeds` must find each of the former, and nothing in the latter.
#include "../check/check.h"

#include <cuda_pipeline.h>

const int threads = 128;

// One value of what a launch has left, where the environment asks for it.
void show(const Array<int> &out)
{
    CUDA(cudaDeviceSynchronize());
    if (const char *place = getenv("SHOW")) printf("shown 0x%08x\n", out[atoi(place)]);
}

// A tile is read before all have filled it.
__global__ void missing_barrier(int *out)
{
    __shared__ int tile[threads];
    int t = threadIdx.x;
    tile[t] = t + 1;
    MENDED(__syncthreads());
    out[t] = tile[t ^ 64];
}

TEST(missing_barrier)
{
    Array out(threads);
    missing_barrier<<<1, threads>>>(out);
    expect(out, [](int i) { return (i ^ 64) + 1; });
    show(out);
}

// The tile is overwritten while others still read it.
__global__ void missing_second_barrier(int *out)
{
    __shared__ int tile[threads];
    int t = threadIdx.x, sum = 0;
    for (int round = 0; round < 3; round++) {
        tile[t] = t * (round + 1);
        __syncthreads();
        sum += tile[t ^ 32];
        MENDED(__syncthreads());
    }
    out[t] = sum;
}

TEST(missing_second_barrier)
{
    Array out(threads);
    missing_second_barrier<<<1, threads>>>(out);
    expect(out, [](int i) { return 6 * (i ^ 32); });
    show(out);
}

// Lanes of one warp part, and are taken to be together again.
__global__ void missing_syncwarp(const int *in, int *out)
{
    __shared__ volatile int tile[32];
    int t = threadIdx.x, sum = 0;
    if (t % 2)
        for (int i = 0; i < t; i++) {
            sum += in[i];
            tile[t] = sum;
        }
    else
        tile[t] = t;
    MENDED(__syncwarp());
    out[t] = tile[t ^ 1];
}

TEST(missing_syncwarp)
{
    Array in(32), out(32);
    missing_syncwarp<<<1, 32>>>(in.number(), out);
    expect(out, [](int i) { return i % 2 ? i - 1 : (3 * i + 2) * (i + 1) / 2; });
    show(out);
}

// Two threads read the same count, and one addition is lost.
__global__ void plain_counter(volatile int *count)
{
    BROKEN(*count = *count + 1);
    MENDED(atomicAdd((int *)count, 1));
}

TEST(plain_counter)
{
    Array count(1);
    plain_counter<<<16, 64>>>(count);
    expect(count, [](int) { return 16 * 64; });
    show(count);
}

// The last block adds up what the others have written; it is the last only once all of its threads have written.
__device__ unsigned int ended;

__global__ void last_block(volatile int *partial, int *sum)
{
    __shared__ bool is_last;
    partial[blockIdx.x * blockDim.x + threadIdx.x] = 1;
    __threadfence();
    MENDED(__syncthreads());
    if (threadIdx.x == 0) is_last = atomicInc(&ended, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    if (is_last && threadIdx.x == 0) {
        int all = 0;
        for (int i = 0; i < gridDim.x * blockDim.x; i++) all += partial[i];
        *sum = all;
    }
}

TEST(last_block)
{
    Array partial(4 * 64), sum(1);
    last_block<<<4, 64>>>(partial, sum);
    expect(sum, [](int) { return 4 * 64; });
    show(sum);
}

// Who comes first takes the place that comes first. Mended, everybody has his own.
__global__ void order_of_arrival(int *next, int *out)
{
    // A barrier of a block that is one warp: where somebody looks on, as --seeds does, it is the same order as without.
    __syncthreads();
    int place = EITHER(atomicAdd(next, 1), blockIdx.x * blockDim.x + threadIdx.x);
    out[place] = blockIdx.x * blockDim.x + threadIdx.x;
}

TEST(order_of_arrival)
{
    Array next(1), out(256);
    order_of_arrival<<<8, 32>>>(next, out);
    expect(out, [](int i) { return i; });
    show(out);
}

// It waits for the other block for some time only.
__global__ void impatient_handshake(volatile int *flag, int *out)
{
    if (blockIdx.x == 1) {
        *flag = 1;
    } else {
        BROKEN(int tries = 20);
        MENDED(int tries = 0x7fffffff);
        while (*flag == 0 && --tries > 0) {}
        *out = *flag;
    }
}

TEST(impatient_handshake)
{
    Array x(2);
    impatient_handshake<<<2, 1>>>(x, x + 1);
    CUDA(cudaDeviceSynchronize());
    MENDED(if (x[1] != 1) exit(2));
    show(x);
}

// What is copied asynchronously is read before anybody has waited for it.
__global__ void copy_without_wait(const int *in, int *out)
{
    __shared__ int tile[threads];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&tile[t], &in[t], sizeof(int));
    __pipeline_commit();
    MENDED(__pipeline_wait_prior(0));
    out[t] = tile[t];
}

TEST(copy_without_wait)
{
    Array in(threads), out(threads);
    copy_without_wait<<<1, threads>>>(in.number(), out);
    expect(out, [](int i) { return i * 3 + 1; });
    show(out);
}

// A wait at an mbarrier may come back before the phase is over, and must be repeated.
__global__ void phase_too_early(int *out)
{
    __shared__ alignas(8) unsigned long long barrier;
    __shared__ int tile[threads];
    int t = threadIdx.x;
    unsigned where = (unsigned)__cvta_generic_to_shared(&barrier), over;
    if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(where), "r"(threads));
    __syncthreads();
    tile[t] = t + 1;
    asm volatile("{ .reg .b64 token; mbarrier.arrive.shared.b64 token, [%0]; }" ::"r"(where) : "memory");
    do {
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                     : "=r"(over)
                     : "r"(where)
                     : "memory");
    } while (EITHER(false, !over));
    out[t] = tile[t ^ 64];
}

TEST(phase_too_early)
{
    Array out(threads);
    phase_too_early<<<1, threads>>>(out);
    expect(out, [](int i) { return (i ^ 64) + 1; });
    show(out);
}

// Each term is a sum that rounds; mended, the terms are whole numbers.
__global__ void sum_of_floats(float *sum)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(sum, EITHER(1.0f / (i + 1), float(i)));
}

TEST(sum_of_floats)
{
    Array<float> sum(1);
    sum_of_floats<<<8, 32>>>(sum);
    expect(sum, [](int) { return 255 * 128; });
}

// A fault that needs an order: the pointer is there once block 0 has run.
__global__ void early_pointer(int *volatile *pointer, int *value, int *out)
{
    if (blockIdx.x == 0) *pointer = value;
    else {
        MENDED(while (*pointer == nullptr) {});
        *out = **pointer;
    }
}

TEST(early_pointer)
{
    int **pointer, *x;
    CUDA(cudaMalloc(&pointer, sizeof *pointer));
    CUDA(cudaMalloc(&x, 2 * sizeof *x));
    early_pointer<<<2, 1>>>(pointer, x, x + 1);
    cudaDeviceSynchronize();
}

__global__ void first_one(int *first) { atomicCAS(first, 0, EITHER(blockIdx.x + 1, 1)); }

TEST(prints_what_came_first)
{
    Array first(1);
    first_one<<<8, 32>>>(first);
    CUDA(cudaDeviceSynchronize());
    printf("first: %d\n", first[0]);
}

// The second launch starts with what the first has left, which depends on the order, too.
__global__ void take_places(int *next, int *out)
{
    int place = EITHER(atomicAdd(next, 1), blockIdx.x);
    out[place] = blockIdx.x + 1;
}

__global__ void add_places(const int *in, int *next, int *out)
{
    int place = EITHER(atomicAdd(next, 1), blockIdx.x);
    out[place] = in[place] * 100 + blockIdx.x + 1;
}

TEST(two_launches)
{
    Array next(2), in(8), out(8);
    take_places<<<8, 1>>>(next, in);
    add_places<<<8, 1>>>(in, next + 1, out);
    expect(out, [](int i) { return (i + 1) * 101; });
    show(out);
}

__global__ void allocates(int **out) { out[blockIdx.x] = (int *)malloc(4); }

TEST(allocates)
{
    int **out;
    CUDA(cudaMalloc(&out, 8 * sizeof *out));
    allocates<<<8, 1>>>(out);
    CUDA(cudaDeviceSynchronize());
}

__global__ void says() { printf("block %d\n", blockIdx.x); }

TEST(prints)
{
    says<<<4, 1>>>();
    CUDA(cudaDeviceSynchronize());
}
