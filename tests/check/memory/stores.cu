// compute_100a
// Copies some of whose bytes are left out, and stores of many zeros. Each misses its variable, or the allocation of its parameter, and
// lands in another one.
#include "../check.h"

static __device__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

static void ends() { CUDA(EITHER((cudaDeviceSynchronize(), cudaSuccess), cudaDeviceSynchronize())); }

__global__ void clear(int *out, int bytes)
{
    __shared__ alignas(16) int first[32], second[32];
    int t = threadIdx.x;
    first[t] = second[t] = t;
    __syncthreads();
    if (t == 0) asm volatile("st.bulk.weak.shared::cta [%0], %1, 0;" : : "r"(shared_address(first)), "l"((long long)bytes) : "memory"); // found: illegal write of 136 bytes at 0x0 in .shared
    __syncthreads();
    out[t] = first[t] + second[t];
}
TEST(st_bulk)
{
    Array<> out(32);
    clear<<<1, 32>>>(out, EITHER(136, 128));
    ends();
}

// Two allocations of 512 bytes.
struct Two {
    Two()
    {
        CUDA(cudaMalloc(&first, 512));
        CUDA(cudaMalloc(&second, 512));
    }
    char *first, *second;
};

// Of each sixteen bytes those of the mask are written: here the second eight, or the first.
__global__ void copy_some(char *to, int by, short mask)
{
    __shared__ alignas(16) int from[8];
    int t = threadIdx.x;
    if (t < 8) from[t] = t;
    asm volatile("fence.proxy.async;");
    __syncthreads();
    if (t == 0)
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%0], [%1], 32, %2;" // found: the address was made from parameter 0
                     : : "l"(to + by), "r"(shared_address(from)), "h"(mask) : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;");
}
TEST(bulk_of_some_bytes)
{
    Two two;
    copy_some<<<1, 32>>>(two.first, EITHER(int(two.second - two.first), 480), short(0xff00));
    ends();
}

// Bytes that are ignored may lie before an allocation, and behind it.
__global__ void copy_inside(int *out, const char *from, int by)
{
    __shared__ alignas(16) int to[16];
    __shared__ alignas(8) unsigned long long barrier;
    unsigned at = shared_address(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" : : "r"(at));
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 64;" : : "r"(at));
        asm volatile("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [%0], [%1], 64, 0, 12, [%2];" // found: the address was made from parameter 1
                     : : "r"(shared_address(to)), "l"(from + by), "r"(at) : "memory");
    }
    __syncthreads();
    asm volatile("{ .reg .pred p;\nl: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n@!p bra l; }" : : "r"(at) : "memory");
    out[threadIdx.x] = to[threadIdx.x];
}
TEST(bulk_but_its_ends)
{
    Array<> out(32);
    char *first, *second;
    CUDA(cudaMalloc(&first, 500));
    CUDA(cudaMalloc(&second, 500));
    CUDA(cudaMemset(first, 0, 500));
    CUDA(cudaMemset(second, 0, 500));
    copy_inside<<<1, 16>>>(out, first, EITHER(int(second - first), 448));
    ends();
}
