// Locks that let in one at a time, but do not put what they do in order.
#include "check.h"

// A spin lock, without its fences.
__device__ void take(int *lock)
{
    while (atomicCAS(lock, 0, 1) != 0) {}
}

__device__ void leave(int *lock)
{
    atomicExch(lock, 0);
}

__global__ void unlock_without_fence(int *lock, int *sum)
{
    take(lock);
    __threadfence();
    *sum += blockIdx.x;                    // race both: read, both: write, two: write, two: write
    MENDED(__threadfence());
    leave(lock);
}

TEST(unlock_without_fence)
{
    Array lock(1), sum(1);
    unlock_without_fence<<<8, 1>>>(lock, sum);
    expect(sum, [](int) { return 28; });
}

// By the letter, the lock's taker needs a fence, too.
__global__ void lock_without_fence(int *lock, int *sum)
{
    take(lock);
    MENDED(__threadfence());
    *sum += blockIdx.x;                    // benign both: read, both: write, two: write, two: write
    __threadfence();
    leave(lock);
}

TEST(lock_without_fence)
{
    Array lock(1), sum(1);
    lock_without_fence<<<8, 1>>>(lock, sum);
    expect(sum, [](int) { return 28; });
}

// Who writes has the lock, who reads does not.
__global__ void read_without_lock(int *lock, int *pair, int *out)
{
    MENDED(take(lock));
    BROKEN(if (blockIdx.x == 0) take(lock));
    __threadfence();
    if (blockIdx.x == 0) {
        pair[0] = 5;                       // race first: write
        pair[1] = 6;                       // race second: write
    } else {
        out[0] = pair[0];                  // race first: read
        out[1] = pair[1];                  // race second: read
    }
    __threadfence();
    MENDED(leave(lock));
    BROKEN(if (blockIdx.x == 0) leave(lock));
}

TEST(read_without_lock)
{
    Array lock(1), pair(2), out(2);
    read_without_lock<<<2, 1>>>(lock, pair, out);
    CUDA(cudaDeviceSynchronize());
    // The reader may have come first, but sees both or none.
    MENDED(if (out[1] != (out[0] ? 6 : 0)) exit(2));
    expect(pair, [](int i) { return 5 + i; });
}

// Who has one lock is not kept out by another.
__global__ void two_locks(int *locks, int *sum)
{
    int *lock = &locks[EITHER(blockIdx.x % 2, 0)];
    take(lock);
    __threadfence();
    *sum += blockIdx.x + 1;                // race both: read, both: write, two: write, two: write
    __threadfence();
    leave(lock);
}

TEST(two_locks)
{
    Array locks(2), sum(1);
    two_locks<<<2, 1>>>(locks, sum);
    expect(sum, [](int) { return 3; });
}

// The next in turn is let in by a plain store.
__global__ void turn_by_plain_store(int *turns, int *sum)
{
    volatile int *turn = &turns[1];
    int own = atomicAdd(&turns[0], 1);
    while (*turn != own) {}                // race turn: read
    __threadfence();
    *sum += blockIdx.x;                    // race both: read, both: write, two: write, two: write
    __threadfence();
    *EITHER((int *)turn, turn) = own + 1;  // race turn: write, turns: write, turns: write
}

TEST(turn_by_plain_store)
{
    Array turns(2), sum(1);
    turn_by_plain_store<<<4, 1>>>(turns, sum);
    expect(sum, [](int) { return 6; });
}

// One thread of each block has the lock; the others write before it has it.
__global__ void others_do_not_wait(int *lock, int *sums)
{
    int t = threadIdx.x;
    if (t == 0) {
        take(lock);
        __threadfence();
    }
    MENDED(__syncthreads());
    sums[t] += blockIdx.x + 1;             // race both: read, both: write, two: write, two: write
    __syncthreads();
    if (t == 0) {
        __threadfence();
        leave(lock);
    }
}

TEST(others_do_not_wait)
{
    Array lock(1), sums(64);
    others_do_not_wait<<<4, 64>>>(lock, sums);
    expect(sums, [](int) { return 10; });
}

// A lock for each of a few places, taken by lanes of the same warps.
__global__ void lock_of_each_place(int *locks, int *sums)
{
    int place = threadIdx.x % 4;
    bool done = false;
    while (!done)
        if (atomicCAS(&locks[place], 0, 1) == 0) {
            __threadfence();
            sums[place] += 1;              // race both: read, both: write, two: write, two: write
            MENDED(__threadfence());
            atomicExch(&locks[place], 0);
            done = true;
        }
}

TEST(lock_of_each_place)
{
    Array locks(4), sums(4);
    lock_of_each_place<<<2, 64>>>(locks, sums);
    expect(sums, [](int) { return 32; });
}
