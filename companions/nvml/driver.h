/* What the files of this library share: the driver beside it, which knows everything, and the devices.
 *
 * The driver answers by a table of functions (src/api/private_tables/management.rs) that neither initialises it nor looks at
 * CUDA_VISIBLE_DEVICES: programs look for a free device with NVML before they set that variable, or before they fork. */
#ifndef MARGAY_NVML_DRIVER_H
#define MARGAY_NVML_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
#include "nvml.h"
#pragma GCC visibility pop

struct description {
    char name[96];
    char pci_bus_id[32]; /* dddd:bb:dd.f */
    unsigned char uuid[16];
    uint64_t memory;
    uint32_t major, minor;
};

struct process {
    uint32_t process;
    uint32_t device; /* its number among all */
    uint64_t used;
    uint64_t busy; /* nanoseconds in which its kernels ran */
};

struct driver {
    size_t bytes;
    int (*begin)(void); /* the number of devices, -1 if companions are switched off */
    const char *(*release)(void);
    int (*describe)(uint32_t device, struct description *description);
    int (*attribute)(uint32_t device, int attribute); /* of CUdevice_attribute */
    uint32_t (*processes)(struct process *list, uint32_t room);
    int (*peer_attribute)(uint32_t from, uint32_t to, uint32_t attribute); /* of CUdevice_P2PAttribute */
    void (*tell)(const char *call);
};

/* A device, and its handle. */
struct nvmlDevice_st {
    unsigned number;
    unsigned domain, bus, slot;
    struct description is;
};

enum { MOST_DEVICES = 64 };

/* Whether it is between nvmlInit and the nvmlShutdown that goes with it. */
bool is_initialised(void);
/* The driver, from the first nvmlInit on. */
const struct driver *driver(void);
int cuda_version(void);
unsigned device_count(void);
nvmlDevice_t device_at(unsigned index);
/* Whether this is a device's handle, whatever it points to. */
bool is_device(nvmlDevice_t device);

/* processes.c: the moment from which utilisation counts. */
void begin_sampling(void);
/* events.c */
bool is_event_set(nvmlEventSet_t set);

/* What nearly every function begins with. */
#define REQUIRE(condition)                     \
    do {                                       \
        if (!is_initialised()) {               \
            return NVML_ERROR_UNINITIALIZED;   \
        }                                      \
        if (!(condition)) {                    \
            return NVML_ERROR_INVALID_ARGUMENT;\
        }                                      \
    } while (0)

/* Text as NVML hands it out. */
nvmlReturn_t give_text(char *place, unsigned length, const char *text);

#endif
