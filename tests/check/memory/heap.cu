// The heap of kernels.
#include "../check.h"

static void end() { CUDA(EITHER((cudaDeviceSynchronize(), cudaSuccess), cudaDeviceSynchronize())); }

__global__ void overrun(int n)
{
    char *block = (char *)malloc(13);
    block[n] = 1; // found: just past the end of an allocation of 13 bytes
    free(block);
}
TEST(overrun)
{
    overrun<<<1, 1>>>(EITHER(13, 12));
    end();
}

__device__ int *kept;
__global__ void gives() { kept = (int *)malloc(40); }
__global__ void takes() { free(kept); }
__global__ void uses(int *out) { *out = *kept; } // found: freed by block (0,0,0), thread (0,0,0)
TEST(after_free)
{
    Array<> out(1);
    gives<<<1, 1>>>();
    MENDED(uses<<<1, 1>>>(out);)
    takes<<<1, 1>>>();
    BROKEN(uses<<<1, 1>>>(out);)
    end();
}

__global__ void twice(int n)
{
    int *block = (int *)malloc(40);
    for (int i = 0; i < n; i++)
        free(block); // found: not an allocation of the device heap, or freed before
}
TEST(twice)
{
    twice<<<1, 1>>>(EITHER(2, 1));
    end();
}

__global__ void inside(int n)
{
    int *block = (int *)malloc(40);
    free(block + n); // found: not an allocation of the device heap, or freed before
}
TEST(inside)
{
    inside<<<1, 1>>>(EITHER(1, 0));
    end();
}

__global__ void leaks(int n)
{
    int *block = (int *)malloc(48);
    if (n == 0)
        free(block);
    else
        kept = block;
}
TEST(leak_of_a_kernel)
{
    leaks<<<1, 1>>>(EITHER(1, 0)); // found by the host: 48 bytes at
    CUDA(cudaDeviceSynchronize());
}
