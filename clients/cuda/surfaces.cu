// finds kernel in trap(*: it fails on purpose
// Surface objects: reads and writes of every shape, what happens outside, textures over the same array.
#include "check.h"

#include <vector>

template <class T>
static cudaArray_t array_of(int w, int h, int d, unsigned flags)
{
    cudaChannelFormatDesc channel = cudaCreateChannelDesc<T>();
    cudaArray_t array;
    CUDA(cudaMalloc3DArray(&array, &channel, make_cudaExtent(w, h, d), cudaArraySurfaceLoadStore | flags));
    return array;
}

static cudaSurfaceObject_t surface_of(cudaArray_t array)
{
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaSurfaceObject_t surface;
    CUDA(cudaCreateSurfaceObject(&surface, &resource));
    return surface;
}

__global__ void write(cudaSurfaceObject_t one, cudaSurfaceObject_t two, cudaSurfaceObject_t three,
                      cudaSurfaceObject_t layers, cudaSurfaceObject_t cube)
{
    int i = threadIdx.x;
    surf1Dwrite((unsigned short)(i * 3), one, i * 2);
    surf2Dwrite(make_float4(i, i + 0.25f, i + 0.5f, i + 0.75f), two, i % 8 * 16, i / 8);
    surf3Dwrite((unsigned char)(i + 1), three, i % 4, i / 4 % 4, i / 16);
    surf2DLayeredwrite(make_int2(i, -i), layers, i % 4 * 8, i / 4 % 2, i / 8);
    if (i < 24) surfCubemapwrite((float)i, cube, i % 2 * 4, i / 2 % 2, i / 4);
}

__global__ void add_one(cudaSurfaceObject_t two)
{
    int x = threadIdx.x % 8, y = threadIdx.x / 8;
    float4 v = surf2Dread<float4>(two, x * 16, y);
    v.x += 1;
    surf2Dwrite(v, two, x * 16, y);
}

__global__ void outside(cudaSurfaceObject_t one, int *out)
{
    out[0] = surf1Dread<unsigned short>(one, -2, cudaBoundaryModeZero);
    out[1] = surf1Dread<unsigned short>(one, 64, cudaBoundaryModeZero);
    out[2] = surf1Dread<unsigned short>(one, -2, cudaBoundaryModeClamp);
    out[3] = surf1Dread<unsigned short>(one, 64, cudaBoundaryModeClamp);
    surf1Dwrite((unsigned short)999, one, 64, cudaBoundaryModeZero);
    surf1Dwrite((unsigned short)777, one, 1000, cudaBoundaryModeClamp);
    out[4] = surf1Dread<unsigned short>(one, 62);
}

__global__ void trap(cudaSurfaceObject_t one) { surf1Dwrite((unsigned short)1, one, 64); }

__global__ void seen(cudaTextureObject_t t, float *out)
{
    out[threadIdx.x] = tex2D<float4>(t, threadIdx.x % 8, threadIdx.x / 8).x;
}

template <class T>
static std::vector<T> back(cudaArray_t array, int w, int h, int d)
{
    std::vector<T> host(w * h * d);
    cudaMemcpy3DParms copy = {};
    copy.srcArray = array;
    copy.dstPtr = make_cudaPitchedPtr(host.data(), w * sizeof(T), w, h);
    copy.extent = make_cudaExtent(w, h, d);
    copy.kind = cudaMemcpyDeviceToHost;
    CUDA(cudaMemcpy3D(&copy));
    return host;
}

int main()
{
    cudaArray_t one = array_of<unsigned short>(32, 0, 0, 0), two = array_of<float4>(8, 4, 0, 0),
                three = array_of<unsigned char>(4, 4, 2, 0), layers = array_of<int2>(4, 2, 4, cudaArrayLayered),
                cube = array_of<float>(2, 2, 6, cudaArrayCubemap);
    cudaSurfaceObject_t s1 = surface_of(one), s2 = surface_of(two), s3 = surface_of(three), sl = surface_of(layers),
                        sc = surface_of(cube);
    write<<<1, 32>>>(s1, s2, s3, sl, sc);
    LAUNCHED();
    add_one<<<1, 32>>>(s2);
    FINISHED();
    auto h1 = back<unsigned short>(one, 32, 1, 1);
    auto h2 = back<float4>(two, 8, 4, 1);
    auto h3 = back<unsigned char>(three, 4, 4, 2);
    auto hl = back<int2>(layers, 4, 2, 4);
    auto hc = back<float>(cube, 2, 2, 6);
    for (int i = 0; i < 32; i++) {
        EXPECT_EQ(h1[i], i * 3);
        EXPECT(h2[i].x == i + 1 && h2[i].y == i + 0.25f && h2[i].z == i + 0.5f && h2[i].w == i + 0.75f);
        EXPECT_EQ(h3[i], i + 1);
        EXPECT(hl[i].x == i && hl[i].y == -i);
        if (i < 24) EXPECT(hc[i] == i);
    }

    int *ints;
    CUDA(cudaMallocManaged(&ints, 8 * sizeof(int)));
    outside<<<1, 1>>>(s1, ints);
    FINISHED();
    EXPECT_EQ(ints[0], 0);
    EXPECT_EQ(ints[1], 0);
    EXPECT_EQ(ints[2], 0);
    EXPECT_EQ(ints[3], 93);
    EXPECT_EQ(ints[4], 777);

    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = two;
    cudaTextureDesc texture = {};
    cudaTextureObject_t t;
    CUDA(cudaCreateTextureObject(&t, &resource, &texture, nullptr));
    float *floats;
    CUDA(cudaMallocManaged(&floats, 32 * sizeof(float)));
    seen<<<1, 32>>>(t, floats);
    FINISHED();
    for (int i = 0; i < 32; i++) EXPECT(floats[i] == i + 1);

    // An array that was not made for it has no surface.
    cudaChannelFormatDesc channel = cudaCreateChannelDesc<float>();
    cudaArray_t plain;
    CUDA(cudaMallocArray(&plain, &channel, 4, 4));
    resource.res.array.array = plain;
    cudaSurfaceObject_t none;
    EXPECT(cudaCreateSurfaceObject(&none, &resource) != cudaSuccess);
    cudaGetLastError();

    trap<<<1, 1>>>(s1);
    LAUNCHED();
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
    return pass();
}
