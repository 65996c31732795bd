// CUB's block and warp primitives by each of their algorithms: loads and stores, reductions, scans, histograms, sorts,
// shuffles, differences, decoding of runs; and warps of 8 and of 32 lanes.
#include "check.h"

#include <cub/block/block_adjacent_difference.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_run_length_decode.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_shuffle.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_exchange.cuh>
#include <cub/warp/warp_load.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cub/warp/warp_store.cuh>

#include <algorithm>
#include <vector>

const int threads = 128, items = 5, tile = threads * items;

// Not commutative: the first of the two that is not 0.
struct First {
    __host__ __device__ int operator()(int a, int b) const { return a ? a : b; }
};
struct Most {
    __host__ __device__ int operator()(int a, int b) const { return a > b ? a : b; }
};
struct Minus {
    __host__ __device__ int operator()(int a, int b) const { return a - b; }
};
struct Less {
    __host__ __device__ bool operator()(int a, int b) const { return a < b; }
};

template <cub::BlockLoadAlgorithm load, cub::BlockStoreAlgorithm store> __global__ void __launch_bounds__(threads) move(const int *in, int *out, int valid)
{
    using Load = cub::BlockLoad<int, threads, items, load>;
    using Store = cub::BlockStore<int, threads, items, store>;
    __shared__ union {
        typename Load::TempStorage loading;
        typename Store::TempStorage storing;
    } room;
    int v[items], again[items];
    Load(room.loading).Load(in, v, valid, -1);
    // A store may leave its items in another order.
    for (int i = 0; i < items; i++) again[i] = v[i] = 2 * v[i] + 1;
    __syncthreads();
    // The whole tile, which the stores that write vectors need, then a part of the next.
    Store(room.storing).Store(out, v);
    __syncthreads();
    Store(room.storing).Store(out + tile, again, valid);
}

template <cub::BlockReduceAlgorithm algorithm> __global__ void __launch_bounds__(threads) reduce(const int *in, int *out)
{
    using Reduce = cub::BlockReduce<int, 16, algorithm, 4, 2>;
    __shared__ typename Reduce::TempStorage room;
    int v[items], t = threadIdx.x + 16 * (threadIdx.y + 4 * threadIdx.z);
    for (int i = 0; i < items; i++) v[i] = in[t * items + i];
    int sum = Reduce(room).Sum(v);
    __syncthreads();
    int most = Reduce(room).Reduce(v[0], Most(), 70);
    __syncthreads();
    // Raking by commutative operations alone must not be given this one.
    int first = algorithm == cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY ? 0 : Reduce(room).Reduce(v[0] % 11 == 0 ? v[0] : 0, First());
    if (t == 0) out[0] = sum, out[1] = most, out[2] = first;
}

template <cub::BlockScanAlgorithm algorithm> __global__ void __launch_bounds__(threads) scan(const int *in, int *out, int *total)
{
    using Scan = cub::BlockScan<int, threads, algorithm>;
    __shared__ typename Scan::TempStorage room;
    int v[items], w[items], sum;
    for (int i = 0; i < items; i++) v[i] = in[threadIdx.x * items + i];
    Scan(room).ExclusiveSum(v, w, sum);
    for (int i = 0; i < items; i++) out[threadIdx.x * items + i] = w[i];
    __syncthreads();
    for (int i = 0; i < items; i++) w[i] = v[i] % 11 == 0 ? v[i] : 0;
    Scan(room).InclusiveScan(w, w, First());
    for (int i = 0; i < items; i++) out[tile + threadIdx.x * items + i] = w[i];
    if (threadIdx.x == 0) *total = sum;
}

struct Prefix {
    int running;
    __device__ int operator()(int block)
    {
        int before = running;
        running += block;
        return before;
    }
};

// A scan that carries on from tile to tile.
__global__ void __launch_bounds__(threads) carry(const int *in, int *out)
{
    using Scan = cub::BlockScan<int, threads>;
    __shared__ typename Scan::TempStorage room;
    Prefix prefix{1000};
    for (int start = 0; start < tile; start += threads) {
        Scan(room).InclusiveSum(in[start + threadIdx.x], out[start + threadIdx.x], prefix);
        __syncthreads();
    }
}

