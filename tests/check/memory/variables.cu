// Variables of shared and local memory, of constants and of modules: accesses that miss one and land in another.
#include "../check.h"

__global__ void next(int *out)
{
    __shared__ int first[64], second[64];
    int t = threadIdx.x;
    first[t] = t;
    second[t] = 2 * t;
    __syncthreads();
    out[t] = first[EITHER(t + 1, (t + 1) % 64)] + second[t]; // found: made from that of the shared variable next(int*)::first
}
TEST(next)
{
    Array<> out(64);
    next<<<1, 64>>>(out);
    CUDA(EITHER((cudaDeviceSynchronize(), cudaSuccess), cudaDeviceSynchronize()));
}

__global__ void before(int *out)
{
    __shared__ int first[64], second[64];
    int t = threadIdx.x;
    first[t] = t;
    __syncthreads();
    second[t - EITHER(1, 0)] = first[t]; // found: the variable before(int*)::first
    __syncthreads();
    out[t] = second[t] + first[t];
}
TEST(before)
{
    Array<> out(64);
    before<<<1, 64>>>(out);
    CUDA(EITHER((cudaDeviceSynchronize(), cudaSuccess), cudaDeviceSynchronize()));
}

// Dynamic shared memory lies behind what is static.
__global__ void below_dynamic(int *out, int by)
{
    __shared__ int fixed[64];
    extern __shared__ int tail[];
    int t = threadIdx.x;
    fixed[t] = t;
    tail[t] = 2 * t;
    __syncthreads();
    out[t] = tail[t - by] + fixed[t]; // found: made from dynamic shared memory tail of 256 bytes
}
TEST(below_dynamic)
{
    Array<> out(64);
    below_dynamic<<<1, 64, 256>>>(out, EITHER(1, 0));
    CUDA(EITHER((cudaDeviceSynchronize(), cudaSuccess), cudaDeviceSynchronize()));
}

// A gap between variables is nobody's.
__global__ void gap(int *out, int at)
{
    __shared__ char small[5];
    __shared__ double large[8];
    small[threadIdx.x % 5] = 1;
    large[threadIdx.x % 8] = 1;
    __syncthreads();
    small[at] = 2; // found: of 5 bytes
    __syncthreads();
    out[threadIdx.x] = small[threadIdx.x % 5] + large[threadIdx.x % 8];
}
TEST(gap)
{
    Array<> out(64);
    gap<<<1, 32>>>(out, EITHER(6, 4));
    CUDA(EITHER((cudaDeviceSynchronize(), cudaSuccess), cudaDeviceSynchronize()));
}

__global__ void atomic(int *out, int by)
{
    __shared__ int counts[32], sums[32];
    int t = threadIdx.x;
    counts[t] = sums[t] = 0;
    __syncthreads();
    atomicAdd(&counts[t + by], 1); // found: atomic(int*, int)::counts
    __syncthreads();
    out[t] = counts[t] + sums[t];
}
TEST(atomic)
{
    Array<> out(32);
    atomic<<<1, 32>>>(out, EITHER(1, 0));
    CUDA(EITHER((cudaDeviceSynchronize(), cudaSuccess), cudaDeviceSynchronize()));
}

__device__ __noinline__ int device_function(int t, int by)
{
    __shared__ int first[32], second[32];
    first[t] = t;
    second[t] = t;
    __syncthreads();
    return first[t + by] + second[t]; // found: device_function(int, int)::first
}
__global__ void of_a_function(int *out, int by) { out[threadIdx.x] = device_function(threadIdx.x, by); }
TEST(of_a_function)
{
    Array<> out(32);
    of_a_function<<<1, 32>>>(out, EITHER(1, 0));
    CUDA(EITHER((cudaDeviceSynchronize(), cudaSuccess), cudaDeviceSynchronize()));
}

// The thread's window of local memory has more room than the array.
__global__ void local(int *out, int n)
{
    int list[32];
    for (int i = 0; i < 32; i++)
        list[i] = out[i];
    out[threadIdx.x] = list[n]; // found: a local variable of 128 bytes
}
TEST(local)
{
    Array<> out(32);
    local<<<1, 32>>>(out, EITHER(40, 31));
    CUDA(EITHER((cudaDeviceSynchronize(), cudaSuccess), cudaDeviceSynchronize()));
}

