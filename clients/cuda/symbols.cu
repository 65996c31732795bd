// Device and constant variables: initial values, copies to and from symbols, addresses, sizes, static ones, managed ones.
#include "check.h"

__constant__ float coefficients[5] = {1.0f, -0.5f, 0.25f, -0.125f, 0.0625f};
__constant__ int offset;
__device__ int counter = 7;
__device__ double table[100];
static __device__ short hidden = -12;
static __constant__ unsigned char letters[] = "constant letters";
__managed__ int shared_with_host = 5;
__managed__ float managed_array[64];

struct Point {
    char tag;
    double x, y;
    int id;
};
__device__ Point origin = {'o', 0.5, -0.5, 77};
__device__ int *pointer_to_counter = &counter;
__device__ const char *message = "a string in global memory";

namespace deep {
__device__ unsigned long long wide = 0x123456789ABCDEFull;
}

__global__ void use(float *out, int n)
{
    int i = threadIdx.x;
    if (i < n) {
        float x = i * 0.25f, sum = 0;
        for (int k = 4; k >= 0; k--) sum = fmaf(sum, x, coefficients[k]);
        out[i] = sum + offset;
        table[i] = i + 0.5;
        managed_array[i & 63] = i;
    }
    if (i == 0) {
        (*pointer_to_counter) += offset;
        hidden--;
        shared_with_host *= 3;
        origin.x += letters[3];
        origin.id = message[2];
        deep::wide++;
    }
}

int main()
{
    const int n = 60;
    EXPECT_EQ(shared_with_host, 5);
    shared_with_host = 6;
    int value = 100;
    CUDA(cudaMemcpyToSymbol(offset, &value, sizeof value));
    CUDA(cudaMemcpyFromSymbol(&value, counter, sizeof value));
    EXPECT_EQ(value, 7);
    // A part of an array, by offset.
    float replaced[2] = {2.0f, -4.0f};
    CUDA(cudaMemcpyToSymbol(coefficients, replaced, sizeof replaced, 3 * sizeof(float)));

    size_t size = 0;
    void *address = nullptr;
    CUDA(cudaGetSymbolSize(&size, table));
    EXPECT_EQ(size, sizeof table);
    CUDA(cudaGetSymbolSize(&size, letters));
    EXPECT_EQ(size, sizeof letters);
    CUDA(cudaGetSymbolAddress(&address, table));
    CUDA(cudaMemset(address, 0, sizeof table));

    float *out, got[n];
    CUDA(cudaMalloc(&out, sizeof got));
    use<<<1, 64>>>(out, n);
    LAUNCHED();
    CUDA(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
    const float c[5] = {1.0f, -0.5f, 0.25f, 2.0f, -4.0f};
    for (int i = 0; i < n; i++) {
        float x = i * 0.25f, sum = 0;
        for (int k = 4; k >= 0; k--) sum = __builtin_fmaf(sum, x, c[k]);
        if (got[i] != sum + 100) fail("out[%d] = %g, not %g", i, got[i], sum + 100);
    }
    static double values[100];
    CUDA(cudaMemcpyFromSymbol(values, table, sizeof values));
    for (int i = 0; i < 100; i++) EXPECT(values[i] == (i < n ? i + 0.5 : 0.0));
    CUDA(cudaMemcpyFromSymbol(&value, counter, sizeof value));
    EXPECT_EQ(value, 107);
    short small = 0;
    CUDA(cudaMemcpyFromSymbol(&small, hidden, sizeof small));
    EXPECT_EQ(small, -13);
    EXPECT_EQ(shared_with_host, 18);
    EXPECT(managed_array[33] == 33.0f);
    Point point;
    CUDA(cudaMemcpyFromSymbol(&point, origin, sizeof point));
    EXPECT(point.tag == 'o' && point.x == 0.5 + 's' && point.y == -0.5);
    EXPECT_EQ(point.id, 's');
    unsigned long long wide;
    CUDA(cudaMemcpyFromSymbol(&wide, deep::wide, sizeof wide));
    EXPECT(wide == 0x123456789ABCDF0ull);
    // Not a symbol.
    EXPECT_ERROR(cudaGetSymbolAddress(&address, (const void *)&value), cudaErrorInvalidSymbol);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidSymbol);
    return pass();
}
