// What the driver says of occupancy against NVIDIA's published calculator (cuda_occupancy.h), for every device profile.
#include "check.h"

#include <cuda.h>
#include <cuda_occupancy.h>

#include <dlfcn.h>
#include <sys/wait.h>

// The driver that the runtime has found; programs here do not link with it.
#define DRIVER_FUNCTION(name) ((decltype(&name))dlsym(dlopen("libcuda.so.1", RTLD_NOW), #name))
#define EXPECT_OK(name, arguments) EXPECT_EQ(DRIVER_FUNCTION(name) arguments, CUDA_SUCCESS)

__global__ void plain(int *p)
{
    p[threadIdx.x]++;
}

__global__ void __launch_bounds__(96) small(int *p)
{
    p[threadIdx.x]++;
}

template <int N> __global__ void with_shared(int *p)
{
    __shared__ char s[N];
    s[threadIdx.x] = (char)p[threadIdx.x];
    __syncthreads();
    p[threadIdx.x] = s[N - 1 - threadIdx.x];
}

static size_t eight_a_thread(int threads)
{
    return 8 * (size_t)threads + 100;
}

static int attribute(CUdevice_attribute which)
{
    int value;
    EXPECT_OK(cuDeviceGetAttribute, (&value, which, 0));
    return value;
}

static cudaOccDeviceProp device()
{
    cudaOccDeviceProp prop;
    prop.computeMajor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    prop.computeMinor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    prop.maxThreadsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    prop.maxThreadsPerMultiprocessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    prop.regsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    prop.regsPerMultiprocessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
    prop.warpSize = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    prop.sharedMemPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    prop.sharedMemPerMultiprocessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    prop.numSms = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    prop.sharedMemPerBlockOptin = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    prop.reservedSharedMemPerBlock = attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    return prop;
}

static int checked;

