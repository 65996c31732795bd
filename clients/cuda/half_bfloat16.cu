// older nvcc: -arch=sm_80
// half and bfloat16: conversions of every value, and arithmetic, against references in exact integer arithmetic.
#include "check.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <vector>

typedef __int128 s128;

// A finite binary number: value = m * 2^e.
struct Exact {
    s128 m;
    int e;
};

// Formats: half has 10 bits of fraction and exponents from -14, bfloat16 has 7 bits and exponents from -126.
struct Format {
    int fraction, low, high;
};
const Format half_format = {10, -14, 15}, bfloat_format = {7, -126, 127};

static bool is_nan(unsigned v, Format f)
{
    unsigned top = ((1u << (15 - f.fraction)) - 1) << f.fraction;
    return (v & 0x7FFF) > top;
}
static bool is_infinite(unsigned v, Format f) { return (v & 0x7FFF) == ((1u << (15 - f.fraction)) - 1) << f.fraction; }

static Exact exact_of(unsigned v, Format f)
{
    int biased = (v & 0x7FFF) >> f.fraction, m = v & ((1 << f.fraction) - 1);
    if (biased) m |= 1 << f.fraction;
    else biased = 1;
    return {v & 0x8000 ? -m : m, biased - 1 + f.low - f.fraction};
}

enum Mode { nearest, zero, up, down };

// Rounds m * 2^e. The sign of an exact zero is given.
static unsigned rounded(Exact x, Format f, bool negative_zero, Mode mode = nearest)
{
    if (x.m == 0) return negative_zero ? 0x8000 : 0;
    unsigned sign = x.m < 0 ? 0x8000 : 0;
    unsigned __int128 m = x.m < 0 ? -(unsigned __int128)x.m : x.m;
    int e = x.e, bits = 0;
    for (unsigned __int128 t = m; t; t >>= 1) bits++;
    // The exponent of the last place: that of the value, but not below that of the subnormals.
    int last = e + bits - 1 - f.fraction;
    if (last < f.low - f.fraction) last = f.low - f.fraction;
    int drop = last - e;
    unsigned long long kept;
    if (drop <= 0)
        kept = (unsigned long long)(m << -drop);
    else {
        if (drop > 126) drop = 126;
        kept = (unsigned long long)(m >> drop);
        unsigned __int128 rest = m & (((unsigned __int128)1 << drop) - 1), middle = (unsigned __int128)1 << (drop - 1);
        bool away = mode == nearest ? rest > middle || (rest == middle && (kept & 1))
                                    : rest && (mode == up ? !sign : mode == down ? sign != 0 : false);
        kept += away;
    }
    // Adding the fraction to the exponent field carries by itself.
    unsigned biased = (unsigned)(last + f.fraction - f.low);
    unsigned value = (unsigned)kept + (biased << f.fraction);
    unsigned top = ((1u << (15 - f.fraction)) - 1) << f.fraction;
    if (value >= top) {
        bool to_infinity = mode == nearest || (mode == up && !sign) || (mode == down && sign);
        value = to_infinity ? top : top - 1;
    }
    return sign | value;
}

static Exact exact_of(float v)
{
    int e;
    float m = frexpf(v, &e);
    return {(s128)(m * 16777216.0f), e - 24};
}

// conversions: 4 half, 4 bfloat16 per float
__global__ void from_float(const float *in, unsigned short *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = in[i];
    unsigned short *o = out + i * 8;
    o[0] = __half_as_ushort(__float2half_rn(v));
    o[1] = __half_as_ushort(__float2half_rz(v));
    o[2] = __half_as_ushort(__float2half_ru(v));
    o[3] = __half_as_ushort(__float2half_rd(v));
    o[4] = __bfloat16_as_ushort(__float2bfloat16_rn(v));
    o[5] = __bfloat16_as_ushort(__float2bfloat16_rz(v));
    o[6] = __bfloat16_as_ushort(__float2bfloat16_ru(v));
    o[7] = __bfloat16_as_ushort(__float2bfloat16_rd(v));
}

