// Grids and clusters whose blocks meet: a barrier too few, or one that orders nothing.
#include "check.h"

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

const int blocks = 4, threads = 64, cells = blocks * threads;

template <class... Formal, class... Actual>
void launch(void (*kernel)(Formal...), int grid, int block, int cluster, Actual &&...actual)
{
    cudaLaunchAttribute attribute = {};
    if (cluster > 0) {
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim = {unsigned(cluster), 1, 1};
    } else {
        attribute.id = cudaLaunchAttributeCooperative;
        attribute.val.cooperative = 1;
    }
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.attrs = &attribute;
    config.numAttrs = 1;
    CUDA(cudaLaunchKernelEx(&config, kernel, Formal(actual)...));
}

__global__ void grid_barrier_missing(int *x, int *out)
{
    int i = blockIdx.x * threads + threadIdx.x;
    x[i] = i + 1;                                      // race x: write
    BROKEN(__syncthreads());
    MENDED(cg::this_grid().sync());
    out[i] = x[cells - 1 - i];                         // race x: read
}

TEST(grid_barrier_missing)
{
    Array x(cells), out(cells);
    launch(grid_barrier_missing, blocks, threads, 0, x, out);
    expect(out, [](int i) { return cells - i; });
}

// Who is quick overwrites what others still read.
__global__ void second_grid_barrier_missing(int *x, int *out)
{
    int i = blockIdx.x * threads + threadIdx.x;
    x[i] = i;
    cg::this_grid().sync();
    int sum = x[(i + cells - threads) % cells] + x[(i + threads) % cells];  // race x: read
    MENDED(cg::this_grid().sync());
    x[i] = sum;                                                             // race x: write
    out[i] = x[i];
}

TEST(second_grid_barrier_missing)
{
    Array x(cells), out(cells);
    launch(second_grid_barrier_missing, blocks, threads, 0, x, out);
    expect(out, [](int i) { return (i + cells - threads) % cells + (i + threads) % cells; });
}

// The two halves of a grid's barrier, with work in between.
__global__ void grid_in_two_halves(int *x, int *out)
{
    int i = blockIdx.x * threads + threadIdx.x;
    auto grid = cg::this_grid();
    x[i] = i + 1;
    auto token = grid.barrier_arrive();
    out[i] = 1;
    grid.barrier_wait(std::move(token));
    out[i] += x[cells - 1 - i];
}

TEST(grid_in_two_halves)
{
    Array x(cells), out(cells);
    launch(grid_in_two_halves, blocks, threads, 0, x, out);
    expect(out, [](int i) { return cells - i + 1; });
}

// A thread of each block comes to a barrier made of an atomic counter; its block does not wait for it.
__global__ void barrier_of_one_thread(int *x, int *count, int *out)
{
    int i = blockIdx.x * threads + threadIdx.x;
    x[i] = i + 1;                                      // race x: write
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(count, 1);
        while (atomicAdd(count, 0) < blocks) {}
        __threadfence();
    }
    MENDED(__syncthreads());
    out[i] = x[cells - 1 - i];                         // race x: read
}

TEST(barrier_of_one_thread)
{
    Array x(cells), count(1), out(cells);
    launch(barrier_of_one_thread, blocks, threads, 0, x, count, out);
    expect(out, [](int i) { return cells - i; });
}

// Another block's shared memory is read before it has been written.
__global__ void cluster_barrier_missing(int *out)
{
    __shared__ int mine[threads];
    cg::cluster_group cluster = cg::this_cluster();
    int t = threadIdx.x, rank = cluster.block_rank();
    cluster.sync();
    mine[t] = rank * threads + t;                                                        // race mine: write
    BROKEN(__syncthreads());
    MENDED(cluster.sync());
    out[blockIdx.x * threads + t] = cluster.map_shared_rank(mine, rank ^ 1)[t ^ 32];     // race mine: read
    cluster.sync();
}

TEST(cluster_barrier_missing)
{
    Array out(cells);
    launch(cluster_barrier_missing, blocks, threads, 2, out);
    expect(out, [](int i) { return (i % (2 * threads)) ^ threads ^ 32; });
}

// And written before it has been cleared.
__global__ void cleared_while_counted(int *out)
{
    __shared__ int counts[4];
    cg::cluster_group cluster = cg::this_cluster();
    int t = threadIdx.x;
    cluster.sync();
    if (t < 4) counts[t] = 0;                                               // race counts: write
    BROKEN(__syncthreads());
    MENDED(cluster.sync());
    atomicAdd(cluster.map_shared_rank(counts, t / 4 % 4) + t % 4, 1);       // race counts: atomic
    cluster.sync();
    if (t < 4) out[blockIdx.x * 4 + t] = counts[t];
}

