// One block leaves something for another, and sets a flag: a fence, or a strong access, too few.
#include "check.h"

// Nothing keeps the flag behind the data.
__global__ void no_fence(int *data, volatile int *flag, int *out)
{
    if (blockIdx.x == 0) {
        *data = 42;                        // race data: write
        MENDED(__threadfence());
        *flag = 1;
    } else {
        while (*flag == 0) {}
        __threadfence();
        *out = *data;                      // race data: read
    }
}

TEST(no_fence)
{
    Array data(1), flag(1), out(1);
    no_fence<<<2, 1>>>(data, flag, out);
    expect(out, [](int) { return 42; });
}

__global__ void fence_after_the_flag(int *data, volatile int *flag, int *out)
{
    if (blockIdx.x == 0) {
        *data = 42;                        // race data: write
        MENDED(__threadfence());
        *flag = 1;
        BROKEN(__threadfence());
    } else {
        while (*flag == 0) {}
        __threadfence();
        *out = *data;                      // race data: read
    }
}

TEST(fence_after_the_flag)
{
    Array data(1), flag(1), out(1);
    fence_after_the_flag<<<2, 1>>>(data, flag, out);
    expect(out, [](int) { return 42; });
}

// The flag is a plain store: not only may it come at any time, it also releases nothing.
__global__ void plain_flag(int *data, int *flag, int *out)
{
    if (blockIdx.x == 0) {
        *data = 42;                                      // race data: write
        __threadfence();
        *EITHER(flag, (volatile int *)flag) = 1;         // race flag: write
    } else {
        while (*(volatile int *)flag == 0) {}            // race flag: read
        __threadfence();
        *out = *data;                                    // race data: read
    }
}

TEST(plain_flag)
{
    Array data(1), flag(1), out(1);
    plain_flag<<<2, 1>>>(data, flag, out);
    expect(out, [](int) { return 42; });
}

// The flag is set as it should be, and read by plain loads, which acquire nothing.
__global__ void plain_wait(int *data, int *flag, int *out)
{
    if (blockIdx.x == 0) {
        *data = 42;                                                                       // race data: write
        __threadfence();
        atomicExch(flag, 1);                                                              // race flag: atomic
    } else {
        int seen;
        do {
            BROKEN(asm volatile("ld.global.s32 %0, [%1];" : "=r"(seen) : "l"(flag)));     // race flag: read
            MENDED(seen = atomicAdd(flag, 0));
        } while (seen == 0);
        __threadfence();
        *out = *data;                                                                     // race data: read
    }
}

TEST(plain_wait)
{
    Array data(1), flag(1), out(1);
    plain_wait<<<2, 1>>>(data, flag, out);
    expect(out, [](int) { return 42; });
}

// One thread's fence before the barrier is for what it has written itself; behind the barrier it is for all.
__global__ void fence_before_the_barrier(int *data, volatile int *flag, int *out)
{
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = t + 1;                   // race data: write
        BROKEN(if (t == 0) __threadfence());
        __syncthreads();
        MENDED(if (t == 0) __threadfence());
        if (t == 0) *flag = 1;
    } else {
        while (t == 0 && *flag == 0) {}
        __threadfence();
        __syncthreads();
        out[t] = data[63 - t];             // race data: read
    }
}

TEST(fence_before_the_barrier)
{
    Array data(64), flag(1), out(64);
    fence_before_the_barrier<<<2, 64>>>(data, flag, out);
    expect(out, [](int i) { return 64 - i; });
}

// It is another thread that fences, and not the one that sets the flag.
__global__ void fence_of_another_thread(int *data, volatile int *flag, int *out)
{
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = t + 1;                   // race data: write
        __syncthreads();
        if (t == EITHER(1, 0)) __threadfence();
        if (t == 0) *flag = 1;
    } else {
        while (t == 0 && *flag == 0) {}
        __threadfence();
        __syncthreads();
        out[t] = data[63 - t];             // race data: read
    }
}