__global__ void __launch_bounds__(threads) others(const int *in, int *out, int *bins)
{
    using Atomic = cub::BlockHistogram<unsigned char, threads, items, 64, cub::BLOCK_HISTO_ATOMIC>;
    using Merge = cub::BlockMergeSort<int, threads, items, int>;
    using Radix = cub::BlockRadixSort<float, threads, items>;
    using Shuffle = cub::BlockShuffle<int, threads>;
    using Difference = cub::BlockAdjacentDifference<int, threads>;
    using Decode = cub::BlockRunLengthDecode<int, threads, 1, items>;
    using Count = cub::BlockScan<int, threads>;
    __shared__ union {
        typename Atomic::TempStorage atomic;
        typename Merge::TempStorage merge;
        typename Radix::TempStorage radix;
        typename Shuffle::TempStorage shuffle;
        typename Difference::TempStorage difference;
        typename Decode::TempStorage decode;
        typename Count::TempStorage count;
    } room;
    __shared__ int counted[64];
    int v[items], w[items], t = threadIdx.x;
    auto put = [&](int row, int *from) {
        for (int i = 0; i < items; i++) out[row * tile + t * items + i] = from[i];
        __syncthreads();
    };
    for (int i = 0; i < items; i++) v[i] = in[t * items + i];

    unsigned char bytes[items];
    for (int i = 0; i < items; i++) bytes[i] = (unsigned char)(v[i] & 63);
    Atomic(room.atomic).InitHistogram(counted);
    __syncthreads();
    Atomic(room.atomic).Composite(bytes, counted);
    __syncthreads();
    if (t < 64) bins[t] = counted[t];

    int keys[items];
    for (int i = 0; i < items; i++) keys[i] = v[i] / 100, w[i] = t * items + i;
    Merge(room.merge).StableSort(keys, w, Less(), tile - 20, 1 << 30);
    __syncthreads();
    put(0, w);

    float floats[items];
    for (int i = 0; i < items; i++) floats[i] = v[i] * -0.25f;
    Radix(room.radix).SortDescendingBlockedToStriped(floats);
    for (int i = 0; i < items; i++) out[tile + i * threads + t] = (int)(floats[i] * -4);
    __syncthreads();

    int ahead = -1, behind = -1;
    Shuffle(room.shuffle).Offset(v[0], ahead, 7);
    __syncthreads();
    Shuffle(room.shuffle).Rotate(v[0], behind, 5);
    __syncthreads();
    Shuffle(room.shuffle).Up(v, w);
    if (t == 0) w[0] = 0;
    __syncthreads();
    put(2, w);
    out[3 * tile + t] = ahead, out[3 * tile + threads + t] = behind;

    Difference(room.difference).SubtractLeft(v, w, Minus(), 17);
    __syncthreads();
    put(4, w);
    Difference(room.difference).SubtractRightPartialTile(v, w, Minus(), tile - 33);
    __syncthreads();
    put(5, w);

    // Each thread has a run of 0 to 6 items; the block decodes a tile of them at a time.
    int value[1] = {t}, length[1] = {1 + (int)((unsigned)in[t] % 6)}, whole;
    __shared__ int shared_whole;
    {
        Decode decode(room.decode, value, length, whole);
        if (t == 0) shared_whole = whole;
        int decoded[items];
        decode.RunLengthDecode(decoded, 0);
        __syncthreads();
        put(6, decoded);
    }
    if (t == 0) bins[64] = shared_whole;
}