__global__ void to_float(float *halves, float *bfloats)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    halves[i] = __half2float(__ushort_as_half((unsigned short)i));
    bfloats[i] = __bfloat162float(__ushort_as_bfloat16((unsigned short)i));
}

const int results = 8;
__global__ void half_math(const unsigned short *in, unsigned short *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half a = __ushort_as_half(in[i * 3]), b = __ushort_as_half(in[i * 3 + 1]), c = __ushort_as_half(in[i * 3 + 2]);
    unsigned short *o = out + i * results;
    o[0] = __half_as_ushort(__hadd(a, b));
    o[1] = __half_as_ushort(__hsub(a, b));
    o[2] = __half_as_ushort(__hmul(a, b));
    o[3] = __half_as_ushort(__hfma(a, b, c));
    // Two at a time.
    __half2 p = __halves2half2(a, b), q = __halves2half2(b, c);
    __half2 s = __hadd2(p, q), t = __hmul2(p, q);
    o[4] = __half_as_ushort(__high2half(s));
    o[5] = __half_as_ushort(__low2half(t));
    o[6] = (unsigned short)(__hlt(a, b) | __hle(a, b) << 1 | __heq(a, b) << 2 | __hgt(a, b) << 3 | __hisnan(a) << 4 | __hneu(a, b) << 5);
    o[7] = __half_as_ushort(__hneg(__habs(a)));
}

__global__ void bfloat_math(const unsigned short *in, unsigned short *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __nv_bfloat16 a = __ushort_as_bfloat16(in[i * 3]), b = __ushort_as_bfloat16(in[i * 3 + 1]);
    unsigned short *o = out + i * results;
    o[0] = __bfloat16_as_ushort(__hadd(a, b));
    o[1] = __bfloat16_as_ushort(__hsub(a, b));
    o[2] = __bfloat16_as_ushort(__hmul(a, b));
    o[3] = __bfloat16_as_ushort(__hdiv(a, b));
    o[6] = (unsigned short)(__hlt(a, b) | __hle(a, b) << 1 | __heq(a, b) << 2 | __hgt(a, b) << 3 | __hisnan(a) << 4 | __hneu(a, b) << 5);
    o[7] = __bfloat16_as_ushort(__hneg(__habs(a)));
}

__global__ void integers(int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __half h = __ushort_as_half((unsigned short)i);
    out[i * 4 + 0] = __half2int_rn(h);
    out[i * 4 + 1] = __half2int_rz(h);
    out[i * 4 + 2] = __half_as_ushort(__int2half_rn(i - 32768));
    out[i * 4 + 3] = __half_as_ushort(hsqrt(h));
}

template <typename T> static T *managed(size_t n)
{
    T *p;
    CUDA(cudaMallocManaged(&p, n * sizeof(T)));
    return p;
}

static void check16(const char *what, unsigned got, unsigned want, Format f, unsigned a, unsigned b)
{
    if (is_nan(want, f) ? !is_nan(got, f) : got != want) fail("%s of %#06x, %#06x is %#06x, not %#06x", what, a, b, got, want);
}

