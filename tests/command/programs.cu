// What the tests of the command run: the first argument says which part.
#include <cstdio>
#include <cstdlib>
#include <cstring>

__global__ void turn(float *x, int n)
{
    float a = x[threadIdx.x];
    for (int i = 0; i < n; ++i)
        a = a * 0.5f + 1.0f;
    x[blockIdx.x * blockDim.x + threadIdx.x] = a;
}

__global__ void curve(float *x)
{
    float y;
    asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x[threadIdx.x]));
    x[threadIdx.x] = y;
}

__constant__ float factors[2] = {3.0f, 5.0f};

// The address of a variable is a number in its code.
__global__ void scaled(float *x) { x[threadIdx.x] *= factors[threadIdx.x & 1]; }

__global__ void speak() { printf("a word\n"); }

int main(int count, char **words)
{
    const char *part = count > 1 ? words[1] : "";
    if (!strcmp(part, "nothing"))
        return 0;
    if (!strcmp(part, "abort"))
        abort();
    float *device, host[64] = {0};
    if (cudaMalloc(&device, 4 << 20) != cudaSuccess) {
        fprintf(stderr, "no memory\n");
        return 3;
    }
    cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice);
    if (!strcmp(part, "once")) {
        turn<<<1, 256>>>(device, atoi(words[2]));
        return cudaDeviceSynchronize() == cudaSuccess ? 0 : 4;
    }
    if (!strcmp(part, "constant")) {
        scaled<<<1, 64>>>(device);
        return cudaDeviceSynchronize() == cudaSuccess ? 0 : 4;
    }
    turn<<<4096, 64>>>(device, count > 2 ? atoi(words[2]) : 4);
    for (int i = 0; i < 3; ++i)
        curve<<<1, 64>>>(device);
    speak<<<1, 1>>>();
    cudaMemset(device, 0, 1024);
    cudaMemcpy(host, device, 128, cudaMemcpyDeviceToHost);
    if (!strcmp(part, "stray"))
        turn<<<1, 64>>>((float *)64, 1);
    void *much;
    if (!strcmp(part, "much"))
        cudaMalloc(&much, 1ull << 50);
    return cudaDeviceSynchronize() == cudaSuccess ? 0 : 4;
}
