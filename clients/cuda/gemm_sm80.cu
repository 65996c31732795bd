// nvcc: -gencode arch=compute_80,code=compute_80
// device: sm_80
// Matrix products as kernels for sm_80 do them: a pipeline of `cp.async` copies through swizzled shared memory,
// `ldmatrix`, and `mma.sync`. The values are chosen so that every sum is exact, in whatever order it is taken.
#include "check.h"

#include <cuda_fp16.h>

#include <vector>

const int BM = 64, BN = 64, BK = 32, STAGES = 3, THREADS = 128;

struct Stage {
    // Chunks of 16 bytes, at places that keep the eight rows of a matrix in different banks.
    __half a[BM * BK], b[BK * BN];
};

__device__ int place_a(int row, int chunk) { return row * BK + ((chunk ^ (row >> 1 & 3)) * 8); }
__device__ int place_b(int row, int chunk) { return row * BN + ((chunk ^ (row & 7)) * 8); }

__device__ void copy(void *to, const void *from, bool inside)
{
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(inside ? 16 : 0));
}

template <bool Transposed> __device__ void load(uint32_t (&r)[4], const void *row)
{
    unsigned at = (unsigned)__cvta_generic_to_shared(row);
    if (Transposed)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
}

__device__ void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// C = A · B, all row by row; n and k are multiples of 8.
__global__ void __launch_bounds__(THREADS) gemm(const __half *a, const __half *b, float *c, int m, int n, int k)
{
    __shared__ __align__(128) Stage stages[STAGES];
    int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    int row0 = blockIdx.y * BM, column0 = blockIdx.x * BN;
    int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
    float sums[2][4][4] = {};

    auto fetch = [&](int slice) {
        Stage &stage = stages[slice % STAGES];
        for (int i = thread; i < BM * BK / 8; i += THREADS) {
            int row = i / (BK / 8), chunk = i % (BK / 8);
            bool inside = row0 + row < m && slice * BK + chunk * 8 < k;
            copy(&stage.a[place_a(row, chunk)], inside ? a + (size_t)(row0 + row) * k + slice * BK + chunk * 8 : a, inside);
        }
        for (int i = thread; i < BK * BN / 8; i += THREADS) {
            int row = i / (BN / 8), chunk = i % (BN / 8);
            bool inside = slice * BK + row < k && column0 + chunk * 8 < n;
            copy(&stage.b[place_b(row, chunk)], inside ? b + (size_t)(slice * BK + row) * n + column0 + chunk * 8 : b, inside);
        }
    };

    int slices = (k + BK - 1) / BK;
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < slices) fetch(s);
        asm volatile("cp.async.commit_group;");
    }
    for (int s = 0; s < slices; s++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        __syncthreads();
        if (s + STAGES - 1 < slices) fetch(s + STAGES - 1);
        asm volatile("cp.async.commit_group;");
        const Stage &stage = stages[s % STAGES];
        for (int step = 0; step < BK / 16; step++) {
            uint32_t left[2][4], right[2][4];
            for (int i = 0; i < 2; i++) load<false>(left[i], &stage.a[place_a(warp_row + i * 16 + lane % 16, step * 2 + lane / 16)]);
            for (int j = 0; j < 2; j++)
                load<true>(right[j], &stage.b[place_b(step * 16 + lane % 16, warp_column / 8 + j * 2 + lane / 16)]);
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 4; j++) multiply(sums[i][j], left[i], right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1]);
        }
    }
    asm volatile("cp.async.wait_all;");
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            for (int e = 0; e < 4; e++) {
                int row = row0 + warp_row + i * 16 + lane / 4 + e / 2 * 8;
                int column = column0 + warp_column + j * 8 + lane % 4 * 2 + e % 2;
                if (row < m && column < n) c[(size_t)row * n + column] = sums[i][j][e];
            }
}

void check(int m, int n, int k)
{
    std::vector<__half> a(m * k), b(k * n);
    std::vector<float> af(m * k), bf(k * n), c(m * n);
    Random random(m + n + k);
    // Quarters up to two: products are whole sixteenths, and sums stay far below 2^20 of them.
    for (int i = 0; i < m * k; i++) a[i] = __float2half(af[i] = ((int)(random.next() % 17) - 8) / 4.0f);
    for (int i = 0; i < k * n; i++) b[i] = __float2half(bf[i] = ((int)(random.next() % 17) - 8) / 4.0f);
    __half *da, *db;
    float *dc;
    CUDA(cudaMalloc(&da, a.size() * sizeof(__half)));
    CUDA(cudaMalloc(&db, b.size() * sizeof(__half)));
    CUDA(cudaMalloc(&dc, c.size() * sizeof(float)));
    CUDA(cudaMemcpy(da, a.data(), a.size() * sizeof(__half), cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(db, b.data(), b.size() * sizeof(__half), cudaMemcpyHostToDevice));
    CUDA(cudaMemset(dc, 0xff, c.size() * sizeof(float)));
    gemm<<<dim3((n + BN - 1) / BN, (m + BM - 1) / BM), THREADS>>>(da, db, dc, m, n, k);
    FINISHED();
    CUDA(cudaMemcpy(c.data(), dc, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float want = 0;
            for (int e = 0; e < k; e++) want += af[i * k + e] * bf[e * n + j];
            if (c[i * n + j] != want) fail("%d x %d x %d: element %d,%d is %g, not %g", m, n, k, i, j, c[i * n + j], want);
        }
    CUDA(cudaFree(da));
    CUDA(cudaFree(db));
    CUDA(cudaFree(dc));
}

int main()
{
    check(128, 128, 128);
    check(192, 64, 256);
    check(100, 72, 88);
    check(1, 8, 8);
    return pass();
}
