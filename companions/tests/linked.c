/* A program that is linked with nvJitLink, so that NVIDIA's is loaded before the driver: `linked BEFORE AFTER` ends with 0 if what it begins
 * to link before and after it opens the driver becomes that: `ptx`, which the driver runs, or `cubin`, what NVIDIA's library hands out. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

typedef void *Handle;
extern int nvJitLinkCreate(Handle *, uint32_t, const char **);
extern int nvJitLinkDestroy(Handle *);
extern int nvJitLinkAddData(Handle, int, const void *, size_t, const char *);
extern int nvJitLinkComplete(Handle);
extern int nvJitLinkGetLinkedCubinSize(Handle, size_t *);
extern int nvJitLinkGetLinkedCubin(Handle, void *);
extern int nvJitLinkVersion(unsigned *, unsigned *);

/* An address in the program's data. */
static int (*volatile const table[])(Handle, void *) = {nvJitLinkGetLinkedCubin};

static const char KERNEL[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry k(.param .u64 out) { .reg .b32 %v; .reg .b64 %p; ld.param.u64 %p, [out]; mov.u32 %v, 42;\n"
    "st.global.u32 [%p], %v; ret; }\n";

static Handle begin(void) {
    const char *options[] = {"-arch=sm_120"};
    Handle link = NULL;
    EXPECT(nvJitLinkCreate(&link, 1, options) == 0 && link);
    EXPECT(nvJitLinkAddData(link, 2, KERNEL, sizeof KERNEL, "kernel") == 0);
    return link;
}

/* Ends the link: its image, which the caller frees. */
static void *end(Handle link) {
    size_t size = 0;
    EXPECT(nvJitLinkComplete(link) == 0 && nvJitLinkGetLinkedCubinSize(link, &size) == 0 && size);
    void *image = malloc(size);
    EXPECT(table[0](link, image) == 0 && nvJitLinkDestroy(&link) == 0 && !link);
    return image;
}

/* A function of the driver's, by the symbol that cuda.h gives it. */
static void *driver;
#define CU(name) ((__typeof__(name) *)dlsym(driver, SYMBOL(name)))

/* Whether the image is what is wanted; where that is PTX, the driver runs it. */
static void expect_image(const char *wanted, char *image) {
    if (!strcmp(wanted, "cubin")) {
        EXPECT(!strcmp(image, "cubin"));
        return;
    }
    CUcontext context;
    CUmodule module;
    CUfunction kernel;
    CUdeviceptr out;
    int value = 0;
    void *arguments[] = {&out};
    EXPECT(CU(cuDevicePrimaryCtxRetain)(&context, 0) == CUDA_SUCCESS && CU(cuCtxSetCurrent)(context) == CUDA_SUCCESS);
    EXPECT(CU(cuModuleLoadData)(&module, image) == CUDA_SUCCESS && CU(cuModuleGetFunction)(&kernel, module, "k") == CUDA_SUCCESS);
    EXPECT(CU(cuMemAlloc)(&out, 4) == CUDA_SUCCESS);
    EXPECT(CU(cuLaunchKernel)(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL) == CUDA_SUCCESS);
    EXPECT(CU(cuMemcpyDtoH)(&value, out, 4) == CUDA_SUCCESS && value == 42);
}

int main(int count, char **words) {
    EXPECT(count == 3);
    /* Who has begun a link ends it, whoever is there by then. */
    Handle early[] = {begin(), begin()};
    EXPECT(nvJitLinkComplete(early[1]) == 0);
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    EXPECT(driver && CU(cuInit)(0) == CUDA_SUCCESS);
    unsigned major, minor;
    EXPECT(nvJitLinkVersion(&major, &minor) == 0 && minor == 77);
    expect_image(words[1], end(early[0]));
    expect_image(words[2], end(begin()));
    EXPECT(nvJitLinkDestroy(&early[1]) == 0);
    return 0;
}
