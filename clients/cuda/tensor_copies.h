// What kernels with tensor copies have in common: mbarriers, descriptions of arrays for the copies, and the copies, in the
// words of the PTX ISA ("Parallel Synchronization and Communication Instructions: mbarrier", "Data Movement and
// Conversion Instructions: Tensor copy").
#pragma once

#include "check.h"

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_fp16.h>

#include <vector>

__device__ inline unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ inline void barrier_init(uint64_t *barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

// Waits until the phase of this parity is over.
__device__ inline void barrier_wait(uint64_t *barrier, unsigned parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" ::"r"(shared_address(barrier)), "r"(parity) : "memory");
}

__device__ inline void barrier_arrive(uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

__device__ inline void barrier_arrive_expect(uint64_t *barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes) : "memory");
}

// Makes what was initialised visible to the copies, of the whole cluster.
__device__ inline void barriers_ready() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// Makes what this thread wrote to shared memory visible to copies and to matrix instructions.
__device__ inline void written_for_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ inline void copy_in(void *to, const CUtensorMap *map, int x, int y, uint64_t *barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::
                     "r"(shared_address(to)), "l"(map), "r"(x), "r"(y), "r"(shared_address(barrier)) : "memory");
}

__device__ inline void copy_out(const CUtensorMap *map, int x, int y, const void *from)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::
                     "l"(map), "r"(x), "r"(y), "r"(shared_address(from)) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Until copies may be overwritten, and until they are done.
__device__ inline void copies_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
__device__ inline void copies_done() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// The place of a byte of a box with rows of 128 bytes that was copied with the swizzle of 128 bytes.
__device__ inline unsigned swizzle128(unsigned byte) { return byte ^ (byte >> 3 & 0x70); }

// One elected lane of a whole warp.
__device__ inline bool elected()
{
    unsigned yes;
    asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(yes));
    return yes;
}

// Rows of `width` elements, copied in boxes of `box_width` by `box_height`.
inline CUtensorMap tensor_map(CUtensorMapDataType type, size_t bytes, void *array, int width, int height, int box_width, int box_height,
                              CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B)
{
    static PFN_cuTensorMapEncodeTiled_v12000 encode;
    if (!encode) {
        cudaDriverEntryPointQueryResult found;
        CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode, 12000, cudaEnableDefault, &found));
        EXPECT_EQ(found, cudaDriverEntryPointSuccess);
    }
    CUtensorMap map;
    cuuint64_t size[2] = {(cuuint64_t)width, (cuuint64_t)height}, stride[1] = {width * bytes};
    cuuint32_t box[2] = {(cuuint32_t)box_width, (cuuint32_t)box_height}, step[2] = {1, 1};
    CUresult code = encode(&map, type, 2, array, size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                           CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (code != CUDA_SUCCESS) fail("cuTensorMapEncodeTiled gives %d", (int)code);
    return map;
}

// C = A · Bᵀ of halves and its result on the host. Quarters up to two: products are whole sixteenths and sums stay far
// below 2^20 of them, so that every sum is exact, in whatever order it is taken.
struct Product {
    int m, n, k;
    std::vector<float> want;
    __half *a, *b;
    float *c;

    Product(int m, int n, int k) : m(m), n(n), k(k), want((size_t)m * n)
    {
        std::vector<float> x((size_t)m * k), y((size_t)n * k);
        Random random(m + n + k);
        CUDA(cudaMallocManaged(&a, x.size() * sizeof *a));
        CUDA(cudaMallocManaged(&b, y.size() * sizeof *b));
        CUDA(cudaMallocManaged(&c, want.size() * sizeof *c));
        for (size_t i = 0; i < x.size(); i++) a[i] = __float2half(x[i] = ((int)(random.next() % 17) - 8) / 4.0f);
        for (size_t i = 0; i < y.size(); i++) b[i] = __float2half(y[i] = ((int)(random.next() % 17) - 8) / 4.0f);
        for (int i = 0; i < m; i++)
            for (int j = 0; j < n; j++) {
                float sum = 0;
                for (int e = 0; e < k; e++) sum += x[(size_t)i * k + e] * y[(size_t)j * k + e];
                want[(size_t)i * n + j] = sum;
            }
        CUDA(cudaMemset(c, 0xff, want.size() * sizeof *c));
    }
    Product(const Product &) = delete;
    ~Product()
    {
        cudaFree(a);
        cudaFree(b);
        cudaFree(c);
    }
    void check() const
    {
        for (int i = 0; i < m; i++)
            for (int j = 0; j < n; j++) {
                float got = c[(size_t)i * n + j], expected = want[(size_t)i * n + j];
                if (got != expected) fail("%d x %d x %d: element %d,%d is %g, not %g", m, n, k, i, j, got, expected);
            }
    }
};
