// nvcc: --extended-lambda
// finds race in *DeviceUniqueByKeySweepKernel*: keys are removed in place, blocks write over what others have read, with relaxed accesses alone in between
// finds init in *SetOpAgent*: intersections read a key past the end of a range and compare it; what comes of it is dropped
// Thrust: sets, merges, searches, partitions, scans by key, gathers and scatters, comparisons of ranges, products.
#include "check.h"

#include <thrust/adjacent_difference.h>
#include <thrust/binary_search.h>
#include <thrust/count.h>
#include <thrust/device_vector.h>
#include <thrust/equal.h>
#include <thrust/extrema.h>
#include <thrust/find.h>
#include <thrust/gather.h>
#include <thrust/inner_product.h>
#include <thrust/logical.h>
#include <thrust/merge.h>
#include <thrust/mismatch.h>
#include <thrust/partition.h>
#include <thrust/replace.h>
#include <thrust/reverse.h>
#include <thrust/scan.h>
#include <thrust/scatter.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/tabulate.h>
#include <thrust/unique.h>

#include <algorithm>
#include <iterator>
#include <vector>

using Device = thrust::device_vector<int>;
using Host = std::vector<int>;

struct Third {
    __host__ __device__ bool operator()(int v) const { return v % 3 == 0; }
};

static void check(const char *what, const Device &got, size_t size, const Host &want)
{
    if (size != want.size()) fail("%s: %zu elements, not %zu", what, size, want.size());
    Host host(got.size());
    thrust::copy(got.begin(), got.end(), host.begin());
    for (size_t i = 0; i < size; i++)
        if (host[i] != want[i]) fail("%s: [%zu] is %d, not %d", what, i, host[i], want[i]);
}

static void sets(const Device &a, const Device &b, const Host &x, const Host &y)
{
    // Elements that are there several times count as often as they are there.
    Device out(x.size() + y.size());
    Host want;
    auto end = thrust::set_union(a.begin(), a.end(), b.begin(), b.end(), out.begin());
    std::set_union(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(want));
    check("union", out, end - out.begin(), want);
    end = thrust::set_intersection(a.begin(), a.end(), b.begin(), b.end(), out.begin()), want.clear();
    std::set_intersection(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(want));
    check("intersection", out, end - out.begin(), want);
    end = thrust::set_difference(a.begin(), a.end(), b.begin(), b.end(), out.begin()), want.clear();
    std::set_difference(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(want));
    check("difference", out, end - out.begin(), want);
    end = thrust::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(), out.begin()), want.clear();
    std::set_symmetric_difference(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(want));
    check("symmetric difference", out, end - out.begin(), want);
    end = thrust::merge(a.begin(), a.end(), b.begin(), b.end(), out.begin()), want.clear();
    std::merge(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(want));
    check("merge", out, end - out.begin(), want);
}

static void searches(const Device &a, const Device &b, const Host &x, const Host &y)
{
    // Each of b is sought in a, all at once.
    Device found(y.size());
    Host want(y.size());
    thrust::lower_bound(a.begin(), a.end(), b.begin(), b.end(), found.begin());
    for (size_t i = 0; i < y.size(); i++) want[i] = (int)(std::lower_bound(x.begin(), x.end(), y[i]) - x.begin());
    check("lower bounds", found, found.size(), want);
    thrust::upper_bound(a.begin(), a.end(), b.begin(), b.end(), found.begin());
    for (size_t i = 0; i < y.size(); i++) want[i] = (int)(std::upper_bound(x.begin(), x.end(), y[i]) - x.begin());
    check("upper bounds", found, found.size(), want);
    thrust::binary_search(a.begin(), a.end(), b.begin(), b.end(), found.begin());
    for (size_t i = 0; i < y.size(); i++) want[i] = std::binary_search(x.begin(), x.end(), y[i]);
    check("searches", found, found.size(), want);
    auto range = thrust::equal_range(a.begin(), a.end(), x[500]);
    auto want_range = std::equal_range(x.begin(), x.end(), x[500]);
    EXPECT_EQ(range.first - a.begin(), want_range.first - x.begin());
    EXPECT_EQ(range.second - a.begin(), want_range.second - x.begin());
}

static void by_key(const Host &data)
{
    const int n = (int)data.size();
    Host keys(n), want(n);
    for (int i = 0; i < n; i++) keys[i] = i / 3 % 7 == 0 ? i : i / 50;
    Device k(keys.begin(), keys.end()), v(data.begin(), data.end()), out(n);
    thrust::inclusive_scan_by_key(k.begin(), k.end(), v.begin(), out.begin());
    for (int i = 0, sum = 0; i < n; i++) {
        if (i && keys[i] != keys[i - 1]) sum = 0;
        want[i] = sum += data[i];
    }
    check("inclusive scan by key", out, n, want);
    thrust::exclusive_scan_by_key(k.begin(), k.end(), v.begin(), out.begin(), -3000, thrust::equal_to<int>(), thrust::maximum<int>());
    for (int i = 0, most = -3000; i < n; i++) {
        if (i && keys[i] != keys[i - 1]) most = -3000;
        want[i] = most;
        most = std::max(most, data[i]);
    }
    check("exclusive scan by key", out, n, want);
    Host firsts, their;
    for (int i = 0; i < n; i++)
        if (!i || keys[i] != keys[i - 1]) firsts.push_back(keys[i]), their.push_back(data[i]);
    auto ends = thrust::unique_by_key(k.begin(), k.end(), v.begin());
    check("unique by key", k, ends.first - k.begin(), firsts);
    check("unique by key, values", v, ends.second - v.begin(), their);
}

