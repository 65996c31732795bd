/* Events: none ever comes, for no device breaks, and no driver leaves one or comes to it. Those who wait for that may (a
 * Kubernetes device plugin does). */
#include "driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct nvmlEventSet_st {
    struct nvmlEventSet_st *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static nvmlEventSet_t sets;

/* The place that holds the set, or the end of the list. */
static nvmlEventSet_t *find(nvmlEventSet_t set) {
    nvmlEventSet_t *place = &sets;
    while (*place && *place != set) {
        place = &(*place)->next;
    }
    return place;
}

bool is_event_set(nvmlEventSet_t set) {
    pthread_mutex_lock(&lock);
    bool is = set && *find(set);
    pthread_mutex_unlock(&lock);
    return is;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
    REQUIRE(set);
    nvmlEventSet_t made = malloc(sizeof *made);
    if (!made) {
        return NVML_ERROR_MEMORY;
    }
    pthread_mutex_lock(&lock);
    made->next = sets;
    sets = made;
    pthread_mutex_unlock(&lock);
    *set = made;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
    REQUIRE(set);
    pthread_mutex_lock(&lock);
    nvmlEventSet_t *place = find(set), found = *place;
    if (found) {
        *place = found->next;
    }
    pthread_mutex_unlock(&lock);
    free(found);
    return found ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types) {
    REQUIRE(is_device(device) && types);
    *types = NVML_EVENT_TYPE_XID_CRITICAL_ERROR;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
    REQUIRE(is_device(device) && is_event_set(set));
    return types & ~(unsigned long long)NVML_EVENT_TYPE_XID_CRITICAL_ERROR ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

static nvmlReturn_t wait_in_vain(unsigned milliseconds) {
    struct timespec left = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000l};
    /* A signal's handler has run; the rest of the time is still to be waited for. */
    while (nanosleep(&left, &left)) {
    }
    return NVML_ERROR_TIMEOUT;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned milliseconds) {
    REQUIRE(is_event_set(set) && data);
    return wait_in_vain(milliseconds);
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned milliseconds) {
    return nvmlEventSetWait_v2(set, data, milliseconds);
}

/* Of the system: the same, with everything in one structure. */

#define REQUIRE_VERSION(request)                                          \
    do {                                                                  \
        REQUIRE(request);                                                 \
        if ((request)->version != NVML_STRUCT_VERSION(*(request), 1)) {   \
            return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;                  \
        }                                                                 \
    } while (0)

nvmlReturn_t nvmlSystemEventSetCreate(nvmlSystemEventSetRequest_t *request) {
    REQUIRE_VERSION(request);
    return nvmlEventSetCreate(&request->set);
}

nvmlReturn_t nvmlSystemEventSetFree(nvmlSystemEventSetRequest_t *request) {
    REQUIRE_VERSION(request);
    return nvmlEventSetFree(request->set);
}

nvmlReturn_t nvmlSystemRegisterEvents(nvmlSystemRegisterEventRequest_t *request) {
    REQUIRE_VERSION(request);
    REQUIRE(is_event_set(request->set) && request->eventTypes <= 3);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemEventSetWait(nvmlSystemEventSetWaitRequest_t *request) {
    REQUIRE_VERSION(request);
    REQUIRE(is_event_set(request->set) && request->data);
    request->numEvent = 0;
    return wait_in_vain(request->timeoutms);
}
