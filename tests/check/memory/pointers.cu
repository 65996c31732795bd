// Accesses that land in another allocation than the one that the parameter of their address points into.
#include "../check.h"

// Two arrays, and what lies between them.
struct Two {
    int *first, *second;
    Two()
    {
        CUDA(cudaMalloc(&first, 4096));
        CUDA(cudaMalloc(&second, 4096));
        CUDA(cudaMemset(first, 0, 4096));
        CUDA(cudaMemset(second, 0, 4096));
    }
    ~Two()
    {
        cudaFree(first);
        cudaFree(second);
    }
    int distance() const { return int(second - first); }
    // What the error that is to come does to the context is no news.
    static void end() { CUDA(EITHER((cudaDeviceSynchronize(), cudaSuccess), cudaDeviceSynchronize())); }
};

__global__ void far(int *first, int *second, int n)
{
    second[threadIdx.x] = 1;
    first[threadIdx.x + n] = 2; // found: made from parameter 0, which is the start of an allocation of 4096 bytes
}
TEST(far)
{
    Two two;
    far<<<1, 32>>>(two.first, two.second, EITHER(two.distance(), 0));
    two.end();
}

__global__ void loop(int *sums, const int *__restrict__ from, int step, int n)
{
    int sum = 0;
    for (const int *p = from + threadIdx.x; n > 0; p += step, n--)
        sum += *p; // found: made from parameter 1
    sums[threadIdx.x] = sum;
}
TEST(loop)
{
    Two two;
    // The second step is into the other array.
    loop<<<1, 32>>>(two.second, two.first, EITHER(two.distance(), 32), 2);
    two.end();
}

// What was found out for one pointer says nothing of the next one, nor for good.
__global__ void again(int *to, int n) { to[threadIdx.x + n] = 1; } // found: made from parameter 0
TEST(after_good_launches)
{
    Two two;
    again<<<1, 32>>>(two.first, 0);
    again<<<1, 32>>>(two.second, 0);
    again<<<1, 32>>>(two.first, EITHER(two.distance(), 0));
    two.end();
}

__global__ void gather(int *sums, const int *__restrict__ from, int n, int last)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += from[(threadIdx.x * 37 + i) % 64 + (i == n - 1 && threadIdx.x == 30 ? last : 0)]; // found: thread (30,0,0)
    sums[threadIdx.x] = sum;
}
TEST(one_lane_late)
{
    Two two;
    gather<<<1, 32>>>(two.second, two.first, 20, EITHER(two.distance(), 3));
    two.end();
}

// Downwards, and an access that begins in its array and ends behind it.
__global__ void down(long long *to, const int *__restrict__ from, int n)
{
    long long sum = 0;
    for (int i = n; i >= 0; i--)
        sum += from[i * 32 - threadIdx.x + 31]; // found: made from parameter 1
    to[threadIdx.x] = sum;
}
TEST(downwards)
{
    Two two;
    down<<<1, 32>>>((long long *)two.first, two.second, 4);
    down<<<1, 32>>>((long long *)two.second, two.first, EITHER(two.distance() / 32, 31));
    two.end();
}

struct Pair {
    int *to;
    const int *from;
    int n;
};
__global__ void members(Pair pair)
{
    int t = threadIdx.x;
    pair.to[t + pair.n] = pair.from[t]; // found: made from parameter 0
}
TEST(members_of_a_structure)
{
    Two two;
    members<<<1, 32>>>(Pair{two.first, two.second, EITHER(two.distance(), 0)});
    two.end();
}

__global__ void atomics(int *counts, int n) { atomicAdd(counts + n, 1); } // found: made from parameter 0
TEST(atomics)
{
    Two two;
    atomics<<<1, 32>>>(two.first, EITHER(two.distance(), 0));
    two.end();
}

// A pointer into the middle belongs to its allocation as well.
__global__ void middle(int *from, int n) { from[n] = from[-1]; } // found: 2048 bytes inside an allocation of 4096 bytes
TEST(middle)
{
    Two two;
    middle<<<1, 32>>>(two.first + 512, EITHER(two.distance() - 512, 0));
    two.end();
}

// What is no mistake: the distance of two pointers, one of two, a pointer in memory, an array that begins before its pointer.
__global__ void legal(int *first, int *second, int **list, int n, long long far)
{
    int t = threadIdx.x;
    first[second - first + t] = 1;
    int *either = n & 1 ? first : second;
    either[t] = 2;
    list[0][t] = 3;
    list[1][t] = 4;
    first[far + t] = 5;
    int *end = second + 1024;
    *(end - 1 - t) = 6;
}
TEST(legal)
{
    Two two;
    Array<int *> list(2);
    int **both = list;
    both[0] = two.first;
    both[1] = two.second;
    for (int n = 0; n < 2; n++)
        legal<<<1, 32>>>(two.first, two.second, list, n, two.distance());
    CUDA(cudaDeviceSynchronize());
}
