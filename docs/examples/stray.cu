// Turns a picture by its diagonal, with a mistake: a row of the result is as long as the picture is high.
#include <cstdio>

__global__ void transpose(const float *in, float *out, int width, int height)
{
    int x = threadIdx.x, y = threadIdx.y;
    out[x * width + y] = in[y * width + x];
}

int main()
{
    const int width = 48, height = 20;
    float *in, *out;
    cudaMalloc(&in, width * height * sizeof(float));
    cudaMalloc(&out, width * height * sizeof(float));
    transpose<<<1, dim3(width, height)>>>(in, out, width, height);
    cudaError_t error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorString(error));
    return error != cudaSuccess;
}
