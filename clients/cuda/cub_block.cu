// CUB's block and warp primitives: load and store, scan, reduce, radix sort, discontinuity, histogram, exchange.
#include "check.h"

#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>

#include <algorithm>
#include <vector>

const int threads = 128, items = 7, tile = threads * items;

struct Most {
    __device__ int operator()(int a, int b) const { return a > b ? a : b; }
};
struct Differ {
    __device__ bool operator()(int a, int b) const { return a != b; }
};
struct Less {
    __device__ bool operator()(int a, int b) const { return a < b; }
};

__global__ void __launch_bounds__(threads) run(const int *in, int *out, int *single, int valid)
{
    typedef cub::BlockLoad<int, threads, items, cub::BLOCK_LOAD_TRANSPOSE> Load;
    typedef cub::BlockLoad<int, threads, items, cub::BLOCK_LOAD_WARP_TRANSPOSE> LoadByWarp;
    typedef cub::BlockStore<int, threads, items, cub::BLOCK_STORE_TRANSPOSE> Store;
    typedef cub::BlockScan<int, threads, cub::BLOCK_SCAN_WARP_SCANS> Scan;
    typedef cub::BlockScan<int, threads, cub::BLOCK_SCAN_RAKING> RakingScan;
    typedef cub::BlockReduce<int, threads> Reduce;
    typedef cub::BlockRadixSort<int, threads, items> Sort;
    typedef cub::BlockRadixSort<int, threads, items, int> SortPairs;
    typedef cub::BlockDiscontinuity<int, threads> Heads;
    typedef cub::BlockHistogram<unsigned char, threads, items, 256, cub::BLOCK_HISTO_SORT> Histogram;
    typedef cub::BlockExchange<int, threads, items> Exchange;
    typedef cub::WarpMergeSort<int, items> WarpSort;
    __shared__ union {
        Load::TempStorage load;
        LoadByWarp::TempStorage load_by_warp;
        Store::TempStorage store;
        Scan::TempStorage scan;
        RakingScan::TempStorage raking;
        Reduce::TempStorage reduce;
        Sort::TempStorage sort;
        SortPairs::TempStorage sort_pairs;
        Heads::TempStorage heads;
        Histogram::TempStorage histogram;
        Exchange::TempStorage exchange;
        cub::WarpReduce<int>::TempStorage warp_reduce[threads / 32];
        cub::WarpScan<int>::TempStorage warp_scan[threads / 32];
        WarpSort::TempStorage warp_sort[threads / 32];
    } room;
    int v[items], w[items], total;
    auto fetch = [&] {
        __syncthreads();
        Load(room.load).Load(in, v, valid, 0);
        __syncthreads();
    };
    auto put = [&](int row) {
        __syncthreads();
        Store(room.store).Store(out + row * tile, v);
        __syncthreads();
    };
    fetch();
    put(0);
    fetch();
    Scan(room.scan).InclusiveSum(v, v, total);
    if (threadIdx.x == 0) single[0] = total;
    put(1);
    fetch();
    RakingScan(room.raking).ExclusiveScan(v, v, -5000, Most());
    put(2);
    fetch();
    total = Reduce(room.reduce).Sum(v);
    if (threadIdx.x == 0) single[1] = total;
    __syncthreads();
    total = Reduce(room.reduce).Reduce(v[0], Most(), 77);
    if (threadIdx.x == 0) single[2] = total;
    fetch();
    Sort(room.sort).Sort(v);
    put(3);
    fetch();
    for (int i = 0; i < items; i++) w[i] = threadIdx.x * items + i;
    SortPairs(room.sort_pairs).SortDescending(v, w);
    for (int i = 0; i < items; i++) v[i] = w[i];
    put(4);
    fetch();
    for (int i = 0; i < items; i++) v[i] /= 300;
    Heads(room.heads).FlagHeads(w, v, Differ());
    for (int i = 0; i < items; i++) v[i] = w[i];
    put(5);
    fetch();
    unsigned char bytes[items];
    for (int i = 0; i < items; i++) bytes[i] = (unsigned char)(v[i] & 63);
    __shared__ unsigned bins[256];
    Histogram(room.histogram).Histogram(bytes, bins);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += threads) single[8 + i] = (int)bins[i];
    fetch();
    Exchange(room.exchange).BlockedToStriped(v, v);
    put(6);
    fetch();
    LoadByWarp(room.load_by_warp).Load(in, v);
    __syncthreads();
    WarpSort(room.warp_sort[threadIdx.x / 32]).Sort(v, Less());
    put(7);
    fetch();
    total = cub::WarpReduce<int>(room.warp_reduce[threadIdx.x / 32]).Sum(v[0]);
    if (threadIdx.x % 32 == 0) single[3 + threadIdx.x / 32] = total;
    __syncthreads();
    cub::WarpScan<int>(room.warp_scan[threadIdx.x / 32]).ExclusiveSum(v[0], v[0]);
    put(8);
}

