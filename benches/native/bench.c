/* CUDA C as people write it, beside C for the same CPU, in one run.

   bench PTX [--only NAME] [--threads N] [--quick]

   Each kernel of kernels.cu does the same work as a function of native.c. Both are run by turns, in this process, their
   results are compared, and what counts is the processor time of all threads, the best of several. `first` is what the
   first run costs, with whatever the library does once for a kernel. The script sets MARGAY_THREADS and OMP_NUM_THREADS. */

#define _GNU_SOURCE
#include "native.h"
#include <cuda.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Processor time of the whole process: what work costs, whoever else is busy on the machine. */
static double spent(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define CHECK(call)                                                              \
    do {                                                                         \
        CUresult result_ = (call);                                               \
        if (result_ != CUDA_SUCCESS) {                                           \
            fprintf(stderr, "bench-native: %s: error %d\n", #call, (int)result_); \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

static CUmodule module;
static int quick;

static CUfunction function(const char *name) {
    CUfunction f;
    CHECK(cuModuleGetFunction(&f, module, name));
    return f;
}

#define LAUNCH(f, gx, gy, bx, by, ...)                                                        \
    CHECK(cuLaunchKernel(f, gx, gy, 1, bx, by, 1, 0, NULL, (void *[]){__VA_ARGS__}, NULL))

/* A buffer in both memories. */
typedef struct {
    void *host;
    CUdeviceptr device;
    size_t bytes;
} Buffer;

static Buffer buffer(size_t bytes) {
    Buffer b = {aligned_alloc(64, (bytes + 63) & ~(size_t)63), 0, bytes};
    if (b.host == NULL) exit(1);
    /* Pages are there before anything is measured, in both memories. */
    memset(b.host, 0, bytes);
    CHECK(cuMemAlloc(&b.device, bytes));
    CHECK(cuMemsetD8(b.device, 0, bytes));
    return b;
}

static void upload(Buffer b) { CHECK(cuMemcpyHtoD(b.device, b.host, b.bytes)); }

static void *download(Buffer b) {
    void *copy = malloc(b.bytes);
    if (copy == NULL) exit(1);
    CHECK(cuMemcpyDtoH(copy, b.device, b.bytes));
    return copy;
}

static uint32_t next_number(void) {
    static uint32_t x = 12345;
    x ^= x << 13, x ^= x >> 17, x ^= x << 5;
    return x;
}

/* Numbers between two limits. */
static Buffer floats(size_t n, float from, float to) {
    Buffer b = buffer(4 * n);
    for (size_t i = 0; i < n; i++) ((float *)b.host)[i] = from + (to - from) * (float)(next_number() >> 8) * 0x1p-24f;
    upload(b);
    return b;
}

static Buffer integers(size_t n) {
    Buffer b = buffer(4 * n);
    for (size_t i = 0; i < n; i++) ((uint32_t *)b.host)[i] = next_number();
    upload(b);
    return b;
}

/* How far results are from one another, in units of the largest that was expected. */
static double apart(const float *is, const float *should_be, size_t n) {
    double most = 0, largest = 0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)is[i] - (double)should_be[i]);
        if (!(d <= most)) most = d;
        largest = fmax(largest, fabs((double)should_be[i]));
    }
    return largest > 0 ? most / largest : most;
}

static double floats_apart(Buffer b) {
    float *is = download(b);
    double d = apart(is, b.host, b.bytes / 4);
    free(is);
    return d;
}

/* How many words differ, as a part of all. */
static double words_apart(Buffer b) {
    uint32_t *is = download(b);
    size_t differ = 0;
    for (size_t i = 0; i < b.bytes / 4; i++) differ += is[i] != ((uint32_t *)b.host)[i];
    free(is);
    return (double)differ / (double)(b.bytes / 4);
}

/* What a bench needs: sizes and buffers, which `prepare` makes. */
static int n, m;
static Buffer a, b, c, d, e;

static int scaled(int size) { return quick ? size / 4 : size; }

static void prepare_stream(void) {
    n = scaled(32 << 20);
    a = floats(n, 0, 1), b = floats(n, 0, 1), c = floats(n, 0, 1);
}
static void native_run_saxpy(void) { native_saxpy(n, 0.5f, a.host, b.host); }
static void device_saxpy(void) {
    float s = 0.5f;
    LAUNCH(function("saxpy"), n / 256, 1, 256, 1, &n, &s, &a.device, &b.device);
}
/* Both sides have added as often by now only if they ran as often: so they are run once more from the same start. */
static double check_saxpy(void) {
    upload(b);
    native_run_saxpy();
    device_saxpy();
    return floats_apart(b);
}

static void native_run_triad(void) { native_triad(n, 0.5f, a.host, b.host, c.host); }
static void device_triad(void) {
    float s = 0.5f;
    LAUNCH(function("triad"), n / 4096, 1, 256, 1, &n, &s, &a.device, &b.device, &c.device);
}
static double check_c(void) { return floats_apart(c); }
static double check_b(void) { return floats_apart(b); }
static double check_words_b(void) { return words_apart(b); }

static void prepare_stencil(void) {
    n = quick ? 1024 : 2048;
    a = floats((size_t)n * n, 0, 1), b = buffer((size_t)4 * n * n);
}
static void native_run_stencil(void) {
    for (int i = 0; i < 4; i++) native_stencil(n, n, a.host, b.host), native_stencil(n, n, b.host, a.host);
}
static void device_stencil(void) {
    CUfunction f = function("stencil");
    for (int i = 0; i < 4; i++) {
        LAUNCH(f, n / 32, n / 8, 32, 8, &n, &n, &a.device, &b.device);
        LAUNCH(f, n / 32, n / 8, 32, 8, &n, &n, &b.device, &a.device);
    }
}
static double check_stencil(void) {
    upload(a);
    native_run_stencil();
    device_stencil();
    return floats_apart(a);
}

static void prepare_transpose(void) {
    n = quick ? 2048 : 4096;
    a = floats((size_t)n * n, 0, 1), b = buffer((size_t)4 * n * n);
}
static void native_run_transpose(void) { native_transpose(n, a.host, b.host); }
static void device_transpose(void) { LAUNCH(function("transpose"), n / 32, n / 32, 32, 8, &n, &a.device, &b.device); }

static void prepare_matmul(int size) {
    n = size;
    a = floats((size_t)n * n, -1, 1), b = floats((size_t)n * n, -1, 1), c = buffer((size_t)4 * n * n);
}
static void prepare_simple(void) { prepare_matmul(quick ? 384 : 768); }
static void prepare_tiled(void) { prepare_matmul(quick ? 512 : 1024); }
static void native_run_matmul(void) { native_matmul(n, a.host, b.host, c.host); }
static void device_simple(void) {
    LAUNCH(function("matmul_simple"), n / 16, n / 16, 16, 16, &n, &a.device, &b.device, &c.device);
}
static void device_tiled(void) {
    LAUNCH(function("matmul_tiled"), n / 64, n / 64, 256, 1, &n, &a.device, &b.device, &c.device);
}

enum { PARTS = 256 };
static void prepare_sums(void) {
    n = scaled(64 << 20);
    a = floats(n, 0, 1), b = floats(n, 0, 1), c = buffer(4), d = buffer(4 * PARTS);
}
static void native_run_reduce(void) { *(float *)c.host = native_reduce(n, a.host); }
static void device_reduce(void) {
    int parts = PARTS;
    LAUNCH(function("reduce"), PARTS, 1, 256, 1, &n, &a.device, &d.device);
    LAUNCH(function("reduce"), 1, 1, 256, 1, &parts, &d.device, &c.device);
}
static void native_run_dot(void) { *(float *)c.host = native_dot(n, a.host, b.host); }
static void device_dot(void) {
    CHECK(cuMemsetD32(c.device, 0, 1));
    LAUNCH(function("dot"), PARTS, 1, 256, 1, &n, &a.device, &b.device, &c.device);
}

static void prepare_histogram(void) {
    n = scaled(64 << 20) / 4;
    a = integers(n), b = buffer(4 * 256);
}
static void native_run_histogram(void) { native_histogram(4 * n, a.host, b.host); }
static void device_histogram(void) {
    CHECK(cuMemsetD32(b.device, 0, 256));
    LAUNCH(function("histogram"), 128, 1, 256, 1, &n, &a.device, &b.device);
}

static void prepare_scan(void) {
    n = scaled(32 << 20);
    a = integers(n), b = buffer((size_t)4 * n);
    /* Sums of blocks, their scan, and the same once more. */
    c = buffer((size_t)4 * n / 1024), d = buffer(4 * 1024), e = buffer(4);
}
static void native_run_scan(void) { native_scan(n, a.host, b.host); }
static void device_scan(void) {
    CUfunction scan = function("scan"), add = function("scan_add");
    int blocks = n / 1024, outer = blocks / 1024;
    LAUNCH(scan, blocks, 1, 512, 1, &a.device, &b.device, &c.device);
    LAUNCH(scan, outer, 1, 512, 1, &c.device, &c.device, &d.device);
    LAUNCH(scan, 1, 1, 512, 1, &d.device, &d.device, &e.device);
    LAUNCH(add, outer, 1, 512, 1, &c.device, &d.device);
    LAUNCH(add, blocks, 1, 512, 1, &b.device, &c.device);
}
static double check_scan(void) {
    CHECK(cuMemsetD32(d.device, 0, 1024));
    device_scan();
    return words_apart(b);
}

static void prepare_nbody(void) {
    n = quick ? 4096 : 8192;
    a = floats((size_t)4 * n, -1, 1), b = buffer((size_t)12 * n), c = buffer((size_t)16 * n), d = buffer((size_t)16 * n);
    const float4 *bodies = a.host;
    float *parts = d.host;
    for (int i = 0; i < n; i++)
        parts[i] = bodies[i].x, parts[n + i] = bodies[i].y, parts[2 * n + i] = bodies[i].z, parts[3 * n + i] = bodies[i].w;
}
static void native_run_nbody(void) {
    const float *p = d.host;
    native_nbody(n, p, p + n, p + 2 * n, p + 3 * n, b.host);
}
static void device_nbody(void) { LAUNCH(function("nbody"), n / 256, 1, 256, 1, &n, &a.device, &c.device); }
static double check_nbody(void) {
    const float *f = b.host;
    float4 *expected = c.host;
    for (int i = 0; i < n; i++) expected[i] = (float4){f[i], f[n + i], f[2 * n + i], 0};
    return floats_apart(c);
}

static void prepare_options(void) {
    n = scaled(4 << 20);
    a = floats(n, 5, 30), b = floats(n, 1, 100), c = floats(n, 0.25f, 10), d = buffer((size_t)4 * n), e = buffer((size_t)4 * n);
}
static void native_run_options(void) { native_black_scholes(n, 0.02f, 0.3f, a.host, b.host, c.host, d.host, e.host); }
static void device_options(void) {
    float rate = 0.02f, volatility = 0.3f;
    LAUNCH(function("black_scholes"), n / 256, 1, 256, 1, &n, &rate, &volatility, &a.device, &b.device, &c.device, &d.device,
           &e.device);
}
static double check_options(void) { return fmax(floats_apart(d), floats_apart(e)); }

static void prepare_mandelbrot(void) {
    n = quick ? 1024 : 2048, m = 256;
    b = buffer((size_t)4 * n * n);
}
static void native_run_mandelbrot(void) { native_mandelbrot(n, n, m, b.host); }
static void device_mandelbrot(void) { LAUNCH(function("mandelbrot"), n / 16, n / 16, 16, 16, &n, &n, &m, &b.device); }

static void prepare_bitonic(void) {
    n = scaled(1 << 20);
    a = integers(n), b = buffer((size_t)4 * n), c = buffer((size_t)4 * n);
    memcpy(c.host, a.host, a.bytes);
    upload(c);
}
static void native_run_bitonic(void) {
    memcpy(b.host, c.host, b.bytes);
    native_bitonic(n, b.host);
}
static void device_bitonic(void) {
    CUfunction shared = function("bitonic_shared"), step = function("bitonic_step");
    uint32_t from = 2, to = 1024;
    CHECK(cuMemcpyDtoD(b.device, c.device, b.bytes));
    LAUNCH(shared, n / 1024, 1, 512, 1, &b.device, &from, &to);
    for (uint32_t size = 2048; size <= (uint32_t)n; size *= 2) {
        for (uint32_t stride = size / 2; stride > 512; stride /= 2)
            LAUNCH(step, n / 512, 1, 256, 1, &b.device, &size, &stride);
        LAUNCH(shared, n / 1024, 1, 512, 1, &b.device, &size, &size);
    }
}
static double check_bitonic(void) {
    const uint32_t *keys = b.host;
    for (int i = 1; i < n; i++)
        if (keys[i - 1] > keys[i]) return 1;
    return words_apart(b);
}

/* Rows of 0 to 31 values, columns near the diagonal and a few anywhere. */
static void prepare_spmv(void) {
    n = scaled(1 << 20);
    a = buffer((size_t)4 * (n + 1));
    int *starts = a.host;
    for (int i = 0; i < n; i++) starts[i + 1] = starts[i] + (int)(next_number() % 32);
    upload(a);
    m = starts[n];
    d = buffer((size_t)4 * m);
    int *columns = d.host;
    for (int row = 0; row < n; row++)
        for (int k = starts[row]; k < starts[row + 1]; k++) {
            uint32_t r = next_number();
            columns[k] = r % 8 == 0 ? (int)((r >> 3) % (uint32_t)n) : (int)((uint32_t)(row + (int)((r >> 3) % 1024)) % (uint32_t)n);
        }
    upload(d);
    c = floats(m, -1, 1), e = floats(n, -1, 1), b = buffer((size_t)4 * n);
}
static void native_run_spmv(void) { native_spmv(n, a.host, d.host, c.host, e.host, b.host); }
static void device_spmv(void) {
    LAUNCH(function("spmv"), (n + 127) / 128, 1, 128, 1, &n, &a.device, &d.device, &c.device, &e.device, &b.device);
}

static void prepare_monte_carlo(void) {
    n = 4096, m = quick ? 128 : 512;
    c = buffer((size_t)8 * n);
}
static void native_run_monte_carlo(void) { native_monte_carlo(n, m, 100, 95, 0.01, 0.2, c.host); }
static void device_monte_carlo(void) {
    double price = 100, strike = 95, drift = 0.01, spread = 0.2;
    LAUNCH(function("monte_carlo"), n / 128, 1, 128, 1, &m, &price, &strike, &drift, &spread, &c.device);
}
static double check_monte_carlo(void) {
    double *is = download(c), most = 0;
    for (int i = 0; i < n; i++) most = fmax(most, fabs(is[i] / ((double *)c.host)[i] - 1));
    free(is);
    return most;
}

static void to_constant(const char *name, const void *from, size_t bytes) {
    CUdeviceptr at;
    size_t size;
    CHECK(cuModuleGetGlobal(&at, &size, module, name));
    if (size != bytes) exit(1);
    CHECK(cuMemcpyHtoD(at, from, bytes));
}

static void prepare_convolution(void) {
    n = scaled(16 << 20);
    a = floats(n, -1, 1), b = buffer((size_t)4 * n), c = floats(17, 0, 0.1f);
    to_constant("taps", c.host, c.bytes);
}
static void native_run_convolution(void) { native_convolution(n, c.host, a.host, b.host); }
static void device_convolution(void) { LAUNCH(function("convolution"), n / 256, 1, 256, 1, &n, &a.device, &b.device); }

static const uint32_t sha_table[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};
static void prepare_sha256(void) {
    n = scaled(512 << 10);
    b = buffer((size_t)4 * n);
    to_constant("sha_table", sha_table, sizeof sha_table);
}
static void native_run_sha256(void) { native_sha256(n, sha_table, b.host); }
static void device_sha256(void) { LAUNCH(function("sha256"), n / 256, 1, 256, 1, &n, &b.device); }

static void prepare_softmax(void) {
    n = scaled(64 << 10);
    a = floats((size_t)256 * n, -4, 4), b = buffer((size_t)4 * 256 * n);
}
static void native_run_softmax(void) { native_softmax(n, a.host, b.host); }
static void device_softmax(void) { LAUNCH(function("softmax"), n / 8, 1, 256, 1, &a.device, &b.device); }

static void prepare_keys(void) {
    n = scaled(16 << 20);
    a = integers(n), b = buffer(4 * 4096);
}
static void native_run_keys(void) { native_count_keys(n, a.host, b.host); }
static void device_keys(void) {
    CHECK(cuMemsetD32(b.device, 0, 4096));
    LAUNCH(function("count_keys"), 128, 1, 256, 1, &n, &a.device, &b.device);
}

static uint32_t limit = 1u << 30;
static void prepare_compact(void) {
    n = scaled(32 << 20);
    a = integers(n), b = buffer((size_t)4 * n), c = buffer(4);
}
static void native_run_compact(void) { *(uint32_t *)c.host = native_compact(n, limit, a.host, b.host); }
static void device_compact(void) {
    CHECK(cuMemsetD32(c.device, 0, 1));
    LAUNCH(function("compact"), 128, 1, 256, 1, &n, &limit, &a.device, &b.device, &c.device);
}
/* In whatever order: as many, and the same sum. */
static double check_compact(void) {
    uint32_t *is = download(b), *should_be = b.host, count = *(uint32_t *)c.host;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += is[i], sum -= should_be[i];
    free(is);
    return words_apart(c) + (sum != 0);
}

static const struct {
    const char *name;
    void (*prepare)(void), (*native)(void), (*device)(void);
    double (*check)(void);
    /* How far apart results may be. Sums are added in another order (those of millions of floats lose places, more so in
       C than by the tree); functions differ in their last places; steps in mandelbrot depend on roundings near the rim. */
    double tolerance;
    /* Not one of those whose mean is told: run where it is named. */
    int beside;
} benches[] = {
    {"saxpy", prepare_stream, native_run_saxpy, device_saxpy, check_saxpy, 0, 0},
    {"triad", prepare_stream, native_run_triad, device_triad, check_c, 0, 0},
    {"stencil", prepare_stencil, native_run_stencil, device_stencil, check_stencil, 1e-6, 0},
    {"transpose", prepare_transpose, native_run_transpose, device_transpose, check_b, 0, 0},
    {"matmul_simple", prepare_simple, native_run_matmul, device_simple, check_c, 1e-5, 0},
    {"matmul_tiled", prepare_tiled, native_run_matmul, device_tiled, check_c, 1e-5, 0},
    {"reduce", prepare_sums, native_run_reduce, device_reduce, check_c, 1e-2, 0},
    {"dot", prepare_sums, native_run_dot, device_dot, check_c, 1e-2, 0},
    {"histogram", prepare_histogram, native_run_histogram, device_histogram, check_words_b, 0, 0},
    {"scan", prepare_scan, native_run_scan, device_scan, check_scan, 0, 0},
    {"nbody", prepare_nbody, native_run_nbody, device_nbody, check_nbody, 1e-4, 0},
    {"black_scholes", prepare_options, native_run_options, device_options, check_options, 1e-5, 0},
    {"mandelbrot", prepare_mandelbrot, native_run_mandelbrot, device_mandelbrot, check_words_b, 1e-2, 0},
    {"bitonic", prepare_bitonic, native_run_bitonic, device_bitonic, check_bitonic, 0, 0},
    {"spmv", prepare_spmv, native_run_spmv, device_spmv, check_b, 1e-5, 0},
    {"monte_carlo", prepare_monte_carlo, native_run_monte_carlo, device_monte_carlo, check_monte_carlo, 1e-9, 0},
    {"convolution", prepare_convolution, native_run_convolution, device_convolution, check_b, 1e-6, 0},
    {"sha256", prepare_sha256, native_run_sha256, device_sha256, check_words_b, 0, 0},
    {"softmax", prepare_softmax, native_run_softmax, device_softmax, check_b, 1e-5, 1},
    {"count_keys", prepare_keys, native_run_keys, device_keys, check_words_b, 0, 1},
    {"compact", prepare_compact, native_run_compact, device_compact, check_compact, 0, 1},
};

static void release(Buffer *buffer) {
    if (buffer->host == NULL) return;
    free(buffer->host);
    CHECK(cuMemFree(buffer->device));
    buffer->host = NULL;
}

/* Seven runs after the first, or as many as go into `seconds`, three at least. */
static void measure(size_t which, double *native, double *device, double *first) {
    const double seconds = quick ? 0.5 : 4;
    const int most = quick ? 3 : 7, least = quick ? 1 : 3;
    double all = 0;
    *native = *device = INFINITY;
    for (int i = 0; i <= most; i++) {
        for (int again = 0; again < 2; again++) {
            double t = spent();
            benches[which].native();
            t = spent() - t;
            if (i > 0) *native = fmin(*native, t);
        }
        double t = spent();
        benches[which].device();
        CHECK(cuCtxSynchronize());
        t = spent() - t;
        if (i == 0) *first = t;
        else *device = fmin(*device, t);
        all += t;
        if (i >= least && all + t > seconds) break;
    }
}

static int wanted(size_t which, int count, char **only) {
    if (count == 0) return !benches[which].beside;
    for (int i = 0; i < count; i++)
        if (strcmp(only[i], benches[which].name) == 0) return 1;
    return 0;
}

int main(int argc, char **argv) {
    char **only = calloc((size_t)argc, sizeof *only);
    int names = 0, wrong = 0, lines = 0;
    if (argc < 2 || only == NULL) return 2;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) quick = 1;
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) only[names++] = argv[++i];
        else return fprintf(stderr, "bench-native: what is %s?\n", argv[i]), 2;
    }

    CUdevice dev;
    CUcontext context;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&dev, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, dev));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoad(&module, argv[1]));

    const char *threads = getenv("OMP_NUM_THREADS");
    printf("processor time of %s thread(s) each, milliseconds\n\n", threads ? threads : "all");
    printf("%-14s %10s %10s %8s %10s\n", "kernel", "native", "Margay", "ratio", "first");
    double logs = 0;
    for (size_t i = 0; i < sizeof benches / sizeof *benches; i++) {
        if (!wanted(i, names, only)) continue;
        benches[i].prepare();
        double native, device, first = 0;
        measure(i, &native, &device, &first);
        double off = benches[i].check();
        printf("%-14s %10.2f %10.2f %8.2f %10.2f\n", benches[i].name, 1e3 * native, 1e3 * device, device / native, 1e3 * first);
        fflush(stdout);
        if (!(off <= benches[i].tolerance)) {
            fprintf(stderr, "bench-native: %s computes something else than C: %g apart\n", benches[i].name, off);
            wrong = 1;
        }
        logs += log(device / native), lines++;
        release(&a), release(&b), release(&c), release(&d), release(&e);
    }
    if (lines == 0) return fprintf(stderr, "bench-native: no such kernel\n"), 2;
    printf("%-14s %10s %10s %8.2f\n", "geometric mean", "", "", exp(logs / lines));
    return wrong;
}
