// Operations that reach further than a few bytes: rows and tiles of matrices, asynchronous and bulk copies. Each misses its variable, or
// the allocation of its parameter, and lands in another one.
#include <mma.h>
#include "../check.h"

static __device__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

static void ends() { CUDA(EITHER((cudaDeviceSynchronize(), cudaSuccess), cudaDeviceSynchronize())); }

// Rows of 16 bytes; threads 16 to 31 name rows, the others too.
__global__ void load_rows(int *out, int by)
{
    __shared__ alignas(16) int first[32 * 4], second[32 * 4];
    int t = threadIdx.x;
    for (int i = t; i < 32 * 4; i += 32) first[i] = second[i] = i;
    __syncwarp();
    unsigned r[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" // found: made from that of the shared variable load_rows(int*, int)::first
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(&first[(t + by) * 4])));
    out[t] = r[0] + r[1] + r[2] + r[3] + second[t];
}
TEST(ldmatrix)
{
    Array<> out(32);
    load_rows<<<1, 32>>>(out, EITHER(1, 0));
    ends();
}

// The addresses of the first 16 threads count: others may lie anywhere.
__global__ void load_two(int *out, int by)
{
    __shared__ alignas(16) int first[16 * 4], second[32 * 4];
    int t = threadIdx.x;
    for (int i = t; i < 16 * 4; i += 32) first[i] = second[i] = i;
    second[t + 64] = 0;
    __syncwarp();
    unsigned r[2];
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" // found: 0x100 in .shared
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(shared_address(&first[(t + by) * 4])));
    out[t] = r[0] + r[1] + second[t];
}
TEST(ldmatrix_of_two)
{
    Array<> out(32);
    load_two<<<1, 32>>>(out, EITHER(1, 0));
    ends();
}

__global__ void store_rows(int *out, int by)
{
    __shared__ alignas(16) int first[8 * 4], second[32 * 4];
    int t = threadIdx.x;
    second[t] = t;
    __syncwarp();
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" // found: illegal write of 16 bytes at 0x80 in .shared
                 : : "r"(shared_address(&first[(t + by) * 4])), "r"(t));
    __syncwarp();
    out[t] = first[t] + second[t];
}
TEST(stmatrix)
{
    Array<> out(32);
    store_rows<<<1, 32>>>(out, EITHER(1, 0));
    ends();
}

using namespace nvcuda;
using Sums = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

// The last line of a tile is one too far, by a stride that the compiler knows and by one that it does not.
__global__ void load_tile(int *out)
{
    __shared__ alignas(32) float first[15 * 20 + EITHER(0, 16)], second[16 * 20];
    int t = threadIdx.x;
    for (int i = t; i < sizeof first / 4; i += 32) first[i] = i;
    for (int i = t; i < 16 * 20; i += 32) second[i] = i;
    __syncwarp();
    Sums sums;
    wmma::load_matrix_sync(sums, first, 20, wmma::mem_row_major); // found: illegal read of 64 bytes
    out[t] = sums.x[0] + second[t];
}
TEST(wmma_load)
{
    Array<> out(32);
    load_tile<<<1, 32>>>(out);
    ends();
}

__global__ void store_tile(int *out, int stride)
{
    __shared__ alignas(32) float first[16 * 16], second[16 * 20];
    int t = threadIdx.x;
    for (int i = t; i < 16 * 20; i += 32) second[i] = i;
    Sums sums;
    wmma::fill_fragment(sums, 1);
    wmma::store_matrix_sync(first, sums, stride, wmma::mem_row_major); // found: illegal write of 64 bytes
    __syncwarp();
    out[t] = first[t] + second[t];
}
TEST(wmma_store)
{
    Array<> out(32);
    store_tile<<<1, 32>>>(out, EITHER(20, 16));
    ends();
}

// Two allocations of 512 bytes lie a page apart, or nearer.
struct Two {
    Two()
    {
        CUDA(cudaMalloc(&first, 512));
        CUDA(cudaMalloc(&second, 512));
        CUDA(cudaMemset(first, 0, 512));
        CUDA(cudaMemset(second, 0, 512));
    }
    // Elements from the first to the second one.
    int apart() const { return int(second - first); }
    int *first, *second;
};

