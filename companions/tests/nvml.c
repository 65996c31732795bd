/* NVML through its C interface: what it says of devices, compared with what the driver says, of processes that come and go, and
 * what it makes of nonsense. One case a run. */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../nvml/nvml.h"
#include "expect.h"

#define OK(call) EXPECT((call) == NVML_SUCCESS)
#define FAILS(result, call) EXPECT((call) == NVML_ERROR_##result)

#define CU(name) ((__typeof__(name) *)dlsym(driver(), SYMBOL(name)))

static void *driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    EXPECT(library);
    return library;
}

static nvmlDevice_t device_at(unsigned index) {
    nvmlDevice_t device = NULL;
    OK(nvmlDeviceGetHandleByIndex_v2(index, &device));
    return device;
}

static void sleep_ms(long milliseconds) {
    nanosleep(&(struct timespec){.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000}, NULL);
}

/* Every function of NVML */

typedef nvmlReturn_t any(intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t);

static const struct {
    const char *name, *letters;
} FUNCTIONS[] = {
#define ANSWERED(name) {#name, NULL},
#define REFUSED(name, letters) {#name, letters},
#include "../nvml/functions.h"
};
enum { COUNT = sizeof FUNCTIONS / sizeof *FUNCTIONS };

static any *function(const char *name) {
    any *found = (any *)dlsym(RTLD_DEFAULT, name);
    if (!found) {
        fprintf(stderr, "%s is not there\n", name);
    }
    EXPECT(found);
    return found;
}

static void all_are_there(void) {
    char room[4096];
    EXPECT(COUNT == 438);
    for (int i = 0; i < COUNT; i++) {
        any *call = function(FUNCTIONS[i].name);
        if (!strncmp(FUNCTIONS[i].name, "nvmlInit", 8) || !strcmp(FUNCTIONS[i].name, "nvmlErrorString")) {
            continue;
        }
        intptr_t place = (intptr_t)room;
        EXPECT(call(0, 0, 0, 0, 0, 0) == NVML_ERROR_UNINITIALIZED);
        EXPECT(call(place, place, place, place, place, place) == NVML_ERROR_UNINITIALIZED);
    }
}

/* Each argument as it should be, then one after the other wrong. */
static void the_rest_is_refused(void) {
    OK(nvmlInit_v2());
    static char room[65536];
    nvmlEventSet_t set;
    OK(nvmlEventSetCreate(&set));
    for (int i = 0; i < COUNT; i++) {
        const char *letters = FUNCTIONS[i].letters;
        if (!letters) {
            continue;
        }
        any *call = function(FUNCTIONS[i].name);
        intptr_t good[6] = {0};
        bool possible = true;
        for (int j = 0; letters[j]; j++) {
            good[j] = letters[j] == 'd'                           ? (intptr_t)device_at(0)
                      : letters[j] == 'e'                         ? (intptr_t)set
                      : letters[j] == 'p' || letters[j] == 'o' ? (intptr_t)room
                                                                  : 1;
            possible &= !strchr("ugcs", letters[j]);
        }
        nvmlReturn_t result = call(good[0], good[1], good[2], good[3], good[4], good[5]);
        EXPECT(result == (possible ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT));
        for (int j = 0; letters[j]; j++) {
            if (letters[j] == 'i' || letters[j] == 'o') {
                continue;
            }
            intptr_t bad[6];
            memcpy(bad, good, sizeof bad);
            bad[j] = 0;
            EXPECT(call(bad[0], bad[1], bad[2], bad[3], bad[4], bad[5]) == NVML_ERROR_INVALID_ARGUMENT);
            bad[j] = letters[j] == 'p' ? 0 : (intptr_t)room;
            EXPECT(call(bad[0], bad[1], bad[2], bad[3], bad[4], bad[5]) == NVML_ERROR_INVALID_ARGUMENT);
        }
    }
    OK(nvmlEventSetFree(set));
}