static void moves(const Host &data)
{
    const int n = (int)data.size();
    Device d(data.begin(), data.end()), map(n), out(n, -7);
    thrust::tabulate(map.begin(), map.end(), [=] __device__(int i) { return (int)((long long)i * 31 % n); });
    Host want(n, -7);
    thrust::gather_if(map.begin(), map.end(), d.begin(), d.begin(), out.begin(), Third());
    for (int i = 0; i < n; i++)
        if (data[i] % 3 == 0) want[i] = data[(int)((long long)i * 31 % n)];
    check("gather if", out, n, want);
    thrust::scatter_if(d.begin(), d.end(), map.begin(), d.begin(), out.begin(), Third());
    for (int i = 0; i < n; i++)
        if (data[i] % 3 == 0) want[(int)((long long)i * 31 % n)] = data[i];
    check("scatter if", out, n, want);
    out = d;
    auto middle = thrust::stable_partition(out.begin(), out.end(), Third());
    want = data;
    EXPECT_EQ(middle - out.begin(), std::stable_partition(want.begin(), want.end(), Third()) - want.begin());
    check("stable partition", out, n, want);
    EXPECT(thrust::is_partitioned(out.begin(), out.end(), Third()) && !thrust::is_partitioned(d.begin(), d.end(), Third()));
    EXPECT_EQ(thrust::partition_point(out.begin(), out.end(), Third()) - out.begin(), middle - out.begin());
    thrust::reverse(out.begin(), out.end());
    std::reverse(want.begin(), want.end());
    check("reverse", out, n, want);
    thrust::replace_if(out.begin(), out.end(), Third(), -1);
    std::replace_if(want.begin(), want.end(), Third(), -1);
    check("replace if", out, n, want);
    thrust::adjacent_difference(d.begin(), d.end(), out.begin(), thrust::multiplies<int>());
    std::transform(data.begin() + 1, data.end(), data.begin(), want.begin() + 1, std::multiplies<int>());
    want[0] = data[0];
    check("adjacent products", out, n, want);
}

static void comparisons(const Host &data)
{
    const int n = (int)data.size();
    Device d(data.begin(), data.end()), other = d;
    EXPECT(thrust::equal(d.begin(), d.end(), other.begin()));
    other[n - 5] = 123456;
    EXPECT(!thrust::equal(d.begin(), d.end(), other.begin()));
    EXPECT_EQ(thrust::mismatch(d.begin(), d.end(), other.begin()).first - d.begin(), n - 5);
    EXPECT_EQ(thrust::find(other.begin(), other.end(), 123456) - other.begin(), n - 5);
    EXPECT(thrust::find(d.begin(), d.end(), 123456) == d.end());
    EXPECT_EQ(thrust::find_if_not(d.begin(), d.end(), Third()) - d.begin(), std::find_if_not(data.begin(), data.end(), Third()) - data.begin());
    EXPECT(thrust::any_of(d.begin(), d.end(), Third()) && !thrust::all_of(d.begin(), d.end(), Third()));
    EXPECT_EQ(thrust::count(d.begin(), d.end(), data[9]), std::count(data.begin(), data.end(), data[9]));
    auto both = thrust::minmax_element(d.begin(), d.end());
    EXPECT_EQ(both.first - d.begin(), std::min_element(data.begin(), data.end()) - data.begin());
    // Of several that are the largest, the first for this function, unlike the host's.
    EXPECT_EQ((int)*both.second, *std::max_element(data.begin(), data.end()));
    long long product = thrust::inner_product(d.begin(), d.end(), other.begin(), 0ll, thrust::plus<long long>(), [] __device__(int a, int b) { return (long long)a * b; });
    long long want = 0;
    for (int i = 0; i < n; i++) want += (long long)data[i] * (i == n - 5 ? 123456 : data[i]);
    EXPECT_EQ(product, want);
    EXPECT(!thrust::is_sorted(d.begin(), d.end()));
    EXPECT_EQ(thrust::is_sorted_until(d.begin(), d.end()) - d.begin(), std::is_sorted_until(data.begin(), data.end()) - data.begin());
}

int main()
{
    Random random(25);
    Host x(4001), y(3007), data(7001);
    for (int &v : x) v = (int)(random.next() % 3000);
    for (int &v : y) v = (int)(random.next() % 3000) + 500;
    for (int &v : data) v = (int)(random.next() % 4001) - 2000;
    Device a(x.begin(), x.end()), b(y.begin(), y.end());
    thrust::sort(a.begin(), a.end());
    thrust::sort(b.begin(), b.end());
    std::sort(x.begin(), x.end());
    std::sort(y.begin(), y.end());
    sets(a, b, x, y);
    searches(a, b, x, y);
    by_key(data);
    moves(data);
    comparisons(data);
    return pass();
}