// The source of an asynchronous copy.
__global__ void copy(const int *in, int *out, int by)
{
    __shared__ int tile[32];
    int t = threadIdx.x;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" // found: address was made from parameter 0
                 : : "r"(shared_address(&tile[t])), "l"(in + t + by));
    asm volatile("cp.async.wait_all;");
    __syncwarp();
    out[t] = tile[t];
}
TEST(asynchronous_copy)
{
    Array<> out(32);
    Two two;
    copy<<<1, 32>>>(two.first, out, EITHER(two.apart(), 0));
    ends();
}

// What is not read may lie anywhere: behind the end of a matrix libraries copy nothing, which makes zeros.
__global__ void copy_some(const int *in, int *out, int by, int from, int bytes)
{
    __shared__ int tile[32];
    int t = threadIdx.x;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" // found: address was made from parameter 0
                 : : "r"(shared_address(&tile[t])), "l"(t < from ? in + t : in + t + by), "r"(t < from ? 4 : bytes));
    asm volatile("cp.async.wait_all;");
    __syncwarp();
    out[t] = tile[t];
}
TEST(asynchronous_copy_of_some)
{
    Array<> out(32);
    Two two;
    copy_some<<<1, 32>>>(two.first, out, two.apart(), 17, EITHER(1, 0));
    ends();
}

// A bulk copy whose size the compiler knows, and one whose size it does not.
template <class Size> __device__ void bulk(void *to, const void *from, Size size)
{
    __shared__ alignas(8) unsigned long long barrier;
    unsigned at = shared_address(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" : : "r"(at));
        asm volatile("fence.mbarrier_init.release.cluster;");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" : : "r"(at), "r"(unsigned(size)));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                     : : "r"(shared_address(to)), "l"(from), "r"(unsigned(size)), "r"(at) : "memory");
    }
    __syncthreads();
    asm volatile("{ .reg .pred p;\nl: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n@!p bra l; }" : : "r"(at) : "memory");
}

__global__ void bulk_to_shared(const int *in, int *out, int size)
{
    __shared__ alignas(16) int first[64], second[64];
    int t = threadIdx.x;
    second[t] = t;
    __syncthreads();
    bulk(first, in, size); // found: made from that of the shared variable bulk_to_shared(int const*, int*, int)::first
    out[t] = first[t] + second[t];
}
TEST(bulk_destination)
{
    Array<> out(32);
    Two two;
    bulk_to_shared<<<1, 32>>>(two.first, out, EITHER(272, 256));
    ends();
}

__global__ void bulk_from_global(const int *in, int *out, int by)
{
    __shared__ alignas(16) int first[64];
    bulk(first, in + by, 256u); // found: address was made from parameter 0
    out[threadIdx.x] = first[threadIdx.x];
}
TEST(bulk_source)
{
    Array<> out(32);
    Two two;
    bulk_from_global<<<1, 32>>>(two.first, out, EITHER(two.apart(), 64));
    ends();
}

// Nothing at the end of a variable is nothing wrong.
__global__ void bulk_of_nothing(int *to, int *out, int first, int size)
{
    __shared__ alignas(16) int some[64], other[64];
    int t = threadIdx.x;
    some[t] = some[t + 32] = other[t] = other[t + 32] = t;
    asm volatile("fence.proxy.async;");
    __syncthreads();
    if (t == 0)
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" // found: illegal read of 16 bytes
                     : : "l"(to), "r"(shared_address(&some[first])), "r"(size) : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;");
    out[t] = some[t] + other[t];
}
TEST(bulk_of_shared)
{
    Array<> out(32);
    Two two;
    bulk_of_nothing<<<1, 32>>>(two.first, out, EITHER(60, 48), EITHER(32, 64));
    bulk_of_nothing<<<1, 32>>>(two.first, out, 64, 0);
    ends();
}
