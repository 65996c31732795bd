// A picture for the demonstration: the Mandelbrot set, computed by a kernel, printed as text.
#include <cstdio>

__global__ void draw(char *picture, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float cx = -2.2f + 3.2f * x / width, cy = -1.2f + 2.4f * y / height, zx = 0, zy = 0;
    int i = 0;
    for (; i < 2000 && zx * zx + zy * zy < 4; i++) {
        float t = zx * zx - zy * zy + cx;
        zy = 2 * zx * zy + cy;
        zx = t;
    }
    picture[y * width + x] = i == 2000 ? ' ' : ".,:;-~+=ox%#@&"[i % 14];
}

int main()
{
    const int width = 96, height = 32;
    char *picture;
    cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceProperties(&properties, 0);
    if (!error) error = cudaMallocManaged(&picture, width * height);
    if (!error) {
        draw<<<dim3(3, 8), dim3(32, 4)>>>(picture, width, height);
        error = cudaGetLastError();
    }
    if (!error) error = cudaDeviceSynchronize();
    if (error) {
        printf("%s: %s\n", cudaGetErrorName(error), cudaGetErrorString(error));
        return 1;
    }
    printf("on %s:\n", properties.name);
    for (int y = 0; y < height; y++) printf("%.*s\n", width, picture + y * width);
    return cudaFree(picture) != cudaSuccess;
}
