// Shared memory sized at launch: several arrays carved out of it, beside static shared memory, above 48 KiB by opt-in.
#include "check.h"

__global__ void reverse(int *data, int n)
{
    extern __shared__ int values[];
    short *twins = (short *)(values + n);
    __shared__ int total;
    int i = threadIdx.x;
    if (i == 0) total = 0;
    values[i] = data[i];
    twins[i] = (short)(2 * i);
    __syncthreads();
    atomicAdd(&total, 1);
    __syncthreads();
    data[i] = values[n - 1 - i] + twins[n - 1 - i] + total;
}

__global__ void big(unsigned *sum, int words)
{
    extern __shared__ __align__(16) unsigned room[];
    for (int i = threadIdx.x; i < words; i += blockDim.x) room[i] = i * 2654435761u;
    __syncthreads();
    unsigned mine = 0;
    for (int i = threadIdx.x; i < words; i += blockDim.x) mine += room[words - 1 - i] ^ i;
    atomicAdd(sum, mine);
}

__global__ void sizes(unsigned *out)
{
    unsigned total, dynamic;
    asm("mov.u32 %0, %%total_smem_size;" : "=r"(total));
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(dynamic));
    out[0] = total;
    out[1] = dynamic;
}

int main()
{
    for (int n : {32, 100, 512}) {
        int *data;
        CUDA(cudaMallocManaged(&data, n * sizeof(int)));
        for (int i = 0; i < n; i++) data[i] = 1000 * i;
        reverse<<<1, n, n * (sizeof(int) + sizeof(short))>>>(data, n);
        FINISHED();
        for (int i = 0; i < n; i++) EXPECT_EQ(data[i], 1000 * (n - 1 - i) + 2 * (n - 1 - i) + n);
        CUDA(cudaFree(data));
    }

    unsigned *sum;
    CUDA(cudaMallocManaged(&sum, 2 * sizeof *sum));
    int most = 0;
    CUDA(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    EXPECT(most >= 64 << 10);
    const int bytes = 64 << 10, words = bytes / 4;
    big<<<1, 256, bytes>>>(sum, words);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue); // no opt-in yet
    CUDA(cudaFuncSetAttribute(big, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    *sum = 0;
    big<<<1, 256, bytes>>>(sum, words);
    FINISHED();
    unsigned want = 0;
    for (int i = 0; i < words; i++) want += ((unsigned)(words - 1 - i) * 2654435761u) ^ (unsigned)i;
    EXPECT_EQ(*sum, want);
    EXPECT_ERROR(cudaFuncSetAttribute(big, cudaFuncAttributeMaxDynamicSharedMemorySize, most + 1),
                 cudaErrorInvalidValue);
    cudaGetLastError();

    sizes<<<1, 1, 1000>>>(sum);
    FINISHED();
    EXPECT_EQ(sum[1], 1000);
    EXPECT(sum[0] >= 1000);
    return pass();
}
