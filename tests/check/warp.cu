// Threads of one warp, which are in no order of themselves: a __syncwarp() too few.
#include "check.h"

const unsigned everyone = 0xffffffff;

__global__ void neighbours(int *out)
{
    __shared__ int tile[32];
    int lane = threadIdx.x;
    tile[lane] = lane * lane;              // race tile: write
    MENDED(__syncwarp());
    out[lane] = tile[lane ^ 1];            // race tile: read
}

TEST(neighbours)
{
    Array out(32);
    neighbours<<<1, 32>>>(out);
    expect(out, [](int i) { return (i ^ 1) * (i ^ 1); });
}

// The last lane does not come.
__global__ void mask_without_a_lane(int *out)
{
    __shared__ int tile[32];
    int lane = threadIdx.x;
    tile[lane] = lane + 7;                 // race tile: write
    BROKEN(if (lane < 31) __syncwarp(everyone >> 1));
    MENDED(__syncwarp(everyone));
    out[lane] = tile[(lane + 1) % 32];     // race tile: read
}

TEST(mask_without_a_lane)
{
    Array out(32);
    mask_without_a_lane<<<1, 32>>>(out);
    expect(out, [](int i) { return (i + 1) % 32 + 7; });
}

// Each half waits for itself, and reads what the other has written.
__global__ void mask_of_a_half(int *out)
{
    __shared__ int tile[32];
    int lane = threadIdx.x;
    tile[lane] = lane + 9;                 // race tile: write
    __syncwarp(EITHER(lane < 16 ? 0x0000ffffu : 0xffff0000u, everyone));
    out[lane] = tile[lane ^ 16];           // race tile: read
}

TEST(mask_of_a_half)
{
    Array out(32);
    mask_of_a_half<<<1, 32>>>(out);
    expect(out, [](int i) { return (i ^ 16) + 9; });
}

// The end of a branch is no barrier.
__global__ void after_a_branch(int *out)
{
    __shared__ int tile[16];
    int lane = threadIdx.x;
    if (lane < 16) tile[lane] = lane + 100;       // race tile: write
    MENDED(__syncwarp());
    if (lane >= 16) out[lane - 16] = tile[lane - 16];  // race tile: read
}

TEST(after_a_branch)
{
    Array out(16);
    after_a_branch<<<1, 32>>>(out);
    expect(out, [](int i) { return i + 100; });
}

// A lane overwrites what its neighbour may not have read.
__global__ void scan(const int *in, int *out)
{
    __shared__ int sums[32];
    int lane = threadIdx.x;
    sums[lane] = in[lane];
    __syncwarp();
    for (int distance = 1; distance < 32; distance *= 2) {
        int left = lane >= distance ? sums[lane - distance] : 0;  // race sums: read
        MENDED(__syncwarp());
        sums[lane] += left;                                       // race sums: write
        __syncwarp();
    }
    out[lane] = sums[lane];
}

TEST(scan)
{
    Array in(32), out(32);
    scan<<<1, 32>>>(in.number(), out);
    expect(out, [](int i) { return i + 1 + 3 * i * (i + 1) / 2; });
}

// In global memory it is no other.
__global__ void global_memory(int *cells, int *out)
{
    int lane = threadIdx.x;
    cells[lane] = lane + 1;                // race cells: write
    MENDED(__syncwarp());
    out[lane] = cells[31 - lane];          // race cells: read
}

TEST(global_memory)
{
    Array cells(32), out(32);
    global_memory<<<1, 32>>>(cells, out);
    expect(out, [](int i) { return 32 - i; });
}

// To ask who is active brings nobody into an order.
__global__ void active_mask(int *out)
{
    __shared__ int tile[32];
    int lane = threadIdx.x;
    tile[lane] = lane + 3;                 // race tile: write
    unsigned active = __activemask();
    MENDED(__syncwarp());
    out[lane] = active ? tile[lane ^ 5] : 0;  // race tile: read
}