// A function's own array, from which an index leads into its caller's.
__device__ __noinline__ int of_callee(int *theirs, int n)
{
    int own[32];
    for (int i = 0; i < 32; i++)
        own[i] = theirs[i] + i;
    return own[n]; // found: a local variable of 128 bytes
}
__global__ void caller(int *out, int n)
{
    int list[32];
    for (int i = 0; i < 32; i++)
        list[i] = out[i];
    out[threadIdx.x] = of_callee(list, n) + list[n & 15];
}
TEST(frame_of_the_caller)
{
    Array<> out(32);
    caller<<<1, 32>>>(out, EITHER(-3, 3));
    CUDA(EITHER((cudaDeviceSynchronize(), cudaSuccess), cudaDeviceSynchronize()));
}

__device__ __noinline__ int *returned(int *other)
{
    int list[32];
    for (int i = 0; i < 32; i++)
        list[i] = i * threadIdx.x;
    int *start = list;
    asm volatile("" : "+l"(start)); // The compiler shall not see where it comes from.
    return EITHER(start, other + start[0]);
}
__global__ void after_return(int *out)
{
    int *list = returned(out);
    int found = list[3]; // found: no function that runs has this part of the thread's local memory
    out[threadIdx.x] = found;
}
TEST(after_return)
{
    Array<> out(32);
    after_return<<<1, 32>>>(out);
    CUDA(EITHER((cudaDeviceSynchronize(), cudaSuccess), cudaDeviceSynchronize()));
}

// Two blocks of the thread's stack.
__global__ void stack(int *out, int bytes, int n)
{
    int *first = (int *)alloca(bytes);
    int *second = (int *)alloca(bytes);
    for (int i = 0; i < 16; i++)
        first[i] = second[i] = out[i];
    first[n] = 1; // found: a local variable of 64 bytes
    for (int i = 0; i < 16; i++)
        out[i] += first[i] + second[i];
}
TEST(stack)
{
    Array<> out(32);
    stack<<<1, 1>>>(out, 64, EITHER(18, 15));
    CUDA(EITHER((cudaDeviceSynchronize(), cudaSuccess), cudaDeviceSynchronize()));
}

__device__ int small_table[16];
__device__ int large_table[4096];
__global__ void table(int *out, int n)
{
    out[threadIdx.x] = small_table[threadIdx.x + n]; // found: made from that of the variable small_table
    large_table[threadIdx.x] = out[threadIdx.x];
}
TEST(variable_of_the_module)
{
    Array<> out(16);
    void *small, *large;
    CUDA(cudaGetSymbolAddress(&small, small_table));
    CUDA(cudaGetSymbolAddress(&large, large_table));
    table<<<1, 16>>>(out, EITHER((int)((int *)large - (int *)small), 0));
    CUDA(EITHER((cudaDeviceSynchronize(), cudaSuccess), cudaDeviceSynchronize()));
}

// One byte past a variable of the module, where the next one would be.
__device__ int left[4], right[4];
__global__ void neighbour(int *out, int n)
{
    right[threadIdx.x] = 1;
    out[threadIdx.x] = left[threadIdx.x + n]; // found: it holds the variable left of 16 bytes
}
TEST(neighbour_in_the_module)
{
    Array<> out(4);
    neighbour<<<1, 4>>>(out, EITHER(1, 0));
    CUDA(EITHER((cudaDeviceSynchronize(), cudaSuccess), cudaDeviceSynchronize()));
}

// What is no mistake: addresses that leave a variable and come back, that may be one variable's or another's, differences.
__global__ void legal(int *out, int n)
{
    __shared__ int first[64], second[64];
    extern __shared__ char raw[];
    int t = threadIdx.x;
    int *from_one = second - 1;
    from_one[t + 1] = t;
    first[t] = t;
    __syncthreads();
    int *either = n & 1 ? first : second;
    for (int i = 0; i < n; i++, either += 8)
        out[t] += either[t & 7];
    int *other = first + (second - first);
    out[t] += other[t] + *(&first[64] - 1 - t);
    auto aligned = (float *)(((unsigned long long)raw + 127) & ~127ull);
    aligned[t] = t;
    for (const int *p = first; p != first + 64; ++p)
        out[t] += *p;
}
TEST(legal)
{
    Array<> out(64);
    legal<<<1, 64, 512>>>(out, 8);
    CUDA(cudaDeviceSynchronize());
}