int main()
{
    const int valid = tile - 13, rows = 9;
    std::vector<int> full(tile), data, want;
    Random random(11);
    for (int &v : full) v = (int)(random.next() % 4001) - 2000;
    data = full;
    for (int i = valid; i < tile; i++) data[i] = 0;
    int *in, *out, *single;
    CUDA(cudaMallocManaged(&in, tile * sizeof(int)));
    CUDA(cudaMallocManaged(&out, rows * tile * sizeof(int)));
    CUDA(cudaMallocManaged(&single, (8 + 256) * sizeof(int)));
    std::copy(full.begin(), full.end(), in);
    run<<<1, threads>>>(in, out, single, valid);
    FINISHED();
    auto check = [&](int row, const char *what) {
        for (int i = 0; i < tile; i++)
            if (out[row * tile + i] != want[i]) fail("%s: [%d] is %d, not %d", what, i, out[row * tile + i], want[i]);
    };
    want = data;
    check(0, "load and store");
    int sum = 0, most = -5000;
    for (int i = 0; i < tile; i++) want[i] = sum += data[i];
    check(1, "inclusive sum");
    EXPECT_EQ(single[0], sum);
    EXPECT_EQ(single[1], sum);
    for (int i = 0; i < tile; i++) want[i] = most, most = std::max(most, data[i]);
    check(2, "exclusive maximum");
    most = -5000;
    for (int t = 0; t < 77; t++) most = std::max(most, data[t * items]);
    EXPECT_EQ(single[2], most);
    want = data;
    std::sort(want.begin(), want.end());
    check(3, "radix sort");
    for (int i = 0; i < tile; i++) want[i] = i;
    std::stable_sort(want.begin(), want.end(), [&](int a, int b) { return data[a] > data[b]; });
    check(4, "radix sort of pairs");
    for (int i = 0; i < tile; i++) want[i] = i == 0 || data[i] / 300 != data[i - 1] / 300;
    check(5, "heads");
    for (int b = 0; b < 256; b++) EXPECT_EQ(single[8 + b], std::count_if(data.begin(), data.end(), [&](int v) { return (v & 63) == b; }));
    for (int i = 0; i < tile; i++) {
        int thread = i / items, item = i % items;
        want[i] = data[item * threads + thread];
    }
    check(6, "exchange");
    want = full;
    for (int w = 0; w < threads / 32; w++) std::sort(want.begin() + w * 32 * items, want.begin() + (w + 1) * 32 * items);
    check(7, "warp merge sort");
    want = data;
    for (int w = 0; w < threads / 32; w++) {
        sum = 0;
        for (int l = 0; l < 32; l++) {
            int i = (w * 32 + l) * items;
            want[i] = sum;
            sum += data[i];
        }
        EXPECT_EQ(single[3 + w], sum);
    }
    check(8, "warp scan");
    return pass();
}