TEST(fence_of_another_thread)
{
    Array data(64), flag(1), out(64);
    fence_of_another_thread<<<2, 64>>>(data, flag, out);
    expect(out, [](int i) { return 64 - i; });
}

// By the letter, a fence is for the flags of its own thread; that all fence and meet before one sets it, is common.
__global__ void fences_of_all(int *data, volatile int *flag, int *out)
{
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = t + 1;                   // benign data: write
        __threadfence();
        __syncthreads();
        MENDED(if (t == 0) __threadfence());
        if (t == 0) *flag = 1;
    } else {
        while (t == 0 && *flag == 0) {}
        __threadfence();
        __syncthreads();
        out[t] = data[63 - t];             // benign data: read
    }
}

TEST(fences_of_all)
{
    Array data(64), flag(1), out(64);
    fences_of_all<<<2, 64>>>(data, flag, out);
    expect(out, [](int i) { return 64 - i; });
}

// By the letter, whoever sees a flag acquires by a fence behind.
__global__ void no_fence_behind_the_flag(int *data, volatile int *flag, int *out)
{
    if (blockIdx.x == 0) {
        *data = 42;                        // benign data: write
        __threadfence();
        *flag = 1;
    } else {
        while (*flag == 0) {}
        MENDED(__threadfence());
        *out = *data;                      // benign data: read
    }
}

TEST(no_fence_behind_the_flag)
{
    Array data(1), flag(1), out(1);
    no_fence_behind_the_flag<<<2, 1>>>(data, flag, out);
    expect(out, [](int) { return 42; });
}

// Of two words only the first lies before the fence.
__global__ void written_after_the_fence(int *data, volatile int *flag, int *out)
{
    if (blockIdx.x == 0) {
        data[0] = 42;
        BROKEN(__threadfence());
        data[1] = 43;                      // race data: write
        MENDED(__threadfence());
        *flag = 1;
    } else {
        while (*flag == 0) {}
        __threadfence();
        out[0] = data[0];
        out[1] = data[1];                  // race data: read
    }
}

TEST(written_after_the_fence)
{
    Array data(2), flag(1), out(2);
    written_after_the_fence<<<2, 1>>>(data, flag, out);
    expect(out, [](int i) { return 42 + i; });
}

__global__ void another_flag(int *data, volatile int *flags, int *out)
{
    if (blockIdx.x == 0) {
        data[0] = 42;
        __threadfence();
        flags[0] = 1;
        data[1] = 43;                      // race data: write
        __threadfence();
        flags[1] = 1;
    } else {
        while (flags[EITHER(0, 1)] == 0) {}
        __threadfence();
        out[0] = data[0];
        out[1] = data[1];                  // race data: read
    }
}

TEST(another_flag)
{
    Array data(2), flags(2), out(2);
    another_flag<<<2, 1>>>(data, flags, out);
    expect(out, [](int i) { return 42 + i; });
}

// The one in the middle hands on a flag, but not what he has learnt.
__global__ void middle_without_fence(int *data, volatile int *first, volatile int *second, int *out)
{
    if (blockIdx.x == 0) {
        *data = 42;                        // race data: write
        __threadfence();
        *first = 1;
    } else if (blockIdx.x == 1) {
        while (*first == 0) {}
        MENDED(__threadfence());
        *second = 1;
    } else {
        while (*second == 0) {}
        __threadfence();
        *out = *data;                      // race data: read
    }
}

TEST(middle_without_fence)
{
    Array data(1), first(1), second(1), out(1);
    middle_without_fence<<<3, 1>>>(data, first, second, out);
    expect(out, [](int) { return 42; });
}

