// CUB's algorithms beside what a C++ program on the host would call. Each is launched four times: the first launch, and the least of
// the other three. `algorithms [--only NAME] [--count N]`; ends with 1 where results differ.
//
// Names are those of CUB's calls. The host's side is one thread; so is the device's with MARGAY_THREADS=1.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include <cub/cub.cuh>
#include <cuda/std/functional>

using Clock = std::chrono::steady_clock;

static double milliseconds_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

static void ok(cudaError_t error) {
    if (error != cudaSuccess) {
        std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
        std::exit(1);
    }
}

struct IsThird {
    __host__ __device__ bool operator()(unsigned x) const { return x % 3 == 0; }
};

static const char *only = "";
static size_t count = 16 << 20;
static bool all_right = true, any_run = false;

/// Times `device`, a call of CUB's that asks for memory first, and `host`; `check` says whether they agree.
template <typename Device, typename Host, typename Check> static void run(const char *name, Device device, Host host, Check check) {
    if (*only && std::strcmp(only, name) != 0)
        return;
    any_run = true;
    size_t bytes = 0;
    ok(device(nullptr, bytes));
    void *memory;
    ok(cudaMalloc(&memory, bytes));
    double first = 0, least = 1e9, native = 1e9;
    for (int i = 0; i < 4; i++) {
        auto start = Clock::now();
        ok(device(memory, bytes));
        ok(cudaDeviceSynchronize());
        double time = milliseconds_since(start);
        i == 0 ? first = time : least = std::min(least, time);
    }
    for (int i = 0; i < 2; i++) {
        auto start = Clock::now();
        host();
        native = std::min(native, milliseconds_since(start));
    }
    bool right = check();
    all_right &= right;
    std::printf("%-18s %10.1f %10.1f %10.1f %8.2f%s\n", name, native, least, first, least / native, right ? "" : "  DIFFERS");
    std::fflush(stdout);
    ok(cudaFree(memory));
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (std::strcmp(argv[i], "--only") == 0 && *value)
            only = value;
        else if (std::strcmp(argv[i], "--count") == 0)
            count = std::strtoull(value, nullptr, 10);
        else
            count = 0;
        if (count < 100 || count > 1 << 28) {
            std::fprintf(stderr, "algorithms [--only NAME] [--count N], where N is 100 to 2^28\n");
            return 2;
        }
    }
    const int n = int(count);
    std::vector<unsigned> in(count), is(count), expected(count);
    unsigned state = 1;
    for (auto &x : in) {
        state = state * 1664525u + 1013904223u;
        x = state >> 3;
    }
    unsigned *a, *b, *c, *d;
    for (unsigned **buffer : {&a, &b, &c, &d})
        ok(cudaMalloc(buffer, count * 4 + 64));
    ok(cudaMemcpy(a, in.data(), count * 4, cudaMemcpyHostToDevice));
    auto same = [&](unsigned *device, size_t words) {
        ok(cudaMemcpy(is.data(), device, words * 4, cudaMemcpyDeviceToHost));
        return std::memcmp(is.data(), expected.data(), words * 4) == 0;
    };
    auto found = [&](size_t words) {
        unsigned of_device;
        ok(cudaMemcpy(&of_device, d, 4, cudaMemcpyDeviceToHost));
        return of_device == words;
    };
    size_t words = 0;

    std::printf("milliseconds       %10s %10s %10s %8s\n", "host", "Margay", "first", "ratio");
    run("InclusiveSum", [&](void *t, size_t &s) { return cub::DeviceScan::InclusiveSum(t, s, a, b, n); },
        [&] { std::partial_sum(in.begin(), in.end(), expected.begin()); }, [&] { return same(b, count); });
    run("ExclusiveScan",
        [&](void *t, size_t &s) {
            return cub::DeviceScan::ExclusiveScan(t, s, a, (unsigned long long *)c, cuda::std::plus<>{}, 0ull, n / 4);
        },
        [&] {
            auto *to = (unsigned long long *)expected.data();
            unsigned long long sum = 0;
            for (int i = 0; i < n / 4; sum += in[i++])
                to[i] = sum;
        },
        [&] { return same(c, count / 2); });
    run("Sum", [&](void *t, size_t &s) { return cub::DeviceReduce::Sum(t, s, a, b, n); },
        [&] { expected[0] = std::accumulate(in.begin(), in.end(), 0u); }, [&] { return same(b, 1); });
    run("If", [&](void *t, size_t &s) { return cub::DeviceSelect::If(t, s, a, b, d, n, IsThird()); },
        [&] { words = std::copy_if(in.begin(), in.end(), expected.begin(), IsThird()) - expected.begin(); },
        [&] { return found(words) && same(b, words); });
    run("SortKeys", [&](void *t, size_t &s) { return cub::DeviceRadixSort::SortKeys(t, s, a, b, n); },
        [&] { std::sort((expected = in).begin(), expected.end()); }, [&] { return same(b, count); });
    run("SortPairs", [&](void *t, size_t &s) { return cub::DeviceRadixSort::SortPairs(t, s, a, b, a, c, n); },
        [&] { std::stable_sort((expected = in).begin(), expected.end()); }, [&] { return same(c, count); });
    run("MergeSort",
        [&](void *t, size_t &s) {
            ok(cudaMemcpyAsync(d, a, count * 4, cudaMemcpyDeviceToDevice));
            return cub::DeviceMergeSort::SortKeys(t, s, d, n, cuda::std::less<unsigned>{});
        },
        [&] { std::stable_sort((expected = in).begin(), expected.end()); }, [&] { return same(d, count); });
    run("HistogramEven",
        [&](void *t, size_t &s) {
            return cub::DeviceHistogram::HistogramEven(t, s, (unsigned char *)a, (int *)b, 257, 0, 256, int(count * 4));
        },
        [&] {
            std::fill_n(expected.begin(), 256, 0);
            auto *bytes = (unsigned char *)in.data();
            for (size_t i = 0; i < count * 4; i++)
                expected[bytes[i]]++;
        },
        [&] { return same(b, 256); });
    run("Encode", [&](void *t, size_t &s) { return cub::DeviceRunLengthEncode::Encode(t, s, a, b, (int *)c, (int *)d, n); },
        [&] { words = std::unique_copy(in.begin(), in.end(), expected.begin()) - expected.begin(); },
        [&] { return found(words) && same(b, words); });
    run("SegmentedSum",
        [&](void *t, size_t &s) {
            auto begins = thrust::make_transform_iterator(thrust::make_counting_iterator(0),
                                                          [] __host__ __device__(int i) { return i * 100; });
            return cub::DeviceSegmentedReduce::Sum(t, s, a, b, n / 100, begins, begins + 1);
        },
        [&] {
            for (int i = 0; i < n / 100; i++)
                expected[i] = std::accumulate(&in[i * 100], &in[i * 100] + 100, 0u);
        },
        [&] { return same(b, count / 100); });
    if (!any_run)
        std::fprintf(stderr, "there is no %s\n", only);
    return all_right && any_run ? 0 : 1;
}
