// nvcc: -gencode arch=compute_90,code=compute_90
// device: sm_90
// finds race in places(*: what a block of the cluster holds is read while others add to it
// Clusters of blocks: a histogram in distributed shared memory, a ring of barriers in memory, cooperative groups of a
// cluster and of the grid, and what the runtime says of launches that cannot be.
#include "check.h"

#include <cooperative_groups.h>
#include <cuda/barrier>
#include <vector>

namespace cg = cooperative_groups;

const int bins = 256;
const int blocks = 8;

// Each block of a cluster has a part of the bins; all add to all parts.
__global__ void histogram(const int *values, int count, int *out, int parts)
{
    extern __shared__ int mine[];
    cg::cluster_group cluster = cg::this_cluster();
    int part = bins / parts;
    for (int i = threadIdx.x; i < part; i += blockDim.x) mine[i] = 0;
    cluster.sync();
    for (int i = cg::this_grid().thread_rank(); i < count; i += cg::this_grid().size()) {
        int bin = values[i] & (bins - 1);
        int *there = cluster.map_shared_rank(mine, bin / part);
        atomicAdd(there + bin % part, 1);
    }
    cluster.sync();
    for (int i = threadIdx.x; i < part; i += blockDim.x) atomicAdd(out + cluster.block_rank() * part + i, mine[i]);
}

// A number goes round the cluster, one more at each block, each of which waits at a barrier of its own.
__global__ void ring(int rounds, int *out)
{
    using barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ uint64_t full;
    __shared__ volatile int word;
    cg::cluster_group cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank(), size = cluster.num_blocks();
    uint32_t at = (uint32_t)__cvta_generic_to_shared(&full);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        word = 0;
    }
    cluster.sync();
    if (threadIdx.x == 0) {
        volatile int *next = cluster.map_shared_rank((int *)&word, (rank + 1) % size);
        for (int round = 0; round < rounds; round++) {
            if (round > 0 || rank > 0) {
                unsigned parity = (rank == 0 ? round - 1 : round) & 1, over = 0;
                while (!over)
                    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;"
                                 " selp.u32 %0, 1, 0, p; }"
                                 : "=r"(over)
                                 : "r"(at), "r"(parity)
                                 : "memory");
            }
            *next = word + 1;
            asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;"
                         " mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there]; }" ::"r"(at),
                         "r"((rank + 1) % size)
                         : "memory");
        }
    }
    cluster.sync();
    if (threadIdx.x == 0) out[blockIdx.x] = word;
}

// What the groups say of themselves.
__global__ void __cluster_dims__(2, 2, 1) places(int *out)
{
    cg::cluster_group cluster = cg::this_cluster();
    __shared__ int here;
    dim3 index = cluster.block_index(), dim = cluster.dim_blocks();
    int linear = (blockIdx.y * gridDim.x + blockIdx.x) * 8;
    if (threadIdx.x == 0) {
        here = 100 + cluster.block_rank();
        out[linear] = cluster.block_rank();
        out[linear + 1] = index.x * 10 + index.y;
        out[linear + 2] = dim.x * 10 + dim.y;
        out[linear + 3] = cluster.num_threads();
        out[linear + 4] = cluster.query_shared_rank(&here);
    }
    auto token = cluster.barrier_arrive();
    cluster.barrier_wait(std::move(token));
    int *there = cluster.map_shared_rank(&here, cluster.block_rank() ^ 3);
    if (threadIdx.x == 0) {
        out[linear + 5] = *there;
        out[linear + 6] = cluster.query_shared_rank(there);
    }
    int seen = atomicAdd(there, 1000);
    cluster.sync();
    if (threadIdx.x == 0) out[linear + 7] = here / 1000 + (seen < 0);
}

// The grid meets, and each cluster by itself.
__global__ void both(int *sums)
{
    cg::cluster_group cluster = cg::this_cluster();
    cg::grid_group grid = cg::this_grid();
    __shared__ int part;
    if (threadIdx.x == 0) part = blockIdx.x + 1;
    for (int round = 0; round < 3; round++) {
        cluster.sync();
        int sum = 0;
        for (unsigned r = 0; r < cluster.num_blocks(); r++) sum += *cluster.map_shared_rank(&part, r);
        cluster.sync();
        if (threadIdx.x == 0) sums[blockIdx.x] = sum;
        grid.sync();
        if (threadIdx.x == 0) part = sums[(blockIdx.x + 1) % gridDim.x];
        grid.sync();
    }
}

template <class... Formal, class... Actual>
cudaError_t launch(void (*kernel)(Formal...), int grid, int block, int cluster, size_t shared, bool cooperative,
                   Actual... arguments)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared;
    cudaLaunchAttribute attributes[2];
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim.x = cluster;
    attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
    attributes[1].id = cudaLaunchAttributeCooperative;
    attributes[1].val.cooperative = cooperative;
    config.attrs = attributes;
    config.numAttrs = cooperative ? 2 : 1;
    return cudaLaunchKernelEx(&config, kernel, arguments...);
}

