// nvcc: --extended-lambda
// Functions of the CUDA math library against the host's in a wider type, within the errors that the CUDA programming
// guide documents (in units of the last place), and the special cases that C's standard fixes.
#include "check.h"

#include <cmath>
#include <vector>

// The guides of CUDA 11 allow more here.
#define GAMMA (__CUDACC_VER_MAJOR__ < 12 ? 11 : 5)

// name, largest documented error, range of the arguments
#define FLOAT_FUNCTIONS(F)                                                                                             \
    F(sqrtf, sqrtl(x), 0, 0, 1e30)                                                                                     \
    F(rsqrtf, 1 / sqrtl(x), 2, 1e-30, 1e30)                                                                            \
    F(cbrtf, cbrtl(x), 1, -1e30, 1e30)                                                                                 \
    F(rcbrtf, 1 / cbrtl(x), 1, 1e-30, 1e30)                                                                            \
    F(expf, expl(x), 2, -87, 88)                                                                                       \
    F(exp2f, exp2l(x), 2, -125, 127)                                                                                   \
    F(exp10f, powl(10, x), 2, -37, 38)                                                                                 \
    F(expm1f, expm1l(x), 1, -20, 80)                                                                                   \
    F(logf, logl(x), 1, 1e-37, 1e37)                                                                                   \
    F(log2f, log2l(x), 1, 1e-37, 1e37)                                                                                 \
    F(log10f, log10l(x), 2, 1e-37, 1e37)                                                                               \
    F(log1pf, log1pl(x), 1, -0.99, 1e10)                                                                               \
    F(sinf, sinl(x), 2, -1000, 1000)                                                                                   \
    F(cosf, cosl(x), 2, -1000, 1000)                                                                                   \
    F(tanf, tanl(x), 4, -1000, 1000)                                                                                   \
    F(sinf, sinl(x), 2, -1e12, 1e12)                                                                                   \
    F(sinpif, sinl(pi * fmodl(x, 2)), 1, 0.01, 0.99)                                                                   \
    F(asinf, asinl(x), 2, -1, 1)                                                                                       \
    F(acosf, acosl(x), 2, -1, 1)                                                                                       \
    F(atanf, atanl(x), 2, -100, 100)                                                                                   \
    F(sinhf, sinhl(x), 3, -80, 80)                                                                                     \
    F(coshf, coshl(x), 2, -80, 80)                                                                                     \
    F(tanhf, tanhl(x), 2, -10, 10)                                                                                     \
    F(asinhf, asinhl(x), 3, -1e6, 1e6)                                                                                 \
    F(acoshf, acoshl(x), 4, 1, 1e6)                                                                                    \
    F(atanhf, atanhl(x), 3, -0.999, 0.999)                                                                             \
    F(erff, erfl(x), 2, -4, 4)                                                                                         \
    F(erfcf, erfcl(x), 4, -4, 9)                                                                                       \
    F(erfcxf, expl((long double)x * x) * erfcl(x), 4, -3, 9)                                                           \
    F(normcdff, erfcl(-x / sqrtl(2)) / 2, 5, -5, 5)                                                                    \
    F(tgammaf, tgammal(x), GAMMA, 0.1, 33)                                                                             \
    F(lgammaf, lgammal(x), 6, 3, 1e6)                                                                                  \
    F(j0f, j0l(x), 9, 0.1, 2)                                                                                          \
    F(rintf, rintl(x), 0, -1e6, 1e6)                                                                                   \
    F(roundf, roundl(x), 0, -1e6, 1e6)                                                                                 \
    F(floorf, floorl(x), 0, -1e6, 1e6)                                                                                 \
    F(logbf, logbl(x), 0, 1e-37, 1e37)

