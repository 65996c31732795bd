// finds kernel in write(*: it fails on purpose
// A write outside every allocation: error 700, sticky, and the process lives to say so.
#include "check.h"

__global__ void write(int *data, long long where) { data[where] = 1; }

int main()
{
    int *data;
    CUDA(cudaMalloc(&data, 1024));
    write<<<1, 1>>>(data, 255);
    FINISHED();
    // Far outside of what any allocator could have placed behind it.
    Captured err(STDERR_FILENO);
    write<<<1, 1>>>(data, 1ll << 40);
    LAUNCHED();
    cudaError_t error = cudaDeviceSynchronize();
    err.text();
    EXPECT_EQ(error, cudaErrorIllegalAddress);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorIllegalAddress);
    void *more;
    EXPECT_ERROR(cudaMalloc(&more, 16), cudaErrorIllegalAddress);
    EXPECT_ERROR(cudaFree(data), cudaErrorIllegalAddress);
    write<<<1, 1>>>(data, 0);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorIllegalAddress);
    EXPECT_ERROR(cudaStreamSynchronize(0), cudaErrorIllegalAddress);
    return pass();
}
