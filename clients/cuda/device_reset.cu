// finds kernel in stray(*: it fails on purpose
// cudaDeviceReset after an error that stuck: a new context, variables at their initial values, everything works.
#include "check.h"

__device__ int counter = 3;
__global__ void bump(int *out) { *out = ++counter; }
__global__ void stray(int *p) { p[1ll << 40] = 1; }

int main()
{
    int *out, got = 0;
    CUDA(cudaMalloc(&out, sizeof *out));
    bump<<<1, 1>>>(out);
    bump<<<1, 1>>>(out);
    CUDA(cudaMemcpy(&got, out, sizeof got, cudaMemcpyDeviceToHost));
    EXPECT_EQ(got, 5);
    Captured err(STDERR_FILENO);
    stray<<<1, 1>>>(out);
    cudaError_t error = cudaDeviceSynchronize();
    err.text();
    EXPECT_EQ(error, cudaErrorIllegalAddress);
    CUDA(cudaDeviceReset());
    cudaGetLastError();
    CUDA(cudaMalloc(&out, sizeof *out));
    bump<<<1, 1>>>(out);
    CUDA(cudaMemcpy(&got, out, sizeof got, cudaMemcpyDeviceToHost));
    EXPECT_EQ(got, 4);
    CUDA(cudaMemcpyFromSymbol(&got, counter, sizeof got));
    EXPECT_EQ(got, 4);
    return pass();
}
