// Texture objects of every shape, against the formulas of the programming guide ("Texture Fetching") on the host.
#include "check.h"

#include <cmath>
#include <vector>

static const double TOLERANCE = 1e-6;

// What a fetch along one axis touches: texel numbers after addressing (-1: the border) and weights.
struct Axis {
    int index[2];
    double weight[2];
};

static int addressed(int i, int n, cudaTextureAddressMode mode)
{
    switch (mode) {
    case cudaAddressModeWrap: return ((i % n) + n) % n;
    case cudaAddressModeBorder: return i < 0 || i >= n ? -1 : i;
    case cudaAddressModeMirror: {
        int within = ((i % (2 * n)) + 2 * n) % (2 * n);
        return within < n ? within : 2 * n - 1 - within;
    }
    default: return i < 0 ? 0 : i >= n ? n - 1 : i;
    }
}

// x: as the kernel gives it.
static Axis axis(double x, int n, cudaTextureAddressMode mode, bool normalized, bool linear)
{
    if (normalized) x *= n;
    Axis a;
    if (!linear) {
        a.index[0] = a.index[1] = addressed((int)std::floor(x), n, mode);
        a.weight[0] = 1;
        a.weight[1] = 0;
        return a;
    }
    double base = x - 0.5, floor = std::floor(base);
    double alpha = std::floor((base - floor) * 256 + 0.5) / 256;
    a.index[0] = addressed((int)floor, n, mode);
    a.index[1] = addressed((int)floor + 1, n, mode);
    a.weight[0] = 1 - alpha;
    a.weight[1] = alpha;
    return a;
}

struct Image {
    int w, h, d;
    std::vector<float> texels;
    float at(int x, int y, int z) const { return texels[((size_t)z * h + y) * w + x]; }
};

static double expected(const Image &image, Axis x, Axis y, Axis z, double border)
{
    double sum = 0;
    for (int k = 0; k < 2; k++)
        for (int j = 0; j < 2; j++)
            for (int i = 0; i < 2; i++) {
                double weight = x.weight[i] * y.weight[j] * z.weight[k];
                if (weight == 0) continue;
                bool outside = x.index[i] < 0 || y.index[j] < 0 || z.index[k] < 0;
                sum += weight * (outside ? border : image.at(x.index[i], y.index[j], z.index[k]));
            }
    return sum;
}

static Image image_of(int w, int h, int d)
{
    Image image{w, h, d, {}};
    uint32_t state = 12345u + w * 31 + h * 7 + d;
    for (int i = 0; i < w * h * d; i++) {
        state = state * 1664525u + 1013904223u;
        image.texels.push_back((float)((state >> 8) & 0xffff) / 256.0f - 100.0f);
    }
    return image;
}

// Coordinates that meet edges, centres, quarters, and lie outside.
static std::vector<float> coordinates(int n, bool normalized)
{
    std::vector<float> all;
    for (int i = -2 * n; i <= 3 * n; i++)
        for (float part : {0.0f, 0.25f, 0.5f, 0.8125f}) {
            float x = i + part;
            all.push_back(normalized ? x / n : x);
        }
    return all;
}

static cudaTextureObject_t object_of(cudaArray_t array, cudaTextureAddressMode mode, cudaTextureFilterMode filter,
                                     bool normalized, cudaTextureReadMode read = cudaReadModeElementType,
                                     bool srgb = false)
{
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc texture = {};
    for (auto &one : texture.addressMode) one = mode;
    texture.filterMode = filter;
    texture.normalizedCoords = normalized;
    texture.readMode = read;
    texture.sRGB = srgb;
    texture.borderColor[0] = -7.5f;
    cudaTextureObject_t object = 0;
    CUDA(cudaCreateTextureObject(&object, &resource, &texture, nullptr));
    return object;
}

__global__ void fetch1(cudaTextureObject_t t, const float *x, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1D<float>(t, x[i]);
}

__global__ void fetch2(cudaTextureObject_t t, const float *x, const float *y, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex2D<float>(t, x[i], y[i]);
}

__global__ void fetch3(cudaTextureObject_t t, const float *x, const float *y, const float *z, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex3D<float>(t, x[i], y[i], z[i]);
}

