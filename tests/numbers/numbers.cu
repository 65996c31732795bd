// Programs in which a number goes wrong, and the same mended (`IS_MENDED`): `tests/check/check.h` has how they are made. A comment
// `// nan`, `// inf`, `// subnormal` or `// cancellation` at the end of a line says what `margay check --tool fpcheck` must tell of
// there in the broken program; nothing else may be told of.
#include "../check/check.h"

#include <cuda_fp16.h>
#include <cuda_bf16.h>

// In registers, where a compiler knows nothing of them.
template <class T> __device__ T opaque(T value)
{
    asm volatile("" : "+f"(value));
    return value;
}

#define RUN(name, threads)                                                                                             \
    TEST(name)                                                                                                         \
    {                                                                                                                  \
        Array<float> x(threads);                                                                                       \
        name<<<1, threads>>>(x);                                                                                       \
        CUDA(cudaDeviceSynchronize());                                                                                 \
    }

__global__ void infinities_cancel(float *x)
{
    float big = __int_as_float(0x7f800000);
    MENDED(big = 1);
    big = opaque(big);
    x[threadIdx.x] = big - opaque(big); // nan
}
RUN(infinities_cancel, 32)

__global__ void root_of_a_negative(float *x)
{
    float t = threadIdx.x;
    x[threadIdx.x] = sqrtf(t - EITHER(3.0f, 0.0f)); // nan
}
RUN(root_of_a_negative, 32)

__global__ void zero_by_zero(float *x)
{
    float t = threadIdx.x;
    x[threadIdx.x] = __fdiv_rn(t, t + EITHER(0.0f, 1.0f)); // nan
}
RUN(zero_by_zero, 32)

// It only goes on: one report, where it began.
__global__ void propagates(double *x)
{
    double t = threadIdx.x;
    double y = sqrt(t - EITHER(1.0, 0.0)); // nan
    y = y * 2 + 1;
    x[threadIdx.x] = y * y - t;
}

TEST(propagates)
{
    Array<double> x(32);
    propagates<<<1, 32>>>(x);
    CUDA(cudaDeviceSynchronize());
}

// A sum of all lanes, of which the first one stores.
__global__ void reduced(float *x)
{
    float t = threadIdx.x;
    float y = sqrtf(EITHER(30.0f, 31.0f) - t); // nan
    for (int other = 16; other; other /= 2) y += __shfl_xor_sync(~0u, y, other);
    if (threadIdx.x == 0) *x = y;
}
RUN(reduced, 32)

__global__ void overflow(float *x)
{
    float t = EITHER(1e30f, 1e3f) * (threadIdx.x + 1);
    x[threadIdx.x] = opaque(t) * opaque(t); // inf
}
RUN(overflow, 4)

__global__ void division_by_zero(float *x)
{
    float t = threadIdx.x;
    x[threadIdx.x] = __fdiv_rn(1.0f, t + EITHER(0.0f, 1.0f)); // inf
}
RUN(division_by_zero, 32)

__global__ void overflow_of_a_half(float *x)
{
    __half t = __float2half(opaque(float(threadIdx.x)) * EITHER(100.0f, 1.0f));
    x[threadIdx.x] = __half2float(__hmul(t, t)); // inf
}
RUN(overflow_of_a_half, 32)

__global__ void conversion_to_a_half(__half *x)
{
    float t = EITHER(1e5f, 1.0f) * (threadIdx.x + 1);
    x[threadIdx.x] = __float2half_rn(opaque(t)); // inf
}

TEST(conversion_to_a_half)
{
    __half *x;
    CUDA(cudaMalloc(&x, 32 * sizeof *x));
    conversion_to_a_half<<<1, 32>>>(x);
    CUDA(cudaDeviceSynchronize());
}

__global__ void atomic(float *x)
{
    float t = threadIdx.x;
    atomicAdd(x, __fdiv_rn(1.0f, t + EITHER(0.0f, 1.0f))); // inf
}
RUN(atomic, 32)

__global__ void to_an_integer(float *x)
{
    float t = threadIdx.x;
    int i = int(__fdiv_rn(t + 1, t + EITHER(0.0f, 1.0f))); // inf
    x[threadIdx.x] = i;
}
RUN(to_an_integer, 32)

__global__ void subnormal(float *x)
{
    float t = EITHER(1e-25f, 1e-5f) * (threadIdx.x + 1);
    x[threadIdx.x] = opaque(t) * opaque(t * EITHER(1e-14f, 1.0f)); // subnormal
}
RUN(subnormal, 4)

__global__ void flushed(float *x)
{
    float t = EITHER(1e-25f, 1e-5f) * (threadIdx.x + 1), y;
    asm("mul.ftz.f32 %0, %1, %1;" : "=f"(y) : "f"(t)); // subnormal
    x[threadIdx.x] = y;
}
RUN(flushed, 4)

__global__ void subnormal_double(double *x)
{
    double t = EITHER(1e-160, 1e-5) * (threadIdx.x + 1);
    x[threadIdx.x] = t * t; // subnormal
}

TEST(subnormal_double)
{
    Array<double> x(4);
    subnormal_double<<<1, 4>>>(x);
    CUDA(cudaDeviceSynchronize());
}

__global__ void cancels(float *x)
{
    float t = EITHER(16777210.0f, 1.0f) + threadIdx.x;
    x[threadIdx.x] = opaque(t) - EITHER(16777209.0f, 3.5f); // cancellation
}
RUN(cancels, 4)

__global__ void cancels_in_fma(float *x)
{
    float t = EITHER(4097.0f, 3.0f);
    x[threadIdx.x] = __fmaf_rn(opaque(t), t, EITHER(-16785408.0f, 1.0f)); // cancellation
}
RUN(cancels_in_fma, 1)

__global__ void cancels_in_double(double *x)
{
    double t = EITHER(9007199254740990.0, 1.0) + threadIdx.x;
    x[threadIdx.x] = t - EITHER(9007199254740988.0, 3.5); // cancellation
}

TEST(cancels_in_double)
{
    Array<double> x(2);
    cancels_in_double<<<1, 2>>>(x);
    CUDA(cudaDeviceSynchronize());
}

// The library makes infinities and NaN on its way, and none of them comes out.
__global__ void functions(double *x)
{
    float t = (int(threadIdx.x) - 64) * 4.0f;
    double d = t;
    double sum = tanhf(t) + 1 / (1 + expf(-fabsf(t))) + erff(t) + atanf(t) + sinf(t) + cosf(1e6f * t) + cbrtf(t) + log1pf(fabsf(t));
    sum += tanh(d) + exp(-fabs(d)) + erf(d) + atan(d) + sin(d) + cos(1e6 * d) + cbrt(d) + log1p(fabs(d)) + pow(fabs(d) + 1, 0.3);
    sum += powf(fabsf(t) + 1, 0.3f) + logf(fabsf(t) + 1) + sqrtf(fabsf(t)) + rsqrtf(fabsf(t) + 1) + hypotf(t, 3) + fmodf(t, 7);
    x[threadIdx.x] = sum + lgammaf(fabsf(t) + 1) + expm1f(-fabsf(t)) + atan2f(t, 2) + asinhf(t) + normcdff(t);
}

TEST(functions)
{
    Array<double> x(128);
    functions<<<1, 128>>>(x);
    CUDA(cudaDeviceSynchronize());
}