/* Devices. The environment shows the driver the devices 2 and 0 of three. */
static void devices_are_the_drivers(void) {
    static const int NUMBERS[] = {2, 0};
    unsigned count;
    OK(nvmlInit_v2());
    OK(nvmlDeviceGetCount_v2(&count));
    EXPECT(count == 3);
    int seen, version, nvml_version;
    EXPECT(!CU(cuInit)(0) && !CU(cuDeviceGetCount)(&seen) && seen == 2);
    EXPECT(!CU(cuDriverGetVersion)(&version));
    OK(nvmlSystemGetCudaDriverVersion_v2(&nvml_version));
    EXPECT(version == nvml_version);
    for (int ordinal = 0; ordinal < seen; ordinal++) {
        nvmlDevice_t device = device_at((unsigned)NUMBERS[ordinal]), other;
        char text[96], cuda_text[96], uuid[96];
        OK(nvmlDeviceGetName(device, text, sizeof text));
        EXPECT(!CU(cuDeviceGetName)(cuda_text, sizeof cuda_text, ordinal) && !strcmp(text, cuda_text));
        CUuuid bytes;
        OK(nvmlDeviceGetUUID(device, uuid, sizeof uuid));
        EXPECT(!CU(cuDeviceGetUuid)(&bytes, ordinal) && strlen(uuid) == 40 && !strncmp(uuid, "GPU-", 4));
        const char *at = uuid + 4;
        for (int i = 0; i < 16; i++) {
            char digits[3];
            at += *at == '-';
            snprintf(digits, sizeof digits, "%02x", (unsigned char)bytes.bytes[i]);
            EXPECT(!strncmp(at, digits, 2));
            at += 2;
        }
        OK(nvmlDeviceGetHandleByUUID(uuid, &other));
        EXPECT(other == device);
        /* As the driver spells it. */
        OK(nvmlDeviceGetHandleByUUID(uuid + strlen("GPU-"), &other));
        EXPECT(other == device);
        nvmlUUID_t as_bytes = {.version = NVML_STRUCT_VERSION(nvmlUUID_t, 1), .type = 2};
        memcpy(as_bytes.value.bytes, bytes.bytes, 16);
        OK(nvmlDeviceGetHandleByUUIDV(&as_bytes, &other));
        EXPECT(other == device);
        nvmlUUID_t as_text = {.version = as_bytes.version, .type = 1};
        memcpy(as_text.value.str, uuid, 41);
        OK(nvmlDeviceGetHandleByUUIDV(&as_text, &other));
        EXPECT(other == device);

        nvmlPciInfo_t pci;
        OK(nvmlDeviceGetPciInfo_v3(device, &pci));
        EXPECT(!CU(cuDeviceGetPCIBusId)(cuda_text, sizeof cuda_text, ordinal));
        EXPECT(!strcmp(pci.busIdLegacy, cuda_text) && !strcmp(pci.busId + 4, cuda_text));
        OK(nvmlDeviceGetHandleByPciBusId_v2(pci.busId, &other));
        EXPECT(other == device);
        OK(nvmlDeviceGetHandleByPciBusId_v2(cuda_text, &other));
        EXPECT(other == device);
        cuda_text[strlen(cuda_text) - 2] = 0;
        OK(nvmlDeviceGetHandleByPciBusId_v2(cuda_text + 5, &other));
        EXPECT(other == device);

        size_t total;
        nvmlMemory_t memory;
        OK(nvmlDeviceGetMemoryInfo(device, &memory));
        EXPECT(!CU(cuDeviceTotalMem)(&total, ordinal) && memory.total == total && memory.free + memory.used == total);
        int major, minor, value;
        OK(nvmlDeviceGetCudaComputeCapability(device, &major, &minor));
        EXPECT(!CU(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, ordinal) && value == major);
        EXPECT(!CU(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, ordinal) && value == minor);
        unsigned number;
        OK(nvmlDeviceGetClockInfo(device, NVML_CLOCK_SM, &number));
        EXPECT(!CU(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, ordinal) && value == (int)number * 1000);
        OK(nvmlDeviceGetMaxClockInfo(device, NVML_CLOCK_MEM, &number));
        EXPECT(!CU(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, ordinal) && value == (int)number * 1000);
        OK(nvmlDeviceGetMemoryBusWidth(device, &number));
        EXPECT(!CU(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, ordinal) && value == (int)number);
        nvmlDeviceAttributes_t attributes;
        OK(nvmlDeviceGetAttributes_v2(device, &attributes));
        EXPECT(!CU(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, ordinal));
        EXPECT(value == (int)attributes.multiprocessorCount && attributes.memorySizeMB == total >> 20);
        OK(nvmlDeviceGetIndex(device, &number));
        EXPECT((int)number == NUMBERS[ordinal]);
        OK(nvmlDeviceGetMinorNumber(device, &number));
        EXPECT((int)number == NUMBERS[ordinal]);
    }
    int may;
    nvmlGpuP2PStatus_t status;
    OK(nvmlDeviceGetP2PStatus(device_at(2), device_at(0), NVML_P2P_CAPS_INDEX_READ, &status));
    EXPECT(!CU(cuDeviceCanAccessPeer)(&may, 0, 1) && may == (status == NVML_P2P_STATUS_OK));
    OK(nvmlDeviceGetP2PStatus(device_at(2), device_at(0), NVML_P2P_CAPS_INDEX_NVLINK, &status));
    EXPECT(status == NVML_P2P_STATUS_NOT_SUPPORTED);
    nvmlGpuTopologyLevel_t level;
    OK(nvmlDeviceGetTopologyCommonAncestor(device_at(0), device_at(1), &level));
    EXPECT(level == NVML_TOPOLOGY_HOSTBRIDGE);
    nvmlDevice_t near[3] = {NULL};
    count = 0;
    OK(nvmlDeviceGetTopologyNearestGpus(device_at(1), level, &count, NULL));
    EXPECT(count == 2);
    OK(nvmlDeviceGetTopologyNearestGpus(device_at(1), level, &count, near));
    EXPECT(count == 2 && near[0] == device_at(0) && near[1] == device_at(2) && !near[2]);
    int same;
    OK(nvmlDeviceOnSameBoard(near[0], near[1], &same));
    EXPECT(!same);
}

