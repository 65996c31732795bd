/* The benches: how fast kernels run against the same loops in C, what calls of the driver cost, in one run, as ratios.

   bench FOLDER            measures the kernels of the folder at every SIMD level, prints the table
   bench FOLDER --level    measures in this process: `key value reference` lines (what the first form starts)

   Compiled without vectorisation: the yardstick for kernels is one core that computes one element at a time. Each figure
   is the best of several repetitions, native and ours by turns. Kernels and copies are measured in processor time of one
   thread, calls and loading in time of the clock. */

#define _GNU_SOURCE
#include <cuda.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Processor time of the whole process: what work costs, whoever else is busy on the machine. */
static double spent(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define CHECK(call)                                                                                  \
    do {                                                                                             \
        CUresult result_ = (call);                                                                   \
        if (result_ != CUDA_SUCCESS) {                                                               \
            fprintf(stderr, "bench: %s: error %d\n", #call, (int)result_);                           \
            exit(1);                                                                                 \
        }                                                                                            \
    } while (0)

enum { THREADS = 4096, BLOCK = 256, PASSES = 2000, ELEMENTS = 16 << 20, REPETITIONS = 7, COLLATZ = 3 };

/* The loops of kernels.ptx, a thread after the other. */

__attribute__((noinline)) static void fma_chain(float *out, uint32_t threads, uint32_t passes) {
    for (uint32_t t = 0; t < threads; t++) {
        float x = (float)t;
        const float a = 0x1.fffep-1f, b = 0.01f;
        for (uint32_t n = passes; n != 0; n--) {
#define FOUR x = fmaf(x, a, b), x = fmaf(x, a, b), x = fmaf(x, a, b), x = fmaf(x, a, b)
            FOUR, FOUR, FOUR, FOUR;
        }
        out[t] = x;
    }
}

__attribute__((noinline)) static void integer_mix(uint32_t *out, uint32_t threads, uint32_t passes) {
    for (uint32_t t = 0; t < threads; t++) {
        uint32_t x = t + 1, sum = 0;
        for (uint32_t n = passes; n != 0; n--) {
            x ^= x << 13, x ^= x >> 17, x ^= x << 5;
            sum += x * 0x9e3779b1u;
            sum &= 0x7fffffffu;
            x ^= x << 13, x ^= x >> 17, x ^= x << 5;
            sum -= x * 0x85ebca77u;
            sum |= 1;
        }
        out[t] = sum;
    }
}

__attribute__((noinline)) static void divergent(uint32_t *out, uint32_t threads, uint32_t first) {
    for (uint32_t t = 0; t < threads; t++) {
        uint32_t x = t + first, n = 0;
        while (x != 1) {
            n++;
            if (x & 1)
                x = 3 * x + 1;
            else
                x >>= 1;
        }
        out[t] = n;
    }
}

__attribute__((noinline)) static void saxpy(float *y, const float *x, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) y[i] = fmaf(x[i], 2.5f, y[i]);
}

__attribute__((noinline)) static void copy(float *to, const float *from, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        to[i] = from[i];
        __asm__ volatile("" ::: "memory"); /* A loop, not a call of memcpy. */
    }
}

static CUmodule module;

static CUfunction function(const char *name) {
    CUfunction f;
    CHECK(cuModuleGetFunction(&f, module, name));
    return f;
}

static void launch(CUfunction f, uint32_t threads, void **parameters) {
    CHECK(cuLaunchKernel(f, (threads + BLOCK - 1) / BLOCK, 1, 1, BLOCK, 1, 1, 0, NULL, parameters, NULL));
    CHECK(cuCtxSynchronize());
}

static void report(const char *key, double value, double reference) {
    printf("%s %.9g %.9g\n", key, value, reference);
    fflush(stdout);
}