// An atomic operation goes on what was released before; a store, even a strong one, begins anew.
__global__ void chain_broken_by_a_store(int *data, int *count, volatile int *turn, int *out)
{
    volatile int *seen = count;
    if (blockIdx.x == 0) {
        *data = 42;                        // race data: write
        __threadfence();
        atomicAdd(count, 1);
    } else if (blockIdx.x == 1) {
        while (*seen != 1) {}
        BROKEN(*seen = 2);
        MENDED(atomicAdd(count, 1));
        *turn = 1;
    } else {
        // The third does not look before, so that it does not see what the first has released.
        while (*turn == 0) {}
        while (*seen != 2) {}
        __threadfence();
        *out = *data;                      // race data: read
    }
}

TEST(chain_broken_by_a_store)
{
    Array data(1), count(1), turn(1), out(1);
    chain_broken_by_a_store<<<3, 1>>>(data, count, turn, out);
    expect(out, [](int) { return 42; });
}

// The answer, by which the first may write again, is given before the data is surely read.
__global__ void answer_without_fence(int *data, volatile int *flag, volatile int *answer, int *out)
{
    for (int round = 1; round <= 3; round++)
        if (blockIdx.x == 0) {
            while (*answer < round - 1) {}
            __threadfence();
            *data = round;                 // race data: write
            __threadfence();
            *flag = round;
        } else {
            while (*flag < round) {}
            __threadfence();
            *out += *data;                 // race data: read
            MENDED(__threadfence());
            *answer = round;
        }
}

TEST(answer_without_fence)
{
    Array data(1), flag(1), answer(1), out(1);
    answer_without_fence<<<2, 1>>>(data, flag, answer, out);
    expect(out, [](int) { return 6; });
}

// The block that ends last sums up what all have left.
__global__ void last_block(const int *in, int *partial, int *tickets, int *out)
{
    __shared__ bool is_last;
    int t = threadIdx.x, b = blockIdx.x;
    int sum = __reduce_add_sync(0xffffffff, in[b * 32 + t]);
    if (t == 0) {
        partial[b] = sum;                  // race partial: write
        MENDED(__threadfence());
        is_last = atomicAdd(tickets, 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (is_last) {
        sum = __reduce_add_sync(0xffffffff, partial[t]);  // race partial: read
        if (t == 0) *out = sum;
    }
}

TEST(last_block)
{
    Array in(1024), partial(32), tickets(1), out(1);
    last_block<<<32, 32>>>(in.number(), partial, tickets, out);
    expect(out, [](int) { return 1024 + 3 * 1023 * 512; });
}

// As NVIDIA's sample of a reduction in one launch has it: whoever draws the last ticket does not fence again.
__global__ void last_block_without_second_fence(const int *in, int *partial, int *tickets, int *out)
{
    __shared__ bool is_last;
    int t = threadIdx.x, b = blockIdx.x;
    int sum = __reduce_add_sync(0xffffffff, in[b * 32 + t]);
    if (t == 0) {
        partial[b] = sum;                  // benign partial: write
        __threadfence();
        is_last = atomicAdd(tickets, 1) == gridDim.x - 1;
        MENDED(__threadfence());
    }
    __syncthreads();
    if (is_last) {
        sum = __reduce_add_sync(0xffffffff, partial[t]);  // benign partial: read
        if (t == 0) *out = sum;
    }
}

TEST(last_block_without_second_fence)
{
    Array in(1024), partial(32), tickets(1), out(1);
    last_block_without_second_fence<<<32, 32>>>(in.number(), partial, tickets, out);
    expect(out, [](int) { return 1024 + 3 * 1023 * 512; });
}

// Between threads of one block, too, a flag in shared memory takes a fence.
__global__ void flag_in_shared_memory(int value, int *out)
{
    __shared__ int data;
    __shared__ volatile int flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x == 32) {
        data = value;                      // race data: write
        MENDED(__threadfence_block());
        flag = 1;
    }
    if (threadIdx.x == 0) {
        while (flag == 0) {}
        __threadfence_block();
        *out = data;                       // race data: read
    }
}

TEST(flag_in_shared_memory)
{
    Array out(1);
    flag_in_shared_memory<<<1, 64>>>(42, out);
    expect(out, [](int) { return 42; });
}
