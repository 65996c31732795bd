/* How mistakes are reported: PTX that does not compile, a name that is not there, a kernel that strays. */
#include "common.h"

#include <string.h>

static const char broken[] =
    ".version 7.0\n"
    ".target sm_52\n"
    ".address_size 64\n"
    ".visible .entry broken()\n"
    "{\n"
    "    .reg .f32 %f;\n"
    "    add.f32 %f, %f %f;\n"
    "    ret;\n"
    "}\n";

static const char straying[] =
    ".version 7.0\n"
    ".target sm_52\n"
    ".address_size 64\n"
    ".visible .entry stray(.param .u64 to)\n"
    "{\n"
    "    .reg .b64 %to;\n"
    "    ld.param.u64 %to, [to];\n"
    "    st.global.u32 [%to+4096], 1;\n"
    "    ret;\n"
    "}\n";

static int expect(const char *what, CUresult got, CUresult want)
{
    const char *name = "?", *wanted = "?";
    cuGetErrorName(got, &name);
    cuGetErrorName(want, &wanted);
    printf("%-28s %d %s\n", what, (int)got, name);
    if (got == want) return 0;
    printf("  expected %d %s\n", (int)want, wanted);
    return 1;
}

int main(void)
{
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CUdeviceptr data;
    int wrong = 0;
    start(&context);

    /* The compiler's messages come in a buffer of ours. */
    char log[4096] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(size_t)sizeof log};
    CUresult code = cuModuleLoadDataEx(&module, broken, 2, options, values);
    wrong += expect("PTX with a mistake:", code, CUDA_ERROR_INVALID_PTX);
    printf("  the log says: %s\n", log);
    if (!strstr(log, "7")) wrong++; /* the line, in whatever words */

    CHECK(cuModuleLoadData(&module, straying));
    wrong += expect("a kernel of another name:", cuModuleGetFunction(&function, module, "straw"), CUDA_ERROR_NOT_FOUND);
    CHECK(cuModuleGetFunction(&function, module, "stray"));
    wrong += expect("too many threads:", cuLaunchKernel(function, 1, 1, 1, 2048, 1, 1, 0, NULL, (void *[]){&data}, NULL), CUDA_ERROR_INVALID_VALUE);

    /* Four terabytes beyond what was allocated. */
    CHECK(cuMemAlloc(&data, 64));
    data += (CUdeviceptr)1 << 42;
    void *arguments[] = {&data};
    CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
    wrong += expect("after a kernel that strayed:", cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    wrong += expect("and from then on:", cuMemAlloc(&data, 64), CUDA_ERROR_ILLEGAL_ADDRESS);
    printf(wrong ? "%d wrong\n" : "as documented\n", wrong);
    return wrong ? 1 : 0;
}
