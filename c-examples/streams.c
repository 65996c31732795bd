/* Two streams, events between them, asynchronous copies and a function of the host in the middle. */
#include "common.h"

static const char ptx[] =
    ".version 7.0\n"
    ".target sm_52\n"
    ".address_size 64\n"
    ".const .u32 factor = 3;\n"
    ".global .u32 launches;\n"
    "\n"
    ".visible .entry scale(.param .u64 data, .param .u32 n)\n"
    "{\n"
    "    .reg .pred %p;\n"
    "    .reg .b32 %i, %n, %b, %w, %t, %v, %f;\n"
    "    .reg .b64 %d, %o;\n"
    "    mov.u32 %b, %ctaid.x;\n"
    "    mov.u32 %w, %ntid.x;\n"
    "    mov.u32 %t, %tid.x;\n"
    "    mad.lo.u32 %i, %b, %w, %t;\n"
    "    setp.eq.u32 %p, %i, 0;\n"
    "    @%p red.global.add.u32 [launches], 1;\n"
    "    ld.param.u32 %n, [n];\n"
    "    setp.ge.u32 %p, %i, %n;\n"
    "    @%p exit;\n"
    "    ld.param.u64 %d, [data];\n"
    "    cvta.to.global.u64 %d, %d;\n"
    "    mul.wide.u32 %o, %i, 4;\n"
    "    add.u64 %d, %d, %o;\n"
    "    ld.global.u32 %v, [%d];\n"
    "    ld.const.u32 %f, [factor];\n"
    "    mad.lo.u32 %v, %v, %f, %i;\n"
    "    st.global.u32 [%d], %v;\n"
    "    ret;\n"
    "}\n";

enum { count = 50000 };

static void add_one(void *data)
{
    unsigned *numbers = data;
    for (int i = 0; i < count; i++) numbers[i]++;
}

int main(void)
{
    CUcontext context;
    CUdevice device = start(&context);
    CUmodule module;
    CUfunction scale;
    CUstream first, second;
    CUevent start_event, half_way, end;
    CUdeviceptr there, launches;
    unsigned *here, n = count, seen = 0;
    size_t bytes = count * sizeof *here, size;
    float milliseconds = -1;

    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&scale, module, "scale"));
    CHECK(cuModuleGetGlobal(&launches, &size, module, "launches"));
    CHECK(cuStreamCreate(&first, CU_STREAM_DEFAULT));
    CHECK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&start_event, CU_EVENT_DEFAULT));
    CHECK(cuEventCreate(&half_way, CU_EVENT_DISABLE_TIMING));
    CHECK(cuEventCreate(&end, CU_EVENT_DEFAULT));
    CHECK(cuMemAllocHost((void **)&here, bytes));
    CHECK(cuMemAlloc(&there, bytes));
    for (unsigned i = 0; i < count; i++) here[i] = i;

    void *arguments[] = {&there, &n};
    CHECK(cuEventRecord(start_event, first));
    CHECK(cuMemcpyHtoDAsync(there, here, bytes, first));
    CHECK(cuLaunchKernel(scale, (n + 127) / 128, 1, 1, 128, 1, 1, 0, first, arguments, NULL));
    CHECK(cuMemcpyDtoHAsync(here, there, bytes, first));
    CHECK(cuLaunchHostFunc(first, add_one, here));
    CHECK(cuEventRecord(half_way, first));

    CHECK(cuStreamWaitEvent(second, half_way, CU_EVENT_WAIT_DEFAULT));
    CHECK(cuMemcpyHtoDAsync(there, here, bytes, second));
    CHECK(cuLaunchKernel(scale, (n + 127) / 128, 1, 1, 128, 1, 1, 0, second, arguments, NULL));
    CHECK(cuMemcpyDtoHAsync(here, there, bytes, second));
    CHECK(cuEventRecord(end, second));
    CHECK(cuEventSynchronize(end));

    for (unsigned i = 0; i < count; i++) {
        unsigned want = (i * 3 + i + 1) * 3 + i;
        if (here[i] != want) {
            printf("[%u] is %u, not %u\n", i, here[i], want);
            return 1;
        }
    }
    CHECK(cuMemcpyDtoH(&seen, launches, sizeof seen));
    CHECK(cuEventElapsedTime(&milliseconds, start_event, end));
    printf("%u launches in two streams: right, in %s\n", seen, milliseconds >= 0 ? "order" : "no time at all");
    CHECK(cuStreamDestroy(first));
    CHECK(cuStreamDestroy(second));
    CHECK(cuEventDestroy(start_event));
    CHECK(cuEventDestroy(half_way));
    CHECK(cuEventDestroy(end));
    CHECK(cuMemFreeHost(here));
    CHECK(cuMemFree(there));
    CHECK(cuModuleUnload(module));
    CHECK(cuDevicePrimaryCtxRelease(device));
    return seen == 2 && size == 4 && milliseconds >= 0 ? 0 : 1;
}
