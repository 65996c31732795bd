/* The yardstick: what kernels.cu computes, written for a CPU with vectors and several cores.

   scripts/bench-native compiles this file with gcc -O3 -march=native -fopenmp -ffp-contract=fast -fno-math-errno
   -fno-trapping-math. The last two change no result: without them sqrtf stays a call and conditions stay branches. Loops
   are written so that they become vector code; sums that may be reordered say so by `omp simd reduction`; exp, log and
   cos are those of glibc's vector library. */

#include "native.h"
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* glibc declares these as vector functions under -ffast-math only. They are accurate to 4 units in the last place. */
#pragma omp declare simd notinbranch
extern float expf(float);
#pragma omp declare simd notinbranch
extern float logf(float);
#pragma omp declare simd notinbranch
extern double exp(double);
#pragma omp declare simd notinbranch
extern double log(double);
#pragma omp declare simd notinbranch
extern double cos(double);

static inline int least(int a, int b) { return a < b ? a : b; }

void native_saxpy(int n, float a, const float *restrict x, float *restrict y) {
#pragma omp parallel for simd schedule(static)
    for (int i = 0; i < n; i++) y[i] = a * x[i] + y[i];
}

void native_triad(int n, float s, const float *restrict b, const float *restrict c, float *restrict a) {
#pragma omp parallel for simd schedule(static)
    for (int i = 0; i < n; i++) a[i] = b[i] + s * c[i];
}

void native_stencil(int width, int height, const float *restrict in, float *restrict out) {
#pragma omp parallel for schedule(static)
    for (int y = 0; y < height; y++) {
        const float *row = in + (size_t)y * width;
        float *to = out + (size_t)y * width;
        if (y == 0 || y == height - 1) {
            memcpy(to, row, sizeof(float) * width);
            continue;
        }
        to[0] = row[0];
#pragma omp simd
        for (int x = 1; x < width - 1; x++)
            to[x] = 0.5f * row[x] + 0.125f * (row[x - 1] + row[x + 1] + row[x - width] + row[x + width]);
        to[width - 1] = row[width - 1];
    }
}

/* Tiles that fit the first cache; four rows at a time are read, and whole pieces of lines written. */
void native_transpose(int n, const float *restrict in, float *restrict out) {
    enum { TILE = 32 };
#pragma omp parallel for schedule(static)
    for (int y = 0; y < n; y += TILE)
        for (int x = 0; x < n; x += TILE) {
            float tile[TILE][TILE + 8];
            for (int r = 0; r < TILE; r++) memcpy(tile[r], in + (size_t)(y + r) * n + x, sizeof(float) * TILE);
            for (int c = 0; c < TILE; c++) {
                float *to = out + (size_t)(x + c) * n + y;
                for (int r = 0; r < TILE; r++) to[r] = tile[r][c];
            }
        }
}

/* Blocks of b that stay in the second cache, packed by 16 columns; 6 rows by 16 columns of the product in registers. */
typedef float vector __attribute__((vector_size(32), aligned(4)));

static void multiply_6x16(int depth, int stride, const float *restrict a, const float *restrict b, float *restrict c, int rows) {
    vector sum[6][2];
    for (int r = 0; r < 6; r++) {
        if (r < rows) memcpy(sum[r], c + (size_t)r * stride, sizeof sum[r]);
        else memset(sum[r], 0, sizeof sum[r]);
    }
    for (int k = 0; k < depth; k++) {
        vector b0 = *(const vector *)(b + 16 * k), b1 = *(const vector *)(b + 16 * k + 8);
#pragma GCC unroll 6
        for (int r = 0; r < 6; r++) {
            float of_a = a[6 * k + r];
            sum[r][0] += of_a * b0;
            sum[r][1] += of_a * b1;
        }
    }
    for (int r = 0; r < rows; r++) memcpy(c + (size_t)r * stride, sum[r], sizeof sum[r]);
}

