// What lanes of a warp do together: member masks that lie, and registers of lanes that take no part.
#include "../check.h"

const unsigned everyone = 0xffffffff;

// The mask is for lanes 1 to 15.
__global__ void not_a_member(int *out)
{
    int lane = threadIdx.x;
    if (lane < 16) out[lane] = __shfl_sync(EITHER(0xfffe, 0xffff), lane, 1);  // sync member
}

TEST(not_a_member)
{
    Array out(16);
    not_a_member<<<1, 32>>>(out);
    expect(out, [](int) { return 1; });
}

// The other half is on its way to the block's barrier.
__global__ void half_a_warp(int *out)
{
    int lane = threadIdx.x, sum = lane;
    if (lane < 16) sum = __shfl_xor_sync(EITHER(everyone, 0xffff), sum, 1);   // sync absent
    __syncthreads();                                                          // sync absent
    out[lane] = sum;
}

TEST(half_a_warp)
{
    Array out(32);
    half_a_warp<<<1, 32>>>(out);
    expect(out, [](int i) { return i < 16 ? i ^ 1 : i; });
}

// __syncwarp() in a branch.
__global__ void warp_barrier(int *out)
{
    int lane = threadIdx.x;
    if (lane < 8) __syncwarp(EITHER(everyone, 0xff));                         // sync absent
    __syncthreads();                                                          // sync absent
    out[lane] = lane;
}

TEST(warp_barrier)
{
    Array out(32);
    warp_barrier<<<1, 32>>>(out);
    expect(out, [](int i) { return i; });
}

// One shuffle in each branch: they never meet.
__global__ void two_shuffles(int *out)
{
    int lane = threadIdx.x, got;
    if (lane < 16)
        got = __shfl_sync(EITHER(everyone, 0xffff), lane * 3, 2) + 5;          // sync branches
    else
        got = __shfl_sync(EITHER(everyone, 0xffff0000), lane * 7, 20) * 2;     // sync branches
    out[lane] = got;
}

TEST(two_shuffles)
{
    Array out(32);
    two_shuffles<<<1, 32>>>(out);
    expect(out, [](int i) { return i < 16 ? 11 : 280; });
}

// Likewise, while a third part of the warp waits for what comes behind: not for ever.
__global__ void two_votes(int *out, volatile int *flag)
{
    int lane = threadIdx.x, got = 0;
    if (lane < 8) {
        got = __ballot_sync(EITHER(0xffff, 0xff), lane < 4) & 0xff;            // sync branches
        *flag = 1;
    } else if (lane < 16) {
        got = __any_sync(EITHER(0xffff, 0xff00), lane < 4) + 100;              // sync branches
        *flag = 1;
    } else {
        while (*flag == 0) {}
    }
    out[lane] = got;
}

TEST(two_votes)
{
    Array out(32), flag(1);
    two_votes<<<1, 32>>>(out, flag);
    expect(out, [](int i) { return i < 8 ? 15 : i < 16 ? 100 : 0; });
}

// Lanes of one shuffle name different masks.
__global__ void two_masks(int *out)
{
    int lane = threadIdx.x;
    unsigned mask = lane < 16 ? EITHER(everyone, 0xffff) : 0xffff0000;
    if (lane & 1) out[lane] = 0;
    out[lane] = __shfl_xor_sync(mask, lane, 1);                               // sync masks
}

TEST(two_masks)
{
    Array out(32);
    two_masks<<<1, 32>>>(out);
    expect(out, [](int i) { return i ^ 1; });
}

// A lane that takes no part has nothing to give.
__global__ void inactive_source(int *out)
{
    int lane = threadIdx.x;
    if (lane < 16) out[lane] = __shfl_sync(0xffff, lane, EITHER(lane + 8, (lane + 8) % 16)); // sync source
    __syncwarp();
}

TEST(inactive_source)
{
    Array out(16);
    inactive_source<<<1, 32>>>(out);
    expect(out, [](int i) { return (i + 8) % 16; });
}

// The last warp has 16 lanes, and a sum over 32.
__global__ void short_warp(int *out)
{
    int lane = threadIdx.x;
    int sum = 1;
    for (int distance = EITHER(16, 8); distance > 0; distance /= 2)
        sum += __shfl_down_sync(EITHER(everyone, 0xffff), sum, distance, EITHER(32, 16));     // sync source
    if (lane == 0) *out = sum;
}

TEST(short_warp)
{
    Array out(1);
    short_warp<<<1, 16>>>(out);
    expect(out, [](int) { return 16; });
}

// Lanes that have exited are no members.
__global__ void exited_members(int *out)
{
    int lane = threadIdx.x;
    if (lane >= 20) return;
    __syncwarp();
    out[lane] = __popc(__ballot_sync(everyone, 1));
}

TEST(exited_members)
{
    Array out(20);
    exited_members<<<1, 32>>>(out);
    expect(out, [](int) { return 20; });
}

// Who is active is a mask like others; tiles of a warp have masks of their own.
__global__ void masks_of_all_kinds(int *out)
{
    int lane = threadIdx.x;
    unsigned tile = 0xffu << (lane & 24);
    int sum = __shfl_xor_sync(tile, lane, 4);
    if (lane % 3 == 0) sum += 100 * __popc(__activemask()) - 100 * __popc(__ballot_sync(__activemask(), 1));
    unsigned same = __match_any_sync(everyone, lane % 5);
    sum += 1000 * (__popc(__ballot_sync(same, 1)) - __popc(same));
    out[lane] = sum;
}

TEST(masks_of_all_kinds)
{
    Array out(32);
    masks_of_all_kinds<<<1, 32>>>(out);
    expect(out, [](int i) { return i ^ 4; });
}

// A reduction in a loop whose lanes leave one after the other.
__global__ void dwindling(int *out)
{
    int lane = threadIdx.x, sum = 0;
    unsigned mask = everyone;
    for (int i = 0; i < 32; i++) {
        mask = __ballot_sync(EITHER(everyone, mask), lane >= i);              // sync dwindling
        if (lane < i) break;
        sum += __popc(mask);
    }
    __syncthreads();                                                          // sync dwindling
    out[lane] = sum;
}

TEST(dwindling)
{
    Array out(32);
    dwindling<<<1, 32>>>(out);
    expect(out, [](int i) { int sum = 0; for (int k = 0; k <= i; k++) sum += 32 - k; return sum; });
}