/* A kernel that computes: lane-instructions per second, ours and native. */
static void compute(const char *name, void (*native)(void *, uint32_t, uint32_t), uint32_t threads, uint32_t argument,
                    double instructions) {
    CUfunction f = function(name);
    CUdeviceptr out;
    CHECK(cuMemAlloc(&out, 4 * (size_t)threads));
    uint32_t *theirs = malloc(4 * (size_t)threads), *ours = malloc(4 * (size_t)threads);
    void *parameters[] = {&out, &argument};
    double best = 1e9, reference = 1e9;
    launch(f, threads, parameters);
    for (int i = 0; i < REPETITIONS; i++) {
        double t = spent();
        native(theirs, threads, argument);
        reference = fmin(reference, spent() - t);
        t = spent();
        launch(f, threads, parameters);
        best = fmin(best, spent() - t);
    }
    CHECK(cuMemcpyDtoH(ours, out, 4 * (size_t)threads));
    if (memcmp(ours, theirs, 4 * (size_t)threads) != 0) {
        fprintf(stderr, "bench: %s computes something else than C\n", name);
        exit(1);
    }
    report(name, instructions / best / 1e9, instructions / reference / 1e9);
    CHECK(cuMemFree(out));
    free(theirs);
    free(ours);
}

static void native_fma(void *out, uint32_t threads, uint32_t passes) { fma_chain(out, threads, passes); }
static void native_mix(void *out, uint32_t threads, uint32_t passes) { integer_mix(out, threads, passes); }
static void native_divergent(void *out, uint32_t threads, uint32_t first) { divergent(out, threads, first); }

/* How often a second a kernel of `threads` threads gets through `amount` of something. */
static double rate(const char *name, uint32_t threads, uint32_t passes, double amount) {
    CUfunction f = function(name);
    CUdeviceptr out;
    CHECK(cuMemAlloc(&out, 4 * (size_t)threads));
    void *parameters[] = {&out, &passes};
    double best = 1e9;
    launch(f, threads, parameters);
    for (int i = 0; i < REPETITIONS; i++) {
        double t = spent();
        launch(f, threads, parameters);
        best = fmin(best, spent() - t);
    }
    CHECK(cuMemFree(out));
    return amount / best / 1e9;
}

static void load(const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.ptx", folder, name);
    CHECK(cuModuleLoad(&module, path));
}

/* Loops without and with what threads do together. */
static void meetings(void) {
    enum { WORK = 500 };
    double passes = (double)THREADS * WORK;
    report("shuffles", rate("shuffles", THREADS, WORK, passes), rate("alone", THREADS, WORK, passes));
    report("barriers", rate("barriers", THREADS, WORK, passes), rate("exchange", THREADS, WORK, passes));
}