TEST(cleared_while_counted)
{
    Array out(16);
    launch(cleared_while_counted, blocks, threads, 4, out);
    expect(out, [](int) { return 16; });
}

// An arrival that is relaxed releases nothing.
__global__ void relaxed_cluster_arrival(int *out)
{
    __shared__ int mine[threads];
    cg::cluster_group cluster = cg::this_cluster();
    int t = threadIdx.x, rank = cluster.block_rank();
    mine[t] = rank * threads + t;                                                        // race mine: write
    BROKEN(asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"));
    MENDED(asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"));
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    out[blockIdx.x * threads + t] = cluster.map_shared_rank(mine, rank ^ 1)[t];          // race mine: read
    cluster.sync();
}

TEST(relaxed_cluster_arrival)
{
    Array out(cells);
    launch(relaxed_cluster_arrival, blocks, threads, 2, out);
    expect(out, [](int i) { return (i % (2 * threads)) ^ threads; });
}

// Between arrival and wait nothing of others may be read.
__global__ void read_before_the_wait(int *out)
{
    __shared__ int mine[threads];
    cg::cluster_group cluster = cg::this_cluster();
    int t = threadIdx.x, rank = cluster.block_rank();
    cluster.sync();
    mine[t] = rank * threads + t;                                                        // race mine: write
    cluster.barrier_arrive();
    MENDED(cluster.barrier_wait());
    out[blockIdx.x * threads + t] = cluster.map_shared_rank(mine, rank ^ 1)[t];          // race mine: read
    BROKEN(cluster.barrier_wait());
    cluster.sync();
}

TEST(read_before_the_wait)
{
    Array out(cells);
    launch(read_before_the_wait, blocks, threads, 2, out);
    expect(out, [](int i) { return (i % (2 * threads)) ^ threads; });
}

// Written between arrival and wait, so behind what the arrival releases.
__global__ void write_behind_the_arrival(int *out)
{
    __shared__ int mine[threads];
    cg::cluster_group cluster = cg::this_cluster();
    int t = threadIdx.x, rank = cluster.block_rank();
    BROKEN(cluster.barrier_arrive());
    mine[t] = rank * threads + t;                                                        // race mine: write
    MENDED(cluster.barrier_arrive());
    cluster.barrier_wait();
    out[blockIdx.x * threads + t] = cluster.map_shared_rank(mine, rank ^ 1)[t];          // race mine: read
    cluster.sync();
}

TEST(write_behind_the_arrival)
{
    Array out(cells);
    launch(write_behind_the_arrival, blocks, threads, 2, out);
    expect(out, [](int i) { return (i % (2 * threads)) ^ threads; });
}

// The barrier of a cluster is none for another.
__global__ void barrier_of_the_cluster(int *x, int *out)
{
    int i = blockIdx.x * threads + threadIdx.x;
    x[i] = i + 1;                                                  // race x: write
    cg::this_cluster().sync();
    out[i] = x[EITHER(cells - 1 - i, i ^ threads)];                // race x: read
}

TEST(barrier_of_the_cluster)
{
    Array x(cells), out(cells);
    launch(barrier_of_the_cluster, blocks, threads, 2, x, out);
    expect(out, [](int i) { return (i ^ threads) + 1; });
}

// The same for an mbarrier, at which another block arrives.
__global__ void relaxed_arrival_elsewhere(int *data, int *out)
{
    __shared__ unsigned long long full;
    unsigned at = (unsigned)__cvta_generic_to_shared(&full);
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    cluster.sync();
    if (cluster.block_rank() == 0) {
        *data = 42;                                                                      // race data: write
        asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, 1;"
                     " mbarrier.arrive." BROKEN("relaxed") MENDED("release") ".cluster.shared::cluster.b64 _, [there]; }"
                     ::"r"(at) : "memory");
    } else {
        int over = 0;
        while (!over)
            asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared.b64 p, [%1], 0;"
                         " selp.s32 %0, 1, 0, p; }" : "=r"(over) : "r"(at) : "memory");
        *out = *data;                                                                    // race data: read
    }
    cluster.sync();
}

TEST(relaxed_arrival_elsewhere)
{
    Array data(1), out(1);
    launch(relaxed_arrival_elsewhere, 2, 1, 2, data, out);
    expect(out, [](int) { return 42; });
}
