// Memory that is freed twice, by the wrong call, or never, and used after it was freed.
#include "../check.h"
#include <cuda.h>

static void end() { CUDA(EITHER((cudaDeviceSynchronize(), cudaSuccess), cudaDeviceSynchronize())); }
static void ignored(cudaError_t) { cudaGetLastError(); }

__global__ void touch(int *x, int n) { x[threadIdx.x % n] = 1; } // found: freed by cuMemFree)
TEST(use_after_free)
{
    int *x;
    CUDA(cudaMalloc(&x, 128));
    MENDED(touch<<<1, 32>>>(x, 32); CUDA(cudaDeviceSynchronize());)
    CUDA(cudaFree(x));
    BROKEN(touch<<<1, 32>>>(x, 32);)
    end();
}

TEST(twice)
{
    int *x;
    CUDA(cudaMalloc(&x, 128));
    CUDA(cudaFree(x));
    BROKEN(ignored(cudaFree(x));) // found by the host: again, which is the start of a freed allocation of 128 bytes
}

TEST(middle)
{
    int *x;
    CUDA(cudaMalloc(&x, 128));
    BROKEN(ignored(cudaFree(x + 1));) // found by the host: which is 4 bytes inside an allocation of 128 bytes
    CUDA(cudaFree(x));
}

TEST(wrong_call)
{
    int *x;
    CUDA(cudaMallocHost(&x, 128));
    BROKEN(ignored(cudaFree(x));) // found by the host: pinned host memory, allocated by cuMemHostAlloc
    CUDA(cudaFreeHost(x));
}

TEST(host_twice)
{
    int *x;
    CUDA(cudaMallocHost(&x, 128));
    CUDA(cudaFreeHost(x));
    BROKEN(ignored(cudaFreeHost(x));) // found by the host: cuMemFreeHost frees
}

TEST(array_twice)
{
    auto format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    CUDA(cudaMallocArray(&array, &format, 64, 64));
    CUDA(cudaFreeArray(array));
    BROKEN(ignored(cudaFreeArray(array));) // found by the host: is no array, or is one no longer
}

TEST(mipmapped_array_twice)
{
    auto format = cudaCreateChannelDesc<float>();
    cudaMipmappedArray_t array;
    CUDA(cudaMallocMipmappedArray(&array, &format, {64, 64, 0}, 2));
    CUDA(cudaFreeMipmappedArray(array));
    BROKEN(ignored(cudaFreeMipmappedArray(array));) // found by the host: is no mipmapped array, or is one no longer
}

TEST(registered_twice)
{
    void *x = malloc(4096);
    CUDA(cudaHostRegister(x, 4096, 0));
    CUDA(cudaHostUnregister(x));
    BROKEN(ignored(cudaHostUnregister(x));) // found by the host: cuMemHostUnregister
    free(x);
}

// Of the order of the stream.
__global__ void touch_of_pool(int *x, int n) { x[threadIdx.x % n] = 1; } // found: freed by cuMemFreeAsync
TEST(use_after_free_in_the_stream)
{
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    int *x;
    CUDA(cudaMallocAsync(&x, 128, stream));
    MENDED(touch_of_pool<<<1, 32, 0, stream>>>(x, 32);)
    CUDA(cudaFreeAsync(x, stream));
    BROKEN(touch_of_pool<<<1, 32, 0, stream>>>(x, 32);)
    end();
}

__global__ void end_of_pool(int *x, int n) { x[threadIdx.x % n] = 1; } // found: just past the end of an allocation of 100 bytes
TEST(end_of_pool_memory)
{
    int *x;
    CUDA(cudaMallocAsync(&x, 100, 0));
    end_of_pool<<<1, 32>>>(x, EITHER(32, 25));
    ignored(cudaFreeAsync(x, 0));
    end();
}

TEST(asynchronously_twice)
{
    int *x;
    CUDA(cudaMallocAsync(&x, 100, 0));
    CUDA(cudaFreeAsync(x, 0));
    CUDA(cudaDeviceSynchronize());
    BROKEN(ignored(cudaFreeAsync(x, 0));) // found by the host: cuMemFreeAsync frees
}

// `cudaFree` frees memory of pools, too; once.
TEST(pool_memory_by_another_call)
{
    int *x;
    CUDA(cudaMallocAsync(&x, 100, 0));
    CUDA(cudaFree(x));
    BROKEN(ignored(cudaFreeAsync(x, 0));) // found by the host: again, which is the start of a freed allocation of 100 bytes
}

__global__ void trimmed(int *x, int n) { x[threadIdx.x % n] = 1; } // found: a freed allocation of 128 bytes
TEST(use_after_trim)
{
    int *x;
    CUDA(cudaMallocAsync(&x, 128, 0));
    MENDED(trimmed<<<1, 32>>>(x, 32);)
    CUDA(cudaFreeAsync(x, 0));
    CUDA(cudaDeviceSynchronize());
    cudaMemPool_t pool;
    CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
    CUDA(cudaMemPoolTrimTo(pool, 0));
    BROKEN(trimmed<<<1, 32>>>(x, 32);)
    end();
}

static CUmemAllocationProp on_device()
{
    CUmemAllocationProp wish = {};
    wish.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wish.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    return wish;
}

TEST(released_twice)
{
    CUDA(cudaFree(0));
    CUmemAllocationProp wish = on_device();
    CUmemGenericAllocationHandle memory;
    cuMemCreate(&memory, 2 << 20, &wish, 0);
    cuMemRelease(memory);
    BROKEN(cuMemRelease(memory);) // found by the host: is no memory of cuMemCreate, or is one no longer
}

TEST(leak_of_an_array)
{
    auto format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    CUDA(cudaMallocArray(&array, &format, 64, 64)); // found by the host: allocated by cuArray3DCreate
    MENDED(CUDA(cudaFreeArray(array));)
}

TEST(leak_of_managed_memory)
{
    int *x;
    CUDA(cudaMallocManaged(&x, 1000)); // found by the host: 1000 bytes at
    MENDED(CUDA(cudaFree(x));)
}

TEST(leak_of_pinned_memory)
{
    int *x;
    CUDA(cudaMallocHost(&x, 1000)); // found by the host: allocated by cuMemHostAlloc
    MENDED(CUDA(cudaFreeHost(x));)
}

TEST(leak_of_pool_memory)
{
    int *x;
    CUDA(cudaMallocAsync(&x, 1000, 0)); // found by the host: allocated by cuMemAllocAsync
    MENDED(CUDA(cudaFreeAsync(x, 0));)
    CUDA(cudaDeviceSynchronize());
}

TEST(leak_of_mapped_memory)
{
    CUDA(cudaFree(0));
    CUmemAllocationProp wish = on_device();
    CUmemGenericAllocationHandle memory;
    CUdeviceptr place;
    cuMemCreate(&memory, 2 << 20, &wish, 0); // found by the host: 2097152 bytes, made by cuMemCreate
    cuMemAddressReserve(&place, 2 << 20, 0, 0, 0);
    cuMemMap(place, 2 << 20, 0, memory, 0);
    cuMemRelease(memory);
    MENDED(cuMemUnmap(place, 2 << 20); cuMemAddressFree(place, 2 << 20);)
}
