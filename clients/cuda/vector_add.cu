// Vector addition in managed memory, with a printf from the device.
#include "check.h"

__global__ void add(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
    if (i == 0) printf("kernel: %d elements, c[0] = %g\n", n, c[0]);
}

int main()
{
    const int n = 100003; // not a multiple of the block
    float *a, *b, *c;
    CUDA(cudaMallocManaged(&a, n * sizeof(float)));
    CUDA(cudaMallocManaged(&b, n * sizeof(float)));
    CUDA(cudaMallocManaged(&c, n * sizeof(float)));
    for (int i = 0; i < n; i++) {
        a[i] = i * 0.5f;
        b[i] = 3.0f - i;
        c[i] = -1.0f;
    }
    Captured out(STDOUT_FILENO);
    add<<<(n + 255) / 256, 256>>>(a, b, c, n);
    FINISHED();
    const char *printed = out.text();
    fputs(printed, stdout);
    for (int i = 0; i < n; i++)
        if (c[i] != a[i] + b[i]) fail("c[%d] = %g, not %g", i, c[i], a[i] + b[i]);
    if (strcmp(printed, "kernel: 100003 elements, c[0] = 3\n")) fail("the kernel printed \"%s\"", printed);
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    CUDA(cudaFree(c));
    return pass();
}
