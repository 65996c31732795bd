// nvcc: --extended-lambda -Xcompiler -Wno-deprecated-declarations
// Thrust with fancy iterators (zip, transform, permutation, counting, constant, reverse, discard), with streams in execution
// policies, with memory of each kind, and on the host.
#include "check.h"

#include <thrust/copy.h>
#include <thrust/device_ptr.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/fill.h>
#include <thrust/for_each.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/discard_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/reverse_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/transform_output_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/tuple.h>
#include <thrust/universal_vector.h>
#include <thrust/zip_function.h>

#include <algorithm>
#include <vector>

struct Square {
    __host__ __device__ int operator()(int v) const { return v * v; }
};
struct Halve {
    __host__ __device__ int operator()(int v) const { return v / 2; }
};
struct Combine {
    __host__ __device__ int operator()(int a, int b, int c) const { return a * 3 + b * 5 - c; }
};
struct AddPairs {
    __host__ __device__ thrust::tuple<int, long long> operator()(thrust::tuple<int, long long> a, thrust::tuple<int, long long> b) const
    {
        return thrust::make_tuple(thrust::get<0>(a) > thrust::get<0>(b) ? thrust::get<0>(a) : thrust::get<0>(b), thrust::get<1>(a) + thrust::get<1>(b));
    }
};

template <typename V> static void check(const char *what, const V &got, const std::vector<int> &want)
{
    if (got.size() != want.size()) fail("%s: %zu elements, not %zu", what, (size_t)got.size(), want.size());
    thrust::host_vector<int> host(got.begin(), got.end());
    for (size_t i = 0; i < host.size(); i++)
        if (host[i] != want[i]) fail("%s: [%zu] is %d, not %d", what, i, host[i], want[i]);
}

