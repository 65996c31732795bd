// The Mandelbrot set: loops whose length differs from lane to lane; float and double, exact iteration counts.
#include "check.h"

#include <vector>

// Products and sums rounded one by one, so that host and device agree to the bit.
#ifdef __CUDA_ARCH__
#define MUL32(a, b) __fmul_rn(a, b)
#define MUL64(a, b) __dmul_rn(a, b)
#else
#define MUL32(a, b) ((a) * (b))
#define MUL64(a, b) ((a) * (b))
#endif

__host__ __device__ inline int escape32(float cx, float cy, int most)
{
    float x = 0, y = 0;
    int i = 0;
    for (; i < most; i++) {
        float xx = MUL32(x, x), yy = MUL32(y, y);
        if (xx + yy > 4.0f) break;
        y = MUL32(2.0f * x, y) + cy;
        x = xx - yy + cx;
    }
    return i;
}
__host__ __device__ inline int escape64(double cx, double cy, int most)
{
    double x = 0, y = 0;
    int i = 0;
    for (; i < most; i++) {
        double xx = MUL64(x, x), yy = MUL64(y, y);
        if (xx + yy > 4.0) break;
        y = MUL64(2.0 * x, y) + cy;
        x = xx - yy + cx;
    }
    return i;
}

__global__ void draw(unsigned short *image, int width, int height, int most, bool wide)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    // Powers of two as scales: the coordinates are exact.
    image[y * width + x] = wide ? escape64(x * (1.0 / 64) - 2.25, y * (1.0 / 64) - 1.25, most)
                                : escape32(x * (1.0f / 64) - 2.25f, y * (1.0f / 64) - 1.25f, most);
}

int main()
{
    const int width = 200, height = 161, most = 500;
    unsigned short *image;
    CUDA(cudaMalloc(&image, width * height * 2));
    std::vector<unsigned short> got(width * height);
    for (bool wide : {false, true}) {
        draw<<<dim3((width + 15) / 16, (height + 7) / 8), dim3(16, 8)>>>(image, width, height, most, wide);
        LAUNCHED();
        CUDA(cudaMemcpy(got.data(), image, width * height * 2, cudaMemcpyDeviceToHost));
        long inside = 0;
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++) {
                int want = wide ? escape64(x * (1.0 / 64) - 2.25, y * (1.0 / 64) - 1.25, most)
                                : escape32(x * (1.0f / 64) - 2.25f, y * (1.0f / 64) - 1.25f, most);
                if (got[y * width + x] != want)
                    fail("%s: pixel (%d, %d) is %d, not %d", wide ? "double" : "float", x, y, got[y * width + x], want);
                inside += want == most;
            }
        EXPECT(inside > 3000);
    }
    return pass();
}
