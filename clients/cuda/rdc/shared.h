// What the three files of the program share. One instance of each variable, calls across files.
#pragma once

struct Counter {
    int calls;
    long long sum;
};

extern __device__ Counter counter;       // in state.cu
extern __constant__ int weights[4];      // in state.cu
extern __device__ int (*current)(int);   // in math.cu, set by main.cu
extern __managed__ int managed_total;    // in state.cu

__device__ int weigh(int x);              // in math.cu
__device__ int triple(int x);             // in math.cu
__device__ void note(long long value);    // in state.cu
__global__ void from_state(int *out);     // in state.cu
