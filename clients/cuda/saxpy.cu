// y = a x + y with a grid-stride loop, scalar and float4, single precision with one rounding (fma).
#include "check.h"

#include <cmath>
#include <vector>

__global__ void saxpy(int n, float a, const float *__restrict__ x, float *y)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = fmaf(a, x[i], y[i]);
}

__global__ void saxpy4(int n4, float a, const float4 *__restrict__ x, float4 *y)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n4; i += gridDim.x * blockDim.x) {
        float4 u = x[i], v = y[i];
        v.x = fmaf(a, u.x, v.x);
        v.y = fmaf(a, u.y, v.y);
        v.z = fmaf(a, u.z, v.z);
        v.w = fmaf(a, u.w, v.w);
        y[i] = v;
    }
}

int main()
{
    const int n = 1 << 18;
    const float a = 1.0f / 3.0f;
    std::vector<float> x(n), y(n), got(n);
    Random random(1);
    for (int i = 0; i < n; i++) {
        x[i] = random.uniform() - 0.5f;
        y[i] = random.uniform() * 1e3f;
    }
    float *dx, *dy;
    CUDA(cudaMalloc(&dx, n * sizeof(float)));
    CUDA(cudaMalloc(&dy, n * sizeof(float)));
    CUDA(cudaMemcpy(dx, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    for (int vector = 0; vector < 2; vector++) {
        CUDA(cudaMemcpy(dy, y.data(), n * sizeof(float), cudaMemcpyHostToDevice));
        if (vector)
            saxpy4<<<37, 128>>>(n / 4, a, (const float4 *)dx, (float4 *)dy);
        else
            saxpy<<<61, 192>>>(n, a, dx, dy);
        LAUNCHED();
        CUDA(cudaMemcpy(got.data(), dy, n * sizeof(float), cudaMemcpyDeviceToHost));
        for (int i = 0; i < n; i++)
            if (got[i] != std::fma(a, x[i], y[i]))
                fail("%s: y[%d] = %a, not %a", vector ? "float4" : "float", i, got[i], std::fma(a, x[i], y[i]));
    }
    CUDA(cudaFree(dx));
    CUDA(cudaFree(dy));
    return pass();
}