// a op b for any values; `what` picks the operation.
static unsigned reference(char what, unsigned a, unsigned b, unsigned c, Format f)
{
    const unsigned nan = 0x7FFF;
    if (is_nan(a, f) || is_nan(b, f) || (what == 'f' && is_nan(c, f))) return nan;
    if (what == '-') b ^= 0x8000, what = '+';
    bool ia = is_infinite(a, f), ib = is_infinite(b, f), za = !(a & 0x7FFF), zb = !(b & 0x7FFF);
    if (what == '+') {
        if (ia && ib) return a == b ? a : nan;
        if (ia || ib) return ia ? a : b;
        Exact x = exact_of(a, f), y = exact_of(b, f);
        // Too far apart for 128 bits: the smaller one only decides ties and directions; one bit stands for it.
        if (x.e < y.e) std::swap(x, y);
        if (x.m && x.e - y.e > 60) {
            x.m = (x.m << 30) + (y.m > 0) - (y.m < 0);
            return rounded({x.m, x.e - 30}, f, false);
        }
        s128 sum = (x.m ? x.m << (x.e - y.e) : 0) + y.m;
        return rounded({sum, y.e}, f, (a & b & 0x8000) != 0);
    }
    unsigned sign = (a ^ b) & 0x8000;
    if (what == '*' || what == 'f') {
        if ((ia && zb) || (ib && za)) return nan;
        bool infinite = ia || ib;
        if (what == '*') {
            if (infinite) return sign | (nan & ~((1u << f.fraction) - 1));
            Exact x = exact_of(a, f), y = exact_of(b, f);
            return rounded({x.m * y.m, x.e + y.e}, f, sign != 0);
        }
        bool ic = is_infinite(c, f);
        unsigned inf = sign | (nan & ~((1u << f.fraction) - 1));
        if (infinite) return ic && c != inf ? nan : inf;
        if (ic) return c;
        // Half only: everything is a multiple of 2^-48 below 2^33.
        Exact x = exact_of(a, f), y = exact_of(b, f), z = exact_of(c, f);
        s128 sum = ((x.m * y.m) << (x.e + y.e + 48)) + (z.m << (z.e + 48));
        return rounded({sum, -48}, f, sign && (c & 0x8000));
    }
    // Division.
    if ((ia && ib) || (za && zb)) return nan;
    if (ia || zb) return sign | (nan & ~((1u << f.fraction) - 1));
    if (ib || za) return sign;
    Exact x = exact_of(a, f), y = exact_of(b, f);
    s128 n = (x.m < 0 ? -x.m : x.m) << 60, d = y.m < 0 ? -y.m : y.m;
    s128 q = (n / d) << 1 | (n % d != 0);
    return rounded({sign ? -q : q, x.e - y.e - 61}, f, sign != 0);
}

