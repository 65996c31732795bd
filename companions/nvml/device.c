/* Devices: which there are, what they are called, what they have. The numbers are those of cuDeviceGetAttribute. */
#include "driver.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* CUdevice_attribute */
enum {
    CLOCK_RATE = 13,
    MULTIPROCESSOR_COUNT = 16,
    COMPUTE_MODE = 20,
    MEMORY_CLOCK_RATE = 36,
    GLOBAL_MEMORY_BUS_WIDTH = 37,
    ASYNC_ENGINE_COUNT = 40,
    MULTI_GPU_BOARD = 84,
};

static unsigned attribute(nvmlDevice_t device, int which) {
    int value = driver()->attribute(device->number, which);
    return value < 0 ? 0 : (unsigned)value;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count) {
    REQUIRE(count);
    *count = device_count();
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned *count) { return nvmlDeviceGetCount_v2(count); }

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device) {
    REQUIRE(device && index < device_count());
    *device = device_at(index);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device) {
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

static void write_uuid(nvmlDevice_t device, char text[41]) {
    const unsigned char *u = device->is.uuid;
    snprintf(text, 41, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1], u[2], u[3], u[4],
             u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
}

static bool same_letters(const char *one, const char *other) {
    while (*one && tolower((unsigned char)*one) == tolower((unsigned char)*other)) {
        one++;
        other++;
    }
    return *one == *other;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    REQUIRE(uuid && device);
    for (unsigned i = 0; i < device_count(); i++) {
        char text[41];
        write_uuid(device_at(i), text);
        /* cuda.core asks with the driver's spelling, which has no "GPU-". */
        if (same_letters(text, uuid) || same_letters(text + strlen("GPU-"), uuid)) {
            *device = device_at(i);
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t *uuid, nvmlDevice_t *device) {
    REQUIRE(uuid && device);
    if (uuid->version != NVML_STRUCT_VERSION(*uuid, 1)) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    if (uuid->type == 1) {
        char text[sizeof uuid->value.str + 1] = "";
        memcpy(text, uuid->value.str, sizeof uuid->value.str);
        return nvmlDeviceGetHandleByUUID(text, device);
    }
    REQUIRE(uuid->type == 2);
    for (unsigned i = 0; i < device_count(); i++) {
        if (!memcmp(device_at(i)->is.uuid, uuid->value.bytes, sizeof uuid->value.bytes)) {
            *device = device_at(i);
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

/* domain:bus:device.function, without the domain or the function if they are 0 */
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *device) {
    REQUIRE(id && device);
    unsigned parts[3], function = 0;
    int end = 0, found = 0;
    if (sscanf(id, "%8x:%4x:%4x%n", &parts[0], &parts[1], &parts[2], &end) == 3) {
        found = end;
    } else if (parts[0] = 0, sscanf(id, "%4x:%4x%n", &parts[1], &parts[2], &end) == 2) {
        found = end;
    }
    REQUIRE(found > 0);
    if (id[found] == '.') {
        end = 0;
        REQUIRE(sscanf(id + found, ".%1x%n", &function, &end) == 1);
        found += end;
    }
    REQUIRE(!id[found]);
    for (unsigned i = 0; i < device_count(); i++) {
        nvmlDevice_t one = device_at(i);
        if (one->domain == parts[0] && one->bus == parts[1] && one->slot == parts[2] && function == 0) {
            *device = one;
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *id, nvmlDevice_t *device) {
    return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

/* They have no serial numbers. */
nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device) {
    REQUIRE(serial && device);
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length) {
    REQUIRE(is_device(device) && name);
    return give_text(name, length, device->is.name);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length) {
    REQUIRE(is_device(device) && uuid);
    char text[41];
    write_uuid(device, text);
    return give_text(uuid, length, text);
}

/* Numbers that follow from what the device is. */
#define NUMBER(name, type, value)                                      \
    nvmlReturn_t name(nvmlDevice_t device, type *number) {             \
        REQUIRE(is_device(device) && number);                          \
        *number = (value);                                             \
        return NVML_SUCCESS;                                           \
    }

NUMBER(nvmlDeviceGetIndex, unsigned, device->number)
/* Of /dev/nvidia0 and so on, which are not there: container runtimes look them up under this number. */
NUMBER(nvmlDeviceGetMinorNumber, unsigned, device->number)
NUMBER(nvmlDeviceGetBrand, unsigned, 0) /* unknown */
NUMBER(nvmlDeviceGetBoardId, unsigned, device->domain << 16 | device->bus << 8 | device->slot)
NUMBER(nvmlDeviceGetMultiGpuBoard, unsigned, attribute(device, MULTI_GPU_BOARD))
NUMBER(nvmlDeviceGetMemoryBusWidth, unsigned, attribute(device, GLOBAL_MEMORY_BUS_WIDTH))
NUMBER(nvmlDeviceGetComputeMode, unsigned, attribute(device, COMPUTE_MODE))
NUMBER(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, 0)
NUMBER(nvmlDeviceGetDisplayMode, nvmlEnableState_t, 0)
NUMBER(nvmlDeviceGetDisplayActive, nvmlEnableState_t, 0)
NUMBER(nvmlDeviceGetVirtualizationMode, unsigned, 0) /* none */
NUMBER(nvmlDeviceGetNumFans, unsigned, 0)
NUMBER(nvmlDeviceGetMaxMigDeviceCount, unsigned, 0)
NUMBER(nvmlDeviceIsMigDeviceHandle, unsigned, 0)
/* Clocks are always what they are. */
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, 0)
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, 0)
NUMBER(nvmlDeviceGetSupportedClocksEventReasons, unsigned long long, 0)
NUMBER(nvmlDeviceGetSupportedClocksThrottleReasons, unsigned long long, 0)

/* Modes stay as they are: to ask for that is no mistake. */
#define MODE(name, most, value)                                                    \
    nvmlReturn_t name(nvmlDevice_t device, unsigned mode) {                        \
        REQUIRE(is_device(device) && mode <= (most));                              \
        return mode == (value) ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;          \
    }

MODE(nvmlDeviceSetPersistenceMode, 1, 0)
MODE(nvmlDeviceSetComputeMode, 3, attribute(device, COMPUTE_MODE))

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    REQUIRE(is_device(device) && pci);
    /* No vendor made it: the identifiers are 0. */
    *pci = (nvmlPciInfo_t){.domain = device->domain, .bus = device->bus, .device = device->slot};
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%.15s", device->is.pci_bus_id);
    snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", device->domain, device->bus, device->slot);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t *pci) {
    REQUIRE(is_device(device) && pci);
    if (pci->version != NVML_STRUCT_VERSION(*pci, 1)) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    /* A display controller, for 3D alone. */
    *pci = (nvmlPciInfoExt_t){.version = pci->version,
                              .domain = device->domain,
                              .bus = device->bus,
                              .device = device->slot,
                              .baseClass = 3,
                              .subClass = 2};
    snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", device->domain, device->bus, device->slot);
    return NVML_SUCCESS;
}

/* The first two versions end before busId. */
static nvmlReturn_t early_pci_info(nvmlDevice_t device, void *pci, size_t bytes) {
    nvmlPciInfo_t all;
    nvmlReturn_t result = nvmlDeviceGetPciInfo_v3(device, &all);
    if (result == NVML_SUCCESS) {
        REQUIRE(pci);
        memcpy(pci, &all, bytes);
    }
    return result;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    return early_pci_info(device, pci, offsetof(nvmlPciInfo_t, busId));
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    return early_pci_info(device, pci, offsetof(nvmlPciInfo_t, pciSubSystemId));
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
    REQUIRE(is_device(device) && major && minor);
    *major = (int)device->is.major;
    *minor = (int)device->is.minor;
    return NVML_SUCCESS;
}

/* By compute capability: nvmlDeviceArchitecture_t, and the cores of a multiprocessor (CUDA programming guide, "Technical
 * Specifications": operations in single precision per clock). */
static const struct {
    unsigned major, minor, architecture, cores;
} GENERATIONS[] = {
    {7, 0, 5, 64},  {7, 5, 6, 64},  {8, 0, 7, 64},    {8, 6, 7, 128},
    {8, 9, 8, 128}, {9, 0, 9, 128}, {10, 0, 10, 128}, {12, 0, 10, 128},
};

static int generation(nvmlDevice_t device) {
    int last = (int)(sizeof GENERATIONS / sizeof *GENERATIONS) - 1;
    while (last >= 0 && (GENERATIONS[last].major != device->is.major || GENERATIONS[last].minor > device->is.minor)) {
        last--;
    }
    return last;
}

nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned *architecture) {
    REQUIRE(is_device(device) && architecture);
    int known = generation(device);
    *architecture = known < 0 ? 0xffffffff : GENERATIONS[known].architecture;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned *cores) {
    REQUIRE(is_device(device) && cores);
    int known = generation(device);
    if (known < 0) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    *cores = GENERATIONS[known].cores * attribute(device, MULTIPROCESSOR_COUNT);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes) {
    REQUIRE(is_device(device) && attributes);
    *attributes = (nvmlDeviceAttributes_t){.multiprocessorCount = attribute(device, MULTIPROCESSOR_COUNT),
                                           .sharedCopyEngineCount = attribute(device, ASYNC_ENGINE_COUNT),
                                           .memorySizeMB = device->is.memory >> 20};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes) {
    return nvmlDeviceGetAttributes_v2(device, attributes);
}

/* Clocks: one of each kind, which never changes. */

static unsigned megahertz(nvmlDevice_t device, nvmlClockType_t type) {
    return attribute(device, type == NVML_CLOCK_MEM ? MEMORY_CLOCK_RATE : CLOCK_RATE) / 1000;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned *mhz) {
    REQUIRE(is_device(device) && (unsigned)type < NVML_CLOCK_COUNT && mhz);
    if (type == NVML_CLOCK_VIDEO) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    *mhz = megahertz(device, type);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned *mhz) {
    return nvmlDeviceGetClockInfo(device, type, mhz);
}

nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, nvmlClockType_t type, unsigned *mhz) {
    return nvmlDeviceGetClockInfo(device, type, mhz);
}

nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t device, nvmlClockType_t type, unsigned *mhz) {
    return nvmlDeviceGetClockInfo(device, type, mhz);
}

nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t type, unsigned id, unsigned *mhz) {
    REQUIRE(id < NVML_CLOCK_ID_COUNT);
    return nvmlDeviceGetClockInfo(device, type, mhz);
}