template <int lanes> __global__ void __launch_bounds__(threads) warps(const int *in, int *out)
{
    using Reduce = cub::WarpReduce<int, lanes>;
    using Scan = cub::WarpScan<int, lanes>;
    using Exchange = cub::WarpExchange<int, 4, lanes>;
    using Load = cub::WarpLoad<int, 4, cub::WARP_LOAD_TRANSPOSE, lanes>;
    using Store = cub::WarpStore<int, 4, cub::WARP_STORE_TRANSPOSE, lanes>;
    __shared__ union {
        typename Reduce::TempStorage reduce;
        typename Scan::TempStorage scan;
        typename Exchange::TempStorage exchange;
        typename Load::TempStorage loading;
        typename Store::TempStorage storing;
    } rooms[threads / lanes];
    int t = threadIdx.x, w = t / lanes;
    auto &room = rooms[w];
    int v = in[t];
    int head = v % 3 == 0, below = Reduce(room.reduce).Reduce(v, Most(), lanes - 3);
    __syncwarp();
    int segment = Reduce(room.reduce).HeadSegmentedSum(v, head);
    __syncwarp();
    int tail = Reduce(room.reduce).TailSegmentedSum(v, head);
    __syncwarp();
    int inclusive, exclusive;
    Scan(room.scan).Scan(v, inclusive, exclusive, -9999, Most());
    __syncwarp();
    int told = Scan(room.scan).Broadcast(v, 3);
    __syncwarp();
    if (t % lanes == 0) out[t] = below;
    if (t % lanes == 0 || head) out[threads + t] = segment;
    // Behind a tail begins the next segment.
    if (t % lanes == 0 || in[t - 1] % 3 == 0) out[2 * threads + t] = tail;
    out[3 * threads + t] = inclusive, out[4 * threads + t] = exclusive, out[5 * threads + t] = told;
    int four[4];
    Load(room.loading).Load(in + w * lanes * 4, four);
    __syncwarp();
    Exchange(room.exchange).BlockedToStriped(four, four);
    __syncwarp();
    Store(room.storing).Store(out + 6 * threads + w * lanes * 4, four);
}

static int *in, *out, *single;
static std::vector<int> data;

static void check(const char *what, int row, const std::vector<int> &want)
{
    for (size_t i = 0; i < want.size(); i++)
        if (out[row * tile + i] != want[i]) fail("%s: [%zu] is %d, not %d", what, i, out[row * tile + i], want[i]);
}

template <cub::BlockLoadAlgorithm load, cub::BlockStoreAlgorithm store> static void check_move(const char *what)
{
    const int valid = tile - 77;
    std::fill(out, out + 2 * tile, 4);
    move<load, store><<<1, threads>>>(in, out, valid);
    FINISHED();
    std::vector<int> want(2 * tile, 4);
    for (int i = 0; i < tile; i++) want[i] = i < valid ? 2 * data[i] + 1 : -1;
    std::copy_n(want.begin(), valid, want.begin() + tile);
    check(what, 0, want);
}

template <cub::BlockReduceAlgorithm algorithm> static void check_reduce()
{
    reduce<algorithm><<<1, dim3(16, 4, 2)>>>(in, out);
    FINISHED();
    int sum = 0, most = data[0], first = 0;
    for (int i = 0; i < tile; i++) sum += data[i];
    for (int t = 0; t < 70; t++) most = std::max(most, data[t * items]);
    for (int t = threads - 1; t >= 0; t--)
        if (data[t * items] % 11 == 0 && data[t * items]) first = data[t * items];
    EXPECT_EQ(out[0], sum);
    EXPECT_EQ(out[1], most);
    EXPECT_EQ(out[2], algorithm == cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY ? 0 : first);
}

template <cub::BlockScanAlgorithm algorithm> static void check_scan(const char *what)
{
    scan<algorithm><<<1, threads>>>(in, out, single);
    FINISHED();
    std::vector<int> sums(tile), firsts(tile);
    int sum = 0, first = 0;
    for (int i = 0; i < tile; i++) {
        sums[i] = sum;
        sum += data[i];
        firsts[i] = first = First()(first, data[i] % 11 == 0 ? data[i] : 0);
    }
    check(what, 0, sums);
    check(what, 1, firsts);
    EXPECT_EQ(*single, sum);
}

static void check_others()
{
    others<<<1, threads>>>(in, out, single);
    FINISHED();
    for (int b = 0; b < 64; b++) EXPECT_EQ(single[b], std::count_if(data.begin(), data.end(), [&](int v) { return (v & 63) == b; }));
    std::vector<int> want(tile - 20), all = data;
    for (int i = 0; i < tile - 20; i++) want[i] = i;
    std::stable_sort(want.begin(), want.end(), [](int a, int b) { return data[a] / 100 < data[b] / 100; });
    check("merge sort", 0, want);
    std::sort(all.begin(), all.end());
    check("radix sort of floats", 1, all);
    want.assign(tile, 0);
    for (int i = 1; i < tile; i++) want[i] = data[i - 1];
    check("up", 2, want);
    want.assign(2 * threads, -1);
    for (int t = 0; t < threads; t++) {
        if (t + 7 < threads) want[t] = data[(t + 7) * items];
        want[threads + t] = data[(t + 5) % threads * items];
    }
    check("offset and rotate", 3, want);
    want.resize(tile);
    for (int i = 0; i < tile; i++) want[i] = data[i] - (i ? data[i - 1] : 17);
    check("left differences", 4, want);
    for (int i = 0; i < tile; i++) want[i] = i + 1 < tile - 33 ? data[i] - data[i + 1] : data[i];
    check("right differences", 5, want);
    want.clear();
    for (int t = 0; t < threads; t++) want.insert(want.end(), 1 + (unsigned)data[t] % 6, t);
    EXPECT_EQ(single[64], want.size());
    want.resize(std::min<size_t>(want.size(), tile));
    check("decoded runs", 6, want);
}

