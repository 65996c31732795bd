// CUB's scans over ten million items: each block looks back at what the blocks before it have published so far, and
// waits where they have published nothing yet.
#include "check.h"

#include <cub/device/device_scan.cuh>

#include <vector>

struct Larger {
    __host__ __device__ uint32_t operator()(uint32_t a, uint32_t b) const { return a > b ? a : b; }
};

int main()
{
    const int n = 10000000;
    std::vector<uint32_t> values(n), sums(n), maxima(n);
    Random random(11);
    for (auto &v : values) v = random.next();
    uint32_t *in, *out;
    CUDA(cudaMalloc(&in, n * sizeof *in));
    CUDA(cudaMalloc(&out, n * sizeof *out));
    CUDA(cudaMemcpy(in, values.data(), n * sizeof *in, cudaMemcpyHostToDevice));

    void *room = nullptr;
    size_t sum_bytes = 0, maximum_bytes = 0;
    CUDA(cub::DeviceScan::InclusiveSum(nullptr, sum_bytes, in, out, n));
    CUDA(cub::DeviceScan::ExclusiveScan(nullptr, maximum_bytes, in, out, Larger(), 7u, n));
    CUDA(cudaMalloc(&room, sum_bytes > maximum_bytes ? sum_bytes : maximum_bytes));
    CUDA(cub::DeviceScan::InclusiveSum(room, sum_bytes, in, out, n));
    CUDA(cudaMemcpy(sums.data(), out, n * sizeof *out, cudaMemcpyDeviceToHost));
    CUDA(cub::DeviceScan::ExclusiveScan(room, maximum_bytes, in, out, Larger(), 7u, n));
    CUDA(cudaMemcpy(maxima.data(), out, n * sizeof *out, cudaMemcpyDeviceToHost));

    uint32_t sum = 0, maximum = 7;
    for (int i = 0; i < n; i++) {
        sum += values[i];
        if (sums[i] != sum) fail("sum %d is %u, not %u", i, sums[i], sum);
        if (maxima[i] != maximum) fail("maximum %d is %u, not %u", i, maxima[i], maximum);
        maximum = Larger()(maximum, values[i]);
    }
    return pass();
}
