// finds kernel in write(*: it fails on purpose
// A kernel may not touch the host's own memory (heap, stack, code): error 700, and the memory is unchanged.
#include "check.h"

__global__ void write(int *p) { *p = 13; }

int main()
{
    int *mine = (int *)malloc(4096);
    *mine = 12;
    Captured err(STDERR_FILENO);
    write<<<1, 1>>>(mine);
    LAUNCHED();
    cudaError_t error = cudaDeviceSynchronize();
    err.text();
    // A system that reports pageable access lets kernels use the host's heap.
    int pageable = 0;
    if (cudaDeviceGetAttribute(&pageable, cudaDevAttrPageableMemoryAccess, 0) == cudaSuccess && pageable) {
        EXPECT_EQ(error, cudaSuccess);
        EXPECT_EQ(*mine, 13);
        return pass();
    }
    EXPECT_EQ(error, cudaErrorIllegalAddress);
    EXPECT_EQ(*mine, 12);
    return pass();
}
