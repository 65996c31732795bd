// Textures and surfaces: what is stored through one is read through another, or by an ordinary load.
#include "check.h"

// An array of 64 × 4 words, by a surface and by a texture.
class Image {
  public:
    Image()
    {
        cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
        CUDA(cudaMallocArray(&array_, &format, 64, 4, cudaArraySurfaceLoadStore));
        static int zeros[64 * 4];
        CUDA(cudaMemcpy2DToArray(array_, 0, 0, zeros, 64 * 4, 64 * 4, 4, cudaMemcpyHostToDevice));
        cudaResourceDesc resource = {};
        resource.resType = cudaResourceTypeArray;
        resource.res.array.array = array_;
        CUDA(cudaCreateSurfaceObject(&surface, &resource));
        cudaTextureDesc how = {};
        how.readMode = cudaReadModeElementType;
        CUDA(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    }
    cudaSurfaceObject_t surface;
    cudaTextureObject_t texture;

  private:
    cudaArray_t array_;
};

// Blocks exchange rows of a surface in one launch.
__global__ void exchange(cudaSurfaceObject_t cells, int *out, bool writes, bool reads)
{
    int t = threadIdx.x, row = blockIdx.x;
    if (writes) surf2Dwrite(row * 64 + t, cells, t * 4, row);                    // race cells: write
    if (reads) out[row * 64 + t] = surf2Dread<int>(cells, t * 4, 3 - row);       // race cells: read
}

TEST(surface)
{
    Image image;
    Array out(256);
    BROKEN(exchange<<<4, 64>>>(image.surface, out, true, true));
    MENDED(exchange<<<4, 64>>>(image.surface, out, true, false));
    MENDED(exchange<<<4, 64>>>(image.surface, out, false, true));
    expect(out, [](int i) { return (3 - i / 64) * 64 + i % 64; });
}

// A texture of the array that another block stores to.
__global__ void fetch(cudaSurfaceObject_t to, cudaTextureObject_t from, int *out, bool writes, bool reads)
{
    int t = threadIdx.x, row = blockIdx.x;
    if (writes) surf2Dwrite(row * 64 + t, to, t * 4, row);                       // race texel: write
    if (reads) out[row * 64 + t] = tex2D<int>(from, t, 3 - row);                 // race texel: read
}

TEST(texture)
{
    Image image;
    Array out(256);
    BROKEN(fetch<<<4, 64>>>(image.surface, image.texture, out, true, true));
    MENDED(fetch<<<4, 64>>>(image.surface, image.texture, out, true, false));
    MENDED(fetch<<<4, 64>>>(image.surface, image.texture, out, false, true));
    expect(out, [](int i) { return (3 - i / 64) * 64 + i % 64; });
}

// Two threads of a block store to one texel, and two texels of a block that meets at a barrier.
__global__ void twice(cudaSurfaceObject_t cells, int *out)
{
    int t = threadIdx.x;
    surf2Dwrite(t, cells, EITHER(t / 2, t) * 4, 0);                              // race twice: write, twice: write
    __syncthreads();
    out[t] = surf2Dread<int>(cells, (t ^ 1) * 4, 0);
}

TEST(one_texel_twice)
{
    Image image;
    Array out(64);
    twice<<<1, 64>>>(image.surface, out);
    expect(out, [](int i) { return i ^ 1; });
}

// Linear memory, by a texture and by pointer.
__global__ void linear(cudaTextureObject_t from, int *to, int *out, bool writes, bool reads)
{
    int i = blockIdx.x * 64 + threadIdx.x;
    if (writes) to[i] = i;                                                       // race linear: write
    if (reads) out[i] = tex1Dfetch<int>(from, 255 - i);                          // race linear: read
}

TEST(linear_memory)
{
    Array cells(256), out(256);
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = (int *)cells;
    resource.res.linear.desc = cudaCreateChannelDesc<int>();
    resource.res.linear.sizeInBytes = 1024;
    cudaTextureDesc how = {};
    cudaTextureObject_t texture;
    CUDA(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    BROKEN(linear<<<4, 64>>>(texture, cells, out, true, true));
    MENDED(linear<<<4, 64>>>(texture, cells, out, true, false));
    MENDED(linear<<<4, 64>>>(texture, cells, out, false, true));
    expect(out, [](int i) { return 255 - i; });
}

// Reductions are atomic with each other, and not with loads.
__global__ void count(cudaSurfaceObject_t cells, int *out)
{
    int t = threadIdx.x;
    asm volatile("sured.b.2d.add.u32.trap [%0, {%1, %2}], 1;" : : "l"(cells), "r"(t % 8 * 4), "r"(0));  // race count: atomic
    out[blockIdx.x * 64 + t] = EITHER(surf2Dread<int>(cells, t % 8 * 4, 0), 0) > 100;                   // race count: read
}

TEST(reductions)
{
    Image image;
    Array out(256);
    count<<<4, 64>>>(image.surface, out);
    expect(out, [](int) { return 0; });
}
