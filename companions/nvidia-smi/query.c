/* Queries for scripts: fields in, comma-separated values out. */
#include "smi.h"

#include <stdlib.h>
#include <string.h>

/* What a field is about: a device, or a process on it. */
struct subject {
    nvmlDevice_t device;
    nvmlProcessInfo_t process;
};

enum { ROOM = 4200 };

/* Writes a value, without its unit; false if there is none. */
typedef bool value_of(const struct subject *about, unsigned which, char *text);

struct field {
    const char *name, *other_name, *unit;
    value_of *value;
    unsigned which;
};

static bool text_of(nvmlReturn_t result, char *text, const char *value) {
    snprintf(text, ROOM, "%s", value);
    return result == NVML_SUCCESS;
}

static bool number_of(nvmlReturn_t result, char *text, unsigned long long value) {
    snprintf(text, ROOM, "%llu", value);
    return result == NVML_SUCCESS;
}

static bool nothing(const struct subject *about, unsigned which, char *text) {
    (void)about;
    (void)which;
    (void)text;
    return false;
}

static bool timestamp(const struct subject *about, unsigned which, char *text) {
    (void)about;
    (void)which;
    write_time(text, ROOM, "%Y/%m/%d %H:%M:%S", true);
    return true;
}

static bool release(const struct subject *about, unsigned which, char *text) {
    (void)about;
    (void)which;
    return nvmlSystemGetDriverVersion(text, ROOM) == NVML_SUCCESS;
}

static bool count(const struct subject *about, unsigned which, char *text) {
    (void)about;
    (void)which;
    unsigned number = 0;
    nvmlReturn_t result = nvmlDeviceGetCount_v2(&number);
    return number_of(result, text, number);
}

static bool name(const struct subject *about, unsigned which, char *text) {
    (void)which;
    return nvmlDeviceGetName(about->device, text, ROOM) == NVML_SUCCESS;
}

static bool uuid(const struct subject *about, unsigned which, char *text) {
    (void)which;
    return nvmlDeviceGetUUID(about->device, text, ROOM) == NVML_SUCCESS;
}

static bool device_index(const struct subject *about, unsigned which, char *text) {
    (void)which;
    unsigned number = 0;
    nvmlReturn_t result = nvmlDeviceGetIndex(about->device, &number);
    return number_of(result, text, number);
}

enum { BUS_ID, DOMAIN_NUMBER, BUS, SLOT, DEVICE_ID, SUBSYSTEM };

static bool pci(const struct subject *about, unsigned which, char *text) {
    nvmlPciInfo_t info = {.busId = ""};
    if (nvmlDeviceGetPciInfo_v3(about->device, &info) != NVML_SUCCESS) {
        return false;
    }
    const struct {
        unsigned value;
        int digits;
    } parts[] = {
        {0, 0}, {info.domain, 4}, {info.bus, 2}, {info.device, 2}, {info.pciDeviceId, 8}, {info.pciSubSystemId, 8},
    };
    if (which == BUS_ID) {
        return text_of(NVML_SUCCESS, text, info.busId);
    }
    snprintf(text, ROOM, "0x%0*X", parts[which].digits, parts[which].value);
    return true;
}

static bool compute_capability(const struct subject *about, unsigned which, char *text) {
    (void)which;
    int major = 0, minor = 0;
    nvmlReturn_t result = nvmlDeviceGetCudaComputeCapability(about->device, &major, &minor);
    snprintf(text, ROOM, "%d.%d", major, minor);
    return result == NVML_SUCCESS;
}

enum { TOTAL, USED, FREE, RESERVED };

static bool memory(const struct subject *about, unsigned which, char *text) {
    nvmlMemory_v2_t all = {.version = NVML_STRUCT_VERSION(all, 2)};
    nvmlReturn_t result = nvmlDeviceGetMemoryInfo_v2(about->device, &all);
    const unsigned long long bytes[] = {all.total, all.used, all.free, all.reserved};
    return number_of(result, text, bytes[which] >> 20);
}

enum { OF_KERNELS, OF_MEMORY };

static bool utilization(const struct subject *about, unsigned which, char *text) {
    nvmlUtilization_t both = {0, 0};
    nvmlReturn_t result = nvmlDeviceGetUtilizationRates(about->device, &both);
    return number_of(result, text, which == OF_KERNELS ? both.gpu : both.memory);
}

static bool clock_of(const struct subject *about, unsigned which, char *text) {
    unsigned mhz = 0;
    nvmlReturn_t result = nvmlDeviceGetClockInfo(about->device, (nvmlClockType_t)which, &mhz);
    return number_of(result, text, mhz);
}

enum { PERSISTENCE, DISPLAY_MODE, DISPLAY_ACTIVE };

