// Adds two vectors, and compares with what the CPU computes.
#include <cstdio>
#include <cstdlib>

static void check(cudaError_t error)
{
    if (!error) return;
    printf("%s: %s\n", cudaGetErrorName(error), cudaGetErrorString(error));
    exit(1);
}

__global__ void add(const float *a, const float *b, float *sum, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) sum[i] = a[i] + b[i];
}

int main()
{
    const int n = 1000000;
    float *a, *b, *sum;
    check(cudaMallocManaged(&a, n * sizeof(float)));
    check(cudaMallocManaged(&b, n * sizeof(float)));
    check(cudaMallocManaged(&sum, n * sizeof(float)));
    for (int i = 0; i < n; i++) a[i] = i, b[i] = 2 * i;
    add<<<(n + 255) / 256, 256>>>(a, b, sum, n);
    check(cudaGetLastError());
    check(cudaDeviceSynchronize());
    int wrong = 0;
    for (int i = 0; i < n; i++) wrong += sum[i] != a[i] + b[i];
    printf("%d sums, %d wrong\n", n, wrong);
    return wrong != 0;
}