#define DOUBLE_FUNCTIONS(F)                                                                                            \
    F(sqrt, sqrtl(x), 0, 0, 1e300)                                                                                     \
    F(rsqrt, 1 / sqrtl(x), 1, 1e-300, 1e300)                                                                           \
    F(cbrt, cbrtl(x), 1, -1e300, 1e300)                                                                                \
    F(exp, expl(x), 1, -700, 700)                                                                                      \
    F(exp2, exp2l(x), 1, -1000, 1000)                                                                                  \
    F(exp10, powl(10, x), 1, -300, 300)                                                                                \
    F(expm1, expm1l(x), 1, -30, 700)                                                                                   \
    F(log, logl(x), 1, 1e-300, 1e300)                                                                                  \
    F(log2, log2l(x), 1, 1e-300, 1e300)                                                                                \
    F(log10, log10l(x), 1, 1e-300, 1e300)                                                                              \
    F(log1p, log1pl(x), 1, -0.999, 1e10)                                                                               \
    F(sin, sinl(x), 2, -1000, 1000)                                                                                    \
    F(cos, cosl(x), 2, -1000, 1000)                                                                                    \
    F(tan, tanl(x), 2, -1000, 1000)                                                                                    \
    F(sin, sinl(x), 2, -1e15, 1e15)                                                                                    \
    F(asin, asinl(x), 2, -1, 1)                                                                                        \
    F(acos, acosl(x), 2, -1, 1)                                                                                        \
    F(atan, atanl(x), 2, -100, 100)                                                                                    \
    F(sinh, sinhl(x), 2, -700, 700)                                                                                    \
    F(cosh, coshl(x), 1, -700, 700)                                                                                    \
    F(tanh, tanhl(x), 1, -20, 20)                                                                                      \
    F(asinh, asinhl(x), 3, -1e6, 1e6)                                                                                  \
    F(acosh, acoshl(x), 3, 1, 1e6)                                                                                     \
    F(atanh, atanhl(x), 2, -0.999, 0.999)                                                                              \
    F(erf, erfl(x), 2, -6, 6)                                                                                          \
    F(erfc, erfcl(x), 5, -6, 26)                                                                                       \
    F(tgamma, tgammal(x), 10, 0.1, 170)                                                                                \
    F(lgamma, lgammal(x), 4, 3, 1e6)                                                                                   \
    F(rint, rintl(x), 0, -1e15, 1e15)                                                                                  \
    F(floor, floorl(x), 0, -1e15, 1e15)

const int count = 512;
const long double pi = 3.14159265358979323846264338327950288L;

template <typename T, typename F> __global__ void map(const T *in, T *out, F f)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = f(in[i]);
}

// How many units of the last place `got` is from the correctly rounded result: so the guide states its errors.
template <typename T> static double distance(T got, long double exact)
{
    T want = (T)exact;
    if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want) ? 0 : INFINITY;
    if (std::isinf(got) || std::isinf(want)) return got == want ? 0 : INFINITY;
    int fraction = sizeof(T) == 4 ? 23 : 52, lowest = sizeof(T) == 4 ? -126 : -1022;
    int exponent = want == 0 ? lowest : (int)logbl(want);
    if (exponent < lowest) exponent = lowest;
    return (double)(fabsl((long double)got - want) / ldexpl(1, exponent - fraction));
}

template <typename T> static T *managed(size_t n)
{
    T *p;
    CUDA(cudaMallocManaged(&p, n * sizeof(T)));
    return p;
}

// Some of the range evenly, some by magnitude.
template <typename T> static void fill(T *in, double low, double high, Random &random)
{
    for (int i = 0; i < count; i++) {
        double u = random.uniform();
        if (i & 1 && low >= 0) {
            double bottom = low > 0 ? low : high * 1e-12;
            in[i] = (T)(bottom * pow(high / bottom, u));
        } else if (i & 1 && low < 0 && high > 0) {
            in[i] = (T)(high * pow(1e-6, u));
        } else {
            in[i] = (T)(low + (high - low) * u);
        }
        if (in[i] < (T)low || in[i] > (T)high) in[i] = (T)low;
    }
    in[0] = (T)low;
    in[1] = (T)high;
}

template <typename T, typename F, typename R>
static void check(const char *name, F function, R reference, double most, double low, double high, Random &random, T *in, T *out)
{
    fill(in, low, high, random);
    map<<<count / 128, 128>>>(in, out, function);
    FINISHED();
    for (int i = 0; i < count; i++) {
        long double want = reference(in[i]);
        double off = distance(out[i], want);
        if (off > most) fail("%s(%.17g) = %.17g, not %.17Lg: off by %g ulp, documented are %g", name, (double)in[i], (double)out[i], want, off, most);
    }
}

struct Two {
    float pow, atan2, hypot, fmod, remainder, fdim, ldexp, sincos_s, sincos_c, fast_div, fast_sin, fast_exp, fast_log, frac;
    double powd, atan2d, hypotd, fmodd, remainderd;
    int exponent, quotient;
    float special[12];
};

__global__ void two(const float *a, const float *b, Two *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Two &o = out[i];
    float x = a[i], y = b[i];
    o.pow = powf(fabsf(x), y);
    o.atan2 = atan2f(x, y);
    o.hypot = hypotf(x, y);
    o.fmod = fmodf(x, y);
    o.remainder = remquof(x, y, &o.quotient);
    o.fdim = fdimf(x, y);
    o.ldexp = ldexpf(x, (int)y);
    sincosf(x, &o.sincos_s, &o.sincos_c);
    o.fast_div = __fdividef(x, y);
    o.fast_sin = __sinf(y * 0.3f);
    o.fast_exp = __expf(y);
    o.fast_log = __logf(fabsf(x));
    o.frac = frexpf(x, &o.exponent);
    o.powd = pow((double)fabsf(x), (double)y);
    o.atan2d = atan2((double)x, (double)y);
    o.hypotd = hypot((double)x, (double)y);
    o.fmodd = fmod((double)x, (double)y);
    o.remainderd = remainder((double)x, (double)y);
    volatile float zero = 0.0f, infinity = 1.0f / zero, nan = infinity - infinity;
    o.special[0] = powf(nan, zero);
    o.special[1] = powf(-2.0f, 3.0f + zero);
    o.special[2] = powf(-2.0f + zero, 0.5f);
    o.special[3] = atan2f(-zero, -1.0f);
    o.special[4] = expf(-infinity);
    o.special[5] = logf(zero);
    o.special[6] = sqrtf(-1.0f + zero);
    o.special[7] = hypotf(infinity, nan);
    o.special[8] = fminf(nan, 3.0f);
    o.special[9] = rsqrtf(zero);
    o.special[10] = sinf(infinity);
    o.special[11] = fmaf(infinity, zero, 1.0f);
}

