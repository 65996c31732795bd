// finds kernel in read(*: it fails on purpose
// Reading through a null pointer: error 700.
#include "check.h"

__global__ void read(const int *p, int *out)
{
    if (threadIdx.x == 33) *out = p[0];
}

int main()
{
    int *out;
    CUDA(cudaMalloc(&out, sizeof *out));
    Captured err(STDERR_FILENO);
    read<<<2, 64>>>(nullptr, out);
    cudaError_t error = cudaDeviceSynchronize();
    err.text();
    EXPECT_EQ(error, cudaErrorIllegalAddress);
    EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    return pass();
}
