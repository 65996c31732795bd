// What the runtime tells about kernels and the device: attributes, occupancy, properties.
#include "check.h"

__constant__ char constants[300];

__global__ void __launch_bounds__(192) plain(float *out)
{
    __shared__ float room[500];
    float local[100];
    for (int i = 0; i < 100; i++) local[i] = constants[i] + threadIdx.x;
    room[threadIdx.x] = local[(int)out[0] % 100];
    __syncthreads();
    out[threadIdx.x] = room[(threadIdx.x * 7) % blockDim.x];
}
__global__ void generous(int *out) { *out = blockDim.x; }

int main()
{
    cudaFuncAttributes a;
    CUDA(cudaFuncGetAttributes(&a, plain));
    EXPECT_EQ(a.sharedSizeBytes, 2000);
    EXPECT_EQ(a.maxThreadsPerBlock, 192);
    EXPECT(a.constSizeBytes >= 300 || a.constSizeBytes == 0);
    EXPECT(a.numRegs > 0 && a.numRegs <= 255);
    // The compiler's default architecture.
    EXPECT_EQ(a.ptxVersion, __CUDACC_VER_MAJOR__ >= 13 ? 75 : 52);
    EXPECT(a.binaryVersion >= 50);
    CUDA(cudaFuncGetAttributes(&a, generous));
    EXPECT_EQ(a.sharedSizeBytes, 0);
    EXPECT_EQ(a.maxThreadsPerBlock, 1024);

    int blocks = 0, grid = 0, block = 0;
    CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 192, 0));
    EXPECT(blocks >= 1 && blocks <= 32);
    int with_shared = 0;
    CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&with_shared, plain, 192, 40000));
    EXPECT(with_shared >= 1 && with_shared <= blocks);
    CUDA(cudaOccupancyMaxPotentialBlockSize(&grid, &block, plain, 0, 0));
    EXPECT(block >= 32 && block <= 192 && grid >= 1);
    CUDA(cudaOccupancyMaxPotentialBlockSize(&grid, &block, generous, 0, 0));
    EXPECT(block >= 256 && block <= 1024);

    cudaDeviceProp p;
    CUDA(cudaGetDeviceProperties(&p, 0));
    EXPECT(strlen(p.name) > 0);
    EXPECT_EQ(p.warpSize, 32);
    EXPECT_EQ(p.maxThreadsPerBlock, 1024);
    EXPECT(p.major >= 7 && p.multiProcessorCount >= 1 && p.totalGlobalMem >= 64 << 20);
    EXPECT(p.sharedMemPerBlock >= 48 << 10);
    EXPECT(p.maxGridSize[0] == 0x7FFFFFFF && p.maxGridSize[1] == 65535 && p.maxGridSize[2] == 65535);
    EXPECT(p.maxThreadsDim[0] == 1024 && p.maxThreadsDim[1] == 1024 && p.maxThreadsDim[2] == 64);
    EXPECT(p.unifiedAddressing && p.managedMemory && p.concurrentKernels && p.canMapHostMemory);
    EXPECT_EQ(p.totalConstMem, 65536);
    int count = 0, current = -1, driver = 0, runtime = 0, value = 0;
    CUDA(cudaGetDeviceCount(&count));
    EXPECT(count >= 1);
    CUDA(cudaGetDevice(&current));
    EXPECT_EQ(current, 0);
    CUDA(cudaDriverGetVersion(&driver));
    CUDA(cudaRuntimeGetVersion(&runtime));
    EXPECT_EQ(runtime, CUDART_VERSION);
    EXPECT(driver >= runtime);
    CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrMaxThreadsPerMultiProcessor, 0));
    EXPECT_EQ(value, p.maxThreadsPerMultiProcessor);
    EXPECT(value >= 1024 && value % 32 == 0);
    char id[32];
    CUDA(cudaDeviceGetPCIBusId(id, sizeof id, 0));
    CUDA(cudaDeviceGetByPCIBusId(&value, id));
    EXPECT_EQ(value, 0);
    EXPECT(!strcmp(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress"));
    printf("%s, compute capability %d.%d, %d multiprocessors, %zu MiB; driver %d, runtime %d\n", p.name, p.major, p.minor, p.multiProcessorCount,
           p.totalGlobalMem >> 20, driver, runtime);

    float *out;
    CUDA(cudaMallocManaged(&out, 192 * sizeof *out));
    out[0] = 5;
    plain<<<1, 192>>>(out);
    FINISHED();
    EXPECT(out[1] == 7.0f);
    return pass();
}
