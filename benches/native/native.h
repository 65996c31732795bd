/* The work of kernels.cu in C, for the CPU that runs the benches. */

#pragma once
#include <stdint.h>

typedef struct {
    float x, y, z, w;
} float4;

void native_saxpy(int n, float a, const float *x, float *y);
void native_triad(int n, float s, const float *b, const float *c, float *a);
void native_stencil(int width, int height, const float *in, float *out);
void native_transpose(int n, const float *in, float *out);
void native_matmul(int n, const float *a, const float *b, float *c);
float native_reduce(int n, const float *in);
float native_dot(int n, const float *x, const float *y);
void native_histogram(int n, const uint8_t *in, uint32_t *bins);
void native_scan(int n, const uint32_t *in, uint32_t *out);
/* Bodies as four arrays of n numbers, as vectors of the CPU want them; forces as three. */
void native_nbody(int n, const float *x, const float *y, const float *z, const float *mass, float *forces);
void native_black_scholes(int n, float rate, float volatility, const float *price, const float *strike, const float *years,
                          float *call, float *put);
void native_mandelbrot(int width, int height, int limit, int *out);
void native_bitonic(int n, uint32_t *keys);
void native_spmv(int rows, const int *starts, const int *columns, const float *values, const float *x, float *y);
void native_monte_carlo(int threads, int paths, double price, double strike, double drift, double spread, double *sums);
void native_convolution(int n, const float *taps, const float *in, float *out);
void native_sha256(int n, const uint32_t *table, uint32_t *out);
void native_softmax(int rows, const float *in, float *out);
void native_count_keys(int n, const uint32_t *keys, uint32_t *counts);
uint32_t native_compact(int n, uint32_t limit, const uint32_t *in, uint32_t *out);