/* Who has asked NVML may still choose devices, and fork. */
static void the_driver_is_left_alone(void) {
    unsigned count;
    OK(nvmlInit_v2());
    OK(nvmlDeviceGetCount_v2(&count));
    EXPECT(count == 3);
    nvmlUtilization_t utilization;
    OK(nvmlDeviceGetUtilizationRates(device_at(0), &utilization));
    EXPECT(CU(cuDeviceGetCount)(&(int){0}) == CUDA_ERROR_NOT_INITIALIZED);
    pid_t child = fork();
    EXPECT(child >= 0);
    int seen, status;
    setenv("CUDA_VISIBLE_DEVICES", child ? "1" : "1,2", 1);
    EXPECT(!CU(cuInit)(0) && !CU(cuDeviceGetCount)(&seen) && seen == (child ? 1 : 2));
    OK(nvmlDeviceGetCount_v2(&count));
    EXPECT(count == 3);
    if (!child) {
        _exit(0);
    }
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

static void none(void) {
    unsigned count = 7;
    nvmlDevice_t device;
    OK(nvmlInit_v2());
    OK(nvmlDeviceGetCount_v2(&count));
    EXPECT(count == 0);
    FAILS(INVALID_ARGUMENT, nvmlDeviceGetHandleByIndex_v2(0, &device));
}

static void switched_off(void) {
    unsigned count;
    FAILS(DRIVER_NOT_LOADED, nvmlInit_v2());
    FAILS(DRIVER_NOT_LOADED, nvmlInitWithFlags(1));
    FAILS(UNINITIALIZED, nvmlDeviceGetCount_v2(&count));
    FAILS(UNINITIALIZED, nvmlShutdown());
    EXPECT(!strcmp(nvmlErrorString(NVML_ERROR_DRIVER_NOT_LOADED), "Driver Not Loaded"));
}

static void is_counted(void) {
    unsigned count;
    FAILS(UNINITIALIZED, nvmlShutdown());
    for (int round = 0; round < 3; round++) {
        OK(nvmlInit());
        OK(nvmlInit_v2());
        OK(nvmlInitWithFlags(3));
        for (int left = 2; left >= 0; left--) {
            OK(nvmlDeviceGetCount_v2(&count));
            OK(nvmlShutdown());
        }
        FAILS(UNINITIALIZED, nvmlDeviceGetCount_v2(&count));
        FAILS(UNINITIALIZED, nvmlShutdown());
    }
}

static void texts_and_versions(void) {
    char text[96];
    OK(nvmlInit_v2());
    nvmlDevice_t device = device_at(0);
    OK(nvmlSystemGetDriverVersion(text, sizeof text));
    unsigned length = (unsigned)strlen(text) + 1;
    int major, minor, patch;
    EXPECT(sscanf(text, "%d.%d.%d", &major, &minor, &patch) == 3 && major >= 580);
    OK(nvmlSystemGetDriverVersion(text, length));
    FAILS(INSUFFICIENT_SIZE, nvmlSystemGetDriverVersion(text, length - 1));
    FAILS(INSUFFICIENT_SIZE, nvmlSystemGetDriverVersion(text, 0));
    FAILS(INVALID_ARGUMENT, nvmlSystemGetDriverVersion(NULL, 80));
    OK(nvmlSystemGetNVMLVersion(text, sizeof text));
    FAILS(INSUFFICIENT_SIZE, nvmlSystemGetNVMLVersion(text, 4));
    FAILS(INSUFFICIENT_SIZE, nvmlDeviceGetName(device, text, 5));
    FAILS(INSUFFICIENT_SIZE, nvmlDeviceGetUUID(device, text, 40));
    OK(nvmlDeviceGetUUID(device, text, 41));
    nvmlSystemDriverBranchInfo_t branch = {.version = NVML_STRUCT_VERSION(branch, 1)};
    OK(nvmlSystemGetDriverBranch(&branch, 80));
    EXPECT(branch.branch[0] == 'r');
    FAILS(INSUFFICIENT_SIZE, nvmlSystemGetDriverBranch(&branch, 2));
    branch.version++;
    FAILS(ARGUMENT_VERSION_MISMATCH, nvmlSystemGetDriverBranch(&branch, 80));
    nvmlMemory_v2_t memory = {.version = NVML_STRUCT_VERSION(memory, 2)};
    OK(nvmlDeviceGetMemoryInfo_v2(device, &memory));
    EXPECT(memory.total == memory.free + memory.used + memory.reserved);
    memory.version = 0;
    FAILS(ARGUMENT_VERSION_MISMATCH, nvmlDeviceGetMemoryInfo_v2(device, &memory));
    nvmlGpmSupport_t gpm = {1, 1};
    OK(nvmlGpmQueryDeviceSupport(device, &gpm));
    EXPECT(!gpm.isSupportedDevice);
    /* Earlier structures end earlier. */
    nvmlPciInfo_t pci;
    memset(&pci, 0x55, sizeof pci);
    OK(nvmlDeviceGetPciInfo(device, &pci));
    EXPECT(pci.bus == 1 && pci.pciSubSystemId == 0x55555555);
    OK(nvmlDeviceGetPciInfo_v2(device, &pci));
    EXPECT(pci.pciSubSystemId == 0 && pci.busId[0] == 0x55);
    nvmlPciInfoExt_t more = {.version = NVML_STRUCT_VERSION(more, 1)};
    OK(nvmlDeviceGetPciInfoExt(device, &more));
    EXPECT(more.bus == 1 && more.baseClass == 3);
    OK(nvmlSystemGetProcessName((unsigned)getpid(), text, sizeof text - 1));
    FAILS(INSUFFICIENT_SIZE, nvmlSystemGetProcessName((unsigned)getpid(), text, 1));
    FAILS(NOT_FOUND, nvmlSystemGetProcessName(0x7fffffff, text, sizeof text));
    EXPECT(!strcmp(nvmlErrorString(NVML_ERROR_NOT_SUPPORTED), "Not Supported"));
    EXPECT(!strcmp(nvmlErrorString((nvmlReturn_t)-77), "Unknown Error"));
}

static void nonsense_is_refused(void) {
    OK(nvmlInit_v2());
    nvmlDevice_t device = device_at(0), other = NULL;
    unsigned number = 0;
    const nvmlDevice_t wrong[] = {NULL, (nvmlDevice_t)1, (nvmlDevice_t)-1, (nvmlDevice_t)((char *)device + 1),
                                  (nvmlDevice_t)((char *)device - 8), (nvmlDevice_t)&number};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[96];
        nvmlMemory_t memory;
        nvmlUtilization_t utilization;
        FAILS(INVALID_ARGUMENT, nvmlDeviceGetName(wrong[i], text, sizeof text));
        FAILS(INVALID_ARGUMENT, nvmlDeviceGetIndex(wrong[i], &number));
        FAILS(INVALID_ARGUMENT, nvmlDeviceGetMemoryInfo(wrong[i], &memory));
        FAILS(INVALID_ARGUMENT, nvmlDeviceGetUtilizationRates(wrong[i], &utilization));
        FAILS(INVALID_ARGUMENT, nvmlDeviceGetComputeRunningProcesses_v3(wrong[i], &number, NULL));
        FAILS(INVALID_ARGUMENT, nvmlDeviceOnSameBoard(device, wrong[i], (int *)&number));
    }
    FAILS(INVALID_ARGUMENT, nvmlDeviceGetHandleByIndex_v2(3, &other));
    FAILS(INVALID_ARGUMENT, nvmlDeviceGetHandleByIndex_v2(~0u, &other));
    FAILS(INVALID_ARGUMENT, nvmlDeviceGetHandleByIndex_v2(0, NULL));
    const char *const uuids[] = {"", "GPU", "GPU-4d617267", "GPU-4d617267-6179-4000-8000-0000000000030",
                                 "4d617267", "4d617267-6179-4000-8000-0000000000030"};
    for (unsigned i = 0; i < sizeof uuids / sizeof *uuids; i++) {
        FAILS(NOT_FOUND, nvmlDeviceGetHandleByUUID(uuids[i], &other));
    }
    FAILS(INVALID_ARGUMENT, nvmlDeviceGetHandleByUUID(NULL, &other));
    nvmlUUID_t uuid = {.version = NVML_STRUCT_VERSION(uuid, 1), .type = 3};
    FAILS(INVALID_ARGUMENT, nvmlDeviceGetHandleByUUIDV(&uuid, &other));
    uuid.type = 1;
    memset(uuid.value.str, 'x', sizeof uuid.value.str);
    FAILS(NOT_FOUND, nvmlDeviceGetHandleByUUIDV(&uuid, &other));
    const char *const no_ids[] = {"", ":", "1", "x:y:z", "0000:01:00.0x", "0000:01:00.", "0000:01", "0000:01:00.0.0", "::"};
    const char *const ids[] = {"0000:09:00.0", "0001:01:00.0", "0000:01:00.1", "0000:01:01", "fffffff:01:00.0"};
    for (unsigned i = 0; i < sizeof no_ids / sizeof *no_ids; i++) {
        nvmlReturn_t result = nvmlDeviceGetHandleByPciBusId_v2(no_ids[i], &other);
        EXPECT(result == NVML_ERROR_INVALID_ARGUMENT || result == NVML_ERROR_NOT_FOUND);
    }
    for (unsigned i = 0; i < sizeof ids / sizeof *ids; i++) {
        FAILS(NOT_FOUND, nvmlDeviceGetHandleByPciBusId_v2(ids[i], &other));
    }
    EXPECT(!other);
    FAILS(INVALID_ARGUMENT, nvmlDeviceGetClockInfo(device, (nvmlClockType_t)9, &number));
    FAILS(NOT_SUPPORTED, nvmlDeviceGetClockInfo(device, NVML_CLOCK_VIDEO, &number));
    FAILS(INVALID_ARGUMENT, nvmlDeviceGetClock(device, NVML_CLOCK_SM, 17, &number));
    number = 0;
    FAILS(INSUFFICIENT_SIZE, nvmlDeviceGetSupportedMemoryClocks(device, &number, NULL));
    EXPECT(number == 1);
    FAILS(NOT_FOUND, nvmlDeviceGetSupportedGraphicsClocks(device, 1, &number, NULL));
    nvmlGpuP2PStatus_t status;
    OK(nvmlDeviceGetP2PStatus(device, device, NVML_P2P_CAPS_INDEX_READ, &status));
    EXPECT(status == NVML_P2P_STATUS_OK);
    FAILS(INVALID_ARGUMENT, nvmlDeviceGetP2PStatus(device, device_at(1), (nvmlGpuP2PCapsIndex_t)50, &status));
    unsigned count = 4;
    FAILS(INVALID_ARGUMENT, nvmlDeviceGetComputeRunningProcesses_v3(device, &count, NULL));
    FAILS(INVALID_ARGUMENT, nvmlDeviceGetTopologyNearestGpus(device, NVML_TOPOLOGY_HOSTBRIDGE, &count, NULL));
    OK(nvmlDeviceSetPersistenceMode(device, 0));
    FAILS(NOT_SUPPORTED, nvmlDeviceSetPersistenceMode(device, 1));
    FAILS(NOT_SUPPORTED, nvmlDeviceSetComputeMode(device, 3));
    FAILS(INVALID_ARGUMENT, nvmlDeviceSetComputeMode(device, 4));
    unsigned long set[3] = {0}, nodes[2] = {7, 7};
    OK(nvmlDeviceGetCpuAffinity(device, 3, set));
    EXPECT(set[0] & 1);
    OK(nvmlDeviceGetMemoryAffinity(device, 2, nodes, 1));
    EXPECT(nodes[0] & 1);
    FAILS(INVALID_ARGUMENT, nvmlDeviceGetMemoryAffinity(device, 0, nodes, 0));
    FAILS(INVALID_ARGUMENT, nvmlDeviceGetCpuAffinityWithinScope(device, 3, set, 2));
    nvmlFieldValue_t fields[2] = {{.fieldId = 91}, {.fieldId = ~0u}};
    OK(nvmlDeviceGetFieldValues(device, 2, fields));
    EXPECT(fields[0].nvmlReturn == NVML_ERROR_NOT_SUPPORTED && fields[1].nvmlReturn == NVML_ERROR_NOT_SUPPORTED);
    FAILS(INVALID_ARGUMENT, nvmlDeviceGetFieldValues(device, -1, fields));
}

