// older nvcc: -arch=sm_75
// Reductions with warp shuffles, votes and the reduction over a block; every shuffle mode with full and part masks.
#include "check.h"

#include <vector>

__global__ void sum(const int *in, int n, long long *total)
{
    long long mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += in[i];
    for (int offset = 16; offset; offset >>= 1) mine += __shfl_down_sync(0xFFFFFFFF, mine, offset);
    __shared__ long long parts[32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (lane == 0) parts[warp] = mine;
    __syncthreads();
    if (warp == 0) {
        mine = lane < (int)(blockDim.x + 31) / 32 ? parts[lane] : 0;
        for (int offset = 16; offset; offset >>= 1) mine += __shfl_xor_sync(0xFFFFFFFF, mine, offset);
        if (lane == 0) atomicAdd((unsigned long long *)total, (unsigned long long)mine);
    }
}

// One warp; row r of `out` is the result of test r.
__global__ void modes(int *out)
{
    int lane = threadIdx.x, v = lane * lane + 1;
    out[0 * 32 + lane] = __shfl_sync(0xFFFFFFFF, v, (lane * 7 + 3) & 31);
    out[1 * 32 + lane] = __shfl_up_sync(0xFFFFFFFF, v, 5);
    out[2 * 32 + lane] = __shfl_down_sync(0xFFFFFFFF, v, 9);
    out[3 * 32 + lane] = __shfl_xor_sync(0xFFFFFFFF, v, 21);
    out[4 * 32 + lane] = __shfl_sync(0xFFFFFFFF, v, 6, 8);
    out[5 * 32 + lane] = __shfl_up_sync(0xFFFFFFFF, v, 3, 8);
    out[6 * 32 + lane] = __shfl_down_sync(0xFFFFFFFF, v, 3, 16);
    out[7 * 32 + lane] = __shfl_xor_sync(0xFFFFFFFF, v, 9, 4);
    out[8 * 32 + lane] = (int)__ballot_sync(0xFFFFFFFF, lane % 3 == 0);
    out[9 * 32 + lane] = __any_sync(0xFFFFFFFF, lane == 17) * 2 + __all_sync(0xFFFFFFFF, lane < 32);
    out[10 * 32 + lane] = -1;
    if (lane & 1) {
        // Half of the warp by itself.
        out[10 * 32 + lane] = __shfl_sync(0xAAAAAAAA, v, (lane + 2) & 31);
        out[11 * 32 + lane] = (int)__ballot_sync(0xAAAAAAAA, lane > 15);
    } else {
        out[11 * 32 + lane] = (int)__ballot_sync(0x55555555, lane < 15);
    }
    __syncwarp();
    out[12 * 32 + lane] = (int)__match_any_sync(0xFFFFFFFF, lane / 5);
    int same;
    unsigned all = __match_all_sync(0xFFFFFFFF, lane / 64, &same);
    out[13 * 32 + lane] = same && all == 0xFFFFFFFF;
    all = __match_all_sync(0xFFFFFFFF, lane / 16, &same);
    out[14 * 32 + lane] = !same && all == 0;
    double d = __shfl_sync(0xFFFFFFFF, (double)v * 0.25, 31 - lane);
    out[15 * 32 + lane] = (int)(d * 4);
}

int main()
{
    const int n = 300001;
    std::vector<int> in(n);
    Random random(3);
    long long want = 0;
    for (int &v : in) want += v = (int)random.next();
    int *din, *rows;
    long long *total, got;
    CUDA(cudaMalloc(&din, n * sizeof(int)));
    CUDA(cudaMalloc(&total, sizeof got));
    CUDA(cudaMemcpy(din, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    for (int block : {32, 96, 256, 1024}) {
        CUDA(cudaMemset(total, 0, sizeof got));
        sum<<<20, block>>>(din, n, total);
        LAUNCHED();
        CUDA(cudaMemcpy(&got, total, sizeof got, cudaMemcpyDeviceToHost));
        if (got != want) fail("blocks of %d: %lld, not %lld", block, got, want);
    }

    CUDA(cudaMallocManaged(&rows, 16 * 32 * sizeof(int)));
    modes<<<1, 32>>>(rows);
    FINISHED();
    auto v = [](int lane) { return lane * lane + 1; };
    unsigned thirds = 0;
    for (int i = 0; i < 32; i += 3) thirds |= 1u << i;
    for (int i = 0; i < 32; i++) {
        unsigned fives = 0;
        for (int j = 0; j < 32; j++)
            if (j / 5 == i / 5) fives |= 1u << j;
        // Out of range in `up` and `down`: the lane's own value. Width w: lanes of the same group of w.
        int row[16] = {v((i * 7 + 3) & 31),
                       v(i < 5 ? i : i - 5),
                       v(i + 9 > 31 ? i : i + 9),
                       v(i ^ 21),
                       v((i & ~7) + 6),
                       v((i & 7) < 3 ? i : i - 3),
                       v((i & 15) + 3 > 15 ? i : i + 3),
                       // xor reaches only lower groups; otherwise the lane's own value.
                       v(((i ^ 9) & ~3) <= (i & ~3) ? i ^ 9 : i),
                       (int)thirds,
                       3,
                       i & 1 ? v((i + 2) & 31) : -1,
                       i & 1 ? (int)0xAAAA0000 : 0x5555 & 0x7FFF,
                       (int)fives,
                       1,
                       1,
                       v(31 - i)};
        for (int r = 0; r < 16; r++)
            if (rows[r * 32 + i] != row[r]) fail("test %d, lane %d: %d, not %d", r, i, rows[r * 32 + i], row[r]);
    }
    return pass();
}