TEST(active_mask)
{
    Array out(32);
    active_mask<<<1, 32>>>(out);
    expect(out, [](int i) { return (i ^ 5) + 3; });
}

// Collectives bring lanes together; that they order memory is promised of __syncwarp() alone.
__global__ void shuffle_for_barrier(int *out)
{
    __shared__ int tile[32];
    int lane = threadIdx.x;
    tile[lane] = lane + 3;                 // benign tile: write
    int next = __shfl_down_sync(everyone, lane, 1);
    MENDED(__syncwarp());
    out[lane] = tile[lane ^ 1] + next;     // benign tile: read
}

TEST(shuffle_for_barrier)
{
    Array out(32);
    shuffle_for_barrier<<<1, 32>>>(out);
    expect(out, [](int i) { return (i ^ 1) + 3 + (i < 31 ? i + 1 : 31); });
}

__global__ void vote_for_barrier(int *out)
{
    __shared__ int tile[32];
    int lane = threadIdx.x;
    tile[lane] = lane + 3;                 // benign tile: write
    int odd = __popc(__ballot_sync(everyone, lane % 2));
    MENDED(__syncwarp());
    out[lane] = tile[lane ^ 1] + odd;      // benign tile: read
}

TEST(vote_for_barrier)
{
    Array out(32);
    vote_for_barrier<<<1, 32>>>(out);
    expect(out, [](int i) { return (i ^ 1) + 3 + 16; });
}

__global__ void sum_for_barrier(int *out)
{
    __shared__ int tile[32];
    int lane = threadIdx.x;
    tile[lane] = lane + 3;                 // benign tile: write
    int sum = __reduce_add_sync(everyone, lane);
    MENDED(__syncwarp());
    out[lane] = tile[lane ^ 1] + sum;      // benign tile: read
}

TEST(sum_for_barrier)
{
    Array out(32);
    sum_for_barrier<<<1, 32>>>(out);
    expect(out, [](int i) { return (i ^ 1) + 3 + 31 * 16; });
}

__global__ void match_for_barrier(int *out)
{
    __shared__ int tile[32];
    int lane = threadIdx.x;
    tile[lane] = lane + 3;                 // benign tile: write
    int alike = __popc(__match_any_sync(everyone, lane / 4));
    MENDED(__syncwarp());
    out[lane] = tile[lane ^ 1] + alike;    // benign tile: read
}

TEST(match_for_barrier)
{
    Array out(32);
    match_for_barrier<<<1, 32>>>(out);
    expect(out, [](int i) { return (i ^ 1) + 3 + 4; });
}

// One that reads memory itself, each lane what others have written.
__global__ void matrix_without_barrier(int *out)
{
    __shared__ alignas(16) unsigned rows[8][4];
    int lane = threadIdx.x, part;
    rows[lane / 4][lane % 4] = lane + 3;   // benign rows: write
    MENDED(__syncwarp());
    unsigned row = (unsigned)__cvta_generic_to_shared(rows[lane % 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(part) : "r"(row) : "memory");  // benign rows: read
    out[lane] = part;
}

TEST(matrix_without_barrier)
{
    Array out(32);
    matrix_without_barrier<<<1, 32>>>(out);
    expect(out, [](int i) { return i + 3; });
}

// One that leaves out a lane does not even do that.
__global__ void shuffle_without_a_lane(int *out)
{
    __shared__ int tile[32];
    int lane = threadIdx.x, before = 0;
    tile[lane] = lane + 3;                 // race tile: write
    if (lane < 31) before = __shfl_up_sync(everyone >> 1, lane, 1);
    MENDED(__syncwarp());
    out[lane] = tile[lane ^ 1] + before;   // race tile: read
}

TEST(shuffle_without_a_lane)
{
    Array out(32);
    shuffle_without_a_lane<<<1, 32>>>(out);
    expect(out, [](int i) { return (i ^ 1) + 3 + (i > 0 && i < 31 ? i - 1 : 0); });
}
