// Memory behind textures, surfaces and tensor maps.
#include "../check.h"
#include <cuda.h>

static void end() { CUDA(EITHER((cudaDeviceSynchronize(), cudaSuccess), cudaDeviceSynchronize())); }

static cudaTextureObject_t texture_of(const cudaResourceDesc &resource)
{
    cudaTextureDesc how = {};
    how.readMode = cudaReadModeElementType;
    cudaTextureObject_t texture;
    CUDA(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    return texture;
}

__global__ void fetch(int *out, cudaTextureObject_t texture)
{
    out[threadIdx.x] = tex1Dfetch<int>(texture, threadIdx.x); // found: freed by cuMemFree)
}
TEST(linear_memory_that_was_freed)
{
    Array<> out(32);
    int *x;
    CUDA(cudaMalloc(&x, 128));
    CUDA(cudaMemset(x, 0, 128));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear = {x, cudaCreateChannelDesc<int>(), 128};
    auto texture = texture_of(resource);
    MENDED(fetch<<<1, 32>>>(out, texture); CUDA(cudaDeviceSynchronize());)
    CUDA(cudaFree(x));
    BROKEN(fetch<<<1, 32>>>(out, texture);)
    end();
}

// A texture that says of its memory that it is larger.
__global__ void fetch_beyond(int *out, cudaTextureObject_t texture)
{
    out[threadIdx.x] = tex1Dfetch<int>(texture, threadIdx.x); // found: just past the end of an allocation of 64 bytes
}
TEST(linear_memory_that_is_too_small)
{
    Array<> out(32);
    int *x;
    CUDA(cudaMalloc(&x, EITHER(64, 128)));
    CUDA(cudaMemset(x, 0, 64));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear = {x, cudaCreateChannelDesc<int>(), 128};
    fetch_beyond<<<1, 32>>>(out, texture_of(resource));
    end();
    cudaFree(x);
}

__global__ void sample(float *out, cudaTextureObject_t texture)
{
    out[threadIdx.x] = tex2D<float>(texture, threadIdx.x, 1); // found: the array behind the texture
}
TEST(array_that_was_freed)
{
    Array<float> out(32);
    auto format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    CUDA(cudaMallocArray(&array, &format, 64, 64));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    auto texture = texture_of(resource);
    MENDED(sample<<<1, 32>>>(out, texture); CUDA(cudaDeviceSynchronize());)
    CUDA(cudaFreeArray(array));
    BROKEN(sample<<<1, 32>>>(out, texture);)
    end();
}

// Beyond its edge a surface traps, unless the access says that there are zeros.
__global__ void write_surface(cudaSurfaceObject_t surface, int by)
{
    surf1Dwrite(1.0f, surface, 4 * (threadIdx.x + by)); // found: lie outside of a surface of 32
    surf1Dwrite(2.0f, surface, 4 * (threadIdx.x + 1), cudaBoundaryModeZero);
}
TEST(surface)
{
    auto format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    CUDA(cudaMallocArray(&array, &format, 32, 0, cudaArraySurfaceLoadStore));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaSurfaceObject_t surface;
    CUDA(cudaCreateSurfaceObject(&surface, &resource));
    write_surface<<<1, 32>>>(surface, EITHER(1, 0));
    end();
}

// A tensor of 33 rows in memory for 32, and a copy of the last.
__global__ void copy(int *out, const __grid_constant__ CUtensorMap map, int row)
{
    __shared__ alignas(128) int tile[64];
    __shared__ unsigned long long barrier;
    unsigned to = __cvta_generic_to_shared(tile), bar = __cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bar));
        asm volatile("fence.mbarrier_init.release.cluster;");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 256;" ::"r"(bar));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" // found: the tensor goes 256 bytes past its end, by dimension 1
                     ::"r"(to), "l"(&map), "r"(0), "r"(row), "r"(bar) : "memory");
    }
    __syncthreads();
    int done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.s32 %0, 1, 0, p; }" : "=r"(done) : "r"(bar) : "memory");
    out[threadIdx.x] = tile[threadIdx.x];
}
TEST(tensor_map)
{
    Array<> out(64);
    int *x;
    CUDA(cudaMalloc(&x, EITHER(32, 33) * 256));
    CUDA(cudaMemset(x, 0, 32 * 256));
    cuuint64_t sizes[] = {64, 33}, strides[] = {256};
    cuuint32_t box[] = {64, 1}, steps[] = {1, 1};
    CUtensorMap map;
    cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, x, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                           CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    copy<<<1, 64>>>(out, map, 32);
    end();
}
