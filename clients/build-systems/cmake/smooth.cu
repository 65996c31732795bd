#include "smooth.h"

#include <stdexcept>
#include <string>

extern "C" __global__ void smooth_kernel(float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#ifdef WRONG
    float before = i > 0 ? in[i - 1] : 0.0f;
#else
    float before = in[i > 0 ? i - 1 : 0];
#endif
    float after = in[i < n - 1 ? i + 1 : i];
    out[i] = (before + 2.0f * in[i] + after) / 4.0f;
}

static void check(cudaError_t code)
{
    if (code != cudaSuccess) throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(code));
}

void smooth(float *out, const float *in, int n)
{
    float *device_in = nullptr, *device_out = nullptr;
    size_t bytes = n * sizeof(float);
    check(cudaMalloc(&device_in, bytes));
    check(cudaMalloc(&device_out, bytes));
    check(cudaMemcpy(device_in, in, bytes, cudaMemcpyHostToDevice));
    smooth_kernel<<<(n + 255) / 256, 256>>>(device_out, device_in, n);
    check(cudaGetLastError());
    check(cudaMemcpy(out, device_out, bytes, cudaMemcpyDeviceToHost));
    check(cudaFree(device_in));
    check(cudaFree(device_out));
}
