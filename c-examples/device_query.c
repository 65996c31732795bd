/* Prints what the driver says about its devices. */
#include "common.h"

static int attribute(CUdevice_attribute which, CUdevice device)
{
    int value = 0;
    CHECK(cuDeviceGetAttribute(&value, which, device));
    return value;
}

int main(void)
{
    int version = 0, count = 0;
    CHECK(cuDriverGetVersion(&version));
    CHECK(cuInit(0));
    CHECK(cuDeviceGetCount(&count));
    printf("CUDA driver %d.%d, %d device%s\n", version / 1000, version % 1000 / 10, count, count == 1 ? "" : "s");
    for (int i = 0; i < count; i++) {
        CUdevice device;
        char name[256];
        size_t bytes = 0;
        CUuuid id;
        CHECK(cuDeviceGet(&device, i));
        CHECK(cuDeviceGetName(name, sizeof name, device));
        CHECK(cuDeviceTotalMem(&bytes, device));
        CHECK(cuDeviceGetUuid(&id, device));
        printf("device %d: %s\n", i, name);
        printf("  identity             GPU-");
        for (int k = 0; k < 16; k++) printf("%s%02x", k == 4 || k == 6 || k == 8 || k == 10 ? "-" : "", (unsigned char)id.bytes[k]);
        printf("\n  compute capability   %d.%d\n", attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
               attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
        printf("  memory               %zu MiB\n", bytes >> 20);
        printf("  multiprocessors      %d\n", attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
        printf("  warp                 %d threads\n", attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
        printf("  block                up to %d threads, %d KiB of shared memory (%d KiB on request), %d registers\n",
               attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device),
               attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, device) >> 10,
               attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device) >> 10,
               attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, device));
        printf("  managed memory       %s\n", attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, device) ? "yes" : "no");
        printf("  cooperative launch   %s\n", attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, device) ? "yes" : "no");
        if (attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, device) != 32 || bytes == 0 || !name[0]) return 1;
    }
    return count > 0 ? 0 : 1;
}
