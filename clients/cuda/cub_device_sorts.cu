// finds init in *DeviceSegmentedRadixSortKernel*: threads past the last digit add a count that nobody has set, and take it away again
// CUB's other device-wide sorts: merge sorts by a comparison, sorts of many segments at once (by radix, and by size of the
// segment), radix sorts of floats and of some of the bits.
#include "check.h"

#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_segmented_radix_sort.cuh>
#include <cub/device/device_segmented_sort.cuh>

#include <algorithm>
#include <cmath>
#include <vector>

struct Entry {
    short group;
    int weight;
};
struct ByGroup {
    __host__ __device__ bool operator()(const Entry &a, const Entry &b) const { return a.group < b.group; }
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

static void merge_sort(Random &random)
{
    const int n = 9001;
    Entry *entries = managed<Entry>(n);
    std::vector<Entry> want(n);
    for (int i = 0; i < n; i++) entries[i] = want[i] = {(short)(random.next() % 61), i};
    with_workspace([&](void *room, size_t &bytes) { return cub::DeviceMergeSort::StableSortKeys(room, bytes, entries, n, ByGroup()); });
    std::stable_sort(want.begin(), want.end(), ByGroup());
    for (int i = 0; i < n; i++)
        if (entries[i].group != want[i].group || entries[i].weight != want[i].weight) fail("merge sort: wrong at %d", i);
}

static void radix_sort_of_floats(Random &random)
{
    const int n = 6007;
    float *in = managed<float>(n), *out = managed<float>(n);
    std::vector<float> want(n);
    for (int i = 0; i < n; i++) in[i] = want[i] = std::ldexp(random.uniform() - 0.5f, (int)(random.next() % 200) - 100);
    in[5] = want[5] = INFINITY, in[6] = want[6] = -INFINITY, in[7] = want[7] = 1e-42f, in[8] = want[8] = -1e-42f;
    with_workspace([&](void *room, size_t &bytes) { return cub::DeviceRadixSort::SortKeys(room, bytes, in, out, n); });
    std::sort(want.begin(), want.end());
    for (int i = 0; i < n; i++)
        if (memcmp(&out[i], &want[i], sizeof(float))) fail("sort of floats: [%d] is %g, not %g", i, out[i], want[i]);
}

// The lower bits neither count nor move.
static void radix_sort_of_some_bits(Random &random)
{
    const int n = 6007;
    unsigned *in = managed<unsigned>(n), *out = managed<unsigned>(n);
    std::vector<unsigned> want(n);
    for (int i = 0; i < n; i++) in[i] = want[i] = random.next();
    cub::DoubleBuffer<unsigned> keys(in, out);
    with_workspace([&](void *room, size_t &bytes) { return cub::DeviceRadixSort::SortKeys(room, bytes, keys, n, 5, 16); });
    std::stable_sort(want.begin(), want.end(), [](unsigned a, unsigned b) { return (a >> 5 & 0x7FF) < (b >> 5 & 0x7FF); });
    for (int i = 0; i < n; i++)
        if (keys.Current()[i] != want[i]) fail("sort of some bits: wrong at %d", i);
}

// Segments of 0 to some thousand items, so that each of the sorts for small, middle and large ones has work.
static void segments(Random &random)
{
    std::vector<int> ends = {0};
    for (int length : {0, 1, 2, 5, 31, 32, 33, 64, 100, 0, 255, 511, 700, 1024, 1500, 7, 5000, 3, 0, 16, 12000, 1}) ends.push_back(ends.back() + length);
    const int count = (int)ends.size() - 1, n = ends.back();
    int *offsets = managed<int>(ends.size()), *keys = managed<int>(n), *values = managed<int>(n), *out_keys = managed<int>(n), *out_values = managed<int>(n);
    std::copy(ends.begin(), ends.end(), offsets);
    for (int i = 0; i < n; i++) keys[i] = (int)(random.next() % 2000) - 1000, values[i] = i;
    auto check = [&](const char *what, auto before) {
        std::vector<int> want(n);
        for (int i = 0; i < n; i++) want[i] = i;
        for (int s = 0; s < count; s++) std::stable_sort(want.begin() + ends[s], want.begin() + ends[s + 1], [&](int a, int b) { return before(keys[a], keys[b]); });
        for (int i = 0; i < n; i++)
            if (out_values[i] != want[i] || out_keys[i] != keys[want[i]]) fail("%s: [%d] is %d of %d, not %d", what, i, out_keys[i], out_values[i], want[i]);
        std::fill(out_keys, out_keys + n, 0);
        std::fill(out_values, out_values + n, 0);
    };
    with_workspace([&](void *room, size_t &bytes) {
        return cub::DeviceSegmentedRadixSort::SortPairs(room, bytes, keys, out_keys, values, out_values, n, count, offsets, offsets + 1);
    });
    check("radix sort of segments", [](int a, int b) { return a < b; });
    with_workspace([&](void *room, size_t &bytes) {
        return cub::DeviceSegmentedSort::StableSortPairsDescending(room, bytes, keys, out_keys, values, out_values, n, count, offsets, offsets + 1);
    });
    check("descending sort of segments", [](int a, int b) { return a > b; });
}

int main()
{
    Random random(21);
    merge_sort(random);
    radix_sort_of_floats(random);
    radix_sort_of_some_bits(random);
    segments(random);
    return pass();
}
