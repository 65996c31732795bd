// C = A B with tiles of shared memory; sizes that are no multiple of the tile; sums in the order the host uses.
#include "check.h"

#include <cmath>
#include <vector>

const int tile = 16;

__global__ void multiply(const float *a, const float *b, float *c, int m, int n, int k)
{
    __shared__ float as[tile][tile], bs[tile][tile + 1];
    int row = blockIdx.y * tile + threadIdx.y, col = blockIdx.x * tile + threadIdx.x;
    float sum = 0;
    for (int t = 0; t < k; t += tile) {
        int ac = t + threadIdx.x, br = t + threadIdx.y;
        as[threadIdx.y][threadIdx.x] = row < m && ac < k ? a[row * k + ac] : 0.0f;
        bs[threadIdx.y][threadIdx.x] = br < k && col < n ? b[br * n + col] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < tile; i++) sum = fmaf(as[threadIdx.y][i], bs[i][threadIdx.x], sum);
        __syncthreads();
    }
    if (row < m && col < n) c[row * n + col] = sum;
}

int main()
{
    const int m = 150, n = 131, k = 203;
    std::vector<float> a(m * k), b(k * n), c(m * n), want(m * n);
    Random random(2);
    for (float &v : a) v = random.uniform() - 0.5f;
    for (float &v : b) v = random.uniform() - 0.5f;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int l = 0; l < k; l++) sum = std::fma(a[i * k + l], b[l * n + j], sum);
            want[i * n + j] = sum;
        }
    float *da, *db, *dc;
    CUDA(cudaMalloc(&da, a.size() * 4));
    CUDA(cudaMalloc(&db, b.size() * 4));
    CUDA(cudaMalloc(&dc, c.size() * 4));
    CUDA(cudaMemcpy(da, a.data(), a.size() * 4, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(db, b.data(), b.size() * 4, cudaMemcpyHostToDevice));
    multiply<<<dim3((n + tile - 1) / tile, (m + tile - 1) / tile), dim3(tile, tile)>>>(da, db, dc, m, n, k);
    LAUNCHED();
    CUDA(cudaMemcpy(c.data(), dc, c.size() * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < m * n; i++)
        if (c[i] != want[i]) fail("c[%d][%d] = %a, not %a", i / n, i % n, c[i], want[i]);
    return pass();
}
