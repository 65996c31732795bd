// Accesses that are strong, or fences, for fewer threads than take part.
#include "check.h"

// PTX's own words, which CUDA C++ has no short names for.
#define STORE(how, place, value) asm volatile("st." how ".s32 [%0], %1;" ::"l"(place), "r"(value) : "memory")
#define LOAD(how, place, value) asm volatile("ld." how ".s32 %0, [%1];" : "=r"(value) : "l"(place) : "memory")

__global__ void count_of_each_block(int *count)
{
    BROKEN(atomicAdd_block(count, 1));     // race count: atomic, count: atomic
    MENDED(atomicAdd(count, 1));
}

TEST(count_of_each_block)
{
    Array count(1);
    count_of_each_block<<<4, 32>>>(count);
    expect(count, [](int) { return 128; });
}

// It takes both: the second's scope is wide enough, the first's is not.
__global__ void one_of_two_too_narrow(int *count)
{
    if (blockIdx.x == 0) {
        BROKEN(atomicAdd_block(count, 1));  // race count: atomic
        MENDED(atomicAdd(count, 1));
    } else {
        atomicAdd(count, 2);                // race count: atomic
    }
}

TEST(one_of_two_too_narrow)
{
    Array count(1);
    one_of_two_too_narrow<<<2, 1>>>(count);
    expect(count, [](int) { return 3; });
}

__global__ void release_for_the_block(int *data, int *flag, int *out)
{
    if (blockIdx.x == 0) {
        *data = 42;                                  // race data: write
        BROKEN(STORE("release.cta", flag, 1));       // race flag: write
        MENDED(STORE("release.gpu", flag, 1));
    } else {
        int seen = 0;
        while (!seen) LOAD("acquire.gpu", flag, seen);  // race flag: read
        *out = *data;                                // race data: read
    }
}

TEST(release_for_the_block)
{
    Array data(1), flag(1), out(1);
    release_for_the_block<<<2, 1>>>(data, flag, out);
    expect(out, [](int) { return 42; });
}

__global__ void acquire_for_the_block(int *data, int *flag, int *out)
{
    if (blockIdx.x == 0) {
        *data = 42;                                  // race data: write
        STORE("release.gpu", flag, 1);               // race flag: write
    } else {
        int seen = 0;
        while (!seen) {
            BROKEN(LOAD("acquire.cta", flag, seen)); // race flag: read
            MENDED(LOAD("acquire.gpu", flag, seen));
        }
        *out = *data;                                // race data: read
    }
}

TEST(acquire_for_the_block)
{
    Array data(1), flag(1), out(1);
    acquire_for_the_block<<<2, 1>>>(data, flag, out);
    expect(out, [](int) { return 42; });
}

// The flag is for all, the fence before it for the block.
__global__ void fence_for_the_block(int *data, volatile int *flag, int *out)
{
    if (blockIdx.x == 0) {
        *data = 42;                        // race data: write
        BROKEN(__threadfence_block());
        MENDED(__threadfence());
        *flag = 1;
    } else {
        while (*flag == 0) {}
        __threadfence();
        *out = *data;                      // race data: read
    }
}

TEST(fence_for_the_block)
{
    Array data(1), flag(1), out(1);
    fence_for_the_block<<<2, 1>>>(data, flag, out);
    expect(out, [](int) { return 42; });
}

// By the letter, the fence behind the flag must be for both, too.
__global__ void second_fence_for_the_block(int *data, volatile int *flag, int *out)
{
    if (blockIdx.x == 0) {
        *data = 42;                        // benign data: write
        __threadfence();
        *flag = 1;
    } else {
        while (*flag == 0) {}
        BROKEN(__threadfence_block());
        MENDED(__threadfence());
        *out = *data;                      // benign data: read
    }
}

TEST(second_fence_for_the_block)
{
    Array data(1), flag(1), out(1);
    second_fence_for_the_block<<<2, 1>>>(data, flag, out);
    expect(out, [](int) { return 42; });
}

// The first thread's second operation is for all, but not its first.
__global__ void narrow_and_wide(int *count)
{
    if (blockIdx.x == 0) {
        BROKEN(atomicAdd_block(count, 1));  // race count: atomic
        MENDED(atomicAdd(count, 1));
    }
    atomicAdd(count, 2);                    // race count: atomic
}

TEST(narrow_and_wide)
{
    Array count(1);
    narrow_and_wide<<<2, 1>>>(count);
    expect(count, [](int) { return 5; });
}

// A block counts for itself, while others look with the scope of the device.
__global__ void sum_of_the_block(int *sums, int *out)
{
    BROKEN(atomicAdd_block(&sums[blockIdx.x], 1));           // race sums: atomic
    MENDED(atomicAdd(&sums[blockIdx.x], 1));
    out[blockIdx.x] = atomicAdd(&sums[blockIdx.x ^ 1], 0);   // race sums: atomic
}

TEST(sum_of_the_block)
{
    Array sums(2), out(2);
    sum_of_the_block<<<2, 1>>>(sums, out);
    CUDA(cudaDeviceSynchronize());
    MENDED(if (out[0] + out[1] < 1) exit(2));
    expect(sums, [](int) { return 1; });
}

// Blocks that are not of one cluster.
__global__ void release_for_the_cluster(int *data, int *flag, int *out)
{
    if (blockIdx.x == 0) {
        *data = 42;                                      // race data: write
        STORE("release.cluster", flag, 1);               // race flag: write
    } else {
        int seen = 0;
        while (!seen) LOAD("acquire.cluster", flag, seen);  // race flag: read
        *out = *data;                                    // race data: read
    }
}

TEST(release_for_the_cluster)
{
    Array data(1), flag(1), out(1);
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {EITHER(1, 2), 1, 1};
    cudaLaunchConfig_t launch = {};
    launch.gridDim = 2;
    launch.blockDim = 1;
    launch.attrs = &cluster;
    launch.numAttrs = 1;
    CUDA(cudaLaunchKernelEx(&launch, release_for_the_cluster, (int *)data, (int *)flag, (int *)out));
    expect(out, [](int) { return 42; });
}

// Within the block its scope is enough.
__global__ void scope_of_the_block(int *data, int *flags, int *counts, int *out)
{
    int b = blockIdx.x;
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    atomicAdd_block(&count, 1);
    atomicAdd_block(&counts[b], 1);
    if (threadIdx.x == 64) {
        data[b] = 42 + b;
        STORE("release.cta", &flags[b], 1);
    }
    if (threadIdx.x == 0) {
        int seen = 0;
        while (!seen) LOAD("acquire.cta", &flags[b], seen);
        out[b] = data[b];
        while (atomicAdd_block(&count, 0) < 96) {}
    }
}

TEST(scope_of_the_block)
{
    Array data(4), flags(4), counts(4), out(4);
    scope_of_the_block<<<4, 96>>>(data, flags, counts, out);
    expect(out, [](int i) { return 42 + i; });
    expect(counts, [](int) { return 96; });
}
