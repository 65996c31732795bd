// Blocks that wait for later blocks, and lanes that wait for other lanes, with anything in the waiting loop: a GPU holds
// all of them at a time, and gives each its turns. `forward_progress_debug.cu` is the same without optimisation.
#include "check.h"

#include <vector>

__device__ __noinline__ int look(int *flag) { return atomicCAS(flag, 0, 0); }

struct Plain {
    static __device__ int seen(int *flag) { return *(volatile int *)flag; }
};
struct CompareAndSwap {
    static __device__ int seen(int *flag) { return atomicCAS(flag, 0, 0); }
};
struct Add {
    static __device__ int seen(int *flag) { return atomicAdd(flag, 0); }
};
struct PastTheCache {
    static __device__ int seen(int *flag) { return __ldcg(flag); }
};
struct Call {
    static __device__ int seen(int *flag) { return look(flag); }
};
struct Sleep {
    static __device__ int seen(int *flag)
    {
        __nanosleep(50);
        return *(volatile int *)flag;
    }
};
struct Fence {
    static __device__ int seen(int *flag)
    {
        __threadfence();
        return *(volatile int *)flag;
    }
};
struct Part {
    static __device__ int seen(int *flag)
    {
        int value;
        if (threadIdx.x & 1)
            value = *(volatile int *)flag;
        else
            value = atomicOr(flag, 0);
        return value;
    }
};
struct Shuffle {
    static __device__ int seen(int *flag)
    {
        int value = 0;
        if (threadIdx.x % 32 == 7) value = *(volatile int *)flag;
        return __shfl_sync(0xffffffff, value, 7);
    }
};
struct Vote {
    static __device__ int seen(int *flag)
    {
        int value = *(volatile int *)flag;
        return __all_sync(0xffffffff, value) ? value : 0;
    }
};
struct Warp {
    static __device__ int seen(int *flag)
    {
        __shared__ int cells[32];
        if (threadIdx.x % 32 == 0) cells[threadIdx.x / 32] = *(volatile int *)flag;
        __syncwarp();
        int value = cells[threadIdx.x / 32];
        __syncwarp();
        return value;
    }
};
struct Block {
    static __device__ int seen(int *flag)
    {
        __shared__ int cell;
        if (threadIdx.x == 0) cell = *(volatile int *)flag;
        __syncthreads();
        int value = cell;
        __syncthreads();
        return value;
    }
};
struct CountBlock {
    static __device__ int seen(int *flag) { return __syncthreads_and(*(volatile int *)flag) ? *(volatile int *)flag : 0; }
};

// Block b waits for block b + 1: they end in the order opposite to the one in which they start.
template <class Way> __global__ void chain(int *flags)
{
    int value = 0;
    if (blockIdx.x + 1 < gridDim.x)
        while ((value = Way::seen(flags + blockIdx.x + 1)) == 0) {}
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicExch(flags + blockIdx.x, value + 1);
    }
}

template <class Way> void chains(const char *name)
{
    for (int blocks : {2, 24})
        for (int threads : {32, 200}) {
            int *flags;
            CUDA(cudaMallocManaged(&flags, blocks * sizeof(int)));
            memset(flags, 0, blocks * sizeof(int));
            chain<Way><<<blocks, threads>>>(flags);
            LAUNCHED();
            cudaError_t code = cudaDeviceSynchronize();
            if (code != cudaSuccess) fail("%s: %d blocks of %d: %s", name, blocks, threads, cudaGetErrorName(code));
            for (int i = 0; i < blocks; i++)
                if (flags[i] != blocks - i) fail("%s: flag %d of %d is %d", name, i, blocks, flags[i]);
            CUDA(cudaFree(flags));
        }
}

