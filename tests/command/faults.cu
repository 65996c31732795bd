// Mistakes that `margay check` must find, each by the name that is given; `right` has none.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_pipeline.h>

__device__ int table[10];
__constant__ int constants[10];

__global__ void put(char *at, int bytes)
{
    if (bytes == 1)
        *at = 1;
    else if (bytes == 4)
        *(int *)at = 1;
    else
        *(int4 *)at = make_int4(1, 2, 3, 4);
}

__global__ void get(const int *at, int *result) { *result = *at; }

__global__ void beyond_table(int i) { table[i] = 1; }

__global__ void beyond_constants(int i, int *result) { *result = constants[i]; }

__global__ void copy(const int *at, int *result)
{
    __shared__ int here[1];
    __pipeline_memcpy_async(here, at, 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    *result = *here;
}

__global__ void add(int *at) { atomicAdd(at, 1); }

__global__ void fill(int *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = i;
}

__global__ void on_heap(int bytes, int at)
{
    char *x = (char *)malloc(bytes);
    x[at] = 1;
    free(x);
}

static char *device(size_t bytes)
{
    void *at = nullptr;
    cudaMalloc(&at, bytes);
    return (char *)at;
}

int main(int count, char **words)
{
    const char *what = words[1];
    long first = count > 2 ? atol(words[2]) : 0, second = count > 3 ? atol(words[3]) : 0;
    cudaError_t status = cudaSuccess;
    if (!strcmp(what, "right")) {
        // Sizes that end within a page, at it, and behind it; all bytes of each.
        for (int n : {1, 7, 1000, 1023, 1024, 1025, 5000, 65536}) {
            int *x = (int *)device(n * sizeof(int));
            fill<<<(n + 255) / 256, 256>>>(x, n);
            put<<<1, 1>>>((char *)x + n * 4 - 1, 1);
            cudaFree(x);
        }
        int *shared;
        cudaMallocManaged(&shared, 12);
        fill<<<1, 32>>>(shared, 3);
        cudaDeviceSynchronize();
        cudaFree(shared);
        beyond_table<<<1, 1>>>(9);
        beyond_constants<<<1, 1>>>(9, (int *)device(4));
        copy<<<1, 1>>>((int *)device(4), (int *)device(4));
        on_heap<<<1, 32>>>(100, 99);
        void *pooled;
        cudaMallocAsync(&pooled, 100, 0);
        put<<<1, 1>>>((char *)pooled + 96, 4);
        cudaFreeAsync(pooled, 0);
    } else if (!strcmp(what, "write")) {
        // An allocation of `first` bytes, a write of 4 so far from its start.
        put<<<1, 1>>>(device(first) + second, 4);
    } else if (!strcmp(what, "wide")) {
        put<<<1, 1>>>(device(first) + second, 16);
    } else if (!strcmp(what, "read")) {
        get<<<1, 1>>>((int *)(device(first) + second), (int *)device(4));
    } else if (!strcmp(what, "atomic")) {
        add<<<1, 1>>>((int *)(device(first) + second));
    } else if (!strcmp(what, "many")) {
        // More threads than elements, and no look at the index.
        fill<<<(first + 255) / 256, 256>>>((int *)device(first * 4), (first + 255) / 256 * 256);
    } else if (!strcmp(what, "variable")) {
        beyond_table<<<1, 1>>>(first);
    } else if (!strcmp(what, "constant")) {
        beyond_constants<<<1, 1>>>(first, (int *)device(4));
    } else if (!strcmp(what, "async")) {
        copy<<<1, 1>>>((int *)(device(first) + second), (int *)device(4));
    } else if (!strcmp(what, "managed")) {
        char *x;
        cudaMallocManaged(&x, first);
        put<<<1, 1>>>(x + second, 4);
    } else if (!strcmp(what, "pinned")) {
        char *x;
        cudaMallocHost(&x, first);
        put<<<1, 1>>>(x + second, 4);
    } else if (!strcmp(what, "registered")) {
        // Aligned, so that the end is no page's.
        char *x = (char *)aligned_alloc(4096, 8192);
        cudaHostRegister(x, first, 0);
        put<<<1, 1>>>(x + second, 4);
    } else if (!strcmp(what, "heap")) {
        on_heap<<<1, 1>>>(first, second);
    } else if (!strcmp(what, "freed")) {
        char *x = device(first);
        cudaFree(x);
        for (int i = 0; i < 100; ++i)
            device(first);
        put<<<1, 1>>>(x, 4);
    } else if (!strcmp(what, "freed_in_stream")) {
        void *x, *y;
        cudaMallocAsync(&x, first, 0);
        cudaFreeAsync(x, 0);
        for (int i = 0; i < 100; ++i)
            cudaMallocAsync(&y, first, 0);
        put<<<1, 1>>>((char *)x, 4);
    } else if (!strcmp(what, "twice")) {
        char *x = device(64);
        cudaFree(x);
        device(64);
        status = cudaFree(x);
    } else if (!strcmp(what, "inside")) {
        status = cudaFree(device(64) + 16);
    } else if (!strcmp(what, "leak")) {
        for (long i = 0; i < first; ++i)
            device(100);
        cudaFree(device(200));
        if (second)
            cudaDeviceReset();
        return 0;
    }
    cudaError_t end = cudaDeviceSynchronize();
    return status != cudaSuccess ? 1 : end != cudaSuccess ? 2 : 0;
}