static bool state(const struct subject *about, unsigned which, char *text) {
    nvmlReturn_t (*const calls[])(nvmlDevice_t, nvmlEnableState_t *) = {
        nvmlDeviceGetPersistenceMode, nvmlDeviceGetDisplayMode, nvmlDeviceGetDisplayActive};
    nvmlEnableState_t on = 0;
    nvmlReturn_t result = calls[which](about->device, &on);
    return text_of(result, text, on ? "Enabled" : "Disabled");
}

static bool compute_mode(const struct subject *about, unsigned which, char *text) {
    (void)which;
    const char *mode = read_compute_mode(about->device);
    return mode && text_of(NVML_SUCCESS, text, mode);
}

static bool process_number(const struct subject *about, unsigned which, char *text) {
    (void)which;
    return number_of(NVML_SUCCESS, text, about->process.pid);
}

static bool process_name(const struct subject *about, unsigned which, char *text) {
    (void)which;
    return nvmlSystemGetProcessName(about->process.pid, text, ROOM) == NVML_SUCCESS;
}

static bool process_memory(const struct subject *about, unsigned which, char *text) {
    (void)which;
    return number_of(NVML_SUCCESS, text, about->process.usedGpuMemory >> 20);
}

static const struct field DEVICE_FIELDS[] = {
    {"timestamp", NULL, NULL, timestamp, 0},
    {"driver_version", NULL, NULL, release, 0},
    {"count", NULL, NULL, count, 0},
    {"name", "gpu_name", NULL, name, 0},
    {"serial", "gpu_serial", NULL, nothing, 0},
    {"uuid", "gpu_uuid", NULL, uuid, 0},
    {"index", NULL, NULL, device_index, 0},
    {"pci.bus_id", "gpu_bus_id", NULL, pci, BUS_ID},
    {"pci.domain", NULL, NULL, pci, DOMAIN_NUMBER},
    {"pci.bus", NULL, NULL, pci, BUS},
    {"pci.device", NULL, NULL, pci, SLOT},
    {"pci.device_id", NULL, NULL, pci, DEVICE_ID},
    {"pci.sub_device_id", NULL, NULL, pci, SUBSYSTEM},
    {"compute_cap", NULL, NULL, compute_capability, 0},
    {"compute_mode", NULL, NULL, compute_mode, 0},
    {"persistence_mode", NULL, NULL, state, PERSISTENCE},
    {"display_mode", "display_attached", NULL, state, DISPLAY_MODE},
    {"display_active", NULL, NULL, state, DISPLAY_ACTIVE},
    {"memory.total", NULL, "MiB", memory, TOTAL},
    {"memory.used", NULL, "MiB", memory, USED},
    {"memory.free", NULL, "MiB", memory, FREE},
    {"memory.reserved", NULL, "MiB", memory, RESERVED},
    {"utilization.gpu", NULL, "%", utilization, OF_KERNELS},
    {"utilization.memory", NULL, "%", utilization, OF_MEMORY},
    {"utilization.encoder", NULL, "%", nothing, 0},
    {"utilization.decoder", NULL, "%", nothing, 0},
    {"clocks.gr", "clocks.current.graphics", "MHz", clock_of, NVML_CLOCK_GRAPHICS},
    {"clocks.sm", "clocks.current.sm", "MHz", clock_of, NVML_CLOCK_SM},
    {"clocks.mem", "clocks.current.memory", "MHz", clock_of, NVML_CLOCK_MEM},
    {"clocks.video", "clocks.current.video", "MHz", clock_of, NVML_CLOCK_VIDEO},
    {"clocks.max.gr", "clocks.max.graphics", "MHz", clock_of, NVML_CLOCK_GRAPHICS},
    {"clocks.max.sm", NULL, "MHz", clock_of, NVML_CLOCK_SM},
    {"clocks.max.mem", "clocks.max.memory", "MHz", clock_of, NVML_CLOCK_MEM},
    {"clocks.applications.gr", "clocks.applications.graphics", "MHz", clock_of, NVML_CLOCK_GRAPHICS},
    {"clocks.applications.mem", "clocks.applications.memory", "MHz", clock_of, NVML_CLOCK_MEM},
    {"vbios_version", NULL, NULL, nothing, 0},
    {"pstate", NULL, NULL, nothing, 0},
    {"fan.speed", NULL, "%", nothing, 0},
    {"temperature.gpu", NULL, NULL, nothing, 0},
    {"temperature.memory", NULL, NULL, nothing, 0},
    {"power.draw", NULL, "W", nothing, 0},
    {"power.limit", NULL, "W", nothing, 0},
    {"power.max_limit", NULL, "W", nothing, 0},
    {"enforced.power.limit", NULL, "W", nothing, 0},
    {"mig.mode.current", NULL, NULL, nothing, 0},
    {"mig.mode.pending", NULL, NULL, nothing, 0},
    {"ecc.mode.current", NULL, NULL, nothing, 0},
    {"ecc.mode.pending", NULL, NULL, nothing, 0},
    {"ecc.errors.corrected.volatile.total", NULL, NULL, nothing, 0},
    {"ecc.errors.uncorrected.volatile.total", NULL, NULL, nothing, 0},
    {"pcie.link.gen.current", NULL, NULL, nothing, 0},
    {"pcie.link.gen.max", NULL, NULL, nothing, 0},
    {"pcie.link.width.current", NULL, NULL, nothing, 0},
    {"pcie.link.width.max", NULL, NULL, nothing, 0},
};

