// nvcc: --extended-lambda
// Thrust: sort, scan, reduce, transform, unique, and their like on device vectors.
#include "check.h"

#include <thrust/copy.h>
#include <thrust/count.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/reduce.h>
#include <thrust/remove.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>
#include <thrust/unique.h>

#include <algorithm>
#include <numeric>
#include <vector>

struct Square {
    __host__ __device__ long long operator()(int v) const { return (long long)v * v; }
};
struct Odd {
    __host__ __device__ bool operator()(int v) const { return v & 1; }
};
struct ByLastDigits {
    __host__ __device__ bool operator()(int a, int b) const
    {
        unsigned x = (unsigned)a % 1000, y = (unsigned)b % 1000;
        return x != y ? x < y : a < b;
    }
};

static void check(const char *what, const thrust::device_vector<int> &got, const std::vector<int> &want)
{
    if (got.size() != want.size()) fail("%s: %zu elements, not %zu", what, got.size(), want.size());
    std::vector<int> host(got.size());
    thrust::copy(got.begin(), got.end(), host.begin());
    for (size_t i = 0; i < host.size(); i++)
        if (host[i] != want[i]) fail("%s: [%zu] is %d, not %d", what, i, host[i], want[i]);
}

int main()
{
    const int n = 30011;
    std::vector<int> data(n), want;
    Random random(10);
    for (int &v : data) v = (int)random.next();
    const thrust::device_vector<int> original(data.begin(), data.end());

    thrust::device_vector<int> d = original;
    thrust::sort(d.begin(), d.end()); // radix sort
    want = data;
    std::sort(want.begin(), want.end());
    check("sort", d, want);

    d = original;
    thrust::sort(d.begin(), d.end(), ByLastDigits()); // merge sort
    want = data;
    std::sort(want.begin(), want.end(), ByLastDigits());
    check("sort by comparison", d, want);

    d = original;
    thrust::device_vector<int> index(n);
    thrust::sequence(index.begin(), index.end());
    thrust::stable_sort_by_key(d.begin(), d.end(), index.begin(), thrust::greater<int>());
    std::vector<int> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return data[a] > data[b]; });
    check("sort by key", index, order);

    thrust::inclusive_scan(original.begin(), original.end(), d.begin());
    want.resize(n);
    unsigned sum = 0;
    for (int i = 0; i < n; i++) want[i] = (int)(sum += (unsigned)data[i]);
    check("inclusive scan", d, want);
    thrust::exclusive_scan(original.begin(), original.end(), d.begin(), -1000000000, thrust::maximum<int>());
    int most = -1000000000;
    for (int i = 0; i < n; i++) want[i] = most, most = std::max(most, data[i]);
    check("exclusive scan", d, want);

    long long squares = thrust::transform_reduce(original.begin(), original.begin() + 1000, Square(), 0ll, thrust::plus<long long>());
    long long want_squares = 0;
    for (int i = 0; i < 1000; i++) want_squares += ((long long)data[i] * data[i]) ;
    EXPECT(squares == want_squares);
    EXPECT_EQ(thrust::count_if(original.begin(), original.end(), Odd()), std::count_if(data.begin(), data.end(), Odd()));
    EXPECT_EQ(thrust::max_element(original.begin(), original.end()) - original.begin(), std::max_element(data.begin(), data.end()) - data.begin());
    EXPECT_EQ(thrust::reduce(original.begin(), original.end(), 0x7FFFFFFF, thrust::minimum<int>()), *std::min_element(data.begin(), data.end()));

    d = original;
    d.erase(thrust::remove_if(d.begin(), d.end(), Odd()), d.end());
    want.clear();
    for (int v : data)
        if (!(v & 1)) want.push_back(v);
    check("remove_if", d, want);

    thrust::device_vector<int> keys(n), out_keys(n), out_values(n);
    thrust::transform(thrust::counting_iterator<int>(0), thrust::counting_iterator<int>(n), keys.begin(), [] __device__(int i) { return i * i / 9000 / 3; });
    auto ends = thrust::reduce_by_key(keys.begin(), keys.end(), thrust::counting_iterator<int>(0), out_keys.begin(), out_values.begin());
    std::vector<int> want_keys, want_values;
    for (int i = 0; i < n; i++) {
        int key = (int)((unsigned)i * (unsigned)i) / 9000 / 3;
        if (want_keys.empty() || want_keys.back() != key) want_keys.push_back(key), want_values.push_back(0);
        want_values.back() += i;
    }
    out_keys.erase(ends.first, out_keys.end());
    out_values.erase(ends.second, out_values.end());
    check("reduce_by_key, keys", out_keys, want_keys);
    check("reduce_by_key, values", out_values, want_values);
    keys.erase(thrust::unique(keys.begin(), keys.end()), keys.end());
    check("unique", keys, want_keys);
    return pass();
}
