// Calls through pointers to device functions: tables, symbols, pointers handed through memory, diverging targets.
#include "check.h"

typedef int (*Operation)(int, int);
__device__ __noinline__ int plus_(int a, int b) { return a + b; }
__device__ __noinline__ int minus_(int a, int b) { return a - b; }
__device__ __noinline__ int times_(int a, int b) { return a * b; }
__device__ __noinline__ int most_(int a, int b) { return a > b ? a : b; }

__device__ Operation operations[4] = {plus_, minus_, times_, most_};
__constant__ Operation chosen = times_;

struct Pair {
    double x;
    int y;
};
typedef Pair (*Maker)(Pair, float, char);
__device__ __noinline__ Pair make(Pair p, float f, char c) { return {p.x * f, p.y + c}; }
__device__ __noinline__ Pair swapped(Pair p, float f, char c) { return {(double)p.y + c, (int)(p.x * f)}; }
__device__ Maker makers[2] = {make, swapped};

__global__ void table(int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = operations[i & 3](i, 100 - i);
}
__global__ void by_value(Operation f, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = f(i, 3) + chosen(i, 2);
}
__global__ void fold(int *out, const int *program, int length)
{
    int i = threadIdx.x, value = i;
    for (int k = 0; k < length; k++) {
        // Some lanes skip a step, the others call different functions.
        if ((i + k) % 5 == 0) continue;
        value = operations[(program[k] + i) & 3](value, k);
    }
    out[i] = value;
}
__global__ void structs(Pair *out, int n)
{
    int i = threadIdx.x;
    if (i < n) out[i] = makers[i & 1](Pair{i * 0.5, i}, 4.0f, 'c');
}

static int apply(int which, int a, int b)
{
    switch (which) {
    case 0: return (int)((unsigned)a + b);
    case 1: return (int)((unsigned)a - b);
    case 2: return (int)((unsigned)a * b);
    default: return a > b ? a : b;
    }
}

int main()
{
    const int n = 500;
    int *out, *program;
    CUDA(cudaMallocManaged(&out, n * sizeof *out));
    CUDA(cudaMallocManaged(&program, 20 * sizeof *program));
    table<<<4, 128>>>(out, n);
    FINISHED();
    for (int i = 0; i < n; i++) EXPECT_EQ(out[i], apply(i & 3, i, 100 - i));

    Operation f[4];
    CUDA(cudaMemcpyFromSymbol(f, operations, sizeof f));
    for (int k = 0; k < 4; k++) {
        by_value<<<4, 128>>>(f[k], out, n);
        FINISHED();
        for (int i = 0; i < n; i++) EXPECT_EQ(out[i], apply(k, i, 3) + i * 2);
    }
    for (int k = 0; k < 20; k++) program[k] = k * k % 7;
    fold<<<1, 64>>>(out, program, 20);
    FINISHED();
    for (int i = 0; i < 64; i++) {
        int value = i;
        for (int k = 0; k < 20; k++)
            if ((i + k) % 5) value = apply((program[k] + i) & 3, value, k);
        EXPECT_EQ(out[i], value);
    }
    Pair *pairs;
    CUDA(cudaMallocManaged(&pairs, 64 * sizeof *pairs));
    structs<<<1, 64>>>(pairs, 64);
    FINISHED();
    for (int i = 0; i < 64; i++) {
        if (i & 1)
            EXPECT(pairs[i].x == i + 'c' && pairs[i].y == i * 2);
        else
            EXPECT(pairs[i].x == i * 2.0 && pairs[i].y == i + 'c');
    }
    return pass();
}
