/* Processes that have contexts on a device, the memory that they use there, and how long their kernels run.
 *
 * The driver keeps a page for each process, which those can read who may look at the process: the same user's, and root's, of
 * the same container. Each process may fill a device's whole memory, for it lies in the machine's; what several use is shown as
 * one sum, as of one device.
 *
 * Utilisation is the part of the time in which kernels ran, since the question before, if that is at least a sixth of a second
 * ago, or since nvmlInit. */
#include "driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The kernels' clock (src/driver/process/record.rs). */
static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

struct list {
    struct process *all;
    uint32_t count;
    uint64_t when;
};

/* All pairs of processes and devices; false if there is no memory for them. The caller frees it. */
static bool look(struct list *list) {
    uint32_t room = 16;
    list->all = NULL;
    for (;;) {
        struct process *all = realloc(list->all, room * sizeof *all);
        if (!all) {
            free(list->all);
            return false;
        }
        list->all = all;
        list->when = now();
        list->count = driver()->processes(all, room);
        if (list->count <= room) {
            return true;
        }
        room = list->count + 16;
    }
}

/* Memory */

static nvmlReturn_t used_memory(nvmlDevice_t device, uint64_t *used) {
    struct list list;
    if (!look(&list)) {
        return NVML_ERROR_MEMORY;
    }
    *used = 0;
    for (uint32_t i = 0; i < list.count; i++) {
        uint64_t more = list.all[i].device == device->number ? list.all[i].used : 0;
        *used = more < device->is.memory - *used ? *used + more : device->is.memory;
    }
    free(list.all);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    REQUIRE(is_device(device) && memory);
    uint64_t used;
    nvmlReturn_t result = used_memory(device, &used);
    if (result == NVML_SUCCESS) {
        *memory = (nvmlMemory_t){.total = device->is.memory, .free = device->is.memory - used, .used = used};
    }
    return result;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    REQUIRE(is_device(device) && memory);
    if (memory->version != NVML_STRUCT_VERSION(*memory, 2)) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    nvmlMemory_t all;
    nvmlReturn_t result = nvmlDeviceGetMemoryInfo(device, &all);
    if (result == NVML_SUCCESS) {
        memory->total = all.total;
        memory->reserved = 0;
        memory->free = all.free;
        memory->used = all.used;
    }
    return result;
}

/* Processes */

static nvmlReturn_t give_processes(nvmlDevice_t device, unsigned *count, void *place, size_t bytes) {
    REQUIRE(is_device(device) && count && (place || !*count));
    struct list list;
    if (!look(&list)) {
        return NVML_ERROR_MEMORY;
    }
    unsigned room = *count;
    *count = 0;
    for (uint32_t i = 0; i < list.count; i++) {
        if (list.all[i].device != device->number) {
            continue;
        }
        if (*count < room) {
            /* The first version is the beginning of the others. */
            nvmlProcessInfo_t process = {list.all[i].process, list.all[i].used, ~0u, ~0u};
            memcpy((char *)place + *count * bytes, &process, bytes);
        }
        ++*count;
    }
    free(list.all);
    return *count <= room ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v1_t *list) {
    return give_processes(device, count, list, sizeof *list);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *list) {
    return give_processes(device, count, list, sizeof *list);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *list) {
    return give_processes(device, count, list, sizeof *list);
}

/* Nobody draws with these devices, nor shares them through a server. */
#define NO_PROCESSES(name, type)                                                     \
    nvmlReturn_t name(nvmlDevice_t device, unsigned *count, type *list) {            \
        REQUIRE(is_device(device) && count && (list || !*count));                    \
        *count = 0;                                                                  \
        return NVML_SUCCESS;                                                         \
    }
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_t)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_t)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t)

/* Utilisation */

enum { LEAST = 1000000, PERIOD = 1000000000 / 6 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* What each device's next answer is compared with. */
static struct list before[MOST_DEVICES];

static bool keep(struct list *place, const struct list *list) {
    struct process *all = malloc((list->count + 1) * sizeof *all);
    if (!all) {
        return false;
    }
    memcpy(all, list->all, list->count * sizeof *all);
    free(place->all);
    *place = (struct list){all, list->count, list->when};
    return true;
}

void begin_sampling(void) {
    struct list list;
    if (!look(&list)) {
        return;
    }
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < device_count(); i++) {
        keep(&before[i], &list);
    }
    pthread_mutex_unlock(&lock);
    free(list.all);
}

/* Nanoseconds in which a process was busy since then. */
static uint64_t busy_since(const struct list *then, const struct process *process) {
    for (uint32_t i = 0; i < then->count; i++) {
        const struct process *old = &then->all[i];
        if (old->process == process->process && old->device == process->device && old->busy <= process->busy) {
            return process->busy - old->busy;
        }
    }
    /* It was not there, and if it is the number of another one by now, that was not either. */
    return process->busy;
}

/* Calls `each` for the processes of a device, with the part of the time that each was busy, in percent. */
static nvmlReturn_t sample(nvmlDevice_t device, void (*each)(void *, const struct process *, unsigned, uint64_t), void *to) {
    struct list list;
    pthread_mutex_lock(&lock);
    struct list *then = &before[device->number];
    uint64_t waited = now() - then->when;
    if (waited < LEAST) {
        nanosleep(&(struct timespec){.tv_nsec = (long)(LEAST - waited)}, NULL);
    }
    bool looked = look(&list);
    for (uint32_t i = 0; looked && i < list.count; i++) {
        if (list.all[i].device == device->number) {
            uint64_t percent = busy_since(then, &list.all[i]) * 100 / (list.when - then->when + 1);
            each(to, &list.all[i], percent < 100 ? (unsigned)percent : 100, list.when);
        }
    }
    if (looked && list.when - then->when >= PERIOD) {
        keep(then, &list);
    }
    pthread_mutex_unlock(&lock);
    if (!looked) {
        return NVML_ERROR_MEMORY;
    }
    free(list.all);
    return NVML_SUCCESS;
}

static void add(void *to, const struct process *process, unsigned percent, uint64_t when) {
    (void)process;
    (void)when;
    nvmlUtilization_t *sum = to;
    sum->gpu = sum->gpu + percent < 100 ? sum->gpu + percent : 100;
}

/* Nobody counts the time in which memory is read or written: 0. */
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization) {
    REQUIRE(is_device(device) && utilization);
    *utilization = (nvmlUtilization_t){0, 0};
    return sample(device, add, utilization);
}

struct room {
    nvmlProcessUtilizationSample_t *samples;
    unsigned room, count;
    unsigned long long last;
};

static void collect(void *to, const struct process *process, unsigned percent, uint64_t when) {
    struct room *room = to;
    if (when / 1000 <= room->last) {
        return;
    }
    if (room->count < room->room) {
        room->samples[room->count] =
            (nvmlProcessUtilizationSample_t){.pid = process->process, .timeStamp = when / 1000, .smUtil = percent};
    }
    room->count++;
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples, unsigned *count,
                                             unsigned long long last) {
    REQUIRE(is_device(device) && count);
    struct room room = {samples, samples ? *count : 0, 0, last};
    nvmlReturn_t result = sample(device, collect, &room);
    if (result != NVML_SUCCESS) {
        return result;
    }
    *count = room.count;
    if (room.count > room.room) {
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    return room.count ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}
