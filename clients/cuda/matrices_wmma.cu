// nvcc: -gencode arch=compute_80,code=compute_80
// device: sm_80
// Products of matrices by mma.h and by mma in assembly: half, double, bytes, against loops of the host.
#include "check.h"

#include <cuda_fp16.h>
#include <mma.h>

#include <vector>

using namespace nvcuda;

constexpr int N = 64;

// A warp a tile of 16 by 16.
__global__ void halves(const half *a, const half *b, float *c) {
    __shared__ half tile[16 * 24];
    int row = blockIdx.y * 16, column = blockIdx.x * 16;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int k = 0; k < N; k += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
        // A by way of shared memory, with rows further apart than they are long.
        for (int i = threadIdx.x; i < 256; i += 32) tile[i / 16 * 24 + i % 16] = a[(row + i / 16) * N + k + i % 16];
        __syncwarp();
        wmma::load_matrix_sync(left, tile, 24);
        wmma::load_matrix_sync(right, b + column * N + k, N);
        wmma::mma_sync(sum, left, right, sum);
        __syncwarp();
    }
    for (int i = 0; i < sum.num_elements; i++) sum.x[i] *= 0.5f;
    wmma::store_matrix_sync(c + row * N + column, sum, N, wmma::mem_row_major);
}

__global__ void doubles(const double *a, const double *b, double *c) {
    int row = blockIdx.y * 8, column = blockIdx.x * 8;
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> sum;
    wmma::fill_fragment(sum, 0.0);
    for (int k = 0; k < N; k += 4) {
        wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> left;
        wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> right;
        wmma::load_matrix_sync(left, a + row * N + k, N);
        wmma::load_matrix_sync(right, b + column * N + k, N);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(c + row * N + column, sum, N, wmma::mem_row_major);
}

// One product of bytes, lane by lane as the manual lays it out.
__global__ void bytes(const signed char *a, const signed char *b, int *c) {
    int lane = threadIdx.x, group = lane / 4, of_group = lane % 4;
    auto word = [](const signed char *at) { return *reinterpret_cast<const int *>(at); };
    int a0 = word(a + group * 32 + of_group * 4), a1 = word(a + (group + 8) * 32 + of_group * 4);
    int a2 = word(a + group * 32 + of_group * 4 + 16), a3 = word(a + (group + 8) * 32 + of_group * 4 + 16);
    int b0 = word(b + group * 32 + of_group * 4), b1 = word(b + group * 32 + of_group * 4 + 16);
    int d[4];
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%10, %10, %10, %10};"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(7));
    for (int i = 0; i < 4; i++) c[(group + i / 2 * 8) * 8 + of_group * 2 + i % 2] = d[i];
}

template <class T>
T *device(const std::vector<T> &from) {
    T *to;
    CUDA(cudaMalloc(&to, from.size() * sizeof(T)));
    CUDA(cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
    return to;
}

template <class T>
std::vector<T> host(const T *from, size_t count) {
    std::vector<T> to(count);
    CUDA(cudaMemcpy(to.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost));
    return to;
}

int main() {
    // Small whole numbers: every sum is exact, whatever the order.
    std::vector<half> a(N * N), b(N * N);
    std::vector<double> x(N * N), y(N * N);
    for (int i = 0; i < N * N; i++) {
        x[i] = i * 7 % 13 - 6;
        y[i] = i * 5 % 11 - 5;
        a[i] = __float2half(float(x[i]));
        b[i] = __float2half(float(y[i]));
    }
    float *c = device(std::vector<float>(N * N));
    halves<<<dim3(N / 16, N / 16), 32>>>(device(a), device(b), c);
    double *z = device(std::vector<double>(N * N));
    doubles<<<dim3(N / 8, N / 8), 32>>>(device(x), device(y), z);
    CUDA(cudaDeviceSynchronize());
    auto single = host(c, N * N);
    auto twice = host(z, N * N);
    for (int row = 0; row < N; row++)
        for (int column = 0; column < N; column++) {
            double sum = 0;
            for (int k = 0; k < N; k++) sum += x[row * N + k] * y[column * N + k];
            if (!(single[row * N + column] == float(sum / 2))) fail("row %d column %d", row, column);
            if (!(twice[row * N + column] == sum)) fail("row %d column %d", row, column);
        }

    std::vector<signed char> s(16 * 32), t(8 * 32);
    for (size_t i = 0; i < s.size(); i++) s[i] = (signed char)(i * 37);
    for (size_t i = 0; i < t.size(); i++) t[i] = (signed char)(i * 91);
    int *d = device(std::vector<int>(16 * 8));
    bytes<<<1, 32>>>(device(s), device(t), d);
    CUDA(cudaDeviceSynchronize());
    auto sums = host(d, 16 * 8);
    for (int row = 0; row < 16; row++)
        for (int column = 0; column < 8; column++) {
            int sum = 7;
            for (int k = 0; k < 32; k++) sum += s[row * 32 + k] * t[column * 32 + k];
            if (!(sums[row * 8 + column] == sum)) fail("row %d column %d", row, column);
        }
    return pass();
}