/* Processes: on the last of three devices, where those of other programs on this machine are not likely to be. */

enum { HERE = 2, ELSEWHERE = 1 };

static void begin(void) {
    CUcontext context;
    EXPECT(!CU(cuInit)(0) && !CU(cuDevicePrimaryCtxRetain)(&context, HERE) && !CU(cuCtxSetCurrent)(context));
}

/* What is known of a process on a device; false if it is not there. */
static bool find(unsigned index, pid_t process, unsigned long long *used) {
    nvmlProcessInfo_t list[256];
    unsigned count = 256;
    OK(nvmlDeviceGetComputeRunningProcesses_v3(device_at(index), &count, list));
    for (unsigned i = 0; i < count; i++) {
        if (list[i].pid == (unsigned)process) {
            EXPECT(list[i].gpuInstanceId == ~0u && list[i].computeInstanceId == ~0u);
            *used = list[i].usedGpuMemory;
            return true;
        }
    }
    return false;
}

static void own_memory(void) {
    unsigned long long used = 0, before;
    OK(nvmlInit_v2());
    EXPECT(!find(HERE, getpid(), &used));
    EXPECT(!CU(cuInit)(0) && !find(HERE, getpid(), &used));
    begin();
    EXPECT(find(HERE, getpid(), &before));
    EXPECT(!find(ELSEWHERE, getpid(), &used));
    CUdeviceptr place;
    const size_t bytes = 100 << 20;
    EXPECT(!CU(cuMemAlloc)(&place, bytes));
    EXPECT(find(HERE, getpid(), &used) && used == before + bytes);
    size_t free_bytes, total;
    nvmlMemory_t memory;
    EXPECT(!CU(cuMemGetInfo)(&free_bytes, &total));
    EXPECT(total - free_bytes == used);
    OK(nvmlDeviceGetMemoryInfo(device_at(HERE), &memory));
    EXPECT(memory.total == total && memory.used == used && memory.free == free_bytes);
    /* Lists that have no room. */
    unsigned count = 0;
    FAILS(INSUFFICIENT_SIZE, nvmlDeviceGetComputeRunningProcesses_v3(device_at(HERE), &count, NULL));
    EXPECT(count >= 1);
    nvmlProcessInfo_v1_t early[256];
    count = 256;
    OK(nvmlDeviceGetComputeRunningProcesses(device_at(HERE), &count, early));
    bool there = false;
    for (unsigned i = 0; i < count; i++) {
        there |= early[i].pid == (unsigned)getpid() && early[i].usedGpuMemory == used;
    }
    EXPECT(there);
    count = 256;
    OK(nvmlDeviceGetGraphicsRunningProcesses(device_at(HERE), &count, early));
    EXPECT(count == 0);
    EXPECT(!CU(cuMemFree)(place) && find(HERE, getpid(), &used) && used == before);
    /* A second context of the same device is the same process. */
    CUcontext second;
    EXPECT(!CU(cuCtxCreate)(&second, NULL, 0, HERE) && find(HERE, getpid(), &used));
    EXPECT(!CU(cuDevicePrimaryCtxRelease)(HERE) && find(HERE, getpid(), &used));
    EXPECT(!CU(cuCtxDestroy)(second) && !find(HERE, getpid(), &used));
}

