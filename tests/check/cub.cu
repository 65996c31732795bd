// CUB and Thrust: what they do inside is in order.
#include "check.h"

#include <cub/cub.cuh>
#include <thrust/execution_policy.h>
#include <thrust/sort.h>

const int threads = 128, many = 10000;

// A block's collectives one after the other; what they keep in shared memory is used again, or too early.
__global__ void collectives(const int *in, int *out)
{
    using Reduce = cub::BlockReduce<int, threads>;
    using Scan = cub::BlockScan<int, threads>;
    __shared__ union {
        typename Reduce::TempStorage reduce;
        typename Scan::TempStorage scan;
    } storage;
    __shared__ int total;
    int own = in[blockIdx.x * threads + threadIdx.x], before;
    int sum = Reduce(storage.reduce).Sum(own);
    if (threadIdx.x == 0) total = sum;
    __syncthreads();
    Scan(storage.scan).ExclusiveSum(own, before);
    out[blockIdx.x * threads + threadIdx.x] = total - before;
}

TEST(collectives)
{
    Array in(4 * threads), out(4 * threads);
    collectives<<<4, threads>>>(in.number(), out);
    expect(out, [&](int i) {
        int sum = 0;
        for (int k = i; k < (i / threads + 1) * threads; k++) sum += in[k];
        return sum;
    });
}

__global__ void block_sort(const int *in, int *out)
{
    using Load = cub::BlockLoad<int, threads, 4, cub::BLOCK_LOAD_TRANSPOSE>;
    using Sort = cub::BlockRadixSort<int, threads, 4>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Sort::TempStorage sort;
    } storage;
    int keys[4];
    Load(storage.load).Load(in, keys);
    __syncthreads();
    Sort(storage.sort).Sort(keys);
    for (int k = 0; k < 4; k++) out[threadIdx.x * 4 + k] = keys[k];
}

TEST(block_sort)
{
    Array in(4 * threads), out(4 * threads);
    for (int i = 0; i < in.count(); i++) in[i] = i * 37 % in.count();
    block_sort<<<1, threads>>>(in, out);
    expect(out, [](int i) { return i; });
}

// Of CUB's functions for a device: asked how much memory they need, then called with it.
#define WITH_STORAGE(call, ...)                                                                                        \
    do {                                                                                                               \
        size_t size = 0;                                                                                               \
        CUDA(call(nullptr, size, __VA_ARGS__));                                                                        \
        Array<char> storage(int(size) + 1);                                                                            \
        CUDA(call((void *)storage, size, __VA_ARGS__));                                                                \
        CUDA(cudaDeviceSynchronize());                                                                                 \
    } while (0)

TEST(device_reduce)
{
    Array in(many), out(1);
    in.number();
    WITH_STORAGE(cub::DeviceReduce::Sum, (int *)in, (int *)out, many);
    expect(out, [](int) { return many + 3 * (many / 2) * (many - 1); });
}

TEST(device_scan)
{
    Array in(many), out(many);
    in.number();
    WITH_STORAGE(cub::DeviceScan::InclusiveSum, (int *)in, (int *)out, many);
    expect(out, [](int i) { return i + 1 + 3 * (i * (i + 1) / 2); });
}

TEST(device_sort)
{
    Array in(many), out(many);
    for (int i = 0; i < many; i++) in[i] = i * 37 % many;
    WITH_STORAGE(cub::DeviceRadixSort::SortKeys, (int *)in, (int *)out, many);
    expect(out, [](int i) { return i; });
}

// An order that is no number's: a sort by merging.
struct Backwards {
    __device__ bool operator()(int a, int b) const { return a > b; }
};

TEST(thrust_sort)
{
    Array data(many);
    for (int i = 0; i < many; i++) data[i] = i * 37 % many;
    thrust::sort(thrust::device, (int *)data, (int *)data + many, Backwards());
    expect(data, [](int i) { return many - 1 - i; });
}
