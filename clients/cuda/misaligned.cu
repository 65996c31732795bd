// finds kernel in write(*: it fails on purpose
// A four-byte write at an odd address: error 716.
#include "check.h"

__global__ void write(char *data, int where) { *(volatile int *)(data + where) = 1; }

int main()
{
    char *data;
    CUDA(cudaMalloc(&data, 1024));
    write<<<1, 1>>>(data, 16);
    FINISHED();
    Captured err(STDERR_FILENO);
    write<<<1, 1>>>(data, 17);
    LAUNCHED();
    cudaError_t error = cudaDeviceSynchronize();
    err.text();
    EXPECT_EQ(error, cudaErrorMisalignedAddress);
    EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorMisalignedAddress);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorMisalignedAddress);
    return pass();
}