/* Holds memory until somebody ends it. */
static void hold(void) {
    begin();
    CUdeviceptr place;
    EXPECT(!CU(cuMemAlloc)(&place, 64 << 20));
    EXPECT(write(1, "x", 1) == 1);
    for (;;) {
        pause();
    }
}

static pid_t start(const char *name) {
    int ends[2];
    char byte;
    EXPECT(!pipe(ends));
    pid_t child = fork();
    EXPECT(child >= 0);
    if (!child) {
        dup2(ends[1], 1);
        close(ends[0]);
        execl("/proc/self/exe", "nvml", name, (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    EXPECT(read(ends[0], &byte, 1) == 1);
    close(ends[0]);
    return child;
}

static void others_memory(void) {
    unsigned long long used;
    nvmlMemory_t before, memory;
    OK(nvmlInit_v2());
    OK(nvmlDeviceGetMemoryInfo(device_at(HERE), &before));
    pid_t one = start("hold"), other = start("hold");
    EXPECT(find(HERE, one, &used) && used == 64 << 20 && find(HERE, other, &used) && used == 64 << 20);
    OK(nvmlDeviceGetMemoryInfo(device_at(HERE), &memory));
    EXPECT(memory.used == before.used + (128 << 20));
    /* Nothing is left of one that is killed. */
    kill(one, SIGKILL);
    EXPECT(waitpid(one, NULL, 0) == one && !find(HERE, one, &used) && find(HERE, other, &used));
    kill(other, SIGKILL);
    EXPECT(waitpid(other, NULL, 0) == other && !find(HERE, other, &used));
    OK(nvmlDeviceGetMemoryInfo(device_at(HERE), &memory));
    EXPECT(memory.used == before.used);
}

/* A child by fork is not its parent, and changes nothing of it. */
static void children(void) {
    unsigned long long used, after;
    OK(nvmlInit_v2());
    begin();
    CUdeviceptr place;
    EXPECT(!CU(cuMemAlloc)(&place, 8 << 20) && find(HERE, getpid(), &used));
    int ends[2];
    EXPECT(!pipe(ends));
    pid_t child = fork();
    EXPECT(child >= 0);
    if (!child) {
        CU(cuMemFree)(place);
        CU(cuDevicePrimaryCtxRelease)(HERE);
        EXPECT(write(ends[1], "x", 1) == 1);
        pause();
        _exit(0);
    }
    char byte;
    EXPECT(read(ends[0], &byte, 1) == 1);
    EXPECT(find(HERE, getpid(), &after) && after == used && !find(HERE, child, &after));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    EXPECT(find(HERE, getpid(), &after) && after == used);
}

static const char SPIN[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
                           ".visible .entry spin() { .reg .b64 %a, %b; .reg .pred %p; mov.u64 %a, %globaltimer;\n"
                           "L: mov.u64 %b, %globaltimer; sub.u64 %b, %b, %a; setp.lt.u64 %p, %b, 600000000; @%p bra L; ret; }\n";

static void busy_devices(void) {
    nvmlUtilization_t utilization;
    OK(nvmlInit_v2());
    CUmodule module;
    CUfunction kernel;
    begin();
    EXPECT(!CU(cuModuleLoadData)(&module, SPIN) && !CU(cuModuleGetFunction)(&kernel, module, "spin"));
    sleep_ms(200);
    OK(nvmlDeviceGetUtilizationRates(device_at(HERE), &utilization));
    EXPECT(utilization.gpu == 0);
    EXPECT(!CU(cuLaunchKernel)(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    sleep_ms(400);
    /* While it runs. */
    OK(nvmlDeviceGetUtilizationRates(device_at(HERE), &utilization));
    EXPECT(utilization.gpu >= 30 && utilization.gpu <= 100);
    OK(nvmlDeviceGetUtilizationRates(device_at(ELSEWHERE), &utilization));
    EXPECT(utilization.gpu == 0);
    EXPECT(!CU(cuCtxSynchronize)());
    nvmlProcessUtilizationSample_t samples[64];
    unsigned count = 64, own = 0;
    OK(nvmlDeviceGetProcessUtilization(device_at(HERE), samples, &count, 0));
    for (unsigned i = 0; i < count; i++) {
        own += samples[i].pid == (unsigned)getpid() && samples[i].smUtil <= 100 && samples[i].timeStamp;
    }
    EXPECT(own == 1);
    FAILS(NOT_FOUND, nvmlDeviceGetProcessUtilization(device_at(HERE), samples, &count, ~0ull));
    count = 0;
    FAILS(INSUFFICIENT_SIZE, nvmlDeviceGetProcessUtilization(device_at(HERE), NULL, &count, 0));
    EXPECT(count >= 1);
    /* When it has ended, and the time before does not count any more. */
    sleep_ms(200);
    OK(nvmlDeviceGetUtilizationRates(device_at(HERE), &utilization));
    sleep_ms(200);
    OK(nvmlDeviceGetUtilizationRates(device_at(HERE), &utilization));
    EXPECT(utilization.gpu == 0);
}

static void events(void) {
    nvmlEventSet_t set, other;
    nvmlEventData_t data;
    unsigned long long types;
    OK(nvmlInit_v2());
    nvmlDevice_t device = device_at(0);
    OK(nvmlEventSetCreate(&set));
    OK(nvmlEventSetCreate(&other));
    OK(nvmlDeviceGetSupportedEventTypes(device, &types));
    /* As a Kubernetes device plugin does: critical, double-bit and single-bit errors, as far as they are supported. */
    OK(nvmlDeviceRegisterEvents(device, types & (8 | 2 | 1), set));
    FAILS(NOT_SUPPORTED, nvmlDeviceRegisterEvents(device, 2, set));
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    FAILS(TIMEOUT, nvmlEventSetWait_v2(set, &data, 120));
    clock_gettime(CLOCK_MONOTONIC, &to);
    long waited = (to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000;
    EXPECT(waited >= 119);
    FAILS(TIMEOUT, nvmlEventSetWait(set, &data, 0));
    OK(nvmlEventSetFree(set));
    FAILS(INVALID_ARGUMENT, nvmlEventSetFree(set));
    FAILS(INVALID_ARGUMENT, nvmlEventSetWait_v2(set, &data, 1000000));
    FAILS(INVALID_ARGUMENT, nvmlDeviceRegisterEvents(device, 0, set));
    FAILS(INVALID_ARGUMENT, nvmlEventSetWait_v2(NULL, &data, 1000000));
    OK(nvmlEventSetFree(other));
    nvmlSystemEventSetRequest_t request = {.version = NVML_STRUCT_VERSION(request, 1)};
    OK(nvmlSystemEventSetCreate(&request));
    nvmlSystemRegisterEventRequest_t wanted = {NVML_STRUCT_VERSION(wanted, 1), 3, request.set};
    OK(nvmlSystemRegisterEvents(&wanted));
    nvmlSystemEventSetWaitRequest_t wait = {NVML_STRUCT_VERSION(wait, 1), 10, request.set, &data, 1, 7};
    FAILS(TIMEOUT, nvmlSystemEventSetWait(&wait));
    EXPECT(wait.numEvent == 0);
    OK(nvmlSystemEventSetFree(&request));
    FAILS(INVALID_ARGUMENT, nvmlSystemEventSetWait(&wait));
    wait.version = 0;
    FAILS(ARGUMENT_VERSION_MISMATCH, nvmlSystemEventSetWait(&wait));
}

static void *ask(void *unused) {
    for (int i = 0; i < 50; i++) {
        nvmlMemory_t memory;
        nvmlUtilization_t utilization;
        nvmlEventSet_t set;
        OK(nvmlInit_v2());
        OK(nvmlDeviceGetMemoryInfo(device_at(0), &memory));
        OK(nvmlDeviceGetUtilizationRates(device_at((unsigned)i % 3), &utilization));
        OK(nvmlEventSetCreate(&set));
        OK(nvmlEventSetFree(set));
        OK(nvmlShutdown());
    }
    return unused;
}

static void from_threads(void) {
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) {
        EXPECT(!pthread_create(&threads[i], NULL, ask, NULL));
    }
    begin();
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
    }
    FAILS(UNINITIALIZED, nvmlShutdown());
}

#define CASE(name) {#name, name}
static const struct {
    const char *name;
    void (*run)(void);
} CASES[] = {
    CASE(all_are_there), CASE(the_rest_is_refused), CASE(devices_are_the_drivers), CASE(the_driver_is_left_alone), CASE(none),
    CASE(switched_off), CASE(is_counted), CASE(texts_and_versions), CASE(nonsense_is_refused), CASE(own_memory), CASE(hold),
    CASE(others_memory), CASE(children), CASE(busy_devices), CASE(events), CASE(from_threads),
};

int main(int count, char **words) {
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        if (count > 1 && !strcmp(words[1], CASES[i].name)) {
            CASES[i].run();
            return 0;
        }
    }
    return 2;
}
