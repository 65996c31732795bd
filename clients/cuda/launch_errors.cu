// finds free in cuMemFree: it frees on purpose what is no memory
// Launches that cannot be: refused at once, the context stays usable.
#include "check.h"

__global__ void nothing(int *p)
{
    if (p) *p += 1;
}
__global__ void __launch_bounds__(128) bounded(int *p)
{
    if (threadIdx.x == 0) *p += 1;
}

// cudart 12 answers "invalid configuration" by itself, cudart 13 passes on what the driver says, which has no such code.
static void refused(int line, dim3 grid, dim3 block, size_t shared)
{
    nothing<<<grid, block, shared>>>(nullptr);
    cudaError_t error = cudaGetLastError();
    if (error != cudaErrorInvalidConfiguration && error != cudaErrorInvalidValue)
        fail("line %d: a bad launch gives %d %s", line, error, cudaGetErrorName(error));
    CUDA(cudaDeviceSynchronize());
}

int main()
{
    int *count;
    CUDA(cudaMallocManaged(&count, sizeof *count));
    *count = 0;
    refused(__LINE__, 0, 1, 0);
    refused(__LINE__, 1, 0, 0);
    refused(__LINE__, 1, 1025, 0);
    refused(__LINE__, 1, dim3(32, 33), 0);
    refused(__LINE__, 1, dim3(1, 1, 65), 0);
    refused(__LINE__, dim3(1, 65536), 1, 0);
    refused(__LINE__, dim3(1, 1, 65536), 1, 0);
    refused(__LINE__, dim3(0x80000000u), 1, 0);
    refused(__LINE__, 1, 1, 10 << 20);
    // More threads than __launch_bounds__ allows.
    bounded<<<1, 256>>>(count);
    cudaError_t error = cudaGetLastError();
    if (error != cudaErrorInvalidValue && error != cudaErrorLaunchOutOfResources)
        fail("beyond the launch bounds: %d %s", error, cudaGetErrorName(error));
    CUDA(cudaDeviceSynchronize());

    // The largest that are allowed.
    nothing<<<1, dim3(1, 1, 64)>>>(nullptr);
    nothing<<<1, dim3(1024, 1, 1)>>>(nullptr);
    nothing<<<dim3(1, 65535), 1>>>(nullptr);
    nothing<<<1, 1>>>(count);
    bounded<<<1, 128>>>(count);
    FINISHED();
    EXPECT_EQ(*count, 2);

    // Wrong arguments to other calls.
    void *p = nullptr;
    EXPECT_ERROR(cudaMalloc(&p, ~(size_t)0 / 2), cudaErrorMemoryAllocation);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorMemoryAllocation);
    EXPECT_ERROR(cudaGetLastError(), cudaSuccess);
    EXPECT_ERROR(cudaSetDevice(77), cudaErrorInvalidDevice);
    EXPECT_ERROR(cudaFree((void *)0x1234), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaMemcpy(nullptr, count, 4, cudaMemcpyDefault), cudaErrorInvalidValue);
    int value = 0;
    EXPECT_ERROR(cudaMemcpy(&value, count, 4, (cudaMemcpyKind)9), cudaErrorInvalidMemcpyDirection);
    cudaGetLastError();
    CUDA(cudaFree(nullptr));
    nothing<<<1, 1>>>(count);
    FINISHED();
    EXPECT_EQ(*count, 3);
    return pass();
}
