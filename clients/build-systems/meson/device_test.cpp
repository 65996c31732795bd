// A program of the driver API, linked with -lcuda: fills memory of the device and reads it back.
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

int main()
{
    CUdevice device;
    CUcontext context;
    char name[64];
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDeviceGetName(name, sizeof name, device));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));

    std::vector<unsigned> values(1000);
    CUdeviceptr memory;
    CHECK(cuMemAlloc(&memory, sizeof(unsigned) * values.size()));
    CHECK(cuMemsetD32(memory, 7, values.size()));
    CHECK(cuMemsetD32(memory + sizeof(unsigned) * 500, 9, 1));
    CHECK(cuMemcpyDtoH(values.data(), memory, sizeof(unsigned) * values.size()));
    for (size_t i = 0; i < values.size(); i++) {
        unsigned want = i == 500 ? 9 : 7;
        if (values[i] != want) {
            std::printf("value %zu is %u, not %u\n", i, values[i], want);
            return 1;
        }
    }
    std::printf("memory of %s keeps what was written\n", name);
}
