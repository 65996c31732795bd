// What goes into the shared memory of another block of the cluster, where the same variables lie at the same places. Each misses its
// variable there, and lands in the next one.
#include <cooperative_groups.h>
#include "../check.h"

static __device__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

// The same place in the other block of two.
static __device__ unsigned across(unsigned address)
{
    unsigned there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(cooperative_groups::this_cluster().block_rank() ^ 1));
    return there;
}

static __device__ void meet() { cooperative_groups::this_cluster().sync(); }

// A barrier that waits for so many bytes.
static __device__ void expect(unsigned barrier, int bytes)
{
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" : : "r"(barrier));
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" : : "r"(barrier), "r"(bytes));
    }
    meet();
}

static __device__ void wait(unsigned barrier)
{
    asm volatile("{ .reg .pred p;\nl: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n@!p bra l; }" : : "r"(barrier) : "memory");
    meet();
}

static void ends() { CUDA(EITHER((cudaDeviceSynchronize(), cudaSuccess), cudaDeviceSynchronize())); }

__global__ void __cluster_dims__(2) store(int *out, int by)
{
    __shared__ alignas(16) int first[32], second[32];
    __shared__ alignas(8) unsigned long long barrier;
    int t = threadIdx.x;
    second[t] = t;
    expect(shared_address(&barrier), sizeof first);
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" // found: made from that of the shared variable store(int*, int)::first
                 : : "r"(across(shared_address(&first[t + by]))), "r"(t), "r"(across(shared_address(&barrier))) : "memory");
    wait(shared_address(&barrier));
    out[t] = first[t] + second[t];
}
TEST(st_async)
{
    Array<> out(32);
    store<<<2, 32>>>(out, EITHER(1, 0));
    ends();
}

__global__ void __cluster_dims__(2) add(int *out, int by)
{
    __shared__ alignas(16) int first[32], second[32];
    __shared__ alignas(8) unsigned long long barrier;
    int t = threadIdx.x;
    first[t] = second[t] = t;
    expect(shared_address(&barrier), sizeof first);
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];" // found: 0x1000080 in .shared
                 : : "r"(across(shared_address(&first[t + by]))), "r"(t), "r"(across(shared_address(&barrier))) : "memory");
    wait(shared_address(&barrier));
    out[t] = first[t] + second[t];
}
TEST(red_async)
{
    Array<> out(32);
    add<<<2, 32>>>(out, EITHER(1, 0));
    ends();
}

__global__ void __cluster_dims__(2) copy(int *out, int bytes)
{
    __shared__ alignas(16) int first[32], second[32], from[64];
    __shared__ alignas(8) unsigned long long barrier;
    int t = threadIdx.x;
    second[t] = from[t] = from[t + 32] = t;
    asm volatile("fence.proxy.async;");
    expect(shared_address(&barrier), bytes);
    if (t == 0)
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" // found: illegal write of 16 bytes at 0x1000080 in .shared
                     : : "r"(across(shared_address(first))), "r"(shared_address(from)), "r"(bytes), "r"(across(shared_address(&barrier))) : "memory");
    wait(shared_address(&barrier));
    out[t] = first[t] + second[t];
}
TEST(bulk)
{
    Array<> out(32);
    copy<<<2, 32>>>(out, EITHER(144, 128));
    ends();
}

// The barrier is another one than what lies behind an array of them.
__global__ void __cluster_dims__(2) tell(int *out, int which)
{
    __shared__ alignas(16) int to[32];
    __shared__ alignas(8) unsigned long long barriers[2], other[2];
    int t = threadIdx.x;
    expect(shared_address(&barriers[1]), EITHER(0, sizeof to));
    expect(shared_address(&other[0]), EITHER(sizeof to, 0));
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" // found: illegal write of 8 bytes
                 : : "r"(across(shared_address(&to[t]))), "r"(t), "r"(across(shared_address(&barriers[which]))) : "memory");
    wait(shared_address(&barriers[1]));
    out[t] = to[t] + int(other[1]);
}
TEST(barrier)
{
    Array<> out(32);
    tell<<<2, 32>>>(out, EITHER(2, 1));
    ends();
}

// By a generic address.
__global__ void __cluster_dims__(2) plain(int *out, int by)
{
    __shared__ int first[32], second[32];
    auto cluster = cooperative_groups::this_cluster();
    int t = threadIdx.x;
    second[t] = t;
    cluster.sync();
    cluster.map_shared_rank(first, cluster.block_rank() ^ 1)[t + by] = t; // found: made from that of the shared variable plain(int*, int)::first
    cluster.sync();
    out[t] = first[t] + second[t];
}
TEST(store)
{
    Array<> out(32);
    plain<<<2, 32>>>(out, EITHER(1, 0));
    ends();
}
