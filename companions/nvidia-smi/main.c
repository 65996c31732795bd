/* nvidia-smi: what it is asked for on the command line, for devices of Margay's. It looks; it changes nothing. */
#include "smi.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char HELP[] =
    "nvidia-smi of Margay: the devices of its libcuda.so.1, and the processes that use them.\n"
    "\n"
    "nvidia-smi [OPTION]...\n"
    "\n"
    "  (nothing)                      a table of devices and processes\n"
    "  -L, --list-gpus                a line for each device\n"
    "  -q, --query                    all that is known of each device\n"
    "  --query-gpu=FIELD,...          these fields of each device; --help-query-gpu lists them\n"
    "  --query-compute-apps=FIELD,... these fields of each process; --help-query-compute-apps lists them\n"
    "  --format=csv[,noheader][,nounits]  how queries are printed; needed with them\n"
    "  -i, --id=ID,...                only these devices, by index, UUID or PCI bus id\n"
    "  -f, --filename=FILE            write to a file\n"
    "  -l, --loop=SECONDS             again and again; -lms, --loop-ms=MILLISECONDS\n"
    "  --version                      versions\n"
    "  -h, --help                     this\n"
    "\n"
    "MARGAY_DEVICES and its like say what devices there are: margay info. MARGAY_COMPANIONS=0 switches this off.\n";

enum mode { TABLE, LIST, DETAILS, DEVICES, PROCESSES };

struct request {
    enum mode mode;
    const char *fields;
    const char *ids;
    const char *format;
    const char *file;
    long every; /* milliseconds; 0: once */
};

__attribute__((format(printf, 1, 2))) static int wrong(const char *words, ...) {
    va_list arguments;
    va_start(arguments, words);
    vprintf(words, arguments);
    va_end(arguments);
    puts(" Please run 'nvidia-smi -h' for help.");
    return WRONG_USE;
}

static int fails(nvmlReturn_t result) {
    if (result == NVML_ERROR_DRIVER_NOT_LOADED) {
        const char *companions = getenv("MARGAY_COMPANIONS");
        puts("NVIDIA-SMI has failed because it could not communicate with the driver.");
        puts(companions && !strcmp(companions, "0") ? "MARGAY_COMPANIONS=0 switches Margay's NVML off."
                                                    : "Margay's libcuda.so.1 belongs beside libnvidia-ml.so.1.");
    } else {
        printf("NVIDIA-SMI has failed: %s\n", nvmlErrorString(result));
    }
    return (int)result;
}

/* `-i` and its like: the value, in this word or the next; NULL if it is not this option. A missing value is empty. */
static const char *value_of(char **words, int *at, const char *brief, const char *full) {
    const char *word = words[*at];
    size_t length = strlen(full);
    if (!strncmp(word, full, length) && word[length] == '=') {
        return word + length + 1;
    }
    if (strcmp(word, full) && (!brief || strcmp(word, brief))) {
        return NULL;
    }
    return words[*at + 1] ? words[++*at] : "";
}

static bool set_mode(struct request *request, enum mode mode, const char *fields) {
    bool is_first = request->mode == TABLE;
    request->mode = mode;
    request->fields = fields;
    return is_first;
}

/* A time in milliseconds; -1 unless it is a number of them above 0. */
static long milliseconds(const char *text, long unit) {
    char *end;
    long number = strtol(text, &end, 10);
    return end != text && !*end && number > 0 && number <= 1000000 ? number * unit : -1;
}

/* Reads the command line; an exit code if there is nothing more to do, -1 otherwise. */
static int read_words(int count, char **words, struct request *request) {
    for (int i = 1; i < count; i++) {
        const char *word = words[i], *value;
        bool fits = true;
        if (!strcmp(word, "-h") || !strcmp(word, "--help")) {
            fputs(HELP, stdout);
            return 0;
        } else if (!strcmp(word, "--help-query-gpu")) {
            list_device_fields();
            return 0;
        } else if (!strcmp(word, "--help-query-compute-apps")) {
            list_process_fields();
            return 0;
        } else if (!strcmp(word, "-L") || !strcmp(word, "--list-gpus")) {
            fits = set_mode(request, LIST, NULL);
        } else if (!strcmp(word, "-q") || !strcmp(word, "--query")) {
            fits = set_mode(request, DETAILS, NULL);
        } else if ((value = value_of(words, &i, NULL, "--query-gpu"))) {
            fits = set_mode(request, DEVICES, value);
        } else if ((value = value_of(words, &i, NULL, "--query-compute-apps"))) {
            fits = set_mode(request, PROCESSES, value);
        } else if ((value = value_of(words, &i, NULL, "--format"))) {
            request->format = value;
        } else if ((value = value_of(words, &i, "-i", "--id"))) {
            request->ids = value;
        } else if ((value = value_of(words, &i, "-f", "--filename"))) {
            request->file = value;
        } else if ((value = value_of(words, &i, "-l", "--loop"))) {
            request->every = milliseconds(value, 1000);
        } else if ((value = value_of(words, &i, "-lms", "--loop-ms"))) {
            request->every = milliseconds(value, 1);
        } else {
            return wrong("Option %s is not known here.", word);
        }
        if (!fits) {
            return wrong("Option %s does not go with another one that says what to show.", word);
        }
        if (request->every < 0) {
            return wrong("Option %s takes a number above 0.", word);
        }
    }
    return -1;
}

