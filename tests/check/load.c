// Loads a file of PTX, and launches the kernel that the second argument names; forms.ptx says how. A third argument is another number
// of threads than 64, at most 128. Ends with 2 if a thread has not
// found what it should.
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

static void check(CUresult result, const char *call)
{
    const char *name = "?";
    if (result == CUDA_SUCCESS) return;
    cuGetErrorName(result, &name);
    printf("%s: %s\n", call, name);
    exit(3);
}
#define CHECK(call) check(call, #call)

int main(int count, char **arguments)
{
    enum { blocks = 2, most = 128, words = 1024 };
    const int threads = count > 3 ? atoi(arguments[3]) : 64;
    static char text[1 << 20];
    FILE *file = count >= 3 ? fopen(arguments[1], "r") : NULL;
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction kernel;
    CUdeviceptr memory, out;
    unsigned found[blocks * most];

    if (!file || !fread(text, 1, sizeof(text) - 1, file)) return 3;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, text));
    CHECK(cuModuleGetFunction(&kernel, module, arguments[2]));
    CHECK(cuMemAlloc(&memory, words * 4));
    CHECK(cuMemsetD32(memory, 0, words));
    CHECK(cuMemAlloc(&out, sizeof(found)));
    CHECK(cuMemsetD32(out, 0, blocks * threads));
    void *parameters[] = {&memory, &out};
    CHECK(cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, NULL, parameters, NULL));
    CHECK(cuMemcpyDtoH(found, out, blocks * threads * sizeof(*found)));
    for (int i = 0; i < blocks * threads; i++)
        if (found[i] != 1) {
            printf("thread %d of block %d has not found what it should\n", i % threads, i / threads);
            return 2;
        }
    return 0;
}