int main()
{
    Random random(14);
    float *inf_ = managed<float>(count), *outf = managed<float>(count);
    double *ind = managed<double>(count), *outd = managed<double>(count);
#define CHECK_FLOAT(name, reference, most, low, high)                                                                  \
    check<float>(#name, [] __device__(float x) { return name(x); }, [](long double x) -> long double { return reference; }, most, low, high, random, inf_, outf);
#define CHECK_DOUBLE(name, reference, most, low, high)                                                                 \
    check<double>(#name, [] __device__(double x) { return name(x); }, [](long double x) -> long double { return reference; }, most, low, high, random, ind, outd);
    FLOAT_FUNCTIONS(CHECK_FLOAT)
    DOUBLE_FUNCTIONS(CHECK_DOUBLE)

    float *a = inf_, *b = outf;
    Two *out = managed<Two>(count);
    for (int i = 0; i < count; i++) {
        a[i] = (random.uniform() - 0.5f) * (i % 2 ? 20.0f : 2000.0f);
        b[i] = (random.uniform() - 0.5f) * 20.0f;
        if (b[i] == 0) b[i] = 1;
    }
    two<<<count / 128, 128>>>(a, b, out);
    FINISHED();
    for (int i = 0; i < count; i++) {
        long double x = a[i], y = b[i];
        const Two &o = out[i];
        auto within = [&](const char *what, double off, double most) {
            if (!(off <= most)) fail("%s of %a and %a: off by %.3g, documented are %g", what, a[i], b[i], off, most);
        };
        within("powf", distance(o.pow, powl(fabsl(x), y)), 4);
        within("atan2f", distance(o.atan2, atan2l(x, y)), 3);
        within("hypotf", distance(o.hypot, hypotl(x, y)), 3);
        within("fmodf", distance(o.fmod, fmodl(x, y)), 0);
        int quotient;
        within("remquof", distance(o.remainder, remquol(x, y, &quotient)), 0);
        within("remquof's quotient", abs((quotient & 7) - (o.quotient & 7)), 0);
        within("fdimf", o.fdim == fdimf(a[i], b[i]) ? 0 : 1, 0);
        within("ldexpf", o.ldexp == ldexpf(a[i], (int)b[i]) ? 0 : 1, 0);
        within("sincosf", distance(o.sincos_s, sinl(x)), 2);
        within("sincosf", distance(o.sincos_c, cosl(x)), 2);
        within("__fdividef", distance(o.fast_div, x / y), 2);
        // Absolute errors for these two.
        within("__sinf", (double)fabsl(o.fast_sin - sinl(b[i] * 0.3f)), ldexp(1, -21) * 1.5);
        within("__expf", distance(o.fast_exp, expl(y)), 2 + floor(fabs(1.173 * (double)y)));
        long double logarithm = logl(fabsl(x));
        if (fabsl(x) >= 0.5 && fabsl(x) <= 2)
            within("__logf", (double)fabsl(o.fast_log - logarithm), ldexp(1, -21));
        else
            within("__logf", distance(o.fast_log, logarithm), 3);
        int exponent;
        within("frexpf", o.frac == frexpf(a[i], &exponent) && o.exponent == exponent ? 0 : 1, 0);
        within("pow", distance(o.powd, powl(fabsl(x), y)), 2);
        within("atan2", distance(o.atan2d, atan2l(x, y)), 2);
        within("hypot", distance(o.hypotd, hypotl(x, y)), 2);
        within("fmod", distance(o.fmodd, fmodl(x, y)), 0);
        within("remainder", distance(o.remainderd, remainderl(x, y)), 0);
        const float *s = o.special;
        EXPECT(s[0] == 1 && s[1] == -8 && s[2] != s[2]);
        EXPECT(s[3] == -3.14159274f && s[4] == 0 && s[5] == -INFINITY && s[6] != s[6]);
        EXPECT(s[7] == INFINITY && s[8] == 3 && s[9] == INFINITY && s[10] != s[10] && s[11] != s[11]);
    }
    return pass();
}