void native_matmul(int n, const float *restrict a, const float *restrict b, float *restrict c) {
    enum { DEPTH = 256, ROWS = 96 };
    memset(c, 0, sizeof(float) * n * n);
    float *packed = aligned_alloc(64, sizeof(float) * DEPTH * n);
    for (int k0 = 0; k0 < n; k0 += DEPTH) {
        int depth = least(DEPTH, n - k0);
#pragma omp parallel
        {
#pragma omp for schedule(static)
            for (int j = 0; j < n; j += 16)
                for (int k = 0; k < depth; k++)
                    memcpy(packed + (size_t)j * depth + 16 * k, b + (size_t)(k0 + k) * n + j, 16 * sizeof(float));
            float *own = aligned_alloc(64, sizeof(float) * DEPTH * ROWS);
#pragma omp for schedule(static)
            for (int i0 = 0; i0 < n; i0 += ROWS) {
                int rows = least(ROWS, n - i0);
                for (int i = 0; i < rows; i += 6)
                    for (int k = 0; k < depth; k++)
                        for (int r = 0; r < 6; r++)
                            own[(size_t)i * depth + 6 * k + r] = i + r < rows ? a[(size_t)(i0 + i + r) * n + k0 + k] : 0;
                for (int j = 0; j < n; j += 16)
                    for (int i = 0; i < rows; i += 6)
                        multiply_6x16(depth, n, own + (size_t)i * depth, packed + (size_t)j * depth,
                                      c + (size_t)(i0 + i) * n + j, least(6, rows - i));
            }
            free(own);
        }
    }
    free(packed);
}

float native_reduce(int n, const float *restrict in) {
    float sum = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : sum) simdlen(32)
    for (int i = 0; i < n; i++) sum += in[i];
    return sum;
}