int main()
{
    const int n = 5003;
    std::vector<int> data(n), order(n), want(n);
    Random random(24);
    for (int i = 0; i < n; i++) data[i] = (int)(random.next() % 2001) - 1000, order[i] = (int)((long long)i * 17 % n);
    thrust::device_vector<int> a(data.begin(), data.end()), map(order.begin(), order.end()), b(n), c(n);
    auto count = thrust::make_counting_iterator(0);

    // Three sequences as one.
    auto three = thrust::make_zip_iterator(a.begin(), count, thrust::make_constant_iterator(7));
    thrust::transform(three, three + n, b.begin(), thrust::make_zip_function(Combine()));
    for (int i = 0; i < n; i++) want[i] = data[i] * 3 + i * 5 - 7;
    check("zip", b, want);

    // A gather by the order, a scatter by it, and a gather of what is computed on the way.
    auto picked = thrust::make_permutation_iterator(a.begin(), map.begin());
    thrust::copy(picked, picked + n, b.begin());
    for (int i = 0; i < n; i++) want[i] = data[order[i]];
    check("gather", b, want);
    thrust::copy(a.begin(), a.end(), thrust::make_permutation_iterator(c.begin(), map.begin()));
    for (int i = 0; i < n; i++) want[order[i]] = data[i];
    check("scatter", c, want);
    auto squares = thrust::make_transform_iterator(picked, Square());
    thrust::inclusive_scan(squares, squares + n, b.begin());
    for (int i = 0, sum = 0; i < n; i++) want[i] = sum += data[order[i]] * data[order[i]];
    check("scan of squares", b, want);

    thrust::reverse_iterator<thrust::device_vector<int>::iterator> last(a.end());
    thrust::exclusive_scan(last, last + n, thrust::make_transform_output_iterator(b.begin(), Halve()), 11);
    for (int i = 0, sum = 11; i < n; i++) want[i] = sum / 2, sum += data[n - 1 - i];
    check("scan from behind", b, want);

    // A maximum and a sum in one pass.
    auto pairs = thrust::make_zip_iterator(a.begin(), thrust::make_transform_iterator(count, [] __host__ __device__(int i) { return (long long)i * i; }));
    auto both = thrust::reduce(pairs, pairs + n, thrust::make_tuple(-5000, 0ll), AddPairs());
    EXPECT_EQ(thrust::get<0>(both), *std::max_element(data.begin(), data.end()));
    EXPECT_EQ(thrust::get<1>(both), (long long)(n - 1) * n * (2 * n - 1) / 6);

    // Sums by key of which only the sums are wanted.
    auto keys = thrust::make_transform_iterator(count, [] __host__ __device__(int i) { return i / 100; });
    thrust::device_vector<int> sums(n / 100 + 1);
    auto ends = thrust::reduce_by_key(keys, keys + n, a.begin(), thrust::make_discard_iterator(), sums.begin());
    EXPECT_EQ(ends.second - sums.begin(), n / 100 + 1);
    std::vector<int> groups(n / 100 + 1);
    for (int i = 0; i < n; i++) groups[i / 100] += data[i];
    check("sums by key", sums, groups);

    // Pairs are sorted by their first, then by their second part.
    b = a;
    thrust::transform(b.begin(), b.end(), b.begin(), [] __device__(int v) { return v % 10; });
    thrust::sequence(c.begin(), c.end(), n, -1);
    thrust::sort(thrust::make_zip_iterator(b.begin(), c.begin()), thrust::make_zip_iterator(b.end(), c.end()));
    std::vector<std::pair<int, int>> sorted(n);
    for (int i = 0; i < n; i++) sorted[i] = {data[i] % 10, n - i};
    std::sort(sorted.begin(), sorted.end());
    for (int i = 0; i < n; i++) want[i] = sorted[i].second;
    check("sort of pairs", c, want);

    // Two streams, each with work of its own; par waits, par_nosync need not.
    cudaStream_t streams[2];
    for (cudaStream_t &s : streams) CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    int *raw;
    CUDA(cudaMalloc(&raw, 2 * n * sizeof(int)));
    for (int s = 0; s < 2; s++) {
        thrust::device_ptr<int> part = thrust::device_pointer_cast(raw + s * n);
        auto policy = thrust::cuda::par_nosync.on(streams[s]);
        thrust::fill(policy, part, part + n, 100 + s);
        thrust::for_each(policy, count, count + n, [=] __device__(int i) { raw[s * n + i] += i; });
        thrust::inclusive_scan(policy, part, part + n, part);
    }
    for (int s = 0; s < 2; s++) {
        CUDA(cudaStreamSynchronize(streams[s]));
        thrust::device_ptr<int> part = thrust::device_pointer_cast(raw + s * n);
        EXPECT_EQ(thrust::reduce(thrust::cuda::par.on(streams[s]), part + n - 1, part + n), n * (100 + s) + n * (n - 1) / 2);
        EXPECT_EQ(part[4], 5 * (100 + s) + 10);
    }

    // Memory that both sides see, references to single elements, and the host's own algorithms.
    thrust::universal_vector<int> seen(data.begin(), data.end());
    thrust::sort(thrust::device, seen.begin(), seen.end(), thrust::greater<int>());
    want = data;
    std::sort(want.rbegin(), want.rend());
    for (int i = 0; i < n; i++)
        if (seen[i] != want[i]) fail("universal: wrong at %d", i);
    a[17] = 4711;
    a[18] = a[17] + 1;
    EXPECT_EQ((int)a[18], 4712);
    EXPECT_EQ(thrust::reduce(a.begin() + 17, a.begin() + 19), 4711 + 4712);
    thrust::host_vector<int> host(data.begin(), data.end());
    // By a function of ours: CCCL 2.8 sorts by greater<int>, on the host, as if the numbers were unsigned.
    thrust::sort(thrust::host, host.begin(), host.end(), [](int a, int b) { return a > b; });
    check("on the host", host, want);

    // An allocation of the impossible is an exception, and all works after it.
    bool thrown = false;
    try {
        thrust::device_vector<int> too_many((size_t)1 << 58);
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    EXPECT(thrown);
    thrust::device_vector<int> after(10, 3);
    EXPECT_EQ(thrust::reduce(after.begin(), after.end()), 30);
    return pass();
}
