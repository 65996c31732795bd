// Kernels that go wrong, each at a line that its report must name. nvcc made `faults.lineinfo.ptx` (-lineinfo) and
// `faults.debug.ptx` (-G) of this text.
#include <assert.h>

__device__ __forceinline__ void put(float *where, float value)
{
    *where = value;                                        // line 7
}

__device__ __forceinline__ void scale_one(float *values, int i, float by)
{
    put(&values[i], values[i & 3] * by);                   // line 12
}

__device__ __noinline__ int pick(const int *table, int i)
{
    return table[i];                                       // line 17
}

__global__ void overrun(float *values, float by)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 70)
        scale_one(values, i + 954, by);                    // line 24
}

__global__ void called(int *table, int n)
{
    if (threadIdx.x == 3)
        table[0] = pick(table, n);                         // line 30
}

__global__ void shared_overrun(int *out, int i)
{
    __shared__ int tile[16];
    tile[threadIdx.x & 15] = i;
    __syncthreads();
    tile[i] = 1;                                           // line 38
    __syncthreads();
    out[0] = tile[0];
}

__global__ void traps()
{
    if (threadIdx.x == 33)
        __trap();                                          // line 46
}

__global__ void asserts(int limit)
{
    assert((int)threadIdx.x < limit);                      // line 51
}

template <typename T>
__global__ void misaligned(char *bytes, T value)
{
    *(T *)(bytes + 1) = value;                             // line 57
}

template __global__ void misaligned<double>(char *, double);

struct Shape {
    __device__ virtual float area() const = 0;
};

struct Square : Shape {
    const float *side;
    __device__ Square(const float *side) : side(side) {}
    __device__ float area() const override
    {
        return *side * *side;                              // line 71
    }
};

__device__ __noinline__ float measure(const Shape &shape)
{
    return shape.area();                                   // line 77
}

__global__ void virtual_call(float *out, const float *side)
{
    Square square(side);
    *out = measure(square);                                // line 83
}

__device__ __noinline__ int deeper(int n)
{
    volatile int kept[16];
    kept[n & 15] = n;
    return n < 0 ? 0 : deeper(n + 1) + kept[n & 15];       // line 90
}

__global__ void recursive(int *out)
{
    *out = deeper(0);                                      // line 95
}
