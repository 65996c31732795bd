// older nvcc: -arch=sm_75
// Cooperative groups inside a block: tiles, coalesced groups, partitions, reduce and scan, block barrier phases.
#include "check.h"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

template <int N> __device__ int tile_sum(cg::thread_block block, int v)
{
    auto tile = cg::tiled_partition<N>(block);
    for (int i = tile.size() / 2; i > 0; i /= 2) v += tile.shfl_down(v, i);
    return tile.shfl(v, 0) * 100 + tile.meta_group_rank();
}

const int rows = 14;
__global__ void run(int *out)
{
    cg::thread_block block = cg::this_thread_block();
    int t = block.thread_rank(), n = block.size();
    auto put = [&](int row, int v) { out[row * n + t] = v; };
    put(0, tile_sum<32>(block, t));
    put(1, tile_sum<8>(block, t));
    put(2, tile_sum<4>(block, t * t));
    auto warp = cg::tiled_partition<32>(block);
    put(3, cg::reduce(warp, t, cg::plus<int>()));
    put(4, cg::reduce(warp, (t * 37) % 61, cg::greater<int>()));
    put(5, cg::inclusive_scan(warp, t));
    put(6, cg::exclusive_scan(warp, t + 1, cg::plus<int>()));
    put(7, warp.ballot(t % 3 == 0));
    put(8, -1);
    if (t % 3 == 0) {
        cg::coalesced_group some = cg::coalesced_threads();
        put(8, some.size() * 1000 + some.thread_rank() * 10 + (some.any(t == 33) ? 1 : 0));
        some.sync();
    }
    warp.sync();
    auto parts = cg::labeled_partition(warp, t % 5);
    put(9, parts.size() * 100 + parts.thread_rank());
    auto half = cg::binary_partition(warp, t % 32 < 10);
    put(10, half.size() * 100 + half.shfl(t % 32, 2));
    __shared__ int turn;
    if (t == 0) turn = 0;
    block.sync();
    for (int k = 0; k < 4; k++) {
        if (t == k * 20) turn += k + t;
        block.sync();
    }
    put(11, turn);
    cg::thread_block_tile<16> sixteen = cg::tiled_partition<16>(block);
    put(12, sixteen.match_any(t % 3));
    put(13, cg::reduce(sixteen, (unsigned)t | 1u << (t % 32), cg::bit_or<unsigned>()));
}

int main()
{
    const int n = 96;
    int *out;
    CUDA(cudaMallocManaged(&out, rows * n * sizeof *out));
    run<<<1, n>>>(out);
    FINISHED();
    for (int t = 0; t < n; t++) {
        int warp = t & ~31, want[rows] = {};
        auto group_sum = [&](int size, int power) {
            int sum = 0;
            for (int i = t / size * size; i < t / size * size + size; i++) sum += power == 1 ? i : i * i;
            return sum * 100 + t / size;
        };
        want[0] = group_sum(32, 1);
        want[1] = group_sum(8, 1);
        want[2] = group_sum(4, 2);
        want[4] = -1;
        for (int i = warp; i < warp + 32; i++) {
            want[3] += i;
            if ((i * 37) % 61 > want[4]) want[4] = (i * 37) % 61;
            if (i <= t) want[5] += i;
            if (i < t) want[6] += i + 1;
            if (i % 3 == 0) want[7] |= (int)(1u << (i - warp));
        }
        if (t % 3 == 0) {
            int size = 0, rank = 0, any = 0;
            for (int i = warp; i < warp + 32; i++)
                if (i % 3 == 0) size++, rank += i < t, any |= i == 33;
            want[8] = size * 1000 + rank * 10 + any;
        } else {
            want[8] = -1;
        }
        int size = 0, rank = 0;
        for (int i = warp; i < warp + 32; i++)
            if (i % 5 == t % 5) size++, rank += i < t;
        want[9] = size * 100 + rank;
        want[10] = t % 32 < 10 ? 1002 : 2212;
        want[11] = 0 + 21 + 42 + 63;
        for (int i = 0; i < 16; i++) {
            int other = (t & ~15) + i;
            if (other % 3 == t % 3) want[12] |= 1 << i;
            want[13] |= other | (int)(1u << (other % 32));
        }
        for (int r = 0; r < rows; r++)
            if (out[r * n + t] != want[r]) fail("test %d, thread %d: %d, not %d", r, t, out[r * n + t], want[r]);
    }
    return pass();
}