// One lane of the warp (`releaser`) sets what the others wait for, each way of waiting among those that wait.
template <int WAY> __global__ void lanes(int *flag, int *sum, int releaser)
{
    unsigned others = ~(1u << releaser);
    if ((int)threadIdx.x == releaser) {
        for (int i = 0; i < 1000; i++) atomicAdd(sum, 1);
        __threadfence();
        atomicExch(flag, 1);
    } else {
        int seen = 0;
        while (!seen) {
            if (WAY == 0) seen = *(volatile int *)flag;
            if (WAY == 1) seen = __shfl_sync(others, *(volatile int *)flag, (releaser + 1) % 32);
            if (WAY == 2) seen = __any_sync(others, *(volatile int *)flag);
            if (WAY == 3) seen = look(flag);
            if (WAY == 4) {
                if (threadIdx.x & 2) seen = look(flag);
                else seen = *(volatile int *)flag;
                __syncwarp(others);
            }
            if (WAY == 5) {
                if (threadIdx.x & 1) seen = atomicAdd(flag, 0);
                else if (threadIdx.x & 2) seen = look(flag);
                else seen = *(volatile int *)flag;
            }
        }
        atomicAdd(sum, seen);
    }
}

// Some warps of a block turn round barriers of their own until another warp lets them go.
__global__ void warps(int *flag, int *sum)
{
    int warp = threadIdx.x / 32;
    if (warp == 1) {
        for (int i = 0; i < 1000; i++) atomicAdd(sum, 1);
        __threadfence();
        *(volatile int *)flag = 1;
    } else if (warp == 0) {
        while (*(volatile int *)flag == 0) asm volatile("barrier.sync 1, 32;" ::: "memory");
    } else {
        int seen = 0;
        while (!seen) {
            seen = *(volatile int *)flag;
            asm volatile("{.reg .pred p; setp.ne.s32 p, %0, 0; barrier.red.and.pred p, 2, 64, p; selp.s32 %0, 1, 0, p;}"
                         : "+r"(seen)::"memory");
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(sum, 1);
}

// A lock that every lane takes by itself, in the way that hangs on lock-step machines.
__global__ void locks(int *lock, int *count, int *order)
{
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    int ticket = *(volatile int *)count;
    *(volatile int *)count = ticket + 1;
    order[ticket] = blockIdx.x * blockDim.x + threadIdx.x;
    __threadfence();
    atomicExch(lock, 0);
}

template <int WAY> void one_lane()
{
    int *cells;
    CUDA(cudaMallocManaged(&cells, 2 * sizeof(int)));
    for (int releaser : {0, 13, 31}) {
        cells[0] = cells[1] = 0;
        lanes<WAY><<<1, 32>>>(cells, cells + 1, releaser);
        FINISHED();
        EXPECT_EQ(cells[1], 1031);
    }
    CUDA(cudaFree(cells));
}

int main()
{
    chains<Plain>("volatile");
    chains<CompareAndSwap>("atomicCAS");
    chains<Add>("atomicAdd");
    chains<PastTheCache>("__ldcg");
    chains<Call>("call");
    chains<Sleep>("__nanosleep");
    chains<Fence>("__threadfence");
    chains<Part>("divergent branch");
    chains<Shuffle>("__shfl_sync");
    chains<Vote>("__all_sync");
    chains<Warp>("__syncwarp");
    chains<Block>("__syncthreads");
    chains<CountBlock>("__syncthreads_and");

    one_lane<0>();
    one_lane<1>();
    one_lane<2>();
    one_lane<3>();
    one_lane<4>();
    one_lane<5>();

    int *cells;
    CUDA(cudaMallocManaged(&cells, 2000 * sizeof(int)));
    cells[0] = cells[1] = 0;
    warps<<<1, 128>>>(cells, cells + 1);
    FINISHED();
    EXPECT_EQ(cells[1], 32 * 1000 + 1);

    memset(cells, 0, 2000 * sizeof(int));
    locks<<<3, 96>>>(cells, cells + 1, cells + 2);
    FINISHED();
    std::vector<int> seen(288);
    EXPECT_EQ(cells[1], 288);
    for (int i = 0; i < 288; i++) seen[cells[2 + i]]++;
    for (int i = 0; i < 288; i++) EXPECT_EQ(seen[i], 1);
    return pass();
}