/* Hands out the one clock there is, by NVML's rule for lists. */
static nvmlReturn_t give_clock(unsigned clock, unsigned *count, unsigned *mhz) {
    unsigned room = *count;
    *count = 1;
    if (room < 1 || !mhz) {
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    *mhz = clock;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned *count, unsigned *mhz) {
    REQUIRE(is_device(device) && count);
    return give_clock(megahertz(device, NVML_CLOCK_MEM), count, mhz);
}

nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned memory, unsigned *count, unsigned *mhz) {
    REQUIRE(is_device(device) && count);
    if (memory != megahertz(device, NVML_CLOCK_MEM)) {
        return NVML_ERROR_NOT_FOUND;
    }
    return give_clock(megahertz(device, NVML_CLOCK_GRAPHICS), count, mhz);
}

/* Where they are: each on a board of its own, all below one bridge, as near to one processor as to another. */

nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t one, nvmlDevice_t other, int *are) {
    REQUIRE(is_device(one) && is_device(other) && are);
    *are = one == other;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t one, nvmlDevice_t other, nvmlGpuP2PCapsIndex_t index,
                                    nvmlGpuP2PStatus_t *status) {
    REQUIRE(is_device(one) && is_device(other) && status);
    /* CUdevice_P2PAttribute; there is no NVLink. */
    enum { ACCESS = 2, NATIVE_ATOMICS = 3 };
    bool has = false;
    switch (index) {
    case NVML_P2P_CAPS_INDEX_READ:
    case NVML_P2P_CAPS_INDEX_WRITE:
    case NVML_P2P_CAPS_INDEX_PCI:
        /* NCCL asks for all pairs. */
        has = one == other || driver()->peer_attribute(one->number, other->number, ACCESS) == 1;
        break;
    case NVML_P2P_CAPS_INDEX_ATOMICS:
        has = one == other || driver()->peer_attribute(one->number, other->number, NATIVE_ATOMICS) == 1;
        break;
    case NVML_P2P_CAPS_INDEX_NVLINK:
        break;
    default:
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *status = has ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t one, nvmlDevice_t other, nvmlGpuTopologyLevel_t *level) {
    REQUIRE(is_device(one) && is_device(other) && level);
    *level = one == other ? NVML_TOPOLOGY_INTERNAL : NVML_TOPOLOGY_HOSTBRIDGE;
    return NVML_SUCCESS;
}

/* All devices but one, by NVML's rule for these lists: with a count of 0 it says how many. */
static nvmlReturn_t give_devices(nvmlDevice_t without, unsigned *count, nvmlDevice_t *devices) {
    unsigned room = *count, given = 0;
    *count = 0;
    for (unsigned i = 0; i < device_count(); i++) {
        if (device_at(i) == without) {
            continue;
        }
        if (room > 0 && given < room) {
            devices[given++] = device_at(i);
        }
        ++*count;
    }
    if (room > 0 && *count > room) {
        *count = room;
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, nvmlGpuTopologyLevel_t level, unsigned *count,
                                              nvmlDevice_t *devices) {
    REQUIRE(is_device(device) && (unsigned)level <= NVML_TOPOLOGY_SYSTEM && count && (devices || !*count));
    if (level != NVML_TOPOLOGY_HOSTBRIDGE) {
        *count = 0;
        return NVML_SUCCESS;
    }
    return give_devices(device, count, devices);
}

nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned cpu, unsigned *count, nvmlDevice_t *devices) {
    REQUIRE(count && (devices || !*count) && cpu < (unsigned)sysconf(_SC_NPROCESSORS_CONF));
    return give_devices(NULL, count, devices);
}

nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned words, unsigned long *set) {
    REQUIRE(is_device(device) && words > 0 && set);
    unsigned long processors = (unsigned long)sysconf(_SC_NPROCESSORS_CONF);
    const unsigned bits = 8 * sizeof *set;
    for (unsigned word = 0; word < words; word++) {
        unsigned long left = processors > (unsigned long)word * bits ? processors - (unsigned long)word * bits : 0;
        set[word] = left >= bits ? ~0ul : (1ul << left) - 1;
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned words, unsigned long *set, unsigned scope) {
    REQUIRE(scope <= 1);
    return nvmlDeviceGetCpuAffinity(device, words, set);
}

/* The nodes of memory that the machine has. */
nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned words, unsigned long *set, unsigned scope) {
    REQUIRE(is_device(device) && words > 0 && set && scope <= 1);
    const unsigned bits = 8 * sizeof *set, most = 1024;
    memset(set, 0, (size_t)words * sizeof *set);
    set[0] = 1;
    for (unsigned node = 1; node < most && node / bits < words; node++) {
        char path[64];
        snprintf(path, sizeof path, "/sys/devices/system/node/node%u", node);
        if (!access(path, F_OK)) {
            set[node / bits] |= 1ul << node % bits;
        }
    }
    return NVML_SUCCESS;
}

/* Fields are numbers of hardware that is not there: each says so for itself. */
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values) {
    REQUIRE(is_device(device) && count > 0 && values);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    for (int i = 0; i < count; i++) {
        values[i].timestamp = now.tv_sec * 1000000ll + now.tv_nsec / 1000;
        values[i].latencyUsec = 0;
        values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support) {
    REQUIRE(is_device(device) && support);
    if (support->version != 1) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    support->isSupportedDevice = 0;
    return NVML_SUCCESS;
}

/* Of these there are none. */
#define NONE(name)                      \
    nvmlReturn_t name(unsigned *count) {\
        REQUIRE(count);                 \
        *count = 0;                     \
        return NVML_SUCCESS;            \
    }
NONE(nvmlUnitGetCount)
NONE(nvmlGetExcludedDeviceCount)
NONE(nvmlGetBlacklistDeviceCount)

nvmlReturn_t nvmlSystemGetHicVersion(unsigned *count, void *entries) {
    (void)entries;
    REQUIRE(count);
    *count = 0;
    return NVML_SUCCESS;
}