float native_dot(int n, const float *restrict x, const float *restrict y) {
    float sum = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : sum) simdlen(32)
    for (int i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

/* Four tables, so that equal neighbours do not wait for one another. */
void native_histogram(int n, const uint8_t *restrict in, uint32_t *restrict bins) {
    memset(bins, 0, 256 * sizeof *bins);
#pragma omp parallel
    {
        uint32_t own[4][256] = {{0}};
#pragma omp for schedule(static) nowait
        for (int i = 0; i < n / 8; i++) {
            uint64_t eight;
            memcpy(&eight, in + 8 * (size_t)i, 8);
            for (int k = 0; k < 8; k++) own[k % 4][eight >> 8 * k & 255]++;
        }
#pragma omp critical
        for (int b = 0; b < 256; b++) bins[b] += own[0][b] + own[1][b] + own[2][b] + own[3][b];
    }
}

/* With one thread one pass; with several a pass for sums and one for the scan. */
void native_scan(int n, const uint32_t *restrict in, uint32_t *restrict out) {
    uint32_t sums[257] = {0};
#pragma omp parallel
    {
        int threads = least(omp_get_num_threads(), 256), me = omp_get_thread_num();
        size_t from = (size_t)n * me / threads, to = me < threads ? (size_t)n * (me + 1) / threads : from;
        if (threads > 1) {
            uint32_t sum = 0;
            for (size_t i = from; i < to; i++) sum += in[i];
            sums[me + 1] = sum;
#pragma omp barrier
#pragma omp single
            for (int t = 1; t < threads; t++) sums[t + 1] += sums[t];
        }
        uint32_t before = sums[me];
        for (size_t i = from; i < to; i++) {
            uint32_t value = in[i];
            out[i] = before;
            before += value;
        }
    }
}

void native_nbody(int n, const float *restrict x, const float *restrict y, const float *restrict z, const float *restrict mass,
                  float *restrict forces) {
#pragma omp parallel for schedule(static)
    for (int i = 0; i < n; i++) {
        float ax = 0, ay = 0, az = 0;
        float mx = x[i], my = y[i], mz = z[i];
#pragma omp simd reduction(+ : ax, ay, az)
        for (int j = 0; j < n; j++) {
            float dx = x[j] - mx, dy = y[j] - my, dz = z[j] - mz;
            float r = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
            float f = mass[j] * r * r * r;
            ax += dx * f, ay += dy * f, az += dz * f;
        }
        forces[i] = ax, forces[n + i] = ay, forces[2 * n + i] = az;
    }
}

static inline float normal_cdf(float d) {
    float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    float poly = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    float tail = 0.39894228f * expf(-0.5f * d * d) * poly;
    return d > 0 ? 1.0f - tail : tail;
}

void native_black_scholes(int n, float rate, float volatility, const float *restrict price, const float *restrict strike,
                          const float *restrict years, float *restrict call, float *restrict put) {
#pragma omp parallel for simd schedule(static)
    for (int i = 0; i < n; i++) {
        float root = sqrtf(years[i]);
        float d1 = (logf(price[i] / strike[i]) + (rate + 0.5f * volatility * volatility) * years[i]) / (volatility * root);
        float d2 = d1 - volatility * root;
        float n1 = normal_cdf(d1), n2 = normal_cdf(d2);
        float discounted = strike[i] * expf(-rate * years[i]);
        call[i] = price[i] * n1 - discounted * n2;
        put[i] = discounted * (1.0f - n2) - price[i] * (1.0f - n1);
    }
}

/* 16 points of a row at once, until the last of them has left. */
void native_mandelbrot(int width, int height, int limit, int *restrict out) {
    enum { AT_ONCE = 16 };
#pragma omp parallel for schedule(dynamic, 8)
    for (int py = 0; py < height; py++) {
        float cy = -1.5f + 3.0f * py / height;
        for (int first = 0; first < width; first += AT_ONCE) {
            float x[AT_ONCE] = {0}, y[AT_ONCE] = {0}, cx[AT_ONCE];
            int n[AT_ONCE] = {0};
            for (int l = 0; l < AT_ONCE; l++) cx[l] = -2.0f + 3.0f * (first + l) / width;
            for (int i = 0; i < limit; i++) {
                int inside = 0;
#pragma omp simd reduction(+ : inside)
                for (int l = 0; l < AT_ONCE; l++) {
                    float xx = x[l] * x[l], yy = y[l] * y[l];
                    int in = xx + yy < 4.0f;
                    float next = x[l] * x[l] - yy + cx[l];
                    y[l] = 2.0f * x[l] * y[l] + cy;
                    x[l] = next;
                    /* A point that has left never comes back below: it grows, or is infinite or no number. */
                    n[l] += in;
                    inside += in;
                }
                if (inside == 0) break;
            }
            memcpy(out + (size_t)py * width + first, n, sizeof(int) * least(AT_ONCE, width - first));
        }
    }
}

/* The same network, in the same order; stays in 1024 elements where the kernel does, and in 8 for the last three steps. */
typedef uint32_t eight __attribute__((vector_size(32), aligned(4)));

static inline void bitonic_pass(uint32_t *restrict low, uint32_t *restrict high, int count, int up) {
#pragma omp simd
    for (int i = 0; i < count; i++) {
        uint32_t a = low[i], b = high[i];
        uint32_t less = a < b ? a : b, more = a < b ? b : a;
        low[i] = up ? less : more;
        high[i] = up ? more : less;
    }
}

static void bitonic_chunk(uint32_t *keys, int base, int size, int stride) {
    for (; stride >= 8; stride /= 2)
        for (int i = 0; i < 1024; i += 2 * stride) bitonic_pass(keys + i, keys + i + stride, stride, ((base + i) & size) == 0);
    const eight lane = {0, 1, 2, 3, 4, 5, 6, 7};
    for (int i = 0; i < 1024; i += 8) {
        eight own = *(eight *)(keys + i), place = lane + (uint32_t)(base + i);
        for (uint32_t s = stride; s > 0; s /= 2) {
            eight other = __builtin_shuffle(own, lane ^ s);
            eight keeps_less = (eight)(((place & s) == 0) == ((place & (uint32_t)size) == 0));
            eight less = (eight)(own < other);
            eight takes_own = ~(keeps_less ^ less);
            own = (own & takes_own) | (other & ~takes_own);
        }
        *(eight *)(keys + i) = own;
    }
}

void native_bitonic(int n, uint32_t *keys) {
#pragma omp parallel for schedule(static)
    for (int base = 0; base < n; base += 1024)
        for (int size = 2; size <= 1024; size *= 2) bitonic_chunk(keys + base, base, size, size / 2);
    for (int size = 2048; size <= n; size *= 2) {
        for (int stride = size / 2; stride > 512; stride /= 2) {
#pragma omp parallel for schedule(static)
            for (int i = 0; i < n; i += 2 * 1024) {
                /* 1024 comparisons: a piece of the run that the stride cuts. */
                int t = i / 2, at = 2 * t - (t & (stride - 1));
                bitonic_pass(keys + at, keys + at + stride, 1024, (at & size) == 0);
            }
        }
#pragma omp parallel for schedule(static)
        for (int base = 0; base < n; base += 1024) bitonic_chunk(keys + base, base, size, 512);
    }
}

void native_spmv(int rows, const int *restrict starts, const int *restrict columns, const float *restrict values,
                 const float *restrict x, float *restrict y) {
#pragma omp parallel for schedule(static)
    for (int row = 0; row < rows; row++) {
        float sum = 0;
        for (int k = starts[row]; k < starts[row + 1]; k++) sum += values[k] * x[columns[k]];
        y[row] = sum;
    }
}

/* Eight of the kernel's threads at once. */
void native_monte_carlo(int threads, int paths, double price, double strike, double drift, double spread, double *restrict sums) {
    enum { AT_ONCE = 8 };
#pragma omp parallel for schedule(static)
    for (int first = 0; first < threads; first += AT_ONCE) {
        uint64_t state[AT_ONCE];
        double sum[AT_ONCE] = {0};
        for (int l = 0; l < AT_ONCE; l++) state[l] = 0x9e3779b97f4a7c15ull * (uint64_t)(first + l + 1);
        for (int i = 0; i < paths; i++) {
#pragma omp simd
            for (int l = 0; l < AT_ONCE; l++) {
                uint64_t s = state[l];
                s ^= s << 13, s ^= s >> 7, s ^= s << 17;
                state[l] = s;
                /* 52 bits of a double hold the numbers: 2^52 plus the number, less 2^52. AVX2 converts no 64-bit integer. */
                union {
                    uint64_t bits;
                    double value;
                } high = {(s >> 32) | 0x4330000000000000ull}, low = {(s & 0xffffffffu) | 0x4330000000000000ull};
                double u = (high.value - 0x1p52 + 1) * 0x1p-32, v = (low.value - 0x1p52) * 0x1p-32;
                double z = sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
                double gain = price * exp(drift + spread * z) - strike;
                sum[l] += gain > 0 ? gain : 0;
            }
        }
        memcpy(sums + first, sum, sizeof sum);
    }
}

void native_convolution(int n, const float *restrict taps, const float *restrict in, float *restrict out) {
#pragma omp parallel for schedule(static)
    for (int first = 0; first < n; first += 4096) {
        int last = least(n, first + 4096);
        if (first < 8 || last > n - 8) {
            for (int i = first; i < last; i++) {
                float sum = 0;
                for (int k = 0; k < 17; k++)
                    if (i + k - 8 >= 0 && i + k - 8 < n) sum += taps[k] * in[i + k - 8];
                out[i] = sum;
            }
            continue;
        }
#pragma omp simd
        for (int i = first; i < last; i++) {
            float sum = 0;
#pragma GCC unroll 17
            for (int k = 0; k < 17; k++) sum += taps[k] * in[i + k - 8];
            out[i] = sum;
        }
    }
}

static inline uint32_t turned(uint32_t x, int by) { return x >> by | x << (32 - by); }

void native_sha256(int n, const uint32_t *restrict table, uint32_t *restrict out) {
#pragma omp parallel for simd schedule(static)
    for (int i = 0; i < n; i++) {
        uint32_t w0 = i, w1 = 0x80000000u, w2 = 0, w3 = 0, w4 = 0, w5 = 0, w6 = 0, w7 = 0;
        uint32_t w8 = 0, w9 = 0, w10 = 0, w11 = 0, w12 = 0, w13 = 0, w14 = 0, w15 = 32;
        uint32_t a = 0x6a09e667, b = 0xbb67ae85, c = 0x3c6ef372, d = 0xa54ff53a;
        uint32_t e = 0x510e527f, f = 0x9b05688c, g = 0x1f83d9ab, h = 0x5be0cd19;
        /* Names instead of an array keep the words in vectors. */
#define ROUND(a, b, c, d, e, f, g, h, w, r)                                                                         \
    do {                                                                                                            \
        uint32_t t1 = h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + table[r] + w;     \
        uint32_t t2 = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));               \
        d += t1, h = t1 + t2;                                                                                       \
    } while (0)
#define NEXT(w, x, u, y) \
    w += (turned(x, 7) ^ turned(x, 18) ^ x >> 3) + u + (turned(y, 17) ^ turned(y, 19) ^ y >> 10)
#define SIXTEEN(r)                                                                                                  \
    ROUND(a, b, c, d, e, f, g, h, w0, r + 0); ROUND(h, a, b, c, d, e, f, g, w1, r + 1);                             \
    ROUND(g, h, a, b, c, d, e, f, w2, r + 2); ROUND(f, g, h, a, b, c, d, e, w3, r + 3);                             \
    ROUND(e, f, g, h, a, b, c, d, w4, r + 4); ROUND(d, e, f, g, h, a, b, c, w5, r + 5);                             \
    ROUND(c, d, e, f, g, h, a, b, w6, r + 6); ROUND(b, c, d, e, f, g, h, a, w7, r + 7);                             \
    ROUND(a, b, c, d, e, f, g, h, w8, r + 8); ROUND(h, a, b, c, d, e, f, g, w9, r + 9);                             \
    ROUND(g, h, a, b, c, d, e, f, w10, r + 10); ROUND(f, g, h, a, b, c, d, e, w11, r + 11);                         \
    ROUND(e, f, g, h, a, b, c, d, w12, r + 12); ROUND(d, e, f, g, h, a, b, c, w13, r + 13);                         \
    ROUND(c, d, e, f, g, h, a, b, w14, r + 14); ROUND(b, c, d, e, f, g, h, a, w15, r + 15)
#define EXTEND                                                                                                      \
    NEXT(w0, w1, w9, w14); NEXT(w1, w2, w10, w15); NEXT(w2, w3, w11, w0); NEXT(w3, w4, w12, w1);                    \
    NEXT(w4, w5, w13, w2); NEXT(w5, w6, w14, w3); NEXT(w6, w7, w15, w4); NEXT(w7, w8, w0, w5);                      \
    NEXT(w8, w9, w1, w6); NEXT(w9, w10, w2, w7); NEXT(w10, w11, w3, w8); NEXT(w11, w12, w4, w9);                    \
    NEXT(w12, w13, w5, w10); NEXT(w13, w14, w6, w11); NEXT(w14, w15, w7, w12); NEXT(w15, w0, w8, w13)
        SIXTEEN(0);
        EXTEND;
        SIXTEEN(16);
        EXTEND;
        SIXTEEN(32);
        EXTEND;
        SIXTEEN(48);
        out[i] = (a + 0x6a09e667) ^ (b + 0xbb67ae85) ^ (c + 0x3c6ef372) ^ (d + 0xa54ff53a) ^ (e + 0x510e527f) ^
                 (f + 0x9b05688c) ^ (g + 0x1f83d9ab) ^ (h + 0x5be0cd19);
    }
}

