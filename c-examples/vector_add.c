/* Adds two vectors with a kernel written in PTX: the driver API from start to end. */
#include "common.h"

static const char ptx[] =
    ".version 7.0\n"
    ".target sm_52\n"
    ".address_size 64\n"
    "\n"
    ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n"
    "{\n"
    "    .reg .pred %outside;\n"
    "    .reg .b32 %i, %n, %block, %width, %thread;\n"
    "    .reg .b64 %a, %b, %c, %offset;\n"
    "    .reg .f32 %x, %y;\n"
    "\n"
    "    mov.u32 %block, %ctaid.x;\n"
    "    mov.u32 %width, %ntid.x;\n"
    "    mov.u32 %thread, %tid.x;\n"
    "    mad.lo.s32 %i, %block, %width, %thread;\n"
    "    ld.param.u32 %n, [n];\n"
    "    setp.ge.u32 %outside, %i, %n;\n"
    "    @%outside bra done;\n"
    "    ld.param.u64 %a, [a];\n"
    "    ld.param.u64 %b, [b];\n"
    "    ld.param.u64 %c, [c];\n"
    "    cvta.to.global.u64 %a, %a;\n"
    "    cvta.to.global.u64 %b, %b;\n"
    "    cvta.to.global.u64 %c, %c;\n"
    "    mul.wide.u32 %offset, %i, 4;\n"
    "    add.s64 %a, %a, %offset;\n"
    "    add.s64 %b, %b, %offset;\n"
    "    add.s64 %c, %c, %offset;\n"
    "    ld.global.f32 %x, [%a];\n"
    "    ld.global.f32 %y, [%b];\n"
    "    add.f32 %x, %x, %y;\n"
    "    st.global.f32 [%c], %x;\n"
    "done:\n"
    "    ret;\n"
    "}\n";

enum { count = 100000 };
static float a[count], b[count], c[count];

int main(void)
{
    CUcontext context;
    CUdevice device = start(&context);
    CUmodule module;
    CUfunction add;
    CUdeviceptr da, db, dc;
    unsigned n = count;

    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&add, module, "add"));
    for (int i = 0; i < count; i++) {
        a[i] = (float)i;
        b[i] = 0.25f * (float)(count - i);
    }
    CHECK(cuMemAlloc(&da, sizeof a));
    CHECK(cuMemAlloc(&db, sizeof b));
    CHECK(cuMemAlloc(&dc, sizeof c));
    CHECK(cuMemcpyHtoD(da, a, sizeof a));
    CHECK(cuMemcpyHtoD(db, b, sizeof b));

    void *arguments[] = {&da, &db, &dc, &n};
    CHECK(cuLaunchKernel(add, (n + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL));
    CHECK(cuMemcpyDtoH(c, dc, sizeof c));
    for (int i = 0; i < count; i++)
        if (c[i] != a[i] + b[i]) {
            printf("c[%d] = %g, not %g\n", i, c[i], a[i] + b[i]);
            return 1;
        }
    printf("%d sums, c[1] = %g, c[%d] = %g: right\n", count, c[1], count - 1, c[count - 1]);

    CHECK(cuMemFree(da));
    CHECK(cuMemFree(db));
    CHECK(cuMemFree(dc));
    CHECK(cuModuleUnload(module));
    CHECK(cuDevicePrimaryCtxRelease(device));
    return 0;
}
