// nvcc: -gencode arch=compute_80,code=compute_80
// device: sm_80
// Attention in one pass, as FlashAttention does it: scores never reach memory, the maximum and the sum of each row are
// kept in registers and corrected as keys come in; `cp.async`, `ldmatrix`, `mma.sync` and shuffles in fours.
#include "check.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <vector>

const int D = 64, ROWS = 64, KEYS = 32, THREADS = 128;

template <class T> struct Mma;
template <> struct Mma<__half> {
    static __device__ void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
    {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                     "{%0, %1, %2, %3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
    static __device__ uint32_t pack(float low, float high)
    {
        __half2 both = __floats2half2_rn(low, high);
        return *(uint32_t *)&both;
    }
    static __half of(float f) { return __float2half(f); }
    static float to(__half f) { return __half2float(f); }
};
template <> struct Mma<__nv_bfloat16> {
    static __device__ void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
    {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                     "{%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
    static __device__ uint32_t pack(float low, float high)
    {
        __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
        return *(uint32_t *)&both;
    }
    static __nv_bfloat16 of(float f) { return __float2bfloat16(f); }
    static float to(__nv_bfloat16 f) { return __bfloat162float(f); }
};

__device__ void copy(void *to, const void *from, bool inside)
{
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(inside ? 16 : 0));
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

// Rows of 64 halves: eight chunks of 16 bytes, exchanged by the row so that a column of them meets all banks.
__device__ int place(int row, int chunk) { return row * D + ((chunk ^ (row & 7)) * 8); }

template <class T, bool Causal>
__global__ void __launch_bounds__(THREADS) attend(const T *q, const T *k, const T *v, T *out, float *logs, int n, float scale)
{
    __shared__ __align__(128) T queries[ROWS * D], keys[2][KEYS * D], values[2][KEYS * D];
    int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    int row0 = blockIdx.x * ROWS;
    size_t head = (size_t)blockIdx.y * n * D;
    auto fetch = [&](T *to, const T *from, int first, int rows) {
        for (int i = thread; i < rows * D / 8; i += THREADS) {
            int row = i / (D / 8), chunk = i % (D / 8);
            bool inside = first + row < n;
            copy(&to[place(row, chunk)], from + head + (inside ? (size_t)(first + row) * D + chunk * 8 : 0), inside);
        }
    };
    auto fetch_keys = [&](int step) {
        fetch(keys[step % 2], k, step * KEYS, KEYS);
        fetch(values[step % 2], v, step * KEYS, KEYS);
        asm volatile("cp.async.commit_group;");
    };
    fetch(queries, q, row0, ROWS);
    fetch_keys(0);

    float maximum[2] = {-INFINITY, -INFINITY}, sum[2] = {}, o[D / 8][4] = {};
    uint32_t left[D / 16][4];
    int end = Causal ? min(n, row0 + ROWS) : n, steps = (end + KEYS - 1) / KEYS;
    for (int step = 0; step < steps; step++) {
        if (step + 1 < steps) {
            fetch_keys(step + 1);
            asm volatile("cp.async.wait_group 1;");
        } else
            asm volatile("cp.async.wait_group 0;");
        __syncthreads();
        if (step == 0)
            for (int e = 0; e < D / 16; e++) load<false>(left[e], &queries[place(warp * 16 + lane % 16, e * 2 + lane / 16)]);

        float s[KEYS / 8][4] = {};
        for (int e = 0; e < D / 16; e++)
            for (int j = 0; j < KEYS / 16; j++) {
                uint32_t right[4];
                load<false>(right, &keys[step % 2][place(j * 16 + lane / 16 * 8 + lane % 8, e * 2 + lane / 8 % 2)]);
                Mma<T>::multiply(s[2 * j], left[e], right[0], right[1]);
                Mma<T>::multiply(s[2 * j + 1], left[e], right[2], right[3]);
            }
        for (int r = 0; r < 2; r++) {
            int row = row0 + warp * 16 + lane / 4 + r * 8;
            float most = maximum[r];
            for (int j = 0; j < KEYS / 8; j++)
                for (int e = 0; e < 2; e++) {
                    int key = step * KEYS + j * 8 + lane % 4 * 2 + e;
                    float &score = s[j][r * 2 + e];
                    score = key < n && (!Causal || key <= row) ? score * scale : -INFINITY;
                    most = fmaxf(most, score);
                }
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
            float correction = most == -INFINITY ? 1.0f : exp2f(maximum[r] - most), partial = 0;
            for (int j = 0; j < KEYS / 8; j++)
                for (int e = 0; e < 2; e++) {
                    float &score = s[j][r * 2 + e];
                    score = score == -INFINITY ? 0.0f : exp2f(score - most);
                    partial += score;
                }
            sum[r] = sum[r] * correction + partial;
            maximum[r] = most;
            for (int j = 0; j < D / 8; j++) {
                o[j][r * 2] *= correction;
                o[j][r * 2 + 1] *= correction;
            }
        }
        for (int e = 0; e < KEYS / 16; e++) {
            uint32_t p[4] = {Mma<T>::pack(s[2 * e][0], s[2 * e][1]), Mma<T>::pack(s[2 * e][2], s[2 * e][3]),
                             Mma<T>::pack(s[2 * e + 1][0], s[2 * e + 1][1]), Mma<T>::pack(s[2 * e + 1][2], s[2 * e + 1][3])};
            for (int j = 0; j < D / 16; j++) {
                uint32_t right[4];
                load<true>(right, &values[step % 2][place(e * 16 + lane % 16, j * 2 + lane / 16)]);
                Mma<T>::multiply(o[2 * j], p, right[0], right[1]);
                Mma<T>::multiply(o[2 * j + 1], p, right[2], right[3]);
            }
        }
        __syncthreads();
    }
    for (int r = 0; r < 2; r++) {
        sum[r] += __shfl_xor_sync(~0u, sum[r], 1);
        sum[r] += __shfl_xor_sync(~0u, sum[r], 2);
        int row = row0 + warp * 16 + lane / 4 + r * 8;
        if (row >= n) continue;
        if (lane % 4 == 0) logs[(size_t)blockIdx.y * n + row] = maximum[r] + log2f(sum[r]);
        for (int j = 0; j < D / 8; j++)
            *(uint32_t *)&out[head + (size_t)row * D + j * 8 + lane % 4 * 2] = Mma<T>::pack(o[j][r * 2] / sum[r], o[j][r * 2 + 1] / sum[r]);
    }
}

template <class T, bool Causal> void check(int heads, int n, double tolerance)
{
    size_t size = (size_t)heads * n * D;
    T *q, *k, *v, *out;
    float *logs;
    CUDA(cudaMallocManaged(&q, size * sizeof(T)));
    CUDA(cudaMallocManaged(&k, size * sizeof(T)));
    CUDA(cudaMallocManaged(&v, size * sizeof(T)));
    CUDA(cudaMallocManaged(&out, size * sizeof(T)));
    CUDA(cudaMallocManaged(&logs, heads * n * sizeof(float)));
    Random random(n);
    for (T *array : {q, k, v})
        for (size_t i = 0; i < size; i++) array[i] = Mma<T>::of(4 * random.uniform() - 2);
    double scale = 1 / sqrt((double)D);
    attend<T, Causal><<<dim3((n + ROWS - 1) / ROWS, heads), THREADS>>>(q, k, v, out, logs, n, (float)(scale * 1.4426950408889634));
    FINISHED();
    for (int h = 0; h < heads; h++)
        for (int i = 0; i < n; i++) {
            const size_t head = (size_t)h * n * D;
            int keys = Causal ? i + 1 : n;
            std::vector<double> score(keys), want(D);
            double sum = 0;
            for (int j = 0; j < keys; j++) {
                double s = 0;
                for (int e = 0; e < D; e++) s += (double)Mma<T>::to(q[head + i * D + e]) * Mma<T>::to(k[head + j * D + e]);
                sum += score[j] = exp(s * scale);
            }
            for (int j = 0; j < keys; j++)
                for (int e = 0; e < D; e++) want[e] += score[j] / sum * Mma<T>::to(v[head + j * D + e]);
            if (!(fabs(logs[h * n + i] - log2(sum)) < 1e-3)) fail("head %d, row %d: sum 2^%g, not 2^%g", h, i, logs[h * n + i], log2(sum));
            for (int e = 0; e < D; e++) {
                double got = Mma<T>::to(out[head + i * D + e]);
                if (!(fabs(got - want[e]) < tolerance)) fail("head %d, row %d, column %d: %g, not %g", h, i, e, got, want[e]);
            }
        }
    for (void *array : {(void *)q, (void *)k, (void *)v, (void *)out, (void *)logs}) CUDA(cudaFree(array));
}

int main()
{
    check<__half, false>(2, 128, 2e-3);
    check<__half, true>(2, 150, 2e-3);
    check<__nv_bfloat16, true>(1, 96, 1.5e-2);
    return pass();
}