int main()
{
    int supported = 0;
    CUDA(cudaDeviceGetAttribute(&supported, cudaDevAttrClusterLaunch, 0));
    if (!supported) fail("no clusters");

    const int count = 20000;
    std::vector<int> values(count), wanted(bins), got(bins);
    unsigned random = 12345;
    for (int &value : values) {
        random = random * 1664525 + 1013904223;
        value = random >> 16;
        wanted[value & (bins - 1)]++;
    }
    int *from, *to;
    CUDA(cudaMalloc(&from, count * sizeof(int)));
    CUDA(cudaMalloc(&to, 4096));
    CUDA(cudaMemcpy(from, values.data(), count * sizeof(int), cudaMemcpyHostToDevice));
    for (int cluster : {1, 2, 4, 8}) {
        CUDA(cudaMemset(to, 0, 4096));
        CUDA(launch(histogram, blocks, 96, cluster, bins / cluster * sizeof(int), false, (const int *)from, count, to,
                    cluster));
        CUDA(cudaMemcpy(got.data(), to, bins * sizeof(int), cudaMemcpyDeviceToHost));
        for (int i = 0; i < bins; i++)
            if (got[i] != wanted[i]) fail("clusters of %d: bin %d: %d and not %d", cluster, i, got[i], wanted[i]);
    }

    CUDA(launch(ring, 16, 64, 8, 0, false, 10, to));
    CUDA(cudaMemcpy(got.data(), to, 16 * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 16; i++) {
        int want = i % 8 == 0 ? 80 : 72 + i % 8;
        if (got[i] != want) fail("ring: block %d: %d and not %d", i, got[i], want);
    }

    places<<<dim3(4, 2), 32>>>(to);
    CUDA(cudaGetLastError());
    CUDA(cudaMemcpy(got.data(), to, 64 * sizeof(int), cudaMemcpyDeviceToHost));
    for (int y = 0; y < 2; y++)
        for (int x = 0; x < 4; x++) {
            int rank = y % 2 * 2 + x % 2;
            int want[8] = {rank, x % 2 * 10 + y % 2, 22, 128, rank, 0, rank ^ 3, 32};
            for (int k = 0; k < 8; k++)
                // The sixth is read while others add to it.
                if (k == 5 ? got[(y * 4 + x) * 8 + k] % 1000 != 100 + (rank ^ 3) : got[(y * 4 + x) * 8 + k] != want[k])
                    fail("places: block (%d,%d): %d. is %d", x, y, k, got[(y * 4 + x) * 8 + k]);
        }

    CUDA(launch(both, 8, 32, 4, 0, true, to));
    CUDA(cudaMemcpy(got.data(), to, 8 * sizeof(int), cudaMemcpyDeviceToHost));
    int part[8], sums[8];
    for (int i = 0; i < 8; i++) part[i] = i + 1;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 8; i++) {
            sums[i] = 0;
            for (int k = 0; k < 4; k++) sums[i] += part[i / 4 * 4 + k];
        }
        for (int i = 0; i < 8; i++) part[i] = sums[(i + 1) % 8];
    }
    for (int i = 0; i < 8; i++)
        if (got[i] != sums[i]) fail("both: block %d: %d and not %d", i, got[i], sums[i]);

    // What cannot be: a grid that the cluster does not divide, and more blocks than are portable.
    cudaError_t uneven = launch(ring, 9, 32, 2, 0, false, 1, to);
    if (uneven != cudaErrorInvalidClusterSize) fail("9 blocks in clusters of 2: %s", cudaGetErrorName(uneven));
    cudaGetLastError();
    cudaError_t large = launch(ring, 16, 32, 16, 0, false, 1, to);
    if (large != cudaErrorInvalidClusterSize) fail("clusters of 16: %s", cudaGetErrorName(large));
    cudaGetLastError();
    CUDA(cudaFuncSetAttribute(ring, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    CUDA(launch(ring, 16, 32, 16, 0, false, 2, to));
    CUDA(cudaMemcpy(got.data(), to, 16 * sizeof(int), cudaMemcpyDeviceToHost));
    if (got[0] != 32 || got[15] != 31) fail("clusters of 16: %d, %d", got[0], got[15]);

    cudaLaunchConfig_t config = {};
    config.gridDim = 16;
    config.blockDim = 64;
    int size = 0;
    CUDA(cudaOccupancyMaxPotentialClusterSize(&size, histogram, &config));
    if (size != 8) fail("the largest cluster has %d blocks", size);
    CUDA(cudaFree(from));
    CUDA(cudaFree(to));
    return pass();
}