template <int lanes> static void check_warps()
{
    std::fill(out, out + 10 * threads, 0);
    warps<lanes><<<1, threads>>>(in, out);
    FINISHED();
    auto expect = [&](const char *what, int row, int t, int want) {
        if (out[row * threads + t] != want) fail("%s of %d lanes: [%d] is %d, not %d", what, lanes, t, out[row * threads + t], want);
    };
    for (int w = 0; w < threads / lanes; w++) {
        const int *v = &data[w * lanes];
        expect("maximum of some", 0, w * lanes, *std::max_element(v, v + lanes - 3));
        int most = -9999;
        for (int l = 0; l < lanes; l++) {
            int t = w * lanes + l, end = l, sum = 0;
            if (l == 0 || v[l] % 3 == 0) {
                do sum += v[end++];
                while (end < lanes && v[end] % 3 != 0);
                expect("segment from its head", 1, t, sum);
            }
            if (l == 0 || v[l - 1] % 3 == 0) {
                for (sum = 0, end = l; end < lanes; end++) {
                    sum += v[end];
                    if (v[end] % 3 == 0) break;
                }
                expect("segment to its tail", 2, t, sum);
            }
            expect("exclusive scan", 4, t, most);
            most = std::max(most, v[l]);
            expect("inclusive scan", 3, t, most);
            expect("broadcast", 5, t, v[3]);
            // What was blocked is striped, and is stored as if it were blocked.
            for (int i = 0; i < 4; i++) EXPECT_EQ(out[6 * threads + t * 4 + i], data[w * lanes * 4 + i * lanes + l]);
        }
    }
}

int main()
{
    CUDA(cudaMallocManaged(&in, tile * sizeof(int)));
    CUDA(cudaMallocManaged(&out, 8 * tile * sizeof(int)));
    CUDA(cudaMallocManaged(&single, 65 * sizeof(int)));
    data.resize(tile);
    Random random(23);
    for (int i = 0; i < tile; i++) in[i] = data[i] = (int)(random.next() % 4001) - 2000;
    check_move<cub::BLOCK_LOAD_DIRECT, cub::BLOCK_STORE_DIRECT>("direct");
    check_move<cub::BLOCK_LOAD_VECTORIZE, cub::BLOCK_STORE_VECTORIZE>("vectors");
    check_move<cub::BLOCK_LOAD_TRANSPOSE, cub::BLOCK_STORE_TRANSPOSE>("transposed");
    check_move<cub::BLOCK_LOAD_STRIPED, cub::BLOCK_STORE_STRIPED>("striped");
    check_move<cub::BLOCK_LOAD_WARP_TRANSPOSE, cub::BLOCK_STORE_WARP_TRANSPOSE>("transposed by warp");
    check_move<cub::BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED, cub::BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED>("transposed by warp, one at a time");
    check_reduce<cub::BLOCK_REDUCE_RAKING>();
    check_reduce<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>();
    check_reduce<cub::BLOCK_REDUCE_WARP_REDUCTIONS>();
    check_scan<cub::BLOCK_SCAN_RAKING>("raking scan");
    check_scan<cub::BLOCK_SCAN_RAKING_MEMOIZE>("raking scan that remembers");
    check_scan<cub::BLOCK_SCAN_WARP_SCANS>("scan by warps");
    carry<<<1, threads>>>(in, out);
    FINISHED();
    std::vector<int> want(tile);
    for (int i = 0, sum = 1000; i < tile; i++) want[i] = sum += data[i];
    check("carried scan", 0, want);
    check_others();
    check_warps<8>();
    check_warps<32>();
    return pass();
}
