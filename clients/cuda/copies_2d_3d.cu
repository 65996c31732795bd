// finds free in cuMemFree: it frees twice on purpose
// finds free in cuMemHostUnregister: likewise
// Pitched memory, copies in two and three dimensions, memset in all shapes, pinned and mapped host memory, attributes
// of pointers.
#include "check.h"

#include <vector>

__global__ void stamp(int *data, size_t pitch, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < width && y < height) ((int *)((char *)data + y * pitch))[x] += 1000 * y + x;
}
__global__ void increment(int *data, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i]++;
}

int main()
{
    const int width = 101, height = 37;
    int *image;
    size_t pitch;
    CUDA(cudaMallocPitch(&image, &pitch, width * sizeof(int), height));
    EXPECT(pitch >= width * sizeof(int) && pitch % 32 == 0);
    std::vector<int> host(width * height), back(width * height, -1);
    for (int i = 0; i < width * height; i++) host[i] = i * 7;
    CUDA(cudaMemcpy2D(image, pitch, host.data(), width * sizeof(int), width * sizeof(int), height, cudaMemcpyHostToDevice));
    stamp<<<dim3(1, height), 128>>>(image, pitch, width, height);
    LAUNCHED();
    CUDA(cudaMemcpy2D(back.data(), width * sizeof(int), image, pitch, width * sizeof(int), height, cudaMemcpyDeviceToHost));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) EXPECT_EQ(back[y * width + x], (y * width + x) * 7 + 1000 * y + x);

    // A window of the image to a corner of another one, on the device.
    int *other;
    size_t other_pitch;
    CUDA(cudaMallocPitch(&other, &other_pitch, width * sizeof(int), height));
    CUDA(cudaMemset2D(other, other_pitch, 0xFF, width * sizeof(int), height));
    CUDA(cudaMemcpy2DAsync(other, other_pitch, (char *)image + 5 * pitch + 3 * sizeof(int), pitch, 20 * sizeof(int), 10, cudaMemcpyDeviceToDevice, 0));
    CUDA(cudaMemcpy2D(back.data(), width * sizeof(int), other, other_pitch, width * sizeof(int), height, cudaMemcpyDefault));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            int from = (y + 5) * width + x + 3;
            EXPECT_EQ(back[y * width + x], x < 20 && y < 10 ? from * 7 + 1000 * (y + 5) + x + 3 : -1);
        }
    EXPECT_ERROR(cudaMemcpy2D(back.data(), 8, image, pitch, 16, 2, cudaMemcpyDeviceToHost), cudaErrorInvalidPitchValue);
    cudaGetLastError();

    // A box.
    cudaExtent extent = make_cudaExtent(13 * sizeof(short), 11, 7);
    cudaPitchedPtr box;
    CUDA(cudaMalloc3D(&box, extent));
    CUDA(cudaMemset3D(box, 0x5A, extent));
    std::vector<short> cube(13 * 11 * 7);
    for (size_t i = 0; i < cube.size(); i++) cube[i] = (short)(i * 3);
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(cube.data(), 13 * sizeof(short), 13, 11);
    copy.dstPtr = box;
    copy.dstPos = make_cudaPos(4 * sizeof(short), 2, 1);
    copy.srcPos = make_cudaPos(1 * sizeof(short), 1, 1);
    copy.extent = make_cudaExtent(9 * sizeof(short), 8, 6);
    copy.kind = cudaMemcpyHostToDevice;
    CUDA(cudaMemcpy3D(&copy));
    std::vector<short> cube_back(13 * 11 * 7, 0);
    copy = {};
    copy.srcPtr = box;
    copy.dstPtr = make_cudaPitchedPtr(cube_back.data(), 13 * sizeof(short), 13, 11);
    copy.extent = extent;
    copy.kind = cudaMemcpyDeviceToHost;
    CUDA(cudaMemcpy3D(&copy));
    for (int z = 0; z < 7; z++)
        for (int y = 0; y < 11; y++)
            for (int x = 0; x < 13; x++) {
                bool inside = x >= 4 && y >= 2 && y < 10 && z >= 1;
                int from = (z * 11 + y - 1) * 13 + x - 3;
                EXPECT_EQ(cube_back[(z * 11 + y) * 13 + x], inside ? (short)(from * 3) : 0x5A5A);
            }

    // Host to host goes through the same calls.
    CUDA(cudaMemcpy(back.data(), host.data(), host.size() * sizeof(int), cudaMemcpyHostToHost));
    EXPECT(back == host);

    // Memory of the host that kernels may use.
    int *pinned, *seen_by_device;
    CUDA(cudaHostAlloc(&pinned, 1000 * sizeof(int), cudaHostAllocMapped));
    for (int i = 0; i < 1000; i++) pinned[i] = i;
    CUDA(cudaHostGetDevicePointer(&seen_by_device, pinned, 0));
    increment<<<4, 256>>>(seen_by_device, 1000);
    FINISHED();
    for (int i = 0; i < 1000; i++) EXPECT_EQ(pinned[i], i + 1);
    std::vector<int> registered(5000, 41);
    CUDA(cudaHostRegister(registered.data(), registered.size() * sizeof(int), cudaHostRegisterMapped));
    CUDA(cudaHostGetDevicePointer(&seen_by_device, registered.data(), 0));
    increment<<<20, 250>>>(seen_by_device, 5000);
    FINISHED();
    for (int v : registered) EXPECT_EQ(v, 42);
    CUDA(cudaHostUnregister(registered.data()));
    EXPECT_ERROR(cudaHostUnregister(registered.data()), cudaErrorHostMemoryNotRegistered);
    cudaGetLastError();

    cudaPointerAttributes attributes;
    CUDA(cudaPointerGetAttributes(&attributes, image));
    EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
    EXPECT(attributes.devicePointer == image);
    CUDA(cudaPointerGetAttributes(&attributes, pinned + 5));
    EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
    EXPECT(attributes.hostPointer == pinned + 5);
    int *managed;
    CUDA(cudaMallocManaged(&managed, 64));
    CUDA(cudaPointerGetAttributes(&attributes, managed));
    EXPECT_EQ(attributes.type, cudaMemoryTypeManaged);
    CUDA(cudaPointerGetAttributes(&attributes, &pitch));
    EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);

    size_t free_before, free_after, total;
    CUDA(cudaMemGetInfo(&free_before, &total));
    void *large;
    CUDA(cudaMalloc(&large, 32 << 20));
    CUDA(cudaMemGetInfo(&free_after, &total));
    EXPECT(total >= free_before && free_before - free_after >= 32 << 20);
    CUDA(cudaFree(large));
    EXPECT_ERROR(cudaFree(large), cudaErrorInvalidValue); // twice
    cudaGetLastError();
    CUDA(cudaFreeHost(pinned));
    return pass();
}
