// driver_test FILE.ptx: the same kernel through the driver API.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

static void check(CUresult code, int line)
{
    if (code == CUDA_SUCCESS) return;
    const char *name = "an unknown error";
    cuGetErrorName(code, &name);
    std::fprintf(stderr, "line %d: %s\n", line, name);
    std::exit(1);
}
#define CHECK(call) check(call, __LINE__)

int main(int, char **arguments)
{
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction kernel;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoad(&module, arguments[1]));
    CHECK(cuModuleGetFunction(&kernel, module, "smooth_kernel"));

    std::vector<float> in = {4, 8, 16, 32}, out(4), want = {5, 9, 18, 28};
    int n = 4;
    CUdeviceptr device_in, device_out;
    CHECK(cuMemAlloc(&device_in, sizeof(float) * n));
    CHECK(cuMemAlloc(&device_out, sizeof(float) * n));
    CHECK(cuMemcpyHtoD(device_in, in.data(), sizeof(float) * n));
    void *parameters[] = {&device_out, &device_in, &n};
    CHECK(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
    CHECK(cuMemcpyDtoH(out.data(), device_out, sizeof(float) * n));
    for (int i = 0; i < n; i++) {
        if (out[i] != want[i]) {
            std::printf("out[%d] is %g, not %g\n", i, out[i], want[i]);
            return 1;
        }
    }
    std::printf("smooth_kernel of %s is right\n", arguments[1]);
}
