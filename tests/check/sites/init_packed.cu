// compute_100a
// Values that nobody has written, through tensor copies of elements of four and six bits: sixteen of them are a unit, which takes 8 or 12
// bytes in global memory, and 16 in shared memory, with a gap behind them (PTX ISA, Tensor Dimension, size and format). On the way back each
// element of six bits has a byte (`.b6p2x16`).
#include <cuda.h>
#include <cudaTypedefs.h>
#include "check.h"

// Rows of 128 elements, which are eight units.
const int units = 8, rows = 8;

class Tensor {
  public:
    Tensor(CUtensorMapDataType type, int bytes_of_a_unit) : row_(units * bytes_of_a_unit)
    {
        CUDA(cudaMalloc(&start_, row_ * rows));
        PFN_cuTensorMapEncodeTiled_v12000 encode;
        cudaDriverEntryPointQueryResult found;
        CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode, 12000, cudaEnableDefault, &found));
        cuuint64_t size[] = {128, rows}, stride[] = {cuuint64_t(row_)};
        cuuint32_t box[] = {128, rows}, step[] = {1, 1};
        CUresult code = encode(&map, type, 2, start_, size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                               CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
        if (code != CUDA_SUCCESS) printf("cuTensorMapEncodeTiled gives %d\n", code), exit(2);
    }
    Tensor(const Tensor &) = delete;
    operator unsigned char *() const { return start_; }
    // All but the byte `at`.
    void zeros_but(int at)
    {
        CUDA(cudaMemset(start_, 0, at));
        CUDA(cudaMemset(start_ + at + 1, 0, row_ * rows - at - 1));
    }
    CUtensorMap map;

  private:
    unsigned char *start_;
    int row_;
};

static void done()
{
    CUDA(cudaGetLastError());
    CUDA(cudaDeviceSynchronize());
}

__device__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

// Units of 16 bytes change places within a row of 128 bytes, by the row's number.
__device__ int place(int row, int unit) { return row * 128 + (unit ^ row) * 16; }

// `bytes` of a unit are copied.
__device__ void load(unsigned char *tile, const CUtensorMap *map, int bytes)
{
    __shared__ alignas(8) unsigned long long barrier;
    unsigned at = shared_address(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" : : "r"(at));
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" : : "r"(at), "r"(bytes * units * rows));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %2}], [%3];"
                     : : "r"(shared_address(tile)), "l"(map), "r"(0), "r"(at) : "memory");
    }
    __syncthreads();
    asm volatile("{ .reg .pred p;\nl: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n@!p bra l; }" : : "r"(at) : "memory");
}

// Of row 3 one byte is not there, the last of unit 5.
__global__ void from_sixes(const __grid_constant__ CUtensorMap map, int *out)
{
    __shared__ alignas(1024) unsigned char tile[128 * rows];
    int t = threadIdx.x;
    load(tile, &map, 12);
    for (int row = 0; row < rows; row++)
        for (int unit = 0; unit < units; unit++)
            if (t < 12 && (row != 3 || unit != 5 || t != 11) && tile[place(row, unit) + t] == 7) out[0] = 1;
    if (tile[place(EITHER(3, 2), 5) + 11] == 7)         // init element
        out[1] = 1;
}

TEST(six_bits)
{
    Tensor tensor(CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B, 12);
    tensor.zeros_but(3 * 96 + 5 * 12 + 11);
    from_sixes<<<1, 32>>>(tensor.map, Array(2));
    done();
}

__global__ void from_fours(const __grid_constant__ CUtensorMap map, int *out)
{
    __shared__ alignas(1024) unsigned char tile[128 * rows];
    int t = threadIdx.x;
    load(tile, &map, 8);
    for (int row = 0; row < rows; row++)
        for (int unit = 0; unit < units; unit++)
            if (t < 8 && (row != 7 || unit != 0 || t != 1) && tile[place(row, unit) + t] == 7) out[0] = 1;
    if (tile[place(7, 0) + EITHER(1, 2)] == 7)          // init element
        out[1] = 1;
}

TEST(four_bits)
{
    Tensor tensor(CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B, 8);
    tensor.zeros_but(7 * 64 + 1);
    from_fours<<<1, 32>>>(tensor.map, Array(2));
    done();
}

// Element 4 of unit 2 of row 6 is not in the tile: bits 24 to 29 of the unit, of which six are in byte 3.
__global__ void to_tensor(const __grid_constant__ CUtensorMap map)
{
    __shared__ alignas(1024) unsigned char tile[128 * rows];
    int t = threadIdx.x;
    for (int row = 0; row < rows; row++)
        for (int unit = 0; unit < units; unit++)
            if (t < 16 && (row != 6 || unit != 2 || t != 4)) tile[place(row, unit) + t] = 1;
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
    __syncthreads();
    if (t == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %1}], [%2];"
                     : : "l"(&map), "r"(0), "r"(shared_address(tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" : : : "memory");
    }
    __syncthreads();
}

__global__ void look(const unsigned char *in, int *out)
{
    const int at = 6 * 96 + 2 * 12 + 3;
    for (int i = threadIdx.x; i < 96 * rows; i += 32)
        if (i != at && in[i] == 7) out[0] = 1;
    if (in[at] >> 6 == 3) out[1] = 1;
    if ((in[at] & EITHER(0x3f, 0xc0)) == 7)             // init element
        out[2] = 1;
}

TEST(six_bits_back)
{
    Tensor tensor(CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B, 12);
    to_tensor<<<1, 32>>>(tensor.map);
    look<<<1, 32>>>(tensor, Array(3));
    done();
}
