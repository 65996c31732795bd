// Cooperative launch: barriers over the whole grid, what the occupancy allows, and what is refused.
#include "check.h"

#include <cooperative_groups.h>

#include <vector>

namespace cg = cooperative_groups;

// Every round each block reads what its neighbours wrote in the round before.
__global__ void ring(int *cells, int rounds)
{
    cg::grid_group grid = cg::this_grid();
    int n = grid.size(), i = grid.thread_rank();
    int *from = cells, *to = cells + n;
    for (int r = 0; r < rounds; r++) {
        to[i] = from[(i + n - 1) % n] + 3 * from[(i + blockDim.x) % n] + r;
        grid.sync();
        int *swap = from;
        from = to;
        to = swap;
    }
}

__global__ void not_cooperative(int *valid) { *valid = cg::this_grid().is_valid(); }

int main()
{
    int supported = 0, per_processor = 0, processors = 0;
    CUDA(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, 0));
    EXPECT_EQ(supported, 1);
    CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, ring, 64, 0));
    EXPECT(per_processor > 0 && processors > 0);
    int blocks = per_processor * processors;
    if (blocks > 24) blocks = 24;
    const int n = blocks * 64;
    int rounds = 21, *cells;
    CUDA(cudaMallocManaged(&cells, 2 * n * sizeof(int)));
    std::vector<int> from(n), to(n);
    for (int i = 0; i < n; i++) cells[i] = from[i] = i * i % 1009;
    void *arguments[] = {&cells, &rounds};
    CUDA(cudaLaunchCooperativeKernel((const void *)ring, dim3(blocks), dim3(64), arguments, 0, 0));
    FINISHED();
    for (int r = 0; r < rounds; r++) {
        for (int i = 0; i < n; i++) to[i] = (int)((unsigned)from[(i + n - 1) % n] + 3u * (unsigned)from[(i + 64) % n] + r);
        from.swap(to);
    }
    for (int i = 0; i < n; i++) EXPECT_EQ(cells[n * (rounds & 1) + i], from[i]);

    // The same through a launch attribute.
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(64);
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
    config.attrs = &attribute;
    config.numAttrs = 1;
    for (int i = 0; i < n; i++) cells[i] = from[i] = i % 77;
    CUDA(cudaLaunchKernelEx(&config, ring, cells, 2));
    CUDA(cudaDeviceSynchronize());
    for (int r = 0; r < 2; r++) {
        for (int i = 0; i < n; i++) to[i] = from[(i + n - 1) % n] + 3 * from[(i + 64) % n] + r;
        from.swap(to);
    }
    for (int i = 0; i < n; i++) EXPECT_EQ(cells[i], from[i]);

    EXPECT_ERROR(cudaLaunchCooperativeKernel((const void *)ring, dim3(1000000), dim3(64), arguments, 0, 0), cudaErrorCooperativeLaunchTooLarge);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorCooperativeLaunchTooLarge);
    *cells = 5;
    not_cooperative<<<1, 1>>>(cells);
    FINISHED();
    EXPECT_EQ(*cells, 0);
    return pass();
}
