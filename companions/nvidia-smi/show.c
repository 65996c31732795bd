/* The table that people look at, and -q. */
#include "smi.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

void write_time(char *text, size_t room, const char *format, bool milliseconds) {
    struct timespec now;
    struct tm local;
    clock_gettime(CLOCK_REALTIME, &now);
    size_t end = localtime_r(&now.tv_sec, &local) ? strftime(text, room, format, &local) : 0;
    text[end] = 0;
    if (milliseconds) {
        snprintf(text + end, room - end, ".%03ld", now.tv_nsec / 1000000);
    }
}

const char *read_compute_mode(nvmlDevice_t handle) {
    static const char *const WORDS[] = {"Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process"};
    unsigned mode = 0;
    nvmlReturn_t result = nvmlDeviceGetComputeMode(handle, &mode);
    return result == NVML_SUCCESS && mode < sizeof WORDS / sizeof *WORDS ? WORDS[mode] : NULL;
}

void read_device(nvmlDevice_t handle, struct device *device) {
    nvmlDeviceAttributes_t attributes = {0};
    *device = (struct device){.index = 0};
    nvmlDeviceGetIndex(handle, &device->index);
    nvmlDeviceGetName(handle, device->name, sizeof device->name);
    nvmlDeviceGetUUID(handle, device->uuid, sizeof device->uuid);
    nvmlDeviceGetPciInfo_v3(handle, &device->pci);
    nvmlDeviceGetCudaComputeCapability(handle, &device->major, &device->minor);
    nvmlDeviceGetMemoryInfo(handle, &device->memory);
    nvmlDeviceGetUtilizationRates(handle, &device->utilization);
    nvmlDeviceGetAttributes_v2(handle, &attributes);
    nvmlDeviceGetClockInfo(handle, NVML_CLOCK_SM, &device->graphics_clock);
    nvmlDeviceGetClockInfo(handle, NVML_CLOCK_MEM, &device->memory_clock);
    device->multiprocessors = attributes.multiprocessorCount;
    const char *mode = read_compute_mode(handle);
    device->compute_mode = mode ? mode : "N/A";
}

nvmlProcessInfo_t *read_processes(nvmlDevice_t handle, unsigned *count) {
    nvmlProcessInfo_t *all = NULL;
    unsigned room = 0;
    for (;;) {
        *count = room;
        nvmlReturn_t result = nvmlDeviceGetComputeRunningProcesses_v3(handle, count, all);
        if (result == NVML_SUCCESS) {
            return all;
        }
        room = *count + 8;
        nvmlProcessInfo_t *more = result == NVML_ERROR_INSUFFICIENT_SIZE ? realloc(all, room * sizeof *more) : NULL;
        if (!more) {
            free(all);
            *count = 0;
            return NULL;
        }
        all = more;
    }
}

static void versions(char release[80], char cuda[16]) {
    int version = 0;
    *release = 0;
    nvmlSystemGetDriverVersion(release, 80);
    nvmlSystemGetCudaDriverVersion_v2(&version);
    snprintf(cuda, 16, "%d.%d", version / 1000, version % 1000 / 10);
}

/* A line of `width` characters between `|`, whatever the text's length. */
static void line(const char *text) { printf("| %-87.87s |\n", text); }
static void rule(const char *pattern) { puts(pattern); }

#define RULE "+-----------------------------------------------------------------------------------------+"
#define COLUMNS "+-----------------------------------------+------------------------+----------------------+"

