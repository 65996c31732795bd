// A kernel for each kind of mistake; a word chooses: `./faults trap`.
#include <cassert>
#include <cstdio>
#include <cstring>

__global__ void stray(char *) { *(int *)64 = 1; }
__global__ void misaligned(char *memory) { *(int *)(memory + 1) = 1; }
__global__ void trap(char *) { __trap(); }
__global__ void failed(char *) { assert(blockDim.x == 32); }
__global__ void forever(char *memory) { while (!*(volatile char *)memory); }
__global__ void invalid(char *memory) { (*(void (**)())memory)(); }
__global__ void deadlock(char *)
{
    if (threadIdx.x < 32) asm volatile("barrier.sync 1, 64;");
    else asm volatile("barrier.sync 2, 64;");
}
__device__ int depth(int n) { return n ? 1 + depth(n - 1) * n % 7 : 0; }
__global__ void recursion(char *memory) { *memory = depth(memory[0] + 100000); }

struct { const char *word; void (*kernel)(char *); } kernels[] = {
    {"stray", stray}, {"misaligned", misaligned}, {"trap", trap}, {"assert", failed}, {"forever", forever},
    {"invalid", invalid}, {"deadlock", deadlock}, {"recursion", recursion},
};

int main(int, char **words)
{
    char *memory;
    cudaMalloc(&memory, 1024);
    cudaMemset(memory, 0, 1024);
    for (auto &[word, kernel] : kernels)
        if (!strcmp(word, words[1])) kernel<<<1, strcmp(word, "deadlock") ? 1 : 64>>>(memory);
    cudaError_t error = cudaDeviceSynchronize();
    printf("%s (%d)\n", cudaGetErrorName(error), error);
    return error != cudaSuccess;
}
