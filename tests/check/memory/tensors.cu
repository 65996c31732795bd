// Boxes of tensors in shared memory: what says how large they are is the tensor map. Each is larger than its variable, and lands in the
// next one.
#include "../check.h"
#include <cuda.h>

static __device__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

static void ends() { CUDA(EITHER((cudaDeviceSynchronize(), cudaSuccess), cudaDeviceSynchronize())); }

// Rows of 32 words, in boxes of `rows` of them.
static CUtensorMap map_of(void *start, unsigned rows)
{
    cuuint64_t sizes[] = {32, 8}, strides[] = {128};
    cuuint32_t box[] = {32, rows}, steps[] = {1, 1};
    CUtensorMap map;
    CUresult code = cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, start, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                           CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (code != CUDA_SUCCESS) printf("cuTensorMapEncodeTiled gives %d\n", code), exit(2);
    return map;
}

static int *rows_of_zeros()
{
    int *start;
    CUDA(cudaMalloc(&start, 8 * 128));
    CUDA(cudaMemset(start, 0, 8 * 128));
    return start;
}

__global__ void load(int *out, const __grid_constant__ CUtensorMap map, int bytes)
{
    __shared__ alignas(128) int first[4 * 32], second[32];
    __shared__ alignas(8) unsigned long long barrier;
    unsigned at = shared_address(&barrier);
    int t = threadIdx.x;
    second[t] = t;
    if (t == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" : : "r"(at));
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" : : "r"(at), "r"(bytes));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %2}], [%3];" // found: made from that of the shared variable load(int*, CUtensorMap_st, int)::first
                     : : "r"(shared_address(first)), "l"(&map), "r"(0), "r"(at) : "memory");
    }
    __syncthreads();
    asm volatile("{ .reg .pred p;\nl: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n@!p bra l; }" : : "r"(at) : "memory");
    out[t] = first[t] + second[t];
}
TEST(load)
{
    Array<> out(32);
    load<<<1, 32>>>(out, map_of(rows_of_zeros(), EITHER(5, 4)), EITHER(5, 4) * 128);
    ends();
}

// From a variable into the dynamic shared memory behind it.
__global__ void store(const __grid_constant__ CUtensorMap map)
{
    __shared__ alignas(128) int first[4 * 32];
    extern __shared__ int rest[];
    int t = threadIdx.x;
    for (int row = 0; row < 4; row++) first[row * 32 + t] = rest[row * 32 + t] = t;
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
    __syncthreads();
    if (t == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %1}], [%2];" // found: illegal read of 640 bytes
                     : : "l"(&map), "r"(0), "r"(shared_address(first)) : "memory");
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" : : : "memory");
    }
}
TEST(store)
{
    store<<<1, 32, 4 * 128>>>(map_of(rows_of_zeros(), EITHER(5, 4)));
    ends();
}

// From an address that is aligned in the kernel.
__global__ void reduce(int *out, const __grid_constant__ CUtensorMap map, int rows)
{
    __shared__ int first[5 * 32 - 1], second[5 * 32];
    int *rest = (int *)((size_t)((char *)first + 127) & ~(size_t)127);
    int t = threadIdx.x;
    for (int row = 0; row < 4; row++) rest[row * 32 + t] = second[row * 32 + t] = t;
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
    __syncthreads();
    if (t == 0) {
        asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %1}], [%2];" // found: made from that of the shared variable reduce(int*, CUtensorMap_st, int)::first
                     : : "l"(&map), "r"(0), "r"(shared_address(rest + rows * 32)) : "memory");
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" : : : "memory");
    }
    out[t] = second[t];
}
TEST(reduce)
{
    Array<> out(32);
    reduce<<<1, 32>>>(out, map_of(rows_of_zeros(), 4), EITHER(2, 0));
    ends();
}

// The map itself: one of two, and what lies behind them.
__global__ void of_maps(const __grid_constant__ CUtensorMap first, const __grid_constant__ CUtensorMap second, int which)
{
    __shared__ alignas(128) int tile[32];
    tile[threadIdx.x] = threadIdx.x;
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %1}], [%2];" // found: made from that of parameter 0 of 128 bytes
                     : : "l"(&first + which), "r"(0), "r"(shared_address(tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" : : : "memory");
    }
}
TEST(map)
{
    int *start = rows_of_zeros();
    of_maps<<<1, 32>>>(map_of(start, 1), map_of(start, 1), EITHER(1, 0));
    ends();
}