void print_table(const struct selection *selection) {
    char text[256], release[80], cuda[16], process[4096];
    versions(release, cuda);
    write_time(text, sizeof text, "%a %b %e %H:%M:%S %Y", false);
    puts(text);
    rule(RULE);
    snprintf(text, sizeof text, "NVIDIA-SMI %s (Margay)        Driver Version: %-13s CUDA Version: %s", release, release, cuda);
    line(text);
    rule(COLUMNS);
    puts("| GPU  Name                               | Bus-Id                 | GPU-Util  Compute M. |");
    puts("|                                         |           Memory-Usage |                      |");
    rule(COLUMNS);
    for (unsigned i = 0; i < selection->count; i++) {
        struct device device;
        read_device(selection->devices[i], &device);
        printf("| %3u  %-34.34s | %-22.22s | %7u%% %11.11s |\n", device.index, device.name, device.pci.busId,
               device.utilization.gpu, device.compute_mode);
        snprintf(text, sizeof text, "%lluMiB / %lluMiB", device.memory.used >> 20, device.memory.total >> 20);
        printf("| %-39s | %22s | %20s |\n", "", text, "");
        rule(COLUMNS);
    }
    putchar('\n');
    rule(RULE);
    line("Processes:");
    line(" GPU       PID   Type   Process name                                    GPU Memory Usage");
    rule(RULE);
    bool any = false;
    for (unsigned i = 0; i < selection->count; i++) {
        unsigned there, index = 0;
        nvmlDeviceGetIndex(selection->devices[i], &index);
        nvmlProcessInfo_t *all = read_processes(selection->devices[i], &there);
        for (unsigned j = 0; j < there; j++) {
            if (nvmlSystemGetProcessName(all[j].pid, process, sizeof process) != NVML_SUCCESS) {
                strcpy(process, "[Not Found]");
            }
            snprintf(text, sizeof text, " %3u %9u      C   %-46.46s %13lluMiB", index, all[j].pid, process,
                     all[j].usedGpuMemory >> 20);
            line(text);
            any = true;
        }
        free(all);
    }
    if (!any) {
        line(" No running processes found");
    }
    rule(RULE);
}

static void entry(int depth, const char *name, const char *value) {
    printf("%*s%-*s : %s\n", 4 * depth, "", 38 - 4 * depth, name, value);
}

static void number(int depth, const char *name, unsigned long long value, const char *unit) {
    char text[64];
    snprintf(text, sizeof text, "%llu%s%s", value, *unit ? " " : "", unit);
    entry(depth, name, text);
}

void print_details(const struct selection *selection) {
    char text[4096], release[80], cuda[16];
    unsigned count = 0;
    versions(release, cuda);
    nvmlDeviceGetCount_v2(&count);
    write_time(text, sizeof text, "%a %b %e %H:%M:%S %Y", false);
    puts("\n==============NVSMI LOG==============\n");
    entry(0, "Timestamp", text);
    entry(0, "Driver Version", release);
    entry(0, "CUDA Version", cuda);
    putchar('\n');
    number(0, "Attached GPUs", count, "");
    for (unsigned i = 0; i < selection->count; i++) {
        struct device device;
        nvmlDevice_t handle = selection->devices[i];
        read_device(handle, &device);
        printf("GPU %s\n", device.pci.busId);
        entry(1, "Product Name", device.name);
        entry(1, "GPU UUID", device.uuid);
        number(1, "Minor Number", device.index, "");
        entry(1, "Compute Mode", device.compute_mode);
        snprintf(text, sizeof text, "%d.%d", device.major, device.minor);
        entry(1, "Compute Capability", text);
        number(1, "Multiprocessors", device.multiprocessors, "");
        puts("    PCI");
        entry(2, "Bus Id", device.pci.busId);
        puts("    FB Memory Usage");
        number(2, "Total", device.memory.total >> 20, "MiB");
        number(2, "Used", device.memory.used >> 20, "MiB");
        number(2, "Free", device.memory.free >> 20, "MiB");
        puts("    Utilization");
        number(2, "GPU", device.utilization.gpu, "%");
        number(2, "Memory", device.utilization.memory, "%");
        puts("    Clocks");
        number(2, "SM", device.graphics_clock, "MHz");
        number(2, "Memory", device.memory_clock, "MHz");
        unsigned there;
        nvmlProcessInfo_t *all = read_processes(handle, &there);
        if (!there) {
            entry(1, "Processes", "None");
        } else {
            puts("    Processes");
        }
        for (unsigned j = 0; j < there; j++) {
            if (nvmlSystemGetProcessName(all[j].pid, text, sizeof text) != NVML_SUCCESS) {
                strcpy(text, "[Not Found]");
            }
            number(2, "Process ID", all[j].pid, "");
            entry(3, "Type", "C");
            entry(3, "Name", text);
            number(3, "Used GPU Memory", all[j].usedGpuMemory >> 20, "MiB");
        }
        free(all);
        putchar('\n');
    }
}