static void compare(const void *kernel, const cudaOccDeviceProp &prop)
{
    CUfunction function;
    CUDA(cudaGetFuncBySymbol(&function, kernel));
    const int optin = (int)prop.sharedMemPerBlockOptin;
    for (int carveout : {-1, 0, 25, 50, 100})
        for (int more : {-1, 4096, 60000, optin}) {
            int fixed;
            EXPECT_OK(cuFuncGetAttribute, (&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
            if (more == optin) more = optin - fixed;
            if (more >= 0) {
                if (more + fixed > optin) continue;
                EXPECT_OK(cuFuncSetAttribute, (function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, more));
            } else if (carveout != -1) {
                continue; // There is no way back to the default.
            }
            EXPECT_OK(cuFuncSetAttribute, (function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, carveout));
            cudaOccFuncAttributes attributes;
            int value;
            EXPECT_OK(cuFuncGetAttribute, (&attributes.maxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
            EXPECT_OK(cuFuncGetAttribute, (&attributes.numRegs, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
            attributes.sharedSizeBytes = fixed;
            attributes.partitionedGCConfig = PARTITIONED_GC_OFF;
            attributes.shmemLimitConfig = more < 0 ? FUNC_SHMEM_LIMIT_DEFAULT : FUNC_SHMEM_LIMIT_OPTIN;
            EXPECT_OK(cuFuncGetAttribute, (&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
            attributes.maxDynamicSharedSizeBytes = value;
            attributes.numBlockBarriers = 1;
            cudaOccDeviceState state;
            state.cacheConfig = CACHE_PREFER_NONE;
            state.carveoutConfig = carveout;

            for (int threads : {1, 31, 32, 33, 64, 96, 100, 128, 192, 255, 256, 320, 384, 512, 640, 768, 1000, 1024, 1025})
                // What the function forbids, the calculator leaves to its caller.
                for (size_t dynamic : {0, 1, 100, 1000, 4096, 8192, 9000, 16384, 20000, 32768, 48000, 49152, 60000, 100000}) {
                    if (threads > attributes.maxThreadsPerBlock) break;
                    cudaOccResult result;
                    EXPECT_EQ(cudaOccMaxActiveBlocksPerMultiprocessor(&result, &prop, &attributes, &state, threads, dynamic), 0);
                    int blocks;
                    EXPECT_OK(cuOccupancyMaxActiveBlocksPerMultiprocessor, (&blocks, function, threads, dynamic));
                    if (blocks != result.activeBlocksPerMultiprocessor)
                        fail("%d.%d: %d threads, %zu bytes, %d fixed, %d at most, carve-out %d: %d blocks, expected %d",
                             prop.computeMajor, prop.computeMinor, threads, dynamic, fixed, more, carveout, blocks,
                             result.activeBlocksPerMultiprocessor);
                    checked++;
                }
            // Calculators before 13 forget what the driver takes of each block.
            for (int threads : {32, 128, 256, 1024})
                for (int blocks = 1; CUDART_VERSION >= 13000 && blocks <= 33 && threads <= attributes.maxThreadsPerBlock; blocks++) {
                    size_t expected = 0, got = 0;
                    cudaOccError error =
                        cudaOccAvailableDynamicSMemPerBlock(&expected, &prop, &attributes, &state, blocks, threads);
                    CUresult mine = DRIVER_FUNCTION(cuOccupancyAvailableDynamicSMemPerBlock)(&got, function, blocks, threads);
                    EXPECT_EQ(mine, error == CUDA_OCC_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
                    // Where fixed memory alone is more than its share, the calculator's subtraction wraps around.
                    if (error == CUDA_OCC_SUCCESS && expected <= (size_t)optin && got != expected)
                        fail("%d.%d: %d blocks of %d threads, %d fixed, %d at most, carve-out %d: %zu bytes, expected %zu",
                             prop.computeMajor, prop.computeMinor, blocks, threads, fixed, more, carveout, got, expected);
                    checked++;
                }
            struct {
                size_t (*callback)(int);
                size_t bytes;
            } ways[] = {{nullptr, 0}, {nullptr, 5000}, {eight_a_thread, 0}};
            for (auto &way : ways) {
                int grid, block, expected_grid, expected_block;
                EXPECT_EQ(cudaOccMaxPotentialOccupancyBlockSize(&expected_grid, &expected_block, &prop, &attributes, &state,
                                                                way.callback, way.bytes),
                          0);
                EXPECT_OK(cuOccupancyMaxPotentialBlockSize, (&grid, &block, function, way.callback, way.bytes, 0));
                EXPECT_EQ(block, expected_block);
                EXPECT_EQ(grid, expected_grid);
                EXPECT_OK(cuOccupancyMaxPotentialBlockSizeWithFlags, (&grid, &block, function, way.callback, way.bytes, 0,
                                                                 CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE));
                EXPECT_EQ(block, expected_block);
                // A limit is a limit.
                EXPECT_OK(cuOccupancyMaxPotentialBlockSize, (&grid, &block, function, way.callback, way.bytes, 50));
                EXPECT(block <= 50);
            }
        }
}

static int one_profile()
{
    CUDA(cudaFree(nullptr));
    cudaOccDeviceProp prop = device();
    compare((const void *)plain, prop);
    compare((const void *)small, prop);
    compare((const void *)with_shared<1024>, prop);
    compare((const void *)with_shared<20000>, prop);
    compare((const void *)with_shared<49152>, prop);
    EXPECT(checked > 10000);
    return 0;
}

int main(int argc, char **)
{
    if (argc > 1) return one_profile();
    for (const char *profile : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"}) {
        setenv("MARGAY_DEVICE", profile, 1);
        pid_t child = fork();
        if (child == 0) {
            execl("/proc/self/exe", program_invocation_short_name, profile, (char *)nullptr);
            _exit(127);
        }
        int status;
        waitpid(child, &status, 0);
        if (status != 0) fail("profile %s: status %d", profile, status);
    }
    return pass();
}
