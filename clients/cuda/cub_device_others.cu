// nvcc: --extended-lambda -Xcompiler -Wno-deprecated-declarations
// CUB's other device-wide primitives: partition, select by flags and by neighbours, reduce and scan by key, extremes with
// their places, runs and their places, adjacent differences, histograms of several channels, copies of many ranges, for each.
#include "check.h"

#include <cub/device/device_adjacent_difference.cuh>
#include <cub/device/device_copy.cuh>
#include <cub/device/device_for.cuh>
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_memcpy.cuh>
#include <cub/device/device_partition.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

#include <algorithm>
#include <vector>

struct Below {
    int limit;
    __host__ __device__ bool operator()(int v) const { return v < limit; }
};
struct Plus {
    template <typename T> __host__ __device__ T operator()(T a, T b) const { return a + b; }
};
struct Minus {
    __host__ __device__ int operator()(int a, int b) const { return a - b; }
};
// Not commutative: composes the maps x -> a x + b, modulo 2^32.
struct Map {
    unsigned a, b;
    __host__ __device__ bool operator!=(const Map &other) const { return a != other.a || b != other.b; }
};
struct Compose {
    __host__ __device__ Map operator()(Map first, Map second) const { return {second.a * first.a, second.a * first.b + second.b}; }
};
struct Twice {
    __host__ __device__ long long operator()(int v) const { return 2ll * v; }
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

template <typename T> static void check(const char *what, const T *got, const std::vector<T> &want)
{
    for (size_t i = 0; i < want.size(); i++)
        if (got[i] != want[i]) fail("%s: wrong at %zu", what, i);
}

static const int n = 20011;
static int *in, *out, *more, *counts;
static std::vector<int> data;

static void choose(Random &random)
{
    char *flags = managed<char>(n);
    for (int i = 0; i < n; i++) flags[i] = random.next() % 3 == 0;
    // Those that are chosen come first, the others behind them from the end.
    with_workspace([&](void *room, size_t &bytes) { return cub::DevicePartition::Flagged(room, bytes, in, flags, out, counts, n); });
    std::vector<int> yes, no;
    for (int i = 0; i < n; i++) (flags[i] ? yes : no).push_back(data[i]);
    EXPECT_EQ(counts[0], yes.size());
    check("partition by flags", out, yes);
    std::reverse(no.begin(), no.end());
    check("partition by flags, the rest", out + yes.size(), no);

    int *middle = managed<int>(n), *rest = managed<int>(n);
    with_workspace([&](void *room, size_t &bytes) { return cub::DevicePartition::If(room, bytes, in, out, middle, rest, counts, n, Below{-20000}, Below{30000}); });
    std::vector<int> low, mid, high;
    for (int v : data) (v < -20000 ? low : v < 30000 ? mid : high).push_back(v);
    EXPECT_EQ(counts[0], low.size());
    EXPECT_EQ(counts[1], mid.size());
    check("three parts: low", out, low);
    check("three parts: middle", middle, mid);
    check("three parts: high", rest, high);

    with_workspace([&](void *room, size_t &bytes) { return cub::DeviceSelect::Flagged(room, bytes, in, flags, out, counts, n); });
    EXPECT_EQ(counts[0], yes.size());
    check("select by flags", out, yes);
}

static void runs()
{
    std::vector<int> keys(n), firsts, ends, starts, lengths;
    for (int i = 0; i < n; i++) keys[i] = more[i] = (i / 7 % 5 == 0) ? i : i / 40;
    for (int i = 0; i < n; i++)
        if (i == 0 || keys[i] != keys[i - 1]) firsts.push_back(keys[i]), ends.push_back(i);
    with_workspace([&](void *room, size_t &bytes) { return cub::DeviceSelect::Unique(room, bytes, more, out, counts, n); });
    EXPECT_EQ(counts[0], firsts.size());
    check("unique", out, firsts);

    std::vector<int> sums(firsts.size()), scanned(n);
    for (int i = 0, run = -1, sum = 0; i < n; i++) {
        if (i == 0 || keys[i] != keys[i - 1]) run++, sum = 0;
        scanned[i] = sum;
        sum += data[i];
        sums[run] = sum;
    }
    int *found = managed<int>(n);
    with_workspace([&](void *room, size_t &bytes) { return cub::DeviceReduce::ReduceByKey(room, bytes, more, found, in, out, counts, Plus(), n); });
    EXPECT_EQ(counts[0], firsts.size());
    check("reduce by key: keys", found, firsts);
    check("reduce by key: sums", out, sums);
    with_workspace([&](void *room, size_t &bytes) { return cub::DeviceScan::ExclusiveSumByKey(room, bytes, more, in, out, n); });
    check("scan by key", out, scanned);

    for (size_t r = 0; r < ends.size(); r++) {
        int length = (r + 1 < ends.size() ? ends[r + 1] : n) - ends[r];
        if (length > 1) starts.push_back(ends[r]), lengths.push_back(length);
    }
    with_workspace([&](void *room, size_t &bytes) { return cub::DeviceRunLengthEncode::NonTrivialRuns(room, bytes, more, found, out, counts, n); });
    EXPECT_EQ(counts[0], starts.size());
    check("runs: starts", found, starts);
    check("runs: lengths", out, lengths);
}

static void combine(Random &random)
{
    long long *total = managed<long long>(1);
    with_workspace([&](void *room, size_t &bytes) { return cub::DeviceReduce::TransformReduce(room, bytes, in, total, n, Plus(), Twice(), 5ll); });
    long long want = 5;
    for (int v : data) want += 2ll * v;
    EXPECT_EQ(*total, want);

    Map *maps = managed<Map>(n), *scanned = managed<Map>(n);
    std::vector<Map> composed(n);
    Map so_far = {1, 0};
    for (int i = 0; i < n; i++) {
        maps[i] = {random.next() | 1, random.next()};
        composed[i] = so_far = Compose()(so_far, maps[i]);
    }
    with_workspace([&](void *room, size_t &bytes) { return cub::DeviceScan::InclusiveScan(room, bytes, maps, scanned, Compose(), n); });
    check("scan of maps", scanned, composed);

    std::vector<int> differences(n);
    for (int i = 0; i < n; i++) differences[i] = i ? data[i] - data[i - 1] : data[i];
    with_workspace([&](void *room, size_t &bytes) { return cub::DeviceAdjacentDifference::SubtractLeftCopy(room, bytes, in, out, n, Minus()); });
    check("adjacent differences", out, differences);
    std::copy(data.begin(), data.end(), more);
    for (int i = 0; i < n; i++) differences[i] = i + 1 < n ? data[i] - data[i + 1] : data[i];
    with_workspace([&](void *room, size_t &bytes) { return cub::DeviceAdjacentDifference::SubtractRight(room, bytes, more, n, Minus()); });
    check("adjacent differences in place", more, differences);
}

static void histograms(Random &random)
{
    // Pixels of four channels, of which three are counted, in rows with something behind them.
    const int width = 101, height = 37, pitch = width * 4 + 12;
    unsigned char *pixels = managed<unsigned char>(pitch * height);
    for (int i = 0; i < pitch * height; i++) pixels[i] = (unsigned char)(random.next() >> 24);
    int *bins[3], levels[3] = {257, 17, 5}, low[3] = {0, 0, 64}, high[3] = {256, 256, 192};
    for (int *&b : bins) b = managed<int>(256);
    with_workspace([&](void *room, size_t &bytes) {
        return cub::DeviceHistogram::MultiHistogramEven<4, 3>(room, bytes, pixels, bins, levels, low, high, width, height, (size_t)pitch);
    });
    for (int c = 0; c < 3; c++) {
        std::vector<int> want(levels[c] - 1);
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++) {
                int v = pixels[y * pitch + x * 4 + c];
                if (v >= low[c] && v < high[c]) want[(v - low[c]) * (levels[c] - 1) / (high[c] - low[c])]++;
            }
        check("histogram of a channel", bins[c], want);
    }
    int *borders = managed<int>(6);
    const int chosen[] = {-50000, -100, 0, 1, 7000, 49000};
    std::copy(chosen, chosen + 6, borders);
    with_workspace([&](void *room, size_t &bytes) { return cub::DeviceHistogram::HistogramRange(room, bytes, in, out, 6, borders, n); });
    std::vector<int> want(5);
    for (int v : data)
        for (int b = 0; b < 5; b++) want[b] += v >= chosen[b] && v < chosen[b + 1];
    check("histogram of ranges", out, want);
}

