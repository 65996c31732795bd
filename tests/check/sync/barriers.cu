// Barriers of the block and of the cluster, to which not all of those come who must, or not all by one instruction.
#include "../check.h"

#define PTX(...) asm volatile(__VA_ARGS__ ::: "memory")

// How a kernel is launched in clusters of so many blocks.
template <class... Formal, class... Actual>
void launch(void (*kernel)(Formal...), int grid, int block, int cluster, Actual &&...actual)
{
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attribute = {};
    config.gridDim = grid;
    config.blockDim = block;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {unsigned(cluster), 1, 1};
    config.attrs = &attribute;
    config.numAttrs = 1;
    CUDA(cudaLaunchKernelEx(&config, kernel, actual...));
}

// Half a warp takes another barrier instruction than the other half.
__global__ void two_places(int *out)
{
    int t = threadIdx.x;
    if (EITHER(t & 16, t < 32)) {
        PTX("bar.sync 1, 32; // one");        // sync halves
        out[t] = 1;
    } else {
        PTX("bar.sync 1, 32; // other");      // sync halves
        out[t] = 2;
    }
}

TEST(two_places)
{
    Array out(32);
    two_places<<<1, 32>>>(out);
    expect(out, [](int) { return 1; });
}

// Threads leave before the barrier, in the middle of a warp.
__global__ void early_exit(int *out, int n)
{
    int t = threadIdx.x;
    BROKEN(if (t >= n) return);
    __syncthreads();                          // sync exited
    if (t < n) out[t] = t;
}

TEST(early_exit)
{
    Array out(40);
    early_exit<<<1, 64>>>(out, 40);
    expect(out, [](int i) { return i; });
}

// Whole warps may leave: the barrier waits for those that are there.
__global__ void warps_exit(int *out)
{
    int t = threadIdx.x;
    if (t >= 32) return;
    __syncthreads();
    out[t] = t;
}

TEST(warps_exit)
{
    Array out(32);
    warps_exit<<<1, 96>>>(out);
    expect(out, [](int i) { return i; });
}

// A block whose last warp is not whole.
__global__ void odd_block(int *out)
{
    __syncthreads();
    out[threadIdx.x] = 1;
    __syncthreads();
}

TEST(odd_block)
{
    Array out(45);
    odd_block<<<1, dim3(15, 3)>>>(out);
    expect(out, [](int i) { return i < 15; });
}

// Each warp has a __syncthreads of its own.
__global__ void warps_in_branches(int *out)
{
    int t = threadIdx.x;
    if (EITHER(t < 32, blockDim.x == 64)) {
        __syncthreads();                      // sync branches
        out[t] = 1;
    } else {
        __syncthreads();                      // sync branches
        out[t] = t;
    }
}

TEST(warps_in_branches)
{
    Array out(64);
    warps_in_branches<<<1, 64>>>(out);
    expect(out, [](int) { return 1; });
}

// Half warps add up to what the barrier counts.
__global__ void half_warps(int *out)
{
    int t = threadIdx.x;
    if (EITHER(t % 32 < 16, t < 32)) {
        PTX("bar.sync 1, 32;");               // sync half
    }
    out[t] = t;
}

TEST(half_warps)
{
    Array out(64);
    half_warps<<<1, 64>>>(out);
    expect(out, [](int i) { return i; });
}

// barrier.sync without .aligned is for threads, wherever they stand in their warps.
__global__ void unaligned(int *out)
{
    int t = threadIdx.x;
    if (t & 1) {
        PTX("barrier.sync 2; // odd");
        out[t] = 1;
    } else {
        PTX("barrier.sync 2; // even");
        out[t] = 2;
    }
}

TEST(unaligned)
{
    Array out(64);
    unaligned<<<1, 64>>>(out);
    expect(out, [](int i) { return i & 1 ? 1 : 2; });
}

// More threads than there are.
__global__ void too_many(int *out)
{
    int t = threadIdx.x;
    if (t < 32) {
        BROKEN(PTX("bar.arrive 1, 96;"));     // sync many
        MENDED(PTX("bar.arrive 1, 64;"));
    } else {
        MENDED(PTX("bar.sync 1, 64;"));
    }
    out[t] = t;
}

TEST(too_many)
{
    Array out(64);
    too_many<<<1, 64>>>(out);
    expect(out, [](int i) { return i; });
}

// One side of a named barrier counts otherwise than the other.
__global__ void two_counts(int *out)
{
    int t = threadIdx.x;
    if (t < 32) PTX("bar.arrive 1, 64;");     // sync counts
    __syncthreads();
    if (t >= 32 && t < 64) {
        BROKEN(PTX("bar.sync 1, 96;"));       // sync counts
        MENDED(PTX("bar.sync 1, 64;"));
    }
    out[t] = t;
}

TEST(two_counts)
{
    Array out(96);
    two_counts<<<1, 96>>>(out);
    expect(out, [](int i) { return i; });
}

