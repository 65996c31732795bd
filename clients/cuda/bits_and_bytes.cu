// Byte and bit tricks of 32-bit lanes: conversions between widths and signs with and without saturation, packed
// compares, bit fields by inline PTX, carries, selection by predicates.
#include "check.h"

#include <cmath>
#include <vector>

const int results = 16;
__global__ void compute(const uint32_t *in, const float *floats, int64_t *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint32_t x = in[i * 2], y = in[i * 2 + 1], r;
    float f = floats[i];
    int64_t *o = out + i * results;
    *o++ = (int8_t)x;
    *o++ = (uint8_t)x + (int16_t)y;
    *o++ = (int64_t)(int32_t)x * (uint16_t)y;
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y & 31), "r"(y >> 8 & 31));
    *o++ = r;
    asm("bfe.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y & 31), "r"(y >> 8 & 31));
    *o++ = (int32_t)r;
    asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(x), "r"(y), "r"(y & 31), "r"(x & 31));
    *o++ = r;
    uint32_t low, high;
    asm("{\n\t"
        "add.cc.u32 %0, %2, %3;\n\t"
        "addc.u32 %1, %2, %3;\n\t"
        "}"
        : "=r"(low), "=r"(high)
        : "r"(x), "r"(y));
    *o++ = (int64_t)((uint64_t)high << 32 | low);
    asm("{\n\t"
        "sub.cc.u32 %0, %2, %3;\n\t"
        "subc.u32 %1, %2, %3;\n\t"
        "}"
        : "=r"(low), "=r"(high)
        : "r"(x), "r"(y));
    *o++ = (int64_t)((uint64_t)high << 32 | low);
    asm("lop3.b32 %0, %1, %2, %3, 0xE8;" : "=r"(r) : "r"(x), "r"(y), "r"(0x0F0F3355)); // majority
    *o++ = r;
    asm("add.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y));
    *o++ = (int32_t)r;
    *o++ = (int64_t)(int)f;            // saturates
    *o++ = (int64_t)(unsigned)f;
    *o++ = __float2int_rn(f) + (int64_t)__float2uint_ru(f);
    int s;
    asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(s) : "f"(f));
    *o++ = (int8_t)s;
    asm("{\n\t.reg .pred p;\n\tsetp.lt.s32 p, %1, %2;\n\t@p bra L%=;\n\tmov.u32 %0, 7;\n\tbra M%=;\nL%=:\n\tmov.u32 %0, 9;\nM%=:\n\t}" : "=r"(r) : "r"(x), "r"(y));
    *o++ = r;
    *o++ = __vcmpgts2(x, y) ^ ((int64_t)__vminu4(x, y) << 8);
}

static int64_t clamp(double v, double low, double high) { return (int64_t)(v != v ? 0 : v < low ? low : v > high ? high : v); }

int main()
{
    const int n = 4000;
    std::vector<uint32_t> in(2 * n);
    std::vector<float> floats(n);
    Random random(15);
    for (int i = 0; i < n; i++) {
        in[2 * i] = random.next() >> (i % 3 ? 0 : random.next() & 31);
        in[2 * i + 1] = i % 5 ? random.next() : in[2 * i];
        uint32_t bits = random.next();
        memcpy(&floats[i], &bits, 4);
        if (i % 2) floats[i] = (random.uniform() - 0.5f) * 600;
        if (floats[i] != floats[i]) floats[i] = 2.5f;
    }
    uint32_t *din;
    float *df;
    int64_t *out;
    CUDA(cudaMalloc(&din, in.size() * 4));
    CUDA(cudaMalloc(&df, n * 4));
    CUDA(cudaMalloc(&out, n * results * 8));
    CUDA(cudaMemcpy(din, in.data(), in.size() * 4, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(df, floats.data(), n * 4, cudaMemcpyHostToDevice));
    compute<<<(n + 255) / 256, 256>>>(din, df, out, n);
    LAUNCHED();
    std::vector<int64_t> got(n * results);
    CUDA(cudaMemcpy(got.data(), out, got.size() * 8, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        uint32_t x = in[2 * i], y = in[2 * i + 1];
        double f = floats[i];
        uint32_t pos = y & 31, len = y >> 8 & 31, field = 0, inserted = y;
        // The manual's definition, bit by bit: what lies beyond bit 31 is the sign, or zero.
        uint32_t sign = len == 0 ? 0 : x >> (pos + len - 1 > 31 ? 31 : pos + len - 1) & 1, signed_field = 0;
        for (uint32_t k = 0; k < 32; k++) {
            if (k < len && pos + k < 32) field |= (x >> (pos + k) & 1) << k;
            signed_field |= (k < len && pos + k < 32 ? x >> (pos + k) & 1 : sign) << k;
        }
        for (uint32_t k = 0; k < (x & 31) && pos + k < 32; k++) inserted = (inserted & ~(1u << (pos + k))) | (x >> k & 1) << (pos + k);
        uint32_t third = 0x0F0F3355, greater = 0, least = 0;
        for (int k = 0; k < 4; k++) {
            uint32_t p = x >> 8 * k & 255, q = y >> 8 * k & 255;
            least |= (p < q ? p : q) << 8 * k;
        }
        for (int k = 0; k < 2; k++)
            if ((int16_t)(x >> 16 * k) > (int16_t)(y >> 16 * k)) greater |= 0xFFFFu << 16 * k;
        int64_t want[results] = {(int8_t)x,
                                 (uint8_t)x + (int16_t)y,
                                 (int64_t)(int32_t)x * (uint16_t)y,
                                 field,
                                 (int32_t)signed_field,
                                 inserted,
                                 (int64_t)((uint64_t)(uint32_t)(x + y + (((uint64_t)x + y) >> 32)) << 32 | (uint32_t)(x + y)),
                                 (int64_t)((uint64_t)(uint32_t)(x - y - (x < y)) << 32 | (uint32_t)(x - y)),
                                 (x & y) | (x & third) | (y & third),
                                 clamp((double)(int32_t)x + (int32_t)y, -2147483648.0, 2147483647.0),
                                 clamp(std::trunc(f), -2147483648.0, 2147483647.0),
                                 clamp(std::trunc(f), 0, 4294967295.0),
                                 clamp(std::rint(f), -2147483648.0, 2147483647.0) + clamp(std::ceil(f), 0, 4294967295.0),
                                 clamp(std::rint(f), -128, 127),
                                 (int32_t)x < (int32_t)y ? 9 : 7,
                                 (int64_t)greater ^ ((int64_t)least << 8)};
        for (int r = 0; r < results; r++)
            if (got[i * results + r] != want[r])
                fail("result %d of %#x, %#x, %a is %#llx, not %#llx", r, x, y, f, (long long)got[i * results + r], (long long)want[r]);
    }
    return pass();
}