int main()
{
    // Every half and bfloat16 as float.
    float *halves = managed<float>(65536), *bfloats = managed<float>(65536);
    to_float<<<256, 256>>>(halves, bfloats);
    FINISHED();
    for (unsigned v = 0; v < 65536; v++) {
        for (int k = 0; k < 2; k++) {
            Format f = k ? bfloat_format : half_format;
            float got = k ? bfloats[v] : halves[v];
            Exact x = exact_of(v, f);
            float want = is_nan(v, f) ? NAN : is_infinite(v, f) ? (v & 0x8000 ? -INFINITY : INFINITY) : copysignf(ldexpf((float)(int)x.m, x.e), v & 0x8000 ? -1.0f : 1.0f);
            if (want != want ? got == got : memcmp(&got, &want, 4)) fail("%s %#06x is %a, not %a", k ? "bfloat16" : "half", v, got, want);
        }
    }

    // floats to both, four roundings.
    std::vector<float> floats;
    Random random(9);
    for (unsigned v = 0; v < 65536; v += 7) {
        float h = halves[v];
        if (h != h || std::isinf(h)) continue;
        floats.push_back(h);
        floats.push_back(nextafterf(h, INFINITY));
        // Midway between two halves, and just beside it.
        float next = halves[v + 1];
        if (next == next && !std::isinf(next)) {
            float middle = h + (next - h) / 2;
            floats.push_back(middle);
            floats.push_back(nextafterf(middle, -INFINITY));
        }
    }
    for (int i = 0; i < 4000; i++) {
        uint32_t bits = random.next();
        if (i % 4 == 0) bits &= 0xFFFF8000;
        float v;
        memcpy(&v, &bits, 4);
        if (v == v && !std::isinf(v)) floats.push_back(v);
    }
    for (float v : {0.0f, -0.0f, 65504.0f, 65519.0f, 65520.0f, 65536.0f, 3.4e38f, -3.4e38f, 1e-45f, 5.9e-8f, 2.98e-8f}) floats.push_back(v);
    int n = (int)floats.size();
    float *in = managed<float>(n);
    unsigned short *out = managed<unsigned short>(n * 8);
    memcpy(in, floats.data(), n * sizeof(float));
    from_float<<<(n + 127) / 128, 128>>>(in, out, n);
    FINISHED();
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 8; k++) {
            unsigned want = rounded(exact_of(floats[i]), k < 4 ? half_format : bfloat_format, std::signbit(floats[i]), (Mode)(k & 3));
            if (out[i * 8 + k] != want) fail("%a to %s, rounding %d: %#06x, not %#06x", floats[i], k < 4 ? "half" : "bfloat16", k & 3, out[i * 8 + k], want);
        }

    // Arithmetic.
    const unsigned special[] = {0, 0x8000, 1, 0x8001, 0x3FF, 0x400, 0x3C00, 0xBC00, 0x3C01, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0x3F80, 0x7F80, 0xFF80, 0x7FC0, 0x7F7F, 0x80};
    std::vector<unsigned short> operands;
    for (unsigned a : special)
        for (unsigned b : special) operands.insert(operands.end(), {(unsigned short)a, (unsigned short)b, (unsigned short)random.next()});
    for (int i = 0; i < 6000; i++) {
        // Pairs of like magnitude every other time.
        unsigned short a = random.next(), b = random.next();
        if (i & 1) b = (a & 0x7C00) | (b & 0x83FF);
        operands.insert(operands.end(), {a, b, (unsigned short)random.next()});
    }
    n = (int)operands.size() / 3;
    unsigned short *ops = managed<unsigned short>(n * 3), *res = managed<unsigned short>(n * results);
    memcpy(ops, operands.data(), operands.size() * 2);
    for (int k = 0; k < 2; k++) {
        Format f = k ? bfloat_format : half_format;
        if (k)
            bfloat_math<<<(n + 127) / 128, 128>>>(ops, res, n);
        else
            half_math<<<(n + 127) / 128, 128>>>(ops, res, n);
        FINISHED();
        for (int i = 0; i < n; i++) {
            unsigned a = operands[i * 3], b = operands[i * 3 + 1], c = operands[i * 3 + 2];
            unsigned short *o = res + i * results;
            check16(k ? "bfloat16 +" : "half +", o[0], reference('+', a, b, c, f), f, a, b);
            check16(k ? "bfloat16 -" : "half -", o[1], reference('-', a, b, c, f), f, a, b);
            check16(k ? "bfloat16 *" : "half *", o[2], reference('*', a, b, c, f), f, a, b);
            if (k) {
                check16("bfloat16 /", o[3], reference('/', a, b, c, f), f, a, b);
            } else {
                check16("half fma", o[3], reference('f', a, b, c, f), f, a, b);
                check16("half2 + (high)", o[4], reference('+', b, c, 0, f), f, b, c);
                check16("half2 * (low)", o[5], reference('*', a, b, 0, f), f, a, b);
            }
            float x = k ? bfloats[a] : halves[a], y = k ? bfloats[b] : halves[b];
            unsigned want = (x < y) | (x <= y) << 1 | (x == y) << 2 | (x > y) << 3 | (x != x) << 4 | (x != y) << 5;
            if (o[6] != want) fail("comparing %a with %a: %#x, not %#x", x, y, o[6], want);
            if (!is_nan(a, f) && o[7] != (a | 0x8000)) fail("-|%#06x| is %#06x", a, o[7]);
        }
    }

    int *ints = managed<int>(65536 * 4);
    integers<<<256, 256>>>(ints);
    FINISHED();
    for (int i = 0; i < 65536; i++) {
        float h = halves[i];
        if (h == h && !std::isinf(h)) {
            EXPECT_EQ(ints[i * 4], (int)rintf(h));
            EXPECT_EQ(ints[i * 4 + 1], (int)h);
            if (h > 0) {
                // Not midway ever: the float's root rounds as the exact one (24 >= 2 * 11 + 2 bits).
                unsigned want = rounded(exact_of(sqrtf(h)), half_format, false);
                EXPECT_EQ(ints[i * 4 + 3], want);
            }
        }
        EXPECT_EQ(ints[i * 4 + 2], rounded({i - 32768, 0}, half_format, false));
    }
    return pass();
}
