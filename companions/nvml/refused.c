/* Every function that says "not supported", after the checks that come before that. */
#include "driver.h"

/* They take at most six arguments, integers and pointers, which x86-64 passes in registers whatever they are: one shape serves
 * for all. A shorter call leaves rubbish in the others, which nobody looks at. */
static nvmlReturn_t refuse(const char *name, const char *letters, const intptr_t *arguments) {
    if (!is_initialised()) {
        return NVML_ERROR_UNINITIALIZED;
    }
    for (int i = 0; letters[i]; i++) {
        bool good = true;
        switch (letters[i]) {
        case 'd':
            good = is_device((nvmlDevice_t)arguments[i]);
            break;
        case 'e':
            good = is_event_set((nvmlEventSet_t)arguments[i]);
            break;
        case 'p':
            good = arguments[i] != 0;
            break;
        case 'u':
        case 'g':
        case 'c':
        case 's':
            /* There are none that it could be. */
            good = false;
            break;
        default:
            break;
        }
        if (!good) {
            return NVML_ERROR_INVALID_ARGUMENT;
        }
    }
    driver()->tell(name);
    return NVML_ERROR_NOT_SUPPORTED;
}

#define ANSWERED(name)
#define REFUSED(name, letters)                                                                                   \
    __attribute__((visibility("default"))) nvmlReturn_t name(intptr_t a, intptr_t b, intptr_t c, intptr_t d,    \
                                                             intptr_t e, intptr_t f) {                          \
        return refuse(#name, letters, (const intptr_t[]){a, b, c, d, e, f});                                     \
    }
#include "functions.h"