// A reduction that meets a barrier without one.
__global__ void reduction_and_barrier(int *out)
{
    int t = threadIdx.x, all = 64;
    if (t < 32) {
        asm volatile("{ .reg .pred p; setp.ge.s32 p, %1, 0; bar.red.popc.u32 %0, 1, 64, p; }" : "=r"(all) : "r"(t)); // sync kinds
        out[t] = all > 0;
    } else {
        BROKEN(PTX("bar.sync 1, 64;"));       // sync kinds
        MENDED(asm volatile("{ .reg .pred p; setp.ge.s32 p, %1, 0; bar.red.popc.u32 %0, 1, 64, p; }" : "=r"(all) : "r"(t)));
        out[t] = all > 0;
    }
}

TEST(reduction_and_barrier)
{
    Array out(64);
    reduction_and_barrier<<<1, 64>>>(out);
    expect(out, [](int) { return 1; });
}

#define RED(op, result, t)                                                                                             \
    asm volatile("{ .reg .pred p, q; setp.ge.s32 p, %1, 0; bar.red." op ".pred q, 1, 64, p; selp.s32 %0, 1, 0, q; }"   \
                 : "=r"(result) : "r"(t))

// Two reductions, of which one asks for all and one for any.
__global__ void two_reductions(int *out)
{
    int t = threadIdx.x, result;
    if (t < 32) {
        RED("and", result, t);                // sync reductions
        out[t] = result;
    } else {
        BROKEN(RED("or", result, t));         // sync reductions
        MENDED(RED("and", result, t));
        out[t] = result;
    }
}

TEST(two_reductions)
{
    Array out(64);
    two_reductions<<<1, 64>>>(out);
    expect(out, [](int) { return 1; });
}

// Blocks have barriers 0 to 15.
__global__ void number(int *out, int barrier)
{
    asm volatile("barrier.sync %0;" ::"r"(barrier) : "memory");  // fails number
    out[threadIdx.x] = 1;
}

TEST(number)
{
    Array out(32);
    number<<<1, 32>>>(out, EITHER(16, 15));
    expect(out, [](int) { return 1; });
}

// Barriers wait for a multiple of 32 threads.
__global__ void odd_count(int *out, int threads)
{
    asm volatile("barrier.sync 1, %0;" ::"r"(threads) : "memory");  // fails odd
    out[threadIdx.x] = 1;
}

TEST(odd_count)
{
    Array out(64);
    odd_count<<<1, 64>>>(out, EITHER(48, 64));
    expect(out, [](int) { return 1; });
}

// Threads arrive at the cluster's barrier, and go.
__global__ void cluster_exit(int *out)
{
    PTX("barrier.cluster.arrive.aligned;");   // sync exit
    MENDED(PTX("barrier.cluster.wait.aligned;"));
    out[blockIdx.x * 32 + threadIdx.x] = 1;
}

TEST(cluster_exit)
{
    Array out(64);
    launch(cluster_exit, 2, 32, 2, out);
    expect(out, [](int) { return 1; });
}

// One block does not arrive before it waits.
__global__ void cluster_wait(int *out)
{
    if (EITHER(blockIdx.x == 0, true)) PTX("barrier.cluster.arrive.aligned;");
    PTX("barrier.cluster.wait.aligned;");     // sync wait, fails deadlock
    out[blockIdx.x * 32 + threadIdx.x] = 1;
}

TEST(cluster_wait)
{
    Array out(64);
    launch(cluster_wait, 2, 32, 2, out);
    expect(out, [](int) { return 1; });
}

// Other blocks' memory, before they are known to have begun.
__global__ void peer_at_start(int *out)
{
    __shared__ int mine[32];
    unsigned there, own = unsigned(__cvta_generic_to_shared(&mine[threadIdx.x]));
    int seen;
    MENDED(PTX("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(own), "r"(blockIdx.x ^ 1));
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(seen) : "r"(there) : "memory");  // sync start
    PTX("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;");
    out[blockIdx.x * 32 + threadIdx.x] = seen - seen + mine[0] * 0 + 1;
}

TEST(peer_at_start)
{
    Array out(64);
    launch(peer_at_start, 2, 32, 2, out);
    expect(out, [](int) { return 1; });
}

// Likewise, when they may have ended: if they have, it is a stray access.
__global__ void peer_at_end(int *out)
{
    __shared__ int mine[32];
    unsigned there, own = unsigned(__cvta_generic_to_shared(&mine[threadIdx.x]));
    int seen = 0;
    mine[threadIdx.x] = 1;
    PTX("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;");
    if (blockIdx.x == 0) {
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(own), "r"(1));
        asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(seen) : "r"(there) : "memory");  // either end
    }
    MENDED(PTX("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"));
    out[blockIdx.x * 32 + threadIdx.x] = seen;
}

TEST(peer_at_end)
{
    Array out(64);
    launch(peer_at_end, 2, 32, 2, out);
    expect(out, [](int i) { return i < 32; });
}
