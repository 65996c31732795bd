/* What the examples share: a call that must succeed, and kernels as PTX text. */
#ifndef COMMON_H
#define COMMON_H

#include <cuda.h>

#include <stdio.h>
#include <stdlib.h>

#define CHECK(call) check((call), #call, __LINE__)

static inline void check(CUresult code, const char *call, int line)
{
    if (code == CUDA_SUCCESS) return;
    const char *name = "an unknown error", *text = "";
    cuGetErrorName(code, &name);
    cuGetErrorString(code, &text);
    printf("line %d: %s: %d %s (%s)\n", line, call, (int)code, name, text);
    exit(1);
}

/* Device 0 and a context for it. */
static inline CUdevice start(CUcontext *context)
{
    CUdevice device;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(context, device));
    CHECK(cuCtxSetCurrent(*context));
    return device;
}

#endif