static const struct field PROCESS_FIELDS[] = {
    {"timestamp", NULL, NULL, timestamp, 0},
    {"gpu_name", NULL, NULL, name, 0},
    {"gpu_bus_id", NULL, NULL, pci, BUS_ID},
    {"gpu_serial", NULL, NULL, nothing, 0},
    {"gpu_uuid", NULL, NULL, uuid, 0},
    {"pid", NULL, NULL, process_number, 0},
    {"process_name", "name", NULL, process_name, 0},
    {"used_gpu_memory", "used_memory", "MiB", process_memory, 0},
};

enum {
    DEVICE_COUNT = sizeof DEVICE_FIELDS / sizeof *DEVICE_FIELDS,
    PROCESS_COUNT = sizeof PROCESS_FIELDS / sizeof *PROCESS_FIELDS,
    MOST_FIELDS = 256,
};

struct column {
    const struct field *field;
    const char *name; /* as it was asked for */
};

/* The columns that a list of names asks for; -1, said to the user, if there is one that is not known. */
static int columns_of(char *list, const struct field *known, int count, struct column *columns) {
    int found = 0;
    char *rest = list;
    for (char *word; (word = strsep(&rest, ","));) {
        word += strspn(word, " ");
        word[strcspn(word, " ")] = 0;
        int i = 0;
        while (i < count && strcmp(word, known[i].name) && (!known[i].other_name || strcmp(word, known[i].other_name))) {
            i++;
        }
        if (i == count) {
            printf("Field \"%s\" is not a valid field to query.\n\n", word);
            return -1;
        }
        if (found == MOST_FIELDS) {
            printf("More than %d fields to query.\n", MOST_FIELDS);
            return -1;
        }
        columns[found++] = (struct column){&known[i], word};
    }
    return found;
}

static void print_header(const struct column *columns, int count) {
    for (int i = 0; i < count; i++) {
        printf("%s%s", i ? ", " : "", columns[i].name);
        if (columns[i].field->unit) {
            printf(" [%s]", columns[i].field->unit);
        }
    }
    putchar('\n');
}

static void print_row(const struct column *columns, int count, const struct subject *about, const struct format *format) {
    static char text[ROOM];
    for (int i = 0; i < count; i++) {
        const struct field *field = columns[i].field;
        bool known = field->value(about, field->which, text);
        printf("%s%s", i ? ", " : "", known ? text : "[N/A]");
        if (known && field->unit && format->units) {
            printf(" %s", field->unit);
        }
    }
    putchar('\n');
}

static int query(const char *fields, const struct selection *selection, const struct format *format, bool processes) {
    struct column columns[MOST_FIELDS];
    char *list = strdup(fields);
    int count = !list     ? -1
                : processes ? columns_of(list, PROCESS_FIELDS, PROCESS_COUNT, columns)
                            : columns_of(list, DEVICE_FIELDS, DEVICE_COUNT, columns);
    if (count < 0) {
        free(list);
        return WRONG_USE;
    }
    if (format->header) {
        print_header(columns, count);
    }
    for (unsigned i = 0; i < selection->count; i++) {
        struct subject about = {.device = selection->devices[i]};
        if (!processes) {
            print_row(columns, count, &about, format);
            continue;
        }
        unsigned there;
        nvmlProcessInfo_t *all = read_processes(about.device, &there);
        for (unsigned j = 0; j < there; j++) {
            about.process = all[j];
            print_row(columns, count, &about, format);
        }
        free(all);
    }
    free(list);
    return 0;
}

int query_devices(const char *fields, const struct selection *selection, const struct format *format) {
    return query(fields, selection, format, false);
}

int query_processes(const char *fields, const struct selection *selection, const struct format *format) {
    return query(fields, selection, format, true);
}

static void list_fields(const struct field *fields, int count) {
    for (int i = 0; i < count; i++) {
        const struct field *field = &fields[i];
        printf("%s%s%s%s\n", field->name, field->other_name ? " or " : "", field->other_name ? field->other_name : "",
               field->value == nothing ? "  (always [N/A])" : "");
    }
}

void list_device_fields(void) { list_fields(DEVICE_FIELDS, DEVICE_COUNT); }
void list_process_fields(void) { list_fields(PROCESS_FIELDS, PROCESS_COUNT); }
