// Double precision: every operation and rounding mode against exact references, division, square root, conversions.
#include "check.h"

#include <cfenv>
#include <cmath>
#include <vector>

const int results = 26;
__global__ void compute(const double *as, const double *bs, const double *cs, double *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double a = as[i], b = bs[i], c = cs[i], *o = out + i * results;
    *o++ = __dadd_rn(a, b);
    *o++ = __dadd_rz(a, b);
    *o++ = __dadd_ru(a, b);
    *o++ = __dadd_rd(a, b);
    *o++ = __dmul_rn(a, b);
    *o++ = __dmul_rz(a, b);
    *o++ = __dmul_ru(a, b);
    *o++ = __dmul_rd(a, b);
    *o++ = __fma_rn(a, b, c);
    *o++ = __fma_rz(a, b, c);
    *o++ = __fma_ru(a, b, c);
    *o++ = __fma_rd(a, b, c);
    *o++ = __ddiv_rn(a, b);
    *o++ = __ddiv_rz(a, b);
    *o++ = __ddiv_ru(a, b);
    *o++ = __ddiv_rd(a, b);
    *o++ = __dsqrt_rn(fabs(a));
    *o++ = __dsqrt_ru(fabs(a));
    *o++ = fmin(a, b);
    *o++ = fmax(a, b);
    *o++ = (double)(float)a;
    *o++ = (double)__double2ll_rn(c);
    *o++ = (double)__double2int_rz(c);
    *o++ = rint(c) + floor(c) * 0.5 + ceil(c) * 0.25 + trunc(c) * 0.125;
    *o++ = copysign(a, b);
    *o++ = __ull2double_ru((unsigned long long)__double_as_longlong(a));
}

static void expected(double a_, double b_, double c_, double *o)
{
    volatile double a = a_, b = b_, c = c_; // not moved across the changes of the rounding mode
    const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_UPWARD, FE_DOWNWARD};
    for (int m = 0; m < 4; m++) fesetround(modes[m]), *o++ = a + b;
    for (int m = 0; m < 4; m++) fesetround(modes[m]), *o++ = a * b;
    for (int m = 0; m < 4; m++) fesetround(modes[m]), *o++ = std::fma(a, b, c);
    for (int m = 0; m < 4; m++) fesetround(modes[m]), *o++ = a / b;
    fesetround(FE_TONEAREST);
    volatile double magnitude = std::fabs(a);
    *o++ = std::sqrt(magnitude);
    fesetround(FE_UPWARD);
    *o++ = std::sqrt(magnitude);
    fesetround(FE_TONEAREST);
    // A NaN, signaling or not, gives way to a number; the C library need not agree about signaling ones.
    *o++ = a != a ? b : b != b ? a : a < b ? a : b;
    *o++ = a != a ? b : b != b ? a : a > b ? a : b;
    *o++ = (double)(float)a;
    *o++ = (double)std::llrint(c);
    *o++ = (double)(int)c;
    *o++ = std::rint(c) + std::floor(c) * 0.5 + std::ceil(c) * 0.25 + std::trunc(c) * 0.125;
    *o++ = std::copysign(a, b);
    uint64_t bits;
    double plain = a;
    memcpy(&bits, &plain, 8);
    volatile uint64_t integer = bits;
    fesetround(FE_UPWARD);
    *o++ = (double)integer;
    fesetround(FE_TONEAREST);
}

int main()
{
    std::vector<double> a, b, c;
    auto put = [&](double p, double q, double r) { a.push_back(p), b.push_back(q), c.push_back(r); };
    const double special[] = {0.0, -0.0, 1.0, -1.5, 0x1p-1074, -0x1p-1022, 0x1.fffffffffffffp1023, INFINITY, -INFINITY, NAN, 3.0, 0.1, 1e-310, 0x1p53};
    Random random(8);
    for (double p : special)
        for (double q : special) put(p, q, random.uniform() * 100 - 50);
    for (int i = 0; i < 3000; i++) {
        double v[2];
        for (double &x : v) {
            // Any exponent for the first half, near ones for the rest (cancellation, ties).
            uint64_t bits = random.next64();
            if (i >= 1500) bits = (bits & 0x800FFFFFFFFFFFFF) | (uint64_t)(1020 + random.next() % 8) << 52;
            if (i % 3 == 0) bits &= ~0xFFFFFFFFull;
            memcpy(&x, &bits, 8);
        }
        put(v[0], v[1], i % 5 ? random.uniform() * 1e6 - 5e5 : (double)(int)(random.next() % 100) + 0.5);
    }
    int n = (int)a.size();
    double *da, *db, *dc, *out;
    for (double **p : {&da, &db, &dc}) CUDA(cudaMalloc(p, n * 8));
    CUDA(cudaMalloc(&out, n * 8 * results));
    CUDA(cudaMemcpy(da, a.data(), n * 8, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(db, b.data(), n * 8, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(dc, c.data(), n * 8, cudaMemcpyHostToDevice));
    compute<<<(n + 63) / 64, 64>>>(da, db, dc, out, n);
    LAUNCHED();
    std::vector<double> got(n * results);
    CUDA(cudaMemcpy(got.data(), out, n * 8 * results, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        double want[results];
        expected(a[i], b[i], c[i], want);
        for (int r = 0; r < results; r++) {
            double g = got[i * results + r], w = want[r];
            if (g != g && w != w) continue; // any NaN
            // fmin and fmax of zeros of unlike sign: either.
            if ((r == 18 || r == 19) && g == 0 && w == 0) continue;
            if (memcmp(&g, &w, 8)) fail("result %d of %a, %a, %a is %a, not %a", r, a[i], b[i], c[i], g, w);
        }
    }
    return pass();
}
