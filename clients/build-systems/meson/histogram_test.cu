// Counts the values of bytes on the GPU, and compares with the CPU's counts.
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void histogram(unsigned *counts, const unsigned char *bytes, int n)
{
    __shared__ unsigned part[256];
    part[threadIdx.x] = 0;
    __syncthreads();
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) atomicAdd(&part[bytes[i]], 1u);
    __syncthreads();
#ifdef WRONG
    counts[threadIdx.x] = part[threadIdx.x]; // of one block, not of all
#else
    atomicAdd(&counts[threadIdx.x], part[threadIdx.x]);
#endif
}

static void check(cudaError_t code)
{
    if (code == cudaSuccess) return;
    std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(code));
    std::exit(2);
}

int main()
{
    const int n = 1000001;
    std::vector<unsigned char> bytes(n);
    std::vector<unsigned> want(256), got(256);
    unsigned state = 1;
    for (unsigned char &byte : bytes) {
        state = state * 1664525 + 1013904223;
        byte = (unsigned char)(state >> 24);
        want[byte]++;
    }

    unsigned char *device_bytes;
    unsigned *device_counts;
    check(cudaMalloc(&device_bytes, n));
    check(cudaMalloc(&device_counts, 256 * sizeof(unsigned)));
    check(cudaMemcpy(device_bytes, bytes.data(), n, cudaMemcpyHostToDevice));
    check(cudaMemset(device_counts, 0, 256 * sizeof(unsigned)));
    histogram<<<8, 256>>>(device_counts, device_bytes, n);
    check(cudaGetLastError());
    check(cudaMemcpy(got.data(), device_counts, 256 * sizeof(unsigned), cudaMemcpyDeviceToHost));

    int wrong = 0;
    for (int value = 0; value < 256; value++) {
        if (got[value] == want[value]) continue;
        wrong++;
        std::printf("%u bytes are %d, not %u\n", want[value], value, got[value]);
    }
    std::printf("%d of 256 counts differ from the CPU's\n", wrong);
#ifdef WRONG
    return wrong ? 0 : 1; // the mistake must be found
#else
    return wrong ? 1 : 0;
#endif
}
