// Matrix transposition through shared memory with a padded tile, for elements of 1, 2, 4, 8 and 16 bytes.
#include "check.h"

#include <vector>

template <typename T> __global__ void transpose(const T *in, T *out, int width, int height)
{
    __shared__ T tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x;
    for (int j = threadIdx.y; j < 32; j += blockDim.y) {
        int y = blockIdx.y * 32 + j;
        if (x < width && y < height) tile[j][threadIdx.x] = in[y * width + x];
    }
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    for (int j = threadIdx.y; j < 32; j += blockDim.y) {
        int y = blockIdx.x * 32 + j;
        if (x < height && y < width) out[y * height + x] = tile[threadIdx.x][j];
    }
}

template <typename T> void test(int width, int height)
{
    std::vector<T> in(width * height), out(width * height);
    Random random(sizeof(T));
    for (T &v : in) {
        uint64_t words[2] = {random.next64(), random.next64()};
        memcpy(&v, words, sizeof v);
    }
    T *from, *to;
    CUDA(cudaMalloc(&from, in.size() * sizeof(T)));
    CUDA(cudaMalloc(&to, in.size() * sizeof(T)));
    CUDA(cudaMemcpy(from, in.data(), in.size() * sizeof(T), cudaMemcpyHostToDevice));
    transpose<<<dim3((width + 31) / 32, (height + 31) / 32), dim3(32, 8)>>>(from, to, width, height);
    LAUNCHED();
    CUDA(cudaMemcpy(out.data(), to, out.size() * sizeof(T), cudaMemcpyDeviceToHost));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            if (memcmp(&out[x * height + y], &in[y * width + x], sizeof(T)))
                fail("%zu-byte elements: wrong at row %d, column %d", sizeof(T), y, x);
    CUDA(cudaFree(from));
    CUDA(cudaFree(to));
}

int main()
{
    test<unsigned char>(257, 190);
    test<short>(100, 321);
    test<float>(300, 211);
    test<double>(129, 333);
    test<uint4>(130, 95);
    return pass();
}
