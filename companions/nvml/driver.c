/* The driver beside this library, nvmlInit and nvmlShutdown, and what is known of the driver as a whole. */
#include "driver.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const unsigned char TABLE[16] = "Margay, devices\1";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct driver *found; /* once found it stays, as do the devices */
static int version;
static struct nvmlDevice_st devices[MOST_DEVICES];
static unsigned count;
static atomic_uint users;

bool is_initialised(void) { return atomic_load(&users) > 0; }
const struct driver *driver(void) { return found; }
int cuda_version(void) { return version; }
unsigned device_count(void) { return count; }
nvmlDevice_t device_at(unsigned index) { return &devices[index]; }

bool is_device(nvmlDevice_t device) {
    uintptr_t offset = (uintptr_t)device - (uintptr_t)devices;
    return offset < count * sizeof *devices && offset % sizeof *devices == 0;
}

/* The table of a library, if it is our driver. */
static const struct driver *table_of(void *library) {
    int (*get)(const void **, const void *) = (int (*)(const void **, const void *))dlsym(library, "cuGetExportTable");
    int (*get_version)(int *) = (int (*)(int *))dlsym(library, "cuDriverGetVersion");
    const void *table = NULL;
    if (!get || !get_version || get(&table, TABLE) || !table || get_version(&version)) {
        return NULL;
    }
    return ((const struct driver *)table)->bytes >= sizeof(struct driver) ? table : NULL;
}

/* The driver that the process has, or the one in this library's folder, as it was found or where it really lies. */
static const struct driver *find(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    const struct driver *table = library ? table_of(library) : NULL;
    if (table) {
        return table;
    }
    Dl_info own;
    if (!dladdr((void *)(uintptr_t)find, &own) || !own.dli_fname) {
        return NULL;
    }
    char real[PATH_MAX] = "";
    const char *places[] = {own.dli_fname, realpath(own.dli_fname, real)};
    for (int i = 0; i < 2 && !table; i++) {
        const char *end = places[i] ? strrchr(places[i], '/') : NULL;
        char path[PATH_MAX + 16];
        if (!end) {
            continue;
        }
        int written = snprintf(path, sizeof path, "%.*s/libcuda.so.1", (int)(end - places[i]), places[i]);
        if (written > 0 && (size_t)written < sizeof path && (library = dlopen(path, RTLD_NOW | RTLD_LOCAL))) {
            table = table_of(library);
        }
    }
    return table;
}

static bool look_at_devices(const struct driver *table) {
    int there = table->begin();
    if (there < 0) {
        return false;
    }
    for (count = 0; count < (unsigned)there && count < MOST_DEVICES; count++) {
        struct nvmlDevice_st *device = &devices[count];
        device->number = count;
        if (!table->describe(count, &device->is)) {
            break;
        }
        sscanf(device->is.pci_bus_id, "%x:%x:%x", &device->domain, &device->bus, &device->slot);
    }
    return true;
}

nvmlReturn_t nvmlInit_v2(void) {
    pthread_mutex_lock(&lock);
    if (!found) {
        const struct driver *table = find();
        if (table && look_at_devices(table)) {
            found = table;
        }
    }
    nvmlReturn_t result = found ? NVML_SUCCESS : NVML_ERROR_DRIVER_NOT_LOADED;
    if (found && atomic_fetch_add(&users, 1) == 0) {
        begin_sampling();
    }
    pthread_mutex_unlock(&lock);
    return result;
}

nvmlReturn_t nvmlInit(void) { return nvmlInit_v2(); }

/* The flags say what is no failure: no devices, devices that cannot be attached. Neither is one here. */
nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    return nvmlInit_v2();
}

nvmlReturn_t nvmlShutdown(void) {
    unsigned before = atomic_load(&users);
    do {
        if (before == 0) {
            return NVML_ERROR_UNINITIALIZED;
        }
    } while (!atomic_compare_exchange_weak(&users, &before, before - 1));
    return NVML_SUCCESS;
}

nvmlReturn_t give_text(char *place, unsigned length, const char *text) {
    size_t bytes = strlen(text) + 1;
    if (length < bytes) {
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    memcpy(place, text, bytes);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *text, unsigned length) {
    REQUIRE(text);
    return give_text(text, length, driver()->release());
}

/* The major version of CUDA, and the driver's release. */
nvmlReturn_t nvmlSystemGetNVMLVersion(char *text, unsigned length) {
    REQUIRE(text);
    char all[80];
    snprintf(all, sizeof all, "%d.%s", version / 1000, driver()->release());
    return give_text(text, length, all);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *number) {
    REQUIRE(number);
    *number = version;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *number) { return nvmlSystemGetCudaDriverVersion_v2(number); }

nvmlReturn_t nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_t *info, unsigned length) {
    REQUIRE(info);
    if (info->version != NVML_STRUCT_VERSION(*info, 1)) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    char branch[80];
    const char *release = driver()->release();
    snprintf(branch, sizeof branch, "r%.*s", (int)strcspn(release, "."), release);
    return give_text(info->branch, length < sizeof info->branch ? length : sizeof info->branch, branch);
}

/* The first word of its command line; for threads of the kernel, which have none, their name. */
nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length) {
    REQUIRE(name && length > 0);
    static const char *const FILES[] = {"cmdline", "comm"};
    char text[4096] = "";
    bool there = false;
    for (int i = 0; i < 2 && !*text; i++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%u/%s", pid, FILES[i]);
        FILE *file = fopen(path, "re");
        if (file) {
            text[fread(text, 1, sizeof text - 1, file)] = 0;
            text[strcspn(text, "\n")] = 0;
            fclose(file);
            there = true;
        }
    }
    return there ? give_text(name, length, text) : NVML_ERROR_NOT_FOUND;
}

const char *nvmlErrorString(nvmlReturn_t result) {
    static const struct {
        unsigned result;
        const char *words;
    } ALL[] = {
        {0, "Success"},
        {1, "Uninitialized"},
        {2, "Invalid Argument"},
        {3, "Not Supported"},
        {4, "Insufficient Permissions"},
        {5, "Already Initialized"},
        {6, "Not Found"},
        {7, "Insufficient Size"},
        {8, "Insufficient External Power"},
        {9, "Driver Not Loaded"},
        {10, "Timeout"},
        {11, "Interrupt Request Issue"},
        {12, "NVML Shared Library Not Found"},
        {13, "Function Not Found"},
        {14, "Corrupted infoROM"},
        {15, "GPU is lost"},
        {16, "GPU requires reset"},
        {17, "The operating system has blocked the request"},
        {18, "Driver/library version mismatch"},
        {19, "In use by another client"},
        {20, "Insufficient Memory"},
        {21, "No data"},
        {22, "The requested vGPU operation is not available while ECC is enabled"},
        {23, "Insufficient resources"},
        {24, "Frequency not supported"},
        {25, "Argument version mismatch"},
        {26, "Deprecated"},
        {27, "Not ready"},
        {28, "GPU not found"},
        {29, "Invalid state"},
        {30, "Reset type not supported"},
    };
    for (size_t i = 0; i < sizeof ALL / sizeof *ALL; i++) {
        if (ALL[i].result == (unsigned)result) {
            return ALL[i].words;
        }
    }
    return "Unknown Error";
}
