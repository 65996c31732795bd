// finds kernel in stop(*: it fails on purpose
// __trap() ends the kernel with an error that sticks; what ran before in the stream is done.
#include "check.h"

__global__ void fill(int *data) { data[threadIdx.x] = threadIdx.x; }
__global__ void stop(int *data, int who)
{
    if (data[threadIdx.x] == who) __trap();
}

int main()
{
    int *data, got[64];
    CUDA(cudaMalloc(&data, sizeof got));
    CUDA(cudaMemset(data, 0, sizeof got));
    fill<<<1, 64>>>(data);
    stop<<<1, 64>>>(data, 64); // nobody
    LAUNCHED();
    CUDA(cudaMemcpy(got, data, sizeof got, cudaMemcpyDeviceToHost));
    EXPECT_EQ(got[63], 63);

    stop<<<1, 64>>>(data, 40);
    LAUNCHED();
    cudaError_t error = cudaDeviceSynchronize();
    // The manual names no code for a trap; drivers have answered "unspecified launch failure" and, depending on the
    // generation, "illegal instruction".
    if (error != cudaErrorLaunchFailure && error != cudaErrorIllegalInstruction)
        fail("a trap gives %d %s", error, cudaGetErrorName(error));
    EXPECT_ERROR(cudaMemcpy(got, data, sizeof got, cudaMemcpyDeviceToHost), error);
    EXPECT_ERROR(cudaDeviceSynchronize(), error);
    return pass();
}