static int read_format(const struct request *request, struct format *format) {
    *format = (struct format){true, true};
    bool is_query = request->mode == DEVICES || request->mode == PROCESSES;
    if (is_query != (request->format != NULL)) {
        return wrong("--format=csv goes with --query-gpu and --query-compute-apps, which ask for it.");
    }
    if (!is_query) {
        return -1;
    }
    bool is_csv = false;
    char *list = strdup(request->format), *rest = list;
    for (char *word; (word = strsep(&rest, ","));) {
        word += strspn(word, " ");
        if (!strcmp(word, "csv")) {
            is_csv = true;
        } else if (!strcmp(word, "noheader")) {
            format->header = false;
        } else if (!strcmp(word, "nounits")) {
            format->units = false;
        } else {
            int code = wrong("\"%s\" is not a format.", word);
            free(list);
            return code;
        }
    }
    free(list);
    return is_csv ? -1 : wrong("The format must be csv.");
}

/* A device by its index, UUID or PCI bus id. */
static nvmlReturn_t find(const char *id, nvmlDevice_t *device) {
    char *end;
    unsigned long index = strtoul(id, &end, 10);
    if (end != id && !*end) {
        return index < MOST_DEVICES ? nvmlDeviceGetHandleByIndex_v2((unsigned)index, device) : NVML_ERROR_NOT_FOUND;
    }
    return !strncmp(id, "GPU-", 4) ? nvmlDeviceGetHandleByUUID(id, device) : nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

static bool select_devices(const char *ids, struct selection *selection) {
    selection->count = 0;
    if (!ids) {
        unsigned count = 0;
        nvmlDeviceGetCount_v2(&count);
        for (unsigned i = 0; i < count && i < MOST_DEVICES; i++) {
            selection->count += nvmlDeviceGetHandleByIndex_v2(i, &selection->devices[selection->count]) == NVML_SUCCESS;
        }
        return selection->count > 0;
    }
    char *list = strdup(ids), *rest = list;
    bool all = true;
    for (char *word; list && all && (word = strsep(&rest, ","));) {
        all = selection->count < MOST_DEVICES && find(word, &selection->devices[selection->count]) == NVML_SUCCESS;
        selection->count += all;
    }
    free(list);
    return all && selection->count > 0;
}

static void list_devices(const struct selection *selection) {
    for (unsigned i = 0; i < selection->count; i++) {
        struct device device;
        read_device(selection->devices[i], &device);
        printf("GPU %u: %s (UUID: %s)\n", device.index, device.name, device.uuid);
    }
}

static int show(const struct request *request, const struct selection *selection, const struct format *format) {
    switch (request->mode) {
    case TABLE:
        print_table(selection);
        return 0;
    case LIST:
        list_devices(selection);
        return 0;
    case DETAILS:
        print_details(selection);
        return 0;
    case DEVICES:
        return query_devices(request->fields, selection, format);
    case PROCESSES:
        return query_processes(request->fields, selection, format);
    }
    return 0;
}

static void wait_for(long milliseconds) {
    nanosleep(&(struct timespec){.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000}, NULL);
}

/* Utilisation needs some time to be seen in; only where somebody may use the devices. */
static void let_time_pass(const struct selection *selection) {
    unsigned busy = 0;
    for (unsigned i = 0; i < selection->count; i++) {
        unsigned there;
        free(read_processes(selection->devices[i], &there));
        busy += there;
    }
    if (busy) {
        wait_for(100);
    }
}

static int print_versions(void) {
    char release[80] = "", nvml[80] = "";
    int cuda = 0;
    nvmlSystemGetDriverVersion(release, sizeof release);
    nvmlSystemGetNVMLVersion(nvml, sizeof nvml);
    nvmlSystemGetCudaDriverVersion_v2(&cuda);
    printf("NVIDIA-SMI version  : %s (Margay)\nNVML version        : %s\nDRIVER version      : %s\nCUDA Version        : %d.%d\n",
           release, nvml, release, cuda / 1000, cuda % 1000 / 10);
    return 0;
}

int main(int count, char **words) {
    struct request request = {.mode = TABLE};
    struct format format;
    struct selection selection;
    bool only_versions = count == 2 && !strcmp(words[1], "--version");
    int code = only_versions ? -1 : read_words(count, words, &request);
    if (code < 0) {
        code = read_format(&request, &format);
    }
    if (code >= 0) {
        return code;
    }
    nvmlReturn_t result = nvmlInit_v2();
    if (result != NVML_SUCCESS) {
        return fails(result);
    }
    if (only_versions) {
        return print_versions();
    }
    if (!select_devices(request.ids, &selection)) {
        puts("No devices were found");
        return NOTHING_FOUND;
    }
    if (request.file) {
        FILE *file = fopen(request.file, "we");
        if (!file || dup2(fileno(file), STDOUT_FILENO) < 0) {
            return wrong("%s cannot be written.", request.file);
        }
        fclose(file);
    }
    if (request.mode != LIST && request.mode != PROCESSES) {
        let_time_pass(&selection);
    }
    while ((code = show(&request, &selection, &format)) == 0 && request.every) {
        fflush(stdout);
        wait_for(request.every);
    }
    if (fflush(stdout) || ferror(stdout)) {
        return 255;
    }
    nvmlShutdown();
    return code;
}
