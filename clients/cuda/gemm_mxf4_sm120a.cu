// nvcc: -gencode arch=compute_120a,code=compute_120a
// device: sm_120
// Products of matrices with four bits an element and a scale for each 32 (mxf4) or 16 (nvf4) of a row: `cp.async`,
// `ldmatrix` and the block-scaled `mma.sync` of sm_120a. The values are chosen so that every sum is exact.
#include "check.h"

#include <vector>

const int BM = 64, BN = 64, BK = 128, THREADS = 128, ROW = BK / 2;

__device__ int place(int row, int chunk) { return row * ROW + ((chunk ^ (row >> 1 & 3)) * 16); }

__device__ void copy(void *to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from));
}

__device__ void load(uint32_t (&r)[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"((unsigned)__cvta_generic_to_shared(row)));
}

// Two scales a row: bytes `Byte` and the next of the words that the second pair of each four lanes holds for A, and the
// lane `Thread` of each four for B.
template <int Byte, int Thread> __device__ void multiply32(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, uint32_t sa, uint32_t sb)
{
    asm volatile("mma.sync.aligned.kind::mxf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, {%10}, {%12, 1}, {%11}, {%12, %13};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(sa), "r"(sb), "n"(Byte), "n"(Thread));
}

template <int Thread> __device__ void multiply16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, uint32_t sa, uint32_t sb)
{
    asm volatile("mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, {%10}, {0, 1}, {%11}, {0, %12};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(sa), "r"(sb), "n"(Thread));
}

// C = A · Bᵀ; the sizes are multiples of the tile's.
template <int Block>
__global__ void __launch_bounds__(THREADS)
    gemm(const uint8_t *a, const uint8_t *b, const uint8_t *scale_a, const uint8_t *scale_b, float *c, int n, int k)
{
    __shared__ __align__(128) uint8_t left[2][BM * ROW], right[2][BN * ROW];
    int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    int row0 = blockIdx.y * BM, column0 = blockIdx.x * BN, warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
    float sums[2][4][4] = {};
    auto fetch = [&](int slice) {
        for (int i = thread; i < BM * ROW / 16; i += THREADS) {
            int row = i / (ROW / 16), chunk = i % (ROW / 16);
            copy(&left[slice % 2][place(row, chunk)], a + (size_t)(row0 + row) * (k / 2) + slice * ROW + chunk * 16);
            copy(&right[slice % 2][place(row, chunk)], b + (size_t)(column0 + row) * (k / 2) + slice * ROW + chunk * 16);
        }
        asm volatile("cp.async.commit_group;");
    };
    fetch(0);
    for (int s = 0; s < k / BK; s++) {
        if (s + 1 < k / BK) {
            fetch(s + 1);
            asm volatile("cp.async.wait_group 1;");
        } else
            asm volatile("cp.async.wait_group 0;");
        __syncthreads();
        // Scales of four blocks in one word; not a number in lanes that are not asked.
        auto scales = [&](const uint8_t *from, int row, int word, bool asked) {
            return asked ? *(const uint32_t *)(from + (size_t)row * (k / Block) + s * (BK / Block) + word * 4) : ~0u;
        };
#pragma unroll
        for (int step = 0; step < BK / 64; step++) {
            uint32_t x[2][4], y[2][4], sx[2], sy[4];
            for (int i = 0; i < 2; i++) {
                load(x[i], &left[s % 2][place(warp_row + i * 16 + lane % 16, step * 2 + lane / 16)]);
                sx[i] = scales(scale_a, row0 + warp_row + i * 16 + lane / 4 + lane % 2 * 8, Block == 16 ? step : 0, lane % 4 >= 2);
            }
            for (int j = 0; j < 2; j++)
                load(y[j], &right[s % 2][place(warp_column + j * 16 + lane / 16 * 8 + lane % 8, step * 2 + lane / 8 % 2)]);
            for (int j = 0; j < 4; j++)
                sy[j] = scales(scale_b, column0 + warp_column + j * 8 + lane / 4, Block == 16 ? step : 0, lane % 4 == step + 2);
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 4; j++) {
                    uint32_t y0 = y[j / 2][j % 2 * 2], y1 = y[j / 2][j % 2 * 2 + 1];
                    if (Block == 16 && step == 0) multiply16<2>(sums[i][j], x[i], y0, y1, sx[i], sy[j]);
                    if (Block == 16 && step == 1) multiply16<3>(sums[i][j], x[i], y0, y1, sx[i], sy[j]);
                    if (Block == 32 && step == 0) multiply32<0, 2>(sums[i][j], x[i], y0, y1, sx[i], sy[j]);
                    if (Block == 32 && step == 1) multiply32<2, 3>(sums[i][j], x[i], y0, y1, sx[i], sy[j]);
                }
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            for (int e = 0; e < 4; e++) {
                int row = row0 + warp_row + i * 16 + lane / 4 + e / 2 * 8, column = column0 + warp_column + j * 8 + lane % 4 * 2 + e % 2;
                c[(size_t)row * n + column] = sums[i][j][e];
            }
}

// A matrix row by row, on both sides, and what it stands for.
template <int Block> struct Matrix {
    uint8_t *elements, *scales;
    std::vector<float> values;

    Matrix(int rows, int columns, uint64_t seed) : values((size_t)rows * columns)
    {
        const float e2m1[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
        // ue8m0: powers of two; ue4m3: one bit of fraction too.
        const uint8_t codes[2][4] = {{126, 127, 128, 127}, {0x30, 0x38, 0x3c, 0x40}};
        const float scale_values[2][4] = {{0.5f, 1, 2, 1}, {0.5f, 1, 1.5f, 2}};
        CUDA(cudaMallocManaged(&elements, values.size() / 2));
        CUDA(cudaMallocManaged(&scales, values.size() / Block));
        memset(elements, 0, values.size() / 2);
        Random random(seed);
        for (size_t i = 0; i < values.size() / Block; i++) {
            int which = random.next() % 4;
            scales[i] = codes[Block == 16][which];
            for (size_t e = i * Block; e < (i + 1) * Block; e++) {
                unsigned code = random.next() % 16;
                elements[e / 2] |= code << e % 2 * 4;
                values[e] = (code & 8 ? -1 : 1) * e2m1[code & 7] * scale_values[Block == 16][which];
            }
        }
    }
    Matrix(const Matrix &) = delete;
    ~Matrix()
    {
        cudaFree(elements);
        cudaFree(scales);
    }
};

template <int Block> void check(int m, int n, int k)
{
    Matrix<Block> a(m, k, m + k), b(n, k, n * 3 + k);
    float *c;
    CUDA(cudaMallocManaged(&c, (size_t)m * n * sizeof *c));
    gemm<Block><<<dim3(n / BN, m / BM), THREADS>>>(a.elements, b.elements, a.scales, b.scales, c, n, k);
    FINISHED();
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float want = 0;
            for (int e = 0; e < k; e++) want += a.values[(size_t)i * k + e] * b.values[(size_t)j * k + e];
            if (c[(size_t)i * n + j] != want)
                fail("blocks of %d, %d x %d x %d: element %d,%d is %g, not %g", Block, m, n, k, i, j, c[(size_t)i * n + j], want);
        }
    CUDA(cudaFree(c));
}

int main()
{
    check<32>(64, 64, 128);
    check<32>(128, 192, 384);
    check<16>(64, 64, 128);
    check<16>(128, 192, 384);
    return pass();
}