/* Products of elements a second, of matrices and of the FMA chain. */
static void matrices(double chain) {
    enum { THREADS_ = 256, WORK = 200 };
    static const struct {
        const char *name;
        uint32_t products;
    } kinds[] = {{"mma_f16", 16 * 8 * 16}, {"mma_bf16", 16 * 8 * 16}, {"mma_s8", 16 * 8 * 32}, {"mma_e4m3", 16 * 8 * 32}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        report(kinds[i].name, rate(kinds[i].name, THREADS_, WORK, 8.0 * kinds[i].products * WORK * THREADS_ / 32), chain);
}

static double best_of(double (*once)(void)) {
    double best = 1e9;
    for (int i = 0; i < REPETITIONS; i++) best = fmin(best, once());
    return best;
}

static float *host_a, *host_b;
static CUdeviceptr device_a, device_b;
static CUfunction streaming;
static uint32_t streaming_threads;
static const size_t BYTES = sizeof(float) * (size_t)ELEMENTS;

static double time_memcpy(void) {
    double t = spent();
    memcpy(host_b, host_a, BYTES);
    __asm__ volatile("" ::"r"(host_b) : "memory");
    return spent() - t;
}
static double time_native_copy(void) {
    double t = spent();
    copy(host_b, host_a, ELEMENTS);
    return spent() - t;
}
static double time_native_saxpy(void) {
    double t = spent();
    saxpy(host_b, host_a, ELEMENTS);
    return spent() - t;
}
static double time_streaming(void) {
    uint32_t n = ELEMENTS;
    void *parameters[] = {&device_b, &device_a, &n};
    double t = spent();
    launch(streaming, streaming_threads, parameters);
    return spent() - t;
}
static double time_to_device(void) {
    double t = spent();
    CHECK(cuMemcpyHtoD(device_a, host_a, BYTES));
    return spent() - t;
}
static double time_from_device(void) {
    double t = spent();
    CHECK(cuMemcpyDtoH(host_b, device_a, BYTES));
    return spent() - t;
}
static double time_within_device(void) {
    double t = spent();
    CHECK(cuMemcpyDtoD(device_b, device_a, BYTES));
    CHECK(cuCtxSynchronize());
    return spent() - t;
}

/* Gigabytes read and written per second; the reference of kernels and copies is memcpy. */
static void memory(void) {
    host_a = aligned_alloc(4096, BYTES), host_b = aligned_alloc(4096, BYTES);
    for (uint32_t i = 0; i < ELEMENTS; i++) host_a[i] = (float)i, host_b[i] = 1;
    CHECK(cuMemAlloc(&device_a, BYTES));
    CHECK(cuMemAlloc(&device_b, BYTES));
    CHECK(cuMemcpyHtoD(device_a, host_a, BYTES));
    CHECK(cuMemcpyHtoD(device_b, host_b, BYTES));
    double moved = 2e-9 * (double)BYTES;
    double reference = moved / best_of(time_memcpy);
    report("native_copy", moved / best_of(time_native_copy), reference);
    report("native_saxpy", 1.5 * moved / best_of(time_native_saxpy), reference);
    streaming = function("saxpy"), streaming_threads = ELEMENTS;
    report("saxpy", 1.5 * moved / best_of(time_streaming), reference);
    streaming = function("copy");
    report("copy", moved / best_of(time_streaming), reference);
    streaming = function("copy4"), streaming_threads = ELEMENTS / 4;
    report("copy4", moved / best_of(time_streaming), reference);
    report("to_device", moved / best_of(time_to_device), reference);
    report("from_device", moved / best_of(time_from_device), reference);
    report("within_device", moved / best_of(time_within_device), reference);
    CHECK(cuMemFree(device_a));
    CHECK(cuMemFree(device_b));
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Microseconds: the call alone (median), with a synchronisation each (median), and a queue of many. */
static void empty_launches(void) {
    enum { N = 2000 };
    static double call[N], both[N];
    CUfunction f = function("empty");
    double queue = 1e9;
    for (int round = 0; round < 3; round++) {
        double start = now();
        for (int i = 0; i < N; i++) {
            double t = now();
            CHECK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
            call[i] = now() - t;
        }
        CHECK(cuCtxSynchronize());
        queue = fmin(queue, (now() - start) / N);
        for (int i = 0; i < N; i++) {
            double t = now();
            CHECK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
            CHECK(cuCtxSynchronize());
            both[i] = now() - t;
        }
    }
    qsort(call, N, sizeof *call, ascending);
    qsort(both, N, sizeof *both, ascending);
    report("launch_call", 1e6 * call[N / 2], 0);
    report("launch_synchronise", 1e6 * both[N / 2], 0);
    report("launch_queue", 1e6 * queue, 0);
}

/* A PTX text of about 10 MB, as a template library compiles to: thousands of kernels, each like the others. */
static char *large_module(size_t *size) {
    enum { KERNELS = 4000, LINES = 60 };
    char *text = malloc(16 << 20), *at = text;
    at += sprintf(at, ".version 8.0\n.target sm_80\n.address_size 64\n\n");
    for (int k = 0; k < KERNELS; k++) {
        at += sprintf(at,
                      ".visible .entry _ZN4many7kernelsILi%dEEEvPfS1_i(\n\t.param .u64 p0,\n\t.param .u64 p1,\n"
                      "\t.param .u32 p2\n)\n{\n\t.reg .pred \t%%p<2>;\n\t.reg .f32 \t%%f<%d>;\n\t.reg .b32 \t%%r<6>;\n"
                      "\t.reg .b64 \t%%rd<8>;\n\n\tld.param.u64 \t%%rd1, [p0];\n\tmov.u32 \t%%r1, %%tid.x;\n"
                      "\tmul.wide.u32 \t%%rd2, %%r1, 4;\n\tadd.s64 \t%%rd3, %%rd1, %%rd2;\n"
                      "\tld.global.f32 \t%%f0, [%%rd3];\n",
                      k, LINES + 2);
        for (int i = 0; i < LINES; i++)
            at += sprintf(at, "\tfma.rn.f32 \t%%f%d, %%f%d, 0f3F800000, %%f%d;\n", i + 1, i, i / 2);
        at += sprintf(at, "\tst.global.f32 \t[%%rd3], %%f%d;\n\tret;\n\n}\n\n", LINES);
    }
    *size = (size_t)(at - text);
    return text;
}

static void module_load(void) {
    size_t size;
    char *text = large_module(&size);
    double best = 1e9, first = 1e9;
    for (int i = 0; i < 3; i++) {
        CUmodule m;
        CUfunction f;
        CUdeviceptr p;
        int n = 0;
        double t = now();
        CHECK(cuModuleLoadData(&m, text));
        best = fmin(best, now() - t);
        CHECK(cuMemAlloc(&p, 4096));
        t = now();
        CHECK(cuModuleGetFunction(&f, m, "_ZN4many7kernelsILi1234EEEvPfS1_i"));
        void *parameters[] = {&p, &p, &n};
        launch(f, BLOCK, parameters);
        first = fmin(first, now() - t);
        CHECK(cuMemFree(p));
        CHECK(cuModuleUnload(m));
    }
    report("module_mb", (double)size / 1e6, 0);
    report("module_load", 1e3 * best, 0);
    report("module_first", 1e3 * first, 0);
    free(text);
}

static void measure(const char *folder) {
    CUdevice device;
    CUcontext context;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
#if CUDA_VERSION >= 13000
    CHECK(cuCtxCreate(&context, NULL, 0, device));
#else
    CHECK(cuCtxCreate(&context, 0, device));
#endif
    load(folder, "matrices");
    CUmodule products = module;
    load(folder, "warps");
    meetings();
    load(folder, "kernels");
    double lanes = (double)THREADS * PASSES;
    compute("fma_chain", native_fma, THREADS, PASSES, 16 * lanes);
    compute("integer_mix", native_mix, THREADS, PASSES, 18 * lanes);
    /* Steps, and instructions: seven on the odd way, eight on the even one, counting the branches. */
    uint32_t threads = 64 * THREADS;
    uint32_t *steps = malloc(4 * (size_t)threads);
    divergent(steps, threads, COLLATZ);
    double total = 0;
    for (uint32_t i = 0; i < threads; i++) total += steps[i];
    free(steps);
    compute("divergent", native_divergent, threads, COLLATZ, 8 * total);
    CUmodule kernels = module;
    double chain = rate("fma_chain", THREADS, PASSES, 16 * lanes);
    module = products;
    matrices(chain);
    module = kernels;
    memory();
    empty_launches();
    module_load();
    CHECK(cuCtxDestroy(context));
}

/* The table. */

enum { LEVELS = 3, KEYS = 32 };
static const char *level_names[LEVELS] = {"avx512", "avx2", "baseline"};
static struct {
    char key[32];
    double value[LEVELS], reference[LEVELS];
} table[KEYS];
static int rows;

static int row(const char *key) {
    for (int i = 0; i < rows; i++)
        if (strcmp(table[i].key, key) == 0) return i;
    snprintf(table[rows].key, sizeof table[rows].key, "%s", key);
    for (int l = 0; l < LEVELS; l++) table[rows].value[l] = table[rows].reference[l] = NAN;
    return rows++;
}

static int available(const char *level) {
    if (strcmp(level, "avx512") == 0) return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    if (strcmp(level, "avx2") == 0) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return 1;
}

static void run_level(const char *program, const char *folder, int level) {
    char command[4096], key[32];
    double value, reference;
    snprintf(command, sizeof command, "MARGAY_SIMD=%s MARGAY_THREADS=1 '%s' '%s' --level", level_names[level], program, folder);
    FILE *child = popen(command, "r");
    if (!child) exit(1);
    while (fscanf(child, "%31s %lf %lf", key, &value, &reference) == 3) {
        int i = row(key);
        table[i].value[level] = value;
        table[i].reference[level] = reference;
    }
    if (pclose(child) != 0) {
        fprintf(stderr, "bench: measuring at level %s failed\n", level_names[level]);
        exit(1);
    }
}

static void ratios(const char *title, const char *unit, const char *key, const char *target) {
    int i = row(key);
    double reference = 0;
    for (int l = 0; l < LEVELS; l++) reference = fmax(reference, isnan(table[i].reference[l]) ? 0 : table[i].reference[l]);
    printf("%-30s %-16s %8.2f", title, unit, reference);
    for (int l = 0; l < LEVELS; l++) {
        if (isnan(table[i].value[l])) printf(" %16s", "-");
        else printf("  %7.2f (%4.2fx)", table[i].value[l], table[i].value[l] / table[i].reference[l]);
    }
    printf("  %s\n", target);
}

static void plain(const char *title, const char *unit, const char *key, const char *target) {
    int i = row(key);
    printf("%-30s %-16s %8s", title, unit, "");
    for (int l = 0; l < LEVELS; l++) {
        if (isnan(table[i].value[l])) printf(" %16s", "-");
        else printf("  %7.2f        ", table[i].value[l]);
    }
    printf("  %s\n", target);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: bench FOLDER [--level]\n");
        return 2;
    }
    if (argc > 2) {
        measure(argv[1]);
        return 0;
    }
    __builtin_cpu_init();
    char program[2048];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n < 0) return 1;
    program[n] = 0;
    for (int l = 0; l < LEVELS; l++)
        if (available(level_names[l])) run_level(program, argv[1], l);

    printf("One thread, best of %d runs; (ratio) to the column \"native\", higher is better.\n\n", REPETITIONS);
    printf("%-30s %-16s %8s  %-15s  %-15s  %-15s  %s\n", "", "unit", "native", level_names[0], level_names[1], level_names[2], "target");
    ratios("FMA chain", "G lane-instr/s", "fma_chain", ">= 1x (avx512, avx2)");
    ratios("integer mix", "G lane-instr/s", "integer_mix", ">= 1x (avx512, avx2)");
    ratios("divergent loop (Collatz)", "G lane-instr/s", "divergent", "");
    printf("\n%-30s %-16s %8s\n", "loops in which threads meet", "", "without");
    ratios("five shuffles in 20", "G passes/s", "shuffles", ">= 0.33x");
    ratios("two barriers in six", "G passes/s", "barriers", ">= 0.33x");
    printf("\n%-30s %-16s %8s\n", "products of matrices", "", "FMA chain");
    ratios("mma.sync m16n8k16 f16", "G products/s", "mma_f16", ">= 0.25x");
    ratios("mma.sync m16n8k16 bf16", "G products/s", "mma_bf16", ">= 0.25x");
    ratios("mma.sync m16n8k32 s8", "G products/s", "mma_s8", ">= 0.25x");
    ratios("mma.sync m16n8k32 e4m3", "G products/s", "mma_e4m3", ">= 0.25x");
    printf("\n%-30s %-16s %8s\n", "64 MiB, read + written", "", "memcpy");
    ratios("kernel: copy", "GB/s", "copy", ">= 0.33x");
    ratios("kernel: copy, 4 a thread", "GB/s", "copy4", ">= 0.33x");
    ratios("kernel: saxpy", "GB/s", "saxpy", ">= 0.33x");
    ratios("C loop: copy", "GB/s", "native_copy", "");
    ratios("C loop: saxpy", "GB/s", "native_saxpy", "");
    ratios("cuMemcpyHtoD", "GB/s", "to_device", "");
    ratios("cuMemcpyDtoH", "GB/s", "from_device", "");
    ratios("cuMemcpyDtoD", "GB/s", "within_device", "");
    printf("\n");
    plain("empty launch: the call", "us, median", "launch_call", "");
    plain("empty launch + synchronise", "us, median", "launch_synchronise", "< 10");
    plain("empty launches in a queue", "us each", "launch_queue", "");
    printf("\n");
    plain("module: size of its PTX", "MB", "module_mb", "");
    plain("module: load", "ms", "module_load", "well under 1000");
    int mb = row("module_mb"), load = row("module_load"), per = row("module_per_mb");
    for (int l = 0; l < LEVELS; l++) table[per].value[l] = table[load].value[l] / table[mb].value[l];
    plain("module: load, per MB", "ms/MB", "module_per_mb", "");
    plain("module: first use of a kernel", "ms", "module_first", "");
    return 0;
}