static void many_copies(Random &random)
{
    const int count = 300;
    const int **from = managed<const int *>(count);
    int **to = managed<int *>(count), *sizes = managed<int>(count), *bytes_of = managed<int>(count);
    std::vector<int> want(n, -1);
    int place = 0;
    for (int i = 0; i < count; i++) {
        int length = i % 50 == 0 ? 1500 : (int)(random.next() % 40), start = (int)(random.next() % (n - 1500));
        from[i] = in + start, to[i] = out + place, sizes[i] = length, bytes_of[i] = length * 4;
        std::copy_n(data.begin() + start, length, want.begin() + place);
        place += length + 1;
    }
    EXPECT(place < n);
    std::fill(out, out + n, -1);
    with_workspace([&](void *room, size_t &bytes) { return cub::DeviceCopy::Batched(room, bytes, from, to, sizes, count); });
    check("many copies", out, want);
    std::fill(out, out + n, -1);
    with_workspace([&](void *room, size_t &bytes) { return cub::DeviceMemcpy::Batched(room, bytes, (const void **)from, (void **)to, bytes_of, count); });
    check("many copies of bytes", out, want);

    int *cells = out;
    CUDA(cub::DeviceFor::Bulk(n, [=] __device__(int i) { cells[i] = i * 3; }));
    CUDA(cub::DeviceFor::ForEach(out, out + n, [] __device__(int &v) { v ^= 0x55; }));
    CUDA(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++) want[i] = i * 3 ^ 0x55;
    check("for each", out, want);
}

int main()
{
    in = managed<int>(n), out = managed<int>(n), more = managed<int>(n), counts = managed<int>(2);
    data.resize(n);
    Random random(22);
    for (int i = 0; i < n; i++) in[i] = data[i] = (int)(random.next() % 100000) - 50000;
    choose(random);
    runs();
    combine(random);
    histograms(random);
    many_copies(random);
    return pass();
}
