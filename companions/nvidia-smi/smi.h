/* What the files of nvidia-smi share. */
#ifndef MARGAY_SMI_H
#define MARGAY_SMI_H

#include <stdbool.h>
#include <stdio.h>

#include "../nvml/nvml.h"

/* Exit codes, as nvidia-smi's manual page lists them: NVML's errors, of which these two have other causes, too. */
enum { WRONG_USE = NVML_ERROR_INVALID_ARGUMENT, NOTHING_FOUND = NVML_ERROR_NOT_FOUND };

enum { MOST_DEVICES = 64 };

/* The devices that are asked for. */
struct selection {
    nvmlDevice_t devices[MOST_DEVICES];
    unsigned count;
};

/* How a query is printed. */
struct format {
    bool header, units;
};

/* A device as the table and -q show it; what NVML does not answer is zero. */
struct device {
    unsigned index;
    char name[96], uuid[96];
    const char *compute_mode;
    nvmlPciInfo_t pci;
    int major, minor;
    nvmlMemory_t memory;
    nvmlUtilization_t utilization;
    unsigned multiprocessors, graphics_clock, memory_clock;
};

void read_device(nvmlDevice_t handle, struct device *device);
/* NULL if it has none that is known. */
const char *read_compute_mode(nvmlDevice_t handle);

/* The processes on a device; the caller frees them. NULL if there are none. */
nvmlProcessInfo_t *read_processes(nvmlDevice_t handle, unsigned *count);

/* Prints what a list of fields asks for. Answers the exit code. */
int query_devices(const char *fields, const struct selection *selection, const struct format *format);
int query_processes(const char *fields, const struct selection *selection, const struct format *format);
void list_device_fields(void);
void list_process_fields(void);

void print_table(const struct selection *selection);
void print_details(const struct selection *selection);

/* The time of day, by a format of strftime. */
void write_time(char *text, size_t room, const char *format, bool milliseconds);

#endif
