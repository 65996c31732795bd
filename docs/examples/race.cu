// Sums the numbers from 0 to 255 in one block, with a mistake: no barrier between the rounds.
#include <cstdio>

__global__ void sum(int *result)
{
    __shared__ int partial[256];
    int t = threadIdx.x;
    partial[t] = t;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2)
        if (t < half) partial[t] += partial[t + half];
    if (t == 0) *result = partial[0];
}

int main()
{
    int *result;
    cudaMallocManaged(&result, sizeof(int));
    sum<<<1, 256>>>(result);
    cudaError_t error = cudaDeviceSynchronize();
    printf("%d, and should be %d\n", *result, 255 * 256 / 2);
    return error || *result != 255 * 256 / 2;
}
