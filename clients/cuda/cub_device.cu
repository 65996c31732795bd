// CUB's device-wide primitives: reduce, scan (blocks that look back at earlier ones), radix sort, select, histogram,
// run-length encoding, segmented reduction.
#include "check.h"

#include <cub/device/device_histogram.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/device/device_select.cuh>

#include <algorithm>
#include <vector>

struct Even {
    __host__ __device__ bool operator()(int v) const { return v % 2 == 0; }
};

template <typename T> static T *managed(size_t n)
{
    T *p;
    CUDA(cudaMallocManaged(&p, n * sizeof(T)));
    return p;
}

// Runs a primitive the way CUB wants it: once to ask for the size of its workspace, once in earnest.
template <typename F> static void with_workspace(F f)
{
    size_t bytes = 0;
    void *room = nullptr;
    CUDA(f(nullptr, bytes));
    CUDA(cudaMalloc(&room, bytes));
    CUDA(f(room, bytes));
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaFree(room));
}

int main()
{
    const int n = 40007;
    int *in = managed<int>(n), *out = managed<int>(n), *values = managed<int>(n), *out_values = managed<int>(n), *one = managed<int>(1);
    std::vector<int> data(n), want;
    Random random(12);
    for (int i = 0; i < n; i++) in[i] = data[i] = (int)(random.next() % 100000) - 50000, values[i] = i;

    with_workspace([&](void *room, size_t &bytes) { return cub::DeviceReduce::Sum(room, bytes, in, one, n); });
    long long sum = 0;
    for (int v : data) sum += v;
    EXPECT_EQ(*one, (int)sum);
    with_workspace([&](void *room, size_t &bytes) { return cub::DeviceReduce::Max(room, bytes, in, one, n); });
    EXPECT_EQ(*one, *std::max_element(data.begin(), data.end()));

    with_workspace([&](void *room, size_t &bytes) { return cub::DeviceScan::InclusiveSum(room, bytes, in, out, n); });
    int running = 0;
    for (int i = 0; i < n; i++) {
        running += data[i];
        if (out[i] != running) fail("scan: [%d] is %d, not %d", i, out[i], running);
    }

    with_workspace([&](void *room, size_t &bytes) { return cub::DeviceRadixSort::SortPairs(room, bytes, in, out, values, out_values, n); });
    want.resize(n);
    for (int i = 0; i < n; i++) want[i] = i;
    std::stable_sort(want.begin(), want.end(), [&](int a, int b) { return data[a] < data[b]; });
    for (int i = 0; i < n; i++)
        if (out_values[i] != want[i] || out[i] != data[want[i]]) fail("sort of pairs: wrong at %d", i);

    std::vector<unsigned long long> wide(5000);
    unsigned long long *win = managed<unsigned long long>(wide.size()), *wout = managed<unsigned long long>(wide.size());
    for (size_t i = 0; i < wide.size(); i++) win[i] = wide[i] = random.next64();
    with_workspace([&](void *room, size_t &bytes) { return cub::DeviceRadixSort::SortKeysDescending(room, bytes, win, wout, (int)wide.size()); });
    std::sort(wide.rbegin(), wide.rend());
    for (size_t i = 0; i < wide.size(); i++)
        if (wout[i] != wide[i]) fail("descending sort: wrong at %zu", i);

    with_workspace([&](void *room, size_t &bytes) { return cub::DeviceSelect::If(room, bytes, in, out, one, n, Even()); });
    want.clear();
    for (int v : data)
        if (v % 2 == 0) want.push_back(v);
    EXPECT_EQ(*one, want.size());
    for (size_t i = 0; i < want.size(); i++)
        if (out[i] != want[i]) fail("select: wrong at %zu", i);

    // Levels of 0 to 255 in steps of 16.
    std::vector<unsigned char> pixels(20000);
    unsigned char *image = managed<unsigned char>(pixels.size());
    int levels = 17;
    for (size_t i = 0; i < pixels.size(); i++) image[i] = pixels[i] = (unsigned char)(random.next() >> 24);
    with_workspace([&](void *room, size_t &bytes) { return cub::DeviceHistogram::HistogramEven(room, bytes, image, out, levels, 0, 256, (int)pixels.size()); });
    int counts[16] = {};
    for (unsigned char p : pixels) counts[p / 16]++;
    for (int i = 0; i < 16; i++) EXPECT_EQ(out[i], counts[i]);

    for (int i = 0; i < n; i++) in[i] = data[i] = i / (1 + i % 4001 / 1000);
    with_workspace([&](void *room, size_t &bytes) { return cub::DeviceRunLengthEncode::Encode(room, bytes, in, out, out_values, one, n); });
    std::vector<int> keys, lengths;
    for (int v : data) {
        if (keys.empty() || keys.back() != v) keys.push_back(v), lengths.push_back(0);
        lengths.back()++;
    }
    EXPECT_EQ(*one, keys.size());
    for (size_t i = 0; i < keys.size(); i++)
        if (out[i] != keys[i] || out_values[i] != lengths[i]) fail("run %zu: %d x %d", i, out[i], out_values[i]);

    const int segments = 100;
    int *offsets = managed<int>(segments + 1);
    for (int s = 0; s <= segments; s++) offsets[s] = s * s * 4;
    with_workspace([&](void *room, size_t &bytes) { return cub::DeviceSegmentedReduce::Sum(room, bytes, in, out, segments, offsets, offsets + 1); });
    for (int s = 0; s < segments; s++) {
        int total = 0;
        for (int i = offsets[s]; i < offsets[s + 1]; i++) total += data[i];
        EXPECT_EQ(out[s], total);
    }
    return pass();
}