static float *device(const std::vector<float> &host)
{
    float *to = nullptr;
    CUDA(cudaMalloc(&to, host.size() * sizeof(float)));
    CUDA(cudaMemcpy(to, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
    return to;
}

static void compare(const char *what, double got, double want, double x, double y, double z)
{
    if (std::fabs(got - want) > TOLERANCE * (1 + std::fabs(want)))
        fail("%s at (%g, %g, %g): got %.9g, want %.9g", what, x, y, z, got, want);
}

static void dimensions(int dims)
{
    int w = 12, h = dims > 1 ? 5 : 1, d = dims > 2 ? 3 : 1;
    Image image = image_of(w, h, d);
    cudaChannelFormatDesc channel = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    CUDA(cudaMalloc3DArray(&array, &channel, make_cudaExtent(w, dims > 1 ? h : 0, dims > 2 ? d : 0)));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(image.texels.data(), w * sizeof(float), w, h);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(w, h, d);
    copy.kind = cudaMemcpyHostToDevice;
    CUDA(cudaMemcpy3D(&copy));
    for (bool normalized : {false, true})
        for (auto mode : {cudaAddressModeWrap, cudaAddressModeClamp, cudaAddressModeMirror, cudaAddressModeBorder})
            for (auto filter : {cudaFilterModePoint, cudaFilterModeLinear}) {
                // Repetition needs fractions of the size.
                if (!normalized && (mode == cudaAddressModeWrap || mode == cudaAddressModeMirror)) continue;
                cudaTextureObject_t object = object_of(array, mode, filter, normalized);
                std::vector<float> xs = coordinates(w, normalized), ys = coordinates(h, normalized),
                                   zs = coordinates(d, normalized), x, y, z;
                for (size_t i = 0; i < xs.size() * 7; i++) {
                    x.push_back(xs[i % xs.size()]);
                    y.push_back(ys[(i * 5 + 3) % ys.size()]);
                    z.push_back(zs[(i * 11 + 1) % zs.size()]);
                }
                int n = (int)x.size();
                float *dx = device(x), *dy = device(y), *dz = device(z), *out;
                CUDA(cudaMalloc(&out, n * sizeof(float)));
                int blocks = (n + 127) / 128;
                if (dims == 1) fetch1<<<blocks, 128>>>(object, dx, out, n);
                if (dims == 2) fetch2<<<blocks, 128>>>(object, dx, dy, out, n);
                if (dims == 3) fetch3<<<blocks, 128>>>(object, dx, dy, dz, out, n);
                FINISHED();
                std::vector<float> got(n);
                CUDA(cudaMemcpy(got.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost));
                bool linear = filter == cudaFilterModeLinear;
                Axis one = {{0, 0}, {1, 0}};
                for (int i = 0; i < n; i++) {
                    Axis ax = axis(x[i], w, mode, normalized, linear);
                    // A row is an image of one line, read at its edge: with a border there, half of a blend is border (seen on an H100).
                    Axis ay = dims > 1 ? axis(y[i], h, mode, normalized, linear) : axis(0, 1, mode, normalized, linear);
                    Axis az = dims > 2 ? axis(z[i], d, mode, normalized, linear) : one;
                    // A product in single precision may fall beside the quantum of a weight: such places are left out.
                    bool edge = false;
                    const float at[] = {x[i], y[i], z[i]};
                    const int size[] = {w, h, d};
                    for (int k = 0; k < dims && normalized; k++) {
                        double exact = (double)at[k] * size[k] * 256;
                        double near = std::fabs(exact - std::floor(exact) - 0.5);
                        double whole = std::fabs(exact / 256 - std::round(exact / 256));
                        edge = edge || near < 1e-3 || (!linear && whole < 1e-4);
                    }
                    if (!edge) compare("fetch", got[i], expected(image, ax, ay, az, -7.5), x[i], y[i], z[i]);
                }
                CUDA(cudaDestroyTextureObject(object));
                for (float *p : {dx, dy, dz, out}) CUDA(cudaFree(p));
            }
    CUDA(cudaFreeArray(array));
}

// ---- formats --------------------------------------------------------------------------------------------------------

__global__ void formats(cudaTextureObject_t bytes, cudaTextureObject_t fractions, cudaTextureObject_t srgb,
                        cudaTextureObject_t shorts, cudaTextureObject_t signed_, float4 *f, uchar4 *u)
{
    u[0] = tex2D<uchar4>(bytes, 1, 0);
    f[0] = tex2D<float4>(fractions, 1, 0);
    f[1] = tex2D<float4>(srgb, 1, 0);
    f[2] = make_float4(tex1D<float>(shorts, 1.0f), tex1D<float>(shorts, 0.5f), 0, 0);
    f[3] = make_float4(tex1D<float>(signed_, 0.5f), tex1D<float>(signed_, 1.5f), tex1D<float>(signed_, 2.5f), 0);
}

template <class T>
static cudaArray_t array_of(const std::vector<T> &texels, int w, int h, unsigned flags = 0)
{
    cudaChannelFormatDesc channel = cudaCreateChannelDesc<T>();
    cudaArray_t array;
    CUDA(cudaMallocArray(&array, &channel, w, h, flags));
    CUDA(cudaMemcpy2DToArray(array, 0, 0, texels.data(), w * sizeof(T), w * sizeof(T), h ? h : 1,
                             cudaMemcpyHostToDevice));
    return array;
}

static void read_modes()
{
    cudaArray_t bytes = array_of<uchar4>({{1, 2, 3, 4}, {0, 51, 255, 128}}, 2, 1);
    cudaArray_t shorts = array_of<unsigned short>({11, 12}, 2, 0);
    cudaArray_t chars = array_of<signed char>({-128, -127, 127}, 3, 0);
    auto clamp = cudaAddressModeClamp;
    auto normal = cudaReadModeNormalizedFloat;
    cudaTextureObject_t objects[] = {
        object_of(bytes, clamp, cudaFilterModePoint, false),
        object_of(bytes, clamp, cudaFilterModePoint, false, normal),
        object_of(bytes, clamp, cudaFilterModePoint, false, normal, true),
        object_of(shorts, clamp, cudaFilterModeLinear, false, normal),
        object_of(chars, clamp, cudaFilterModePoint, false, normal),
    };
    float4 *f;
    uchar4 *u;
    CUDA(cudaMallocManaged(&f, 4 * sizeof *f));
    CUDA(cudaMallocManaged(&u, sizeof *u));
    formats<<<1, 1>>>(objects[0], objects[1], objects[2], objects[3], objects[4], f, u);
    FINISHED();
    EXPECT(u->x == 0 && u->y == 51 && u->z == 255 && u->w == 128);
    compare("fraction", f[0].y, 51 / 255.0, 0, 0, 0);
    compare("fraction", f[0].w, 128 / 255.0, 0, 0, 0);
    // Of the curve, 542.4 steps, an H100's table has eight significant bits.
    compare("sRGB", f[1].y, 544 / 16384.0, 0, 0, 0);
    compare("sRGB alpha", f[1].w, 128 / 255.0, 0, 0, 0);
    // Filtered 16-bit fractions are 16-bit fractions: 11 and 12 make 12.
    compare("16 bits", f[2].x, 12 / 65535.0, 0, 0, 0);
    compare("16 bits", f[2].y, 11 / 65535.0, 0, 0, 0);
    EXPECT(f[3].x == -1 && f[3].y == -1 && f[3].z == 1);
    for (auto object : objects) CUDA(cudaDestroyTextureObject(object));
    for (auto array : {bytes, shorts, chars}) CUDA(cudaFreeArray(array));
}

// ---- linear memory --------------------------------------------------------------------------------------------------

__global__ void plain(cudaTextureObject_t row, cudaTextureObject_t plane, int *ints, float *floats, int n, int w)
{
    int i = threadIdx.x;
    ints[i] = tex1Dfetch<int>(row, i - 2);
    floats[i] = tex2D<float>(plane, i % w + 0.5f, i / w + 0.5f);
}

static void linear_memory()
{
    const int n = 32, w = 5;
    std::vector<int> host(n - 8);
    for (size_t i = 0; i < host.size(); i++) host[i] = 100 + (int)i;
    int *memory;
    CUDA(cudaMalloc(&memory, host.size() * sizeof(int)));
    CUDA(cudaMemcpy(memory, host.data(), host.size() * sizeof(int), cudaMemcpyHostToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = memory;
    resource.res.linear.desc = cudaCreateChannelDesc<int>();
    resource.res.linear.sizeInBytes = host.size() * sizeof(int);
    cudaTextureDesc texture = {};
    cudaTextureObject_t row, plane;
    CUDA(cudaCreateTextureObject(&row, &resource, &texture, nullptr));
    std::vector<float> image(w * 7);
    for (size_t i = 0; i < image.size(); i++) image[i] = i * 0.5f;
    void *pitched;
    size_t pitch;
    CUDA(cudaMallocPitch(&pitched, &pitch, w * sizeof(float), 7));
    CUDA(cudaMemcpy2D(pitched, pitch, image.data(), w * sizeof(float), w * sizeof(float), 7, cudaMemcpyHostToDevice));
    resource = {};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D = {pitched, cudaCreateChannelDesc<float>(), (size_t)w, 7, pitch};
    texture.addressMode[0] = texture.addressMode[1] = cudaAddressModeClamp;
    CUDA(cudaCreateTextureObject(&plane, &resource, &texture, nullptr));
    int *ints;
    float *floats;
    CUDA(cudaMallocManaged(&ints, n * sizeof(int)));
    CUDA(cudaMallocManaged(&floats, n * sizeof(float)));
    plain<<<1, n>>>(row, plane, ints, floats, n, w);
    FINISHED();
    for (int i = 0; i < n; i++) {
        int at = i - 2;
        EXPECT_EQ(ints[i], at < 0 || at >= (int)host.size() ? 0 : host[at]);
        EXPECT(floats[i] == image[i]);
    }
    cudaResourceDesc back;
    CUDA(cudaGetTextureObjectResourceDesc(&back, plane));
    EXPECT(back.resType == cudaResourceTypePitch2D && back.res.pitch2D.pitchInBytes == pitch);
    CUDA(cudaDestroyTextureObject(row));
    CUDA(cudaDestroyTextureObject(plane));
    CUDA(cudaFree(memory));
    CUDA(cudaFree(pitched));
}

// ---- layers, cubes, gathers, levels ---------------------------------------------------------------------------------

__global__ void layers(cudaTextureObject_t one, cudaTextureObject_t two, float *out)
{
    int i = threadIdx.x;
    out[i] = tex1DLayered<float>(one, i % 8 + 0.5f, i / 8);
    out[32 + i] = tex2DLayered<float>(two, i % 4 + 0.5f, i / 4 % 2 + 0.5f, i / 8);
}

static cudaArray_t layered(const std::vector<float> &texels, int w, int h, int d, unsigned flags)
{
    cudaChannelFormatDesc channel = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    CUDA(cudaMalloc3DArray(&array, &channel, make_cudaExtent(w, h, d), flags));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr((void *)texels.data(), w * sizeof(float), w, h ? h : 1);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(w, h ? h : 1, d);
    copy.kind = cudaMemcpyHostToDevice;
    CUDA(cudaMemcpy3D(&copy));
    return array;
}

static void layered_textures()
{
    std::vector<float> texels(32);
    for (int i = 0; i < 32; i++) texels[i] = 3.0f * i;
    cudaArray_t a = layered(texels, 8, 0, 4, cudaArrayLayered), b = layered(texels, 4, 2, 4, cudaArrayLayered);
    auto one = object_of(a, cudaAddressModeClamp, cudaFilterModePoint, false);
    auto two = object_of(b, cudaAddressModeClamp, cudaFilterModePoint, false);
    float *out;
    CUDA(cudaMallocManaged(&out, 64 * sizeof(float)));
    layers<<<1, 32>>>(one, two, out);
    FINISHED();
    for (int i = 0; i < 64; i++) EXPECT(out[i] == texels[i % 32]);
    CUDA(cudaDestroyTextureObject(one));
    CUDA(cudaDestroyTextureObject(two));
    CUDA(cudaFreeArray(a));
    CUDA(cudaFreeArray(b));
    CUDA(cudaFree(out));
}

__global__ void cubes(cudaTextureObject_t cube, cudaTextureObject_t several, float *out)
{
    const float d[6][3] = {{2, .5f, .25f}, {-2, .5f, .25f}, {.5f, 2, .25f}, {.5f, -2, .25f}, {.5f, .25f, 2}, {.5f, .25f, -2}};
    int i = threadIdx.x;
    out[i] = texCubemap<float>(cube, d[i][0], d[i][1], d[i][2]);
    out[6 + i] = texCubemapLayered<float>(several, d[i][0], d[i][1], d[i][2], 1);
}

static void cube_textures()
{
    const int n = 8;
    std::vector<float> texels(n * n * 12);
    for (size_t i = 0; i < texels.size(); i++) texels[i] = (float)i;
    cudaArray_t a = layered(texels, n, n, 6, cudaArrayCubemap);
    cudaArray_t b = layered(texels, n, n, 12, cudaArrayCubemap | cudaArrayLayered);
    auto cube = object_of(a, cudaAddressModeClamp, cudaFilterModePoint, true);
    auto several = object_of(b, cudaAddressModeClamp, cudaFilterModePoint, true);
    float *out;
    CUDA(cudaMallocManaged(&out, 12 * sizeof(float)));
    cubes<<<1, 6>>>(cube, several, out);
    FINISHED();
    // The guide's table: s and t of each face, for the directions of the kernel.
    const double st[6][2] = {{-.25, -.5}, {.25, -.5}, {.5, .25}, {.5, -.25}, {.5, -.25}, {-.5, -.25}};
    for (int face = 0; face < 6; face++) {
        int x = (int)std::floor((st[face][0] / 2 + 1) / 2 * n), y = (int)std::floor((st[face][1] / 2 + 1) / 2 * n);
        EXPECT(out[face] == texels[(face * n + y) * n + x]);
        EXPECT(out[6 + face] == texels[((6 + face) * n + y) * n + x]);
    }
    CUDA(cudaDestroyTextureObject(cube));
    CUDA(cudaDestroyTextureObject(several));
    CUDA(cudaFreeArray(a));
    CUDA(cudaFreeArray(b));
    CUDA(cudaFree(out));
}

__global__ void gather(cudaTextureObject_t t, float4 *out)
{
    out[0] = tex2Dgather<float4>(t, 2.0f, 1.0f, 0);
    out[1] = tex2Dgather<float4>(t, 2.0f, 1.0f, 1);
}

static void gathers()
{
    std::vector<float2> texels(12);
    for (int i = 0; i < 12; i++) texels[i] = make_float2((float)i, 100.0f + i);
    cudaArray_t array = array_of<float2>(texels, 4, 3, cudaArrayTextureGather);
    auto t = object_of(array, cudaAddressModeClamp, cudaFilterModePoint, false);
    float4 *out;
    CUDA(cudaMallocManaged(&out, 2 * sizeof *out));
    gather<<<1, 1>>>(t, out);
    FINISHED();
    // Columns 1 and 2, rows 0 and 1; from the lower left, where y is 1, counter-clockwise.
    for (int k = 0; k < 2; k++) {
        float base = 100.0f * k;
        EXPECT(out[k].x == base + 5 && out[k].y == base + 6 && out[k].z == base + 2 && out[k].w == base + 1);
    }
    CUDA(cudaDestroyTextureObject(t));
    CUDA(cudaFreeArray(array));
}

__global__ void levels(cudaTextureObject_t t, float *out)
{
    int i = threadIdx.x;
    out[i] = tex2DLod<float>(t, 0.5f, 0.5f, i * 0.25f);
    float size = exp2f((float)i) / 8;
    if (i < 4) out[16 + i] = tex2DGrad<float>(t, 0.5f, 0.5f, make_float2(size, 0), make_float2(0, size));
    if (i == 0) out[20] = tex2D<float>(t, 0.5f, 0.5f);
}

static void mipmaps()
{
    cudaChannelFormatDesc channel = cudaCreateChannelDesc<float>();
    cudaMipmappedArray_t mipmap;
    CUDA(cudaMallocMipmappedArray(&mipmap, &channel, make_cudaExtent(8, 8, 0), 4));
    for (int level = 0; level < 4; level++) {
        int n = 8 >> level;
        std::vector<float> texels(n * n, 10.0f * (1 << level));
        cudaArray_t array;
        CUDA(cudaGetMipmappedArrayLevel(&array, mipmap, level));
        cudaExtent extent;
        CUDA(cudaArrayGetInfo(nullptr, &extent, nullptr, array));
        EXPECT_EQ(extent.width, n);
        CUDA(cudaMemcpy2DToArray(array, 0, 0, texels.data(), n * 4, n * 4, n, cudaMemcpyHostToDevice));
    }
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = mipmap;
    float *out;
    CUDA(cudaMallocManaged(&out, 32 * sizeof(float)));
    for (auto filter : {cudaFilterModePoint, cudaFilterModeLinear}) {
        cudaTextureDesc texture = {};
        texture.normalizedCoords = 1;
        texture.mipmapFilterMode = filter;
        texture.maxMipmapLevelClamp = 3;
        cudaTextureObject_t t;
        CUDA(cudaCreateTextureObject(&t, &resource, &texture, nullptr));
        levels<<<1, 16>>>(t, out);
        FINISHED();
        for (int i = 0; i < 16; i++) {
            double lod = std::fmin(i * 0.25, 3), low = std::floor(lod), part = lod - low;
            double below = 10 * std::exp2(low), above = 10 * std::exp2(std::fmin(low + 1, 3));
            if (filter == cudaFilterModeLinear)
                compare("level", out[i], below * (1 - part) + above * part, lod, 0, 0);
            else if (part != 0.5)
                compare("level", out[i], part < 0.5 ? below : above, lod, 0, 0);
        }
        for (int i = 0; i < 4; i++) compare("gradient", out[16 + i], 10 * std::exp2(i), i, 0, 0);
        compare("base", out[20], 10, 0, 0, 0);
        CUDA(cudaDestroyTextureObject(t));
    }
    CUDA(cudaFreeMipmappedArray(mipmap));
    CUDA(cudaFree(out));
}

int main()
{
    for (int dims = 1; dims <= 3; dims++) dimensions(dims);
    read_modes();
    linear_memory();
    layered_textures();
    cube_textures();
    gathers();
    mipmaps();
    return pass();
}
