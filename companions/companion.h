/* What every companion has: the library that it stands in for.
 *
 * A companion has the SONAME of one of NVIDIA's libraries and all of its exports. Margay's libcuda.so.1 loads it first and
 * tells it where NVIDIA's own lies (src/companions/); whoever asks the loader for that name afterwards has the companion. */
#ifndef MARGAY_COMPANION_H
#define MARGAY_COMPANION_H

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static char *real_path;
static void *real_library;

/* Called once by libcuda.so.1, before anything else. */
EXPORT void margay_companion_for(const char *path) {
    if (!real_path) {
        real_path = strdup(path);
    }
}

static void open_real(void) {
    /* By its path: by its name the loader would find this library. Its own RPATH leads to what it needs. */
    real_library = real_path ? dlopen(real_path, RTLD_LAZY | RTLD_LOCAL) : NULL;
}

/* A function of NVIDIA's library, which is opened when the first one is asked for; NULL if there is none. */
static void *real(const char *name) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_real);
    return real_library ? dlsym(real_library, name) : NULL;
}

#endif
