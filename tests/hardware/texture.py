"""What a GPU's texture unit reads, filters and all: `texture.py FILE`, with CuPy.

A paragraph of the file for each texture, its fields by tabs: name, format, size, addressing of coordinates, whether they are
fractions of the size, filter, whether texels are sRGB-encoded; its texels; and reads, the coordinates before each result.
All bytes are in hexadecimal, little-endian.
"""

import sys

import cupy
import numpy as np
from cupy.cuda import runtime, texture

SOURCE = """
extern "C" __global__ void read(cudaTextureObject_t from, const float3 *at, float *out, int dimensions, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float3 p = at[i];
    out[i] = dimensions == 1 ? tex1D<float>(from, p.x)
           : dimensions == 2 ? tex2D<float>(from, p.x, p.y) : tex3D<float>(from, p.x, p.y, p.z);
}
"""
KERNEL = cupy.RawModule(code=SOURCE).get_function("read")
FORMATS = {
    "f32": (np.float32, runtime.cudaChannelFormatKindFloat),
    "f16": (np.float16, runtime.cudaChannelFormatKindFloat),
    "u8": (np.uint8, runtime.cudaChannelFormatKindUnsigned),
    "s8": (np.int8, runtime.cudaChannelFormatKindSigned),
    "u16": (np.uint16, runtime.cudaChannelFormatKindUnsigned),
    "s16": (np.int16, runtime.cudaChannelFormatKindSigned),
}
MODES = {
    "clamp": runtime.cudaAddressModeClamp,
    "wrap": runtime.cudaAddressModeWrap,
    "mirror": runtime.cudaAddressModeMirror,
    "border": runtime.cudaAddressModeBorder,
}
RANDOM = np.random.default_rng(5)
READS = 300


def record(name, kind, texels, at, mode="clamp", fractions=False, linear=True, srgb=False):
    """Reads a texture, whose last direction is the fastest, at rows of coordinates."""
    dtype, channel = FORMATS[kind]
    texels = np.ascontiguousarray(texels, dtype)
    size = texels.shape[::-1]
    array = texture.CUDAarray(texture.ChannelFormatDescriptor(8 * texels.itemsize, 0, 0, 0, channel), *size)
    array.copy_from(cupy.asarray(texels))
    reads = texture.TextureDescriptor(
        addressModes=(MODES[mode],) * 3,
        filterMode=runtime.cudaFilterModeLinear if linear else runtime.cudaFilterModePoint,
        readMode=runtime.cudaReadModeElementType if kind in ("f32", "f16") else runtime.cudaReadModeNormalizedFloat,
        normalizedCoords=int(fractions),
        sRGB=int(srgb),
    )
    object_ = texture.TextureObject(texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=array), reads)
    at = np.asarray(at, np.float32).reshape(-1, len(size))
    padded = np.zeros((len(at), 3), np.float32)
    padded[:, : len(size)] = at
    out = cupy.full(len(at), np.nan, np.float32)
    KERNEL((-(-len(at) // 128),), (128,), (object_, cupy.asarray(padded), out, np.int32(len(size)), np.int32(len(at))))
    sizes = "x".join(map(str, size))
    fields = (name, kind, sizes, mode, int(fractions), "linear" if linear else "point", int(srgb))
    print("texture", *fields, sep="\t", file=OUT)
    print("texels", texels.tobytes().hex(), sep="\t", file=OUT)
    print("reads", np.hstack([at, out.get()[:, None]]).tobytes().hex(), sep="\t", file=OUT)


def between(shape, count=READS):
    """Positions whose distances from texels are multiples of 1/256."""
    sides = [RANDOM.integers(128, 256 * side - 127, count) for side in shape[::-1]]
    return np.stack(sides, 1) / 256


def values(kind, shape):
    if kind in ("f32", "f16"):
        return RANDOM.standard_normal(shape)
    limits = np.iinfo(FORMATS[kind][0])
    return RANDOM.integers(limits.min, limits.max + 1, shape)


def main():
    steps = np.arange(64) % 2
    record("weights", "f32", steps, RANDOM.uniform(0, 64, 4 * READS))
    for size in (2, 3, 5, 100, 255, 1000, 2047):
        # Beside the borders of texels, too.
        near = RANDOM.integers(0, 2 * size + 1, READS) / (2 * size)
        near = np.nextafter(near.astype(np.float32), RANDOM.uniform(-1, 2, READS).astype(np.float32))
        ramp = np.arange(size)
        for mode, at in (("clamp", near), ("wrap", near * 7 - 3), ("mirror", near * 7 - 3), ("border", near * 3 - 1)):
            for linear in (False, True):
                name = f"ramp_{size}_{mode}_{'linear' if linear else 'point'}"
                record(name, "f32", ramp, at, mode, True, linear)
    for kind in FORMATS:
        for shape in ((200,), (24, 24), (8, 8, 8)):
            record(f"{kind}_{len(shape)}d", kind, values(kind, shape), between(shape))
    for shape in ((200,), (24, 24)):
        far = RANDOM.standard_normal(shape) * np.exp2(RANDOM.integers(-20, 20, shape))
        record(f"f32_far_{len(shape)}d", "f32", far, between(shape))
    odd = [0, -0.0, 1, np.inf, 1, -np.inf, np.inf, np.nan, 1, 1e-45, 0, 1e-38, -1e-38, 3e38, -3e38, 1.2e-38, -0.0, -0.0, 0]
    record("f32_odd", "f32", np.float32(odd), between((len(odd),)))
    for kind in ("u8", "s8", "u16", "s16"):
        shape = (16, 16) if kind.endswith("8") else (256, 256)
        every = np.arange(np.prod(shape)).reshape(shape).astype(FORMATS[kind][0])
        record(f"{kind}_each", kind, every, np.indices((16, 16)).reshape(2, -1).T[:, ::-1] + 0.5, linear=False)
    record("srgb", "u8", np.arange(256), np.arange(256) + 0.5, linear=False, srgb=True)


with open(sys.argv[1], "w") as OUT:
    main()
