// What a GPU's texture unit reads of several levels, by gradients, with anisotropy, and of cubes: `levels FILE`.
//
// A paragraph of the file for each texture, its fields by tabs: name, side of the finest level, levels, faces (6 of a cube,
// otherwise 1), filter, filter of levels, addressing, anisotropy, bias, least and largest level; its texels, of each level all faces;
// what is read (lod, grad, cube, cubelod); and reads, of each x, y, z, level, the four components of both gradients, and the result.
// All bytes are in hexadecimal, little-endian; coordinates are fractions of the size, texels are f32.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define CUDA(call)                                                                                                     \
    do {                                                                                                               \
        if (cudaError_t error_ = (call)) {                                                                             \
            printf("line %d: %s: %s\n", __LINE__, #call, cudaGetErrorString(error_));                                  \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

struct Read {
    float x, y, z, level, dx[2], dy[2];
};

enum Kind { LOD, GRAD, CUBE, CUBELOD };
static const char *const KINDS[] = {"lod", "grad", "cube", "cubelod"};

__global__ void read(cudaTextureObject_t from, const Read *reads, float *out, int count, Kind kind)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    Read p = reads[i];
    switch (kind) {
    case LOD: out[i] = tex2DLod<float>(from, p.x, p.y, p.level); break;
    case GRAD: out[i] = tex2DGrad<float>(from, p.x, p.y, make_float2(p.dx[0], p.dx[1]), make_float2(p.dy[0], p.dy[1])); break;
    case CUBE: out[i] = texCubemap<float>(from, p.x, p.y, p.z); break;
    case CUBELOD: out[i] = texCubemapLod<float>(from, p.x, p.y, p.z, p.level); break;
    }
}

static FILE *file;

static void hex(const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) fprintf(file, "%02x", ((const unsigned char *)bytes)[i]);
}

struct Texture {
    int side, levels, faces;
    std::vector<float> texels;
    cudaMipmappedArray_t array;

    Texture(int side, int levels, float (*texel)(int level, int x, int y, int face), int faces = 1) : side(side), levels(levels), faces(faces)
    {
        cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
        cudaExtent extent = make_cudaExtent(side, side, faces == 6 ? 6 : 0);
        CUDA(cudaMallocMipmappedArray(&array, &format, extent, levels, faces == 6 ? cudaArrayCubemap : 0));
        for (int level = 0; level < levels; level++) {
            int size = side >> level;
            std::vector<float> own;
            for (int face = 0; face < faces; face++)
                for (int y = 0; y < size; y++)
                    for (int x = 0; x < size; x++) own.push_back(texel(level, x, y, face));
            cudaMemcpy3DParms copy = {};
            copy.srcPtr = make_cudaPitchedPtr(own.data(), size * 4, size, size);
            CUDA(cudaGetMipmappedArrayLevel(&copy.dstArray, array, level));
            copy.extent = make_cudaExtent(size, size, faces);
            copy.kind = cudaMemcpyHostToDevice;
            CUDA(cudaMemcpy3D(&copy));
            texels.insert(texels.end(), own.begin(), own.end());
        }
    }
};

struct Sampler {
    bool linear = true, between = true;
    cudaTextureAddressMode mode = cudaAddressModeWrap;
    unsigned anisotropy = 0;
    float bias = 0, least = 0, most = 20;
};

// Writes down every `stride`th of the reads.
static void record(const std::string &name, const Texture &texture, Kind kind, const std::vector<Read> &reads, Sampler sampler, int stride)
{
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = texture.array;
    cudaTextureDesc how = {};
    for (auto &mode : how.addressMode) mode = sampler.mode;
    how.filterMode = sampler.linear ? cudaFilterModeLinear : cudaFilterModePoint;
    how.mipmapFilterMode = sampler.between ? cudaFilterModeLinear : cudaFilterModePoint;
    how.readMode = cudaReadModeElementType;
    how.normalizedCoords = 1;
    how.maxAnisotropy = sampler.anisotropy;
    how.mipmapLevelBias = sampler.bias;
    how.minMipmapLevelClamp = sampler.least;
    how.maxMipmapLevelClamp = sampler.most;
    cudaTextureObject_t object;
    CUDA(cudaCreateTextureObject(&object, &resource, &how, nullptr));
    Read *at;
    float *out;
    int count = int(reads.size());
    CUDA(cudaMallocManaged(&at, count * sizeof(Read)));
    CUDA(cudaMallocManaged(&out, count * sizeof(float)));
    for (int i = 0; i < count; i++) at[i] = reads[i];
    read<<<(count + 127) / 128, 128>>>(object, at, out, count, kind);
    CUDA(cudaDeviceSynchronize());
    fprintf(file, "texture\t%s\t%d\t%d\t%d\t%s\t%s\t%s\t%u\t%.9g\t%.9g\t%.9g\ntexels\t", name.c_str(), texture.side, texture.levels,
            texture.faces, sampler.linear ? "linear" : "point", sampler.between ? "linear" : "point",
            sampler.mode == cudaAddressModeWrap ? "wrap" : "clamp", sampler.anisotropy, sampler.bias, sampler.least, sampler.most);
    hex(texture.texels.data(), texture.texels.size() * sizeof(float));
    fprintf(file, "\n%s\t", KINDS[kind]);
    for (int i = 0; i < count; i += stride) {
        hex(&at[i], sizeof(Read));
        hex(&out[i], sizeof(float));
    }
    fprintf(file, "\n");
    CUDA(cudaDestroyTextureObject(object));
    CUDA(cudaFree(at));
    CUDA(cudaFree(out));
}

static uint32_t state = 12345;

static uint32_t random_bits()
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

static float between(float low, float high)
{
    return low + (high - low) * (random_bits() >> 8) / 16777216.0f;
}

static float own_level(int level, int, int, int) { return float(level); }

static float rough(int level, int x, int y, int face)
{
    uint32_t hash = (level * 131 + face * 8191 + y * 257 + x) * 2654435761u;
    hash ^= hash >> 15;
    hash *= 2246822519u;
    hash ^= hash >> 13;
    return (int(hash >> 8) - (1 << 23)) / 4194304.0f;
}

static float spike(int level, int x, int, int) { return level == 0 && x == 64 ? 1.0f : 0.0f; }

// Reads whose order of evaluation is fixed: braces evaluate from the left.
static Read gradient(float x, float y, float a, float b, float c, float d) { return {x, y, 0, 0, {a, b}, {c, d}}; }

static Sampler with(unsigned anisotropy)
{
    Sampler sampler;
    sampler.anisotropy = anisotropy;
    return sampler;
}

static void by_level()
{
    Texture levels(16, 5, own_level), texels(16, 5, rough);
    std::vector<Read> reads;
    for (int i = -2048; i <= 10240; i++) reads.push_back({0.5f, 0.5f, 0, i / 2048.0f});
    Sampler plain, nearest, bias, minus, limits, nearest_limits;
    nearest.between = nearest_limits.between = false;
    bias.bias = 0.3f;
    minus.bias = -1.77f;
    limits.least = nearest_limits.least = 0.7f;
    limits.most = nearest_limits.most = 2.3f;
    record("lod_linear", levels, LOD, reads, plain, 7);
    record("lod_point", levels, LOD, reads, nearest, 7);
    record("lod_bias", levels, LOD, reads, bias, 7);
    record("lod_bias2", levels, LOD, reads, minus, 7);
    record("lod_clamp", levels, LOD, reads, limits, 7);
    record("lod_pointclamp", levels, LOD, reads, nearest_limits, 7);
    reads.clear();
    for (int i = 0; i < 4096; i++) reads.push_back({0.5f, 0.5f, 0, nextafterf((i % 2048) / 512.0f, i < 2048 ? -9.0f : 9.0f)});
    record("lod_near", levels, LOD, reads, plain, 5);
    reads.clear();
    const float odd[] = {-INFINITY, INFINITY, NAN, -0.0f, 1e30f, -1e30f, 1e-40f, 100.f};
    for (float level : odd) reads.push_back({0.5f, 0.5f, 0, level});
    record("lod_odd", levels, LOD, reads, plain, 1);
    reads.clear();
    for (int i = 0; i < 60000; i++) {
        Read read = {(random_bits() % 4096) / 4096.0f, (random_bits() % 4096) / 4096.0f, 0, (random_bits() % 1024) / 256.0f};
        reads.push_back(read);
    }
    Sampler points, clamped;
    points.linear = false;
    clamped.mode = cudaAddressModeClamp;
    record("tri_exact", texels, LOD, reads, plain, 40);
    record("bi_nearest_level", texels, LOD, reads, nearest, 40);
    record("point_linear", texels, LOD, reads, points, 40);
    reads.clear();
    for (int i = 0; i < 60000; i++) {
        Read read = {between(-1, 2), between(-1, 2), 0, between(-1, 6)};
        reads.push_back(read);
    }
    record("tri_any", texels, LOD, reads, plain, 40);
    record("tri_any_clamp", texels, LOD, reads, clamped, 40);
}

static void by_gradient()
{
    Texture levels(128, 8, own_level), texels(128, 8, rough), one(128, 8, spike);
    std::vector<Read> x, y, turn, any, ratio, spikes, everywhere;
    for (int i = 0; i < 16384; i++) {
        float length = exp2f(-8 + i / 2048.0f), angle = i * 6.2831853f / 16384, g = 0.05f;
        x.push_back(gradient(0.5f, 0.5f, length, 0, 0, 0));
        y.push_back(gradient(0.5f, 0.5f, 0, 0, length, 0));
        turn.push_back(gradient(0.5f, 0.5f, g * cosf(angle), g * sinf(angle), 0, 0));
    }
    record("grad_x", levels, GRAD, x, {}, 11);
    record("grad_y", levels, GRAD, y, {}, 11);
    record("grad_turn", levels, GRAD, turn, {}, 11);
    for (int i = 0; i < 30000; i++) {
        float s = exp2f(between(-8, 0));
        Read read = {0.5f, 0.5f, 0, 0, {between(-s, s), between(-s, s)}, {between(-s, s), between(-s, s)}};
        any.push_back(read);
    }
    record("grad_any", levels, GRAD, any, {}, 15);
    for (unsigned most : {1, 2, 4, 8, 16}) record("aniso_any_" + std::to_string(most), levels, GRAD, any, with(most), 30);
    for (int i = 0; i < 8192; i++) ratio.push_back(gradient(0.5f, 0.5f, 0.02f * exp2f(i / 1365.0f), 0, 0, 0.02f));
    for (int r = 0; r < 16; r++)
        for (int i = 0; i < 2048; i++)
            spikes.push_back(gradient((64.5f + (i - 1024) / 100.0f) / 128, 0.5f, (1 + r * 0.97f) / 128, 0, 0, 0.9f / 128));
    for (unsigned most : {2, 4, 8, 16}) {
        std::string number = std::to_string(most);
        record("aniso_ratio_" + number, levels, GRAD, ratio, with(most), 16);
        record("aniso_spike_" + number, one, GRAD, spikes, with(most), 16);
        everywhere.clear();
        for (int i = 0; i < 30000; i++) {
            float s = exp2f(between(-8, -2));
            Read read = {between(0, 1), between(0, 1), 0, 0, {between(-s, s), between(-s, s)}, {between(-s, s), between(-s, s)}};
            everywhere.push_back(read);
        }
        record("aniso_rough_" + number, texels, GRAD, everywhere, with(most), 60);
    }
}

static void of_cubes()
{
    Texture one(8, 1, rough, 6), several(8, 4, rough, 6), levels(8, 4, own_level, 6);
    std::vector<Read> reads;
    for (int i = 0; i < 60000; i++) {
        Read read = {between(-1, 1), between(-1, 1), between(-1, 1), between(-1, 4)};
        reads.push_back(read);
    }
    Sampler linear, points, point_levels;
    linear.between = points.between = points.linear = point_levels.linear = false;
    record("cube_linear", one, CUBE, reads, linear, 40);
    record("cube_point", one, CUBE, reads, points, 40);
    record("cube_lod", several, CUBELOD, reads, {}, 40);
    record("cube_lodpoint", several, CUBELOD, reads, point_levels, 40);
    record("cube_level", levels, CUBELOD, reads, {}, 40);
    reads.clear();
    for (int i = 0; i < 20000; i++) {
        Read read = {1.0f, (int(random_bits() % 2049) - 1024) / 1024.0f, (int(random_bits() % 2049) - 1024) / 1024.0f};
        reads.push_back(read);
    }
    record("cube_face", one, CUBE, reads, linear, 20);
    record("cube_facepoint", one, CUBE, reads, points, 20);
}

int main(int, char **arguments)
{
    if (!arguments[1] || !(file = fopen(arguments[1], "w"))) return 2;
    by_level();
    by_gradient();
    of_cubes();
    return fclose(file) ? 1 : 0;
}