void native_softmax(int rows, const float *restrict in, float *restrict out) {
#pragma omp parallel for schedule(static)
    for (int row = 0; row < rows; row++) {
        const float *own = in + (size_t)256 * row;
        float *to = out + (size_t)256 * row;
        float largest = own[0], sum = 0;
#pragma omp simd reduction(max : largest)
        for (int k = 0; k < 256; k++) largest = own[k] > largest ? own[k] : largest;
#pragma omp simd reduction(+ : sum)
        for (int k = 0; k < 256; k++) {
            float e = expf(own[k] - largest);
            to[k] = e;
            sum += e;
        }
#pragma omp simd
        for (int k = 0; k < 256; k++) to[k] /= sum;
    }
}

void native_count_keys(int n, const uint32_t *restrict keys, uint32_t *restrict counts) {
    memset(counts, 0, 4096 * sizeof *counts);
#pragma omp parallel for schedule(static)
    for (int i = 0; i < n; i++) {
#pragma omp atomic
        counts[keys[i] % 4096]++;
    }
}

uint32_t native_compact(int n, uint32_t limit, const uint32_t *restrict in, uint32_t *restrict out) {
    uint32_t count = 0;
#pragma omp parallel
    {
        /* A thread makes room for a piece at a time. */
        uint32_t own[1024];
#pragma omp for schedule(static)
        for (int first = 0; first < n; first += 1024) {
            uint32_t kept = 0, at;
            for (int i = first; i < first + 1024 && i < n; i++) {
                own[kept] = in[i];
                kept += in[i] < limit;
            }
#pragma omp atomic capture
            {
                at = count;
                count += kept;
            }
            memcpy(out + at, own, 4 * kept);
        }
    }
    return count;
}
