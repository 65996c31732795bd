// Values that nobody has written, through tensor copies: rows of a box go to places that are swizzled (PTX ISA, Swizzling modes), and what
// lies beyond the tensor is filled with zeros, which count as written.
#include <cuda.h>
#include <cudaTypedefs.h>
#include "check.h"

// Seven rows of 32 words, in boxes of eight rows of 128 bytes.
const int width = 32, rows = 7, box_rows = 8;

class Tensor {
  public:
    Tensor()
    {
        CUDA(cudaMalloc(&start_, width * rows * sizeof(int)));
        PFN_cuTensorMapEncodeTiled_v12000 encode;
        cudaDriverEntryPointQueryResult found;
        CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode, 12000, cudaEnableDefault, &found));
        cuuint64_t size[] = {width, rows}, stride[] = {width * sizeof(int)};
        cuuint32_t box[] = {width, box_rows}, step[] = {1, 1};
        CUresult code = encode(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, start_, size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                               CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
        if (code != CUDA_SUCCESS) printf("cuTensorMapEncodeTiled gives %d\n", code), exit(2);
    }
    Tensor(const Tensor &) = delete;
    operator int *() const { return start_; }
    void zeros(int from, int to) { CUDA(cudaMemset(start_ + from, 0, (to - from) * sizeof(int))); }
    CUtensorMap map;

  private:
    int *start_;
};

static void done()
{
    CUDA(cudaGetLastError());
    CUDA(cudaDeviceSynchronize());
}

__device__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

// Chunks of 16 bytes change places within a row of 128 bytes, by the row's number.
__device__ int place(int row, int column) { return row * width + ((column / 4 ^ row % 8) * 4 | column % 4); }

__device__ void load(int *tile, const CUtensorMap *map)
{
    __shared__ alignas(8) unsigned long long barrier;
    unsigned at = shared_address(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" : : "r"(at));
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" : : "r"(at), "r"(width * box_rows * 4));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %2}], [%3];"
                     : : "r"(shared_address(tile)), "l"(map), "r"(0), "r"(at) : "memory");
    }
    __syncthreads();
    asm volatile("{ .reg .pred p;\nl: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n@!p bra l; }" : : "r"(at) : "memory");
}

// Row 3, column 5 is not there, nor what is beyond the tensor.
__global__ void from_tensor(const __grid_constant__ CUtensorMap map, int *out)
{
    __shared__ alignas(1024) int tile[width * box_rows];
    int t = threadIdx.x;
    load(tile, &map);
    for (int row = 0; row < box_rows; row++)
        if ((row != 3 || t != 5) && tile[place(row, t)] == 7) out[0] = 1;
    if (t == 5 && tile[EITHER(place(3, 5), place(4, 5))] == 7) // init element
        out[1] = 1;
}

TEST(from_a_tensor)
{
    Tensor tensor;
    tensor.zeros(0, 3 * width + 5);
    tensor.zeros(3 * width + 6, width * rows);
    from_tensor<<<1, 32>>>(tensor.map, Array(2));
    done();
}

// What is not in the tile is not in the tensor.
__global__ void to_tensor(const __grid_constant__ CUtensorMap map)
{
    __shared__ alignas(1024) int tile[width * box_rows];
    int t = threadIdx.x;
    for (int row = 0; row < box_rows; row++)
        if (row != 6 || t != 30) tile[place(row, t)] = 1;
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
    __syncthreads();
    if (t == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %1}], [%2];"
                     : : "l"(&map), "r"(0), "r"(shared_address(tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" : : : "memory");
    }
    __syncthreads();
}

__global__ void look(const int *in, int *out)
{
    int t = threadIdx.x;
    for (int row = 0; row < rows; row++)
        if ((row != 6 || t != 30) && in[row * width + t] == 7) out[0] = 1;
    if (t == 30 && in[EITHER(6, 5) * width + t] == 7)   // init element
        out[1] = 1;
}

TEST(to_a_tensor)
{
    Tensor tensor;
    to_tensor<<<1, 32>>>(tensor.map);
    look<<<1, 32>>>(tensor, Array(2));
    done();
}
