/* nvJitLink that links PTX instead of machine code.
 *
 * PTX, fat binaries, objects and libraries go to the driver's own linker (cuLink*), and its image is what the program gets
 * as the linked cubin; it goes, unread by the program, into the driver's load calls. LTO-IR goes to NVIDIA's library, which
 * links it to PTX (-lto -ptx), and that to the driver's linker. Options are checked by NVIDIA's library: each link has one of
 * its links behind it, which does all the work where the program asks for PTX, and where there is no device to link for. */
#include "companion.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum {
    SUCCESS = 0,
    ERROR_INVALID_INPUT = 3,
    ERROR_PTX_COMPILE = 4,
    ERROR_INTERNAL = 6,
    ERROR_NULL_INPUT = 10,
} Result;

typedef enum { CUBIN = 1, PTX, LTOIR, FATBIN, OBJECT, LIBRARY, INDEX, ANY = 10 } Input;

enum { LOG_BYTES = 64 << 10, LTOIR_MAGIC = 0x7f4e43ed };

typedef struct Link *Handle;

struct Link {
    /* What the program has of it: this very address, or, where the link was made before the program was led here, NVIDIA's. */
    Handle handle;
    Handle next;
    /* NVIDIA's link. */
    Handle real;
    /* All of it is NVIDIA's business. */
    bool forwarded;
    bool lto;
    /* NVIDIA's link has inputs. */
    bool has_ltoir;
    /* The driver's has some of the program's. */
    bool has_others;
    /* NVIDIA's link once more, which keeps all functions of its LTO-IR: what links LTO-IR with something else needs those
     * that only the other inputs call. NULL: NVIDIA's library has no such option. */
    Handle keeping;
    uint32_t count;
    const char **options;
    CUlinkState state;
    void *image;
    size_t bytes;
    /* The driver keeps the addresses of these until the link is destroyed. */
    CUjit_option names[4];
    void *values[4];
    char errors[LOG_BYTES], remarks[LOG_BYTES];
};

/* A function of NVIDIA's, or an answer in its place. */
#define REAL(name, types, ...)                                      \
    ({                                                              \
        Result(*function) types = (Result(*) types)real(#name);     \
        function ? function(__VA_ARGS__) : ERROR_INTERNAL;          \
    })

/* All links that there are. */
static Handle links;
static pthread_mutex_t links_lock = PTHREAD_MUTEX_INITIALIZER;

/* Called with the lock. */
static void enlist(Handle link, Handle handle) {
    link->handle = handle;
    link->next = links;
    links = link;
}

static void strike(Handle link) {
    pthread_mutex_lock(&links_lock);
    for (Handle *place = &links; *place; place = &(*place)->next) {
        if (*place == link) {
            *place = link->next;
            break;
        }
    }
    pthread_mutex_unlock(&links_lock);
}

/* The link that a program means. One that is not in the list is NVIDIA's, made before the program was led here: it stays theirs. */
static Handle find(Handle handle) {
    if (!handle) {
        return NULL;
    }
    pthread_mutex_lock(&links_lock);
    Handle link = links;
    while (link && link->handle != handle) {
        link = link->next;
    }
    if (!link && (link = calloc(1, sizeof *link))) {
        link->real = handle;
        link->forwarded = true;
        enlist(link, handle);
    }
    pthread_mutex_unlock(&links_lock);
    return link;
}

EXPORT Result nvJitLinkDestroy(Handle *handle) {
    Handle link = handle ? find(*handle) : NULL;
    if (!link) {
        return ERROR_NULL_INPUT;
    }
    strike(link);
    if (link->real) {
        REAL(nvJitLinkDestroy, (Handle *), &link->real);
    }
    if (link->keeping) {
        REAL(nvJitLinkDestroy, (Handle *), &link->keeping);
    }
    if (link->state) {
        cuLinkDestroy(link->state);
    }
    for (uint32_t i = 0; i < link->count; i++) {
        free((char *)link->options[i]);
    }
    free(link->options);
    free(link);
    *handle = NULL;
    return SUCCESS;
}

/* Copies the options, with -ptx behind those that say -lto; whoever says both has NVIDIA's PTX. There is room for one more. */
static bool keep_options(Handle link, uint32_t count, const char **options) {
    link->options = calloc((size_t)count + 2, sizeof *link->options);
    bool complete = link->options != NULL, ptx = false;
    for (uint32_t i = 0; complete && i < count; i++) {
        link->lto |= !strcmp(options[i], "-lto");
        ptx |= !strcmp(options[i], "-ptx");
        complete = (link->options[link->count++] = strdup(options[i])) != NULL;
    }
    link->forwarded |= link->lto && ptx;
    if (complete && link->lto && !link->forwarded) {
        complete = (link->options[link->count++] = strdup("-ptx")) != NULL;
    }
    return complete;
}

/* Makes the link that keeps all functions, by the option that NVIDIA's library gives its compiler when it links LTO-IR with
 * machine code. */
static void begin_keeping(Handle link) {
    static char option[] = "-Xnvvm=--force-device-c";
    link->options[link->count] = option;
    Result result = REAL(nvJitLinkCreate, (Handle *, uint32_t, const char **), &link->keeping, link->count + 1, link->options);
    link->options[link->count] = NULL;
    if (result != SUCCESS && link->keeping) {
        REAL(nvJitLinkDestroy, (Handle *), &link->keeping);
        link->keeping = NULL;
    }
}

static Result of_driver(CUresult result) {
    switch (result) {
    case CUDA_SUCCESS:
        return SUCCESS;
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
        return ERROR_PTX_COMPILE;
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_INVALID_VALUE:
        return ERROR_INVALID_INPUT;
    default:
        return ERROR_INTERNAL;
    }
}

EXPORT Result nvJitLinkCreate(Handle *handle, uint32_t count, const char **options) {
    if (!handle || (count && !options)) {
        return ERROR_NULL_INPUT;
    }
    Handle link = calloc(1, sizeof *link);
    *handle = link;
    if (!link) {
        return ERROR_INTERNAL;
    }
    pthread_mutex_lock(&links_lock);
    enlist(link, link);
    pthread_mutex_unlock(&links_lock);
    link->forwarded = cuInit(0) != CUDA_SUCCESS;
    if (!keep_options(link, count, options)) {
        nvJitLinkDestroy(handle);
        return ERROR_INTERNAL;
    }
    /* What it has against an option stands in its log: the link stays. */
    Result result = REAL(nvJitLinkCreate, (Handle *, uint32_t, const char **), &link->real, link->count, link->options);
    if (result != SUCCESS || link->forwarded) {
        return result;
    }
    if (link->lto) {
        begin_keeping(link);
    }
    const CUjit_option names[] = {
        CU_JIT_ERROR_LOG_BUFFER,
        CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        CU_JIT_INFO_LOG_BUFFER,
        CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
    };
    void *const values[] = {link->errors, (void *)LOG_BYTES, link->remarks, (void *)LOG_BYTES};
    memcpy(link->names, names, sizeof names);
    memcpy(link->values, values, sizeof values);
    return of_driver(cuLinkCreate(4, link->names, link->values, &link->state));
}

/* To the driver's linker, which sees by itself what it is given. */
static Result add(Handle link, const void *data, size_t size, const char *name) {
    return of_driver(cuLinkAddData(link->state, CU_JIT_INPUT_PTX, (void *)data, size, name, 0, NULL, NULL));
}

/* Whether NVIDIA's library can make PTX of it: it alone knows what it hides in fat binaries and objects. */
static bool holds_ltoir(Handle link, Input kind, const void *data, size_t size, const char *name) {
    uint32_t magic = 0;
    memcpy(&magic, data, size < sizeof magic ? size : sizeof magic);
    if (kind == LTOIR || magic == LTOIR_MAGIC) {
        return true;
    }
    if (!link->lto || kind == PTX || kind == CUBIN) {
        return false;
    }
    Handle probe = NULL;
    Result result = REAL(nvJitLinkCreate, (Handle *, uint32_t, const char **), &probe, link->count, link->options);
    if (result == SUCCESS) {
        result = REAL(nvJitLinkAddData, (Handle, Input, const void *, size_t, const char *), probe, kind, data, size, name);
    }
    if (result == SUCCESS) {
        result = REAL(nvJitLinkComplete, (Handle), probe);
    }
    if (probe) {
        REAL(nvJitLinkDestroy, (Handle *), &probe);
    }
    return result == SUCCESS;
}

EXPORT Result nvJitLinkAddData(Handle handle, Input kind, const void *data, size_t size, const char *name) {
    Handle link = find(handle);
    if (!link || !data) {
        return ERROR_NULL_INPUT;
    }
    if (!link->forwarded && !link->state) {
        return ERROR_INTERNAL;
    }
    if (!link->forwarded) {
        if (!holds_ltoir(link, kind, data, size, name)) {
            link->has_others = true;
            return add(link, data, size, name);
        }
        link->has_ltoir = true;
        if (link->keeping) {
            /* If it refuses the data, so does the other one, whose answer counts. */
            REAL(nvJitLinkAddData, (Handle, Input, const void *, size_t, const char *), link->keeping, kind, data, size, name);
        }
    }
    return REAL(nvJitLinkAddData, (Handle, Input, const void *, size_t, const char *), link->real, kind, data, size, name);
}

EXPORT Result nvJitLinkAddFile(Handle handle, Input kind, const char *path) {
    if (!handle || !path) {
        return ERROR_NULL_INPUT;
    }
    FILE *file = fopen(path, "rb");
    long size = file && !fseek(file, 0, SEEK_END) ? ftell(file) : -1;
    char *data = size > 0 ? malloc((size_t)size) : NULL;
    bool complete = data && !fseek(file, 0, SEEK_SET) && fread(data, 1, (size_t)size, file) == (size_t)size;
    Result result = complete ? nvJitLinkAddData(handle, kind, data, (size_t)size, path) : ERROR_INVALID_INPUT;
    free(data);
    if (file) {
        fclose(file);
    }
    return result;
}

/* Lets NVIDIA's library link its LTO-IR, with all functions that there are if others may call them. */
static Result complete_ltoir(Handle link) {
    if (link->has_others && link->keeping && REAL(nvJitLinkComplete, (Handle), link->keeping) == SUCCESS) {
        Handle plain = link->real;
        link->real = link->keeping;
        link->keeping = plain;
        return SUCCESS;
    }
    return REAL(nvJitLinkComplete, (Handle), link->real);
}

/* The PTX of all LTO-IR becomes one more input of the driver's linker. */
static Result link_ltoir(Handle link) {
    size_t size = 0;
    Result result = complete_ltoir(link);
    if (result == SUCCESS) {
        result = REAL(nvJitLinkGetLinkedPtxSize, (Handle, size_t *), link->real, &size);
    }
    if (result != SUCCESS) {
        return result;
    }
    char *text = malloc(size);
    if (!text) {
        return ERROR_INTERNAL;
    }
    result = REAL(nvJitLinkGetLinkedPtx, (Handle, char *), link->real, text);
    if (result == SUCCESS) {
        result = add(link, text, size, "LTO-IR");
    }
    free(text);
    return result;
}

EXPORT Result nvJitLinkComplete(Handle handle) {
    Handle link = find(handle);
    if (!link) {
        return ERROR_NULL_INPUT;
    }
    if (link->forwarded) {
        return REAL(nvJitLinkComplete, (Handle), link->real);
    }
    Result result = link->has_ltoir ? link_ltoir(link) : SUCCESS;
    return result == SUCCESS ? of_driver(cuLinkComplete(link->state, &link->image, &link->bytes)) : result;
}

EXPORT Result nvJitLinkGetLinkedCubinSize(Handle handle, size_t *size) {
    Handle link = find(handle);
    if (!link || !size) {
        return ERROR_NULL_INPUT;
    }
    if (link->forwarded) {
        return REAL(nvJitLinkGetLinkedCubinSize, (Handle, size_t *), link->real, size);
    }
    *size = link->bytes;
    return link->image ? SUCCESS : ERROR_INTERNAL;
}

EXPORT Result nvJitLinkGetLinkedCubin(Handle handle, void *cubin) {
    Handle link = find(handle);
    if (!link || !cubin) {
        return ERROR_NULL_INPUT;
    }
    if (link->forwarded) {
        return REAL(nvJitLinkGetLinkedCubin, (Handle, void *), link->real, cubin);
    }
    if (!link->image) {
        return ERROR_INTERNAL;
    }
    memcpy(cubin, link->image, link->bytes);
    return SUCCESS;
}

/* There is such a thing with -lto alone, and then NVIDIA's library has it. */
#define FORWARD_OUTPUT(name, type)                                                                  \
    EXPORT Result name(Handle handle, type *output) {                                               \
        Handle link = find(handle);                                                                 \
        return link ? REAL(name, (Handle, type *), link->real, output) : ERROR_NULL_INPUT;          \
    }
FORWARD_OUTPUT(nvJitLinkGetLinkedPtxSize, size_t)
FORWARD_OUTPUT(nvJitLinkGetLinkedPtx, char)
FORWARD_OUTPUT(nvJitLinkGetLinkedLTOIRSize, size_t)
FORWARD_OUTPUT(nvJitLinkGetLinkedLTOIR, void)

/* What the driver's linker says, or, where that has nothing to say, NVIDIA's. */
#define LOG(name, which)                                                                            \
    EXPORT Result nvJitLinkGet##name##Size(Handle handle, size_t *size) {                           \
        Handle link = find(handle);                                                                 \
        if (!link || !size) {                                                                       \
            return ERROR_NULL_INPUT;                                                                \
        }                                                                                           \
        if (!*link->which) {                                                                        \
            return REAL(nvJitLinkGet##name##Size, (Handle, size_t *), link->real, size);            \
        }                                                                                           \
        *size = strnlen(link->which, LOG_BYTES - 1) + 1;                                            \
        return SUCCESS;                                                                             \
    }                                                                                               \
    EXPORT Result nvJitLinkGet##name(Handle handle, char *log) {                                    \
        Handle link = find(handle);                                                                 \
        if (!link || !log) {                                                                        \
            return ERROR_NULL_INPUT;                                                                \
        }                                                                                           \
        if (!*link->which) {                                                                        \
            return REAL(nvJitLinkGet##name, (Handle, char *), link->real, log);                     \
        }                                                                                           \
        size_t size = strnlen(link->which, LOG_BYTES - 1);                                          \
        memcpy(log, link->which, size);                                                             \
        log[size] = 0;                                                                              \
        return SUCCESS;                                                                             \
    }
LOG(ErrorLog, errors)
LOG(InfoLog, remarks)

EXPORT Result nvJitLinkVersion(unsigned int *major, unsigned int *minor) {
    return REAL(nvJitLinkVersion, (unsigned int *, unsigned int *), major, minor);
}

/* Of this one nobody has published the type; integers and pointers travel in registers on x86-64, whatever they are. */
EXPORT intptr_t __nvJitLinkAPI(intptr_t a, intptr_t b, intptr_t c, intptr_t d, intptr_t e, intptr_t f) {
    intptr_t (*function)(intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t) = real("__nvJitLinkAPI");
    return function ? function(a, b, c, d, e, f) : ERROR_INTERNAL;
}

/* Programs that were compiled with nvJitLink.h call the functions by the version of that header. */
#define VERSION_OF(name, major, minor) \
    EXPORT extern __typeof__(name) __##name##_##major##_##minor __attribute__((alias(#name)));
#define VERSIONS_OF(name, major)                                                                    \
    VERSION_OF(name, major, 0) VERSION_OF(name, major, 1) VERSION_OF(name, major, 2)                \
    VERSION_OF(name, major, 3) VERSION_OF(name, major, 4) VERSION_OF(name, major, 5)                \
    VERSION_OF(name, major, 6) VERSION_OF(name, major, 7) VERSION_OF(name, major, 8)                \
    VERSION_OF(name, major, 9)
#define VERSIONS(name, major) VERSIONS_OF(name, major)
VERSIONS(nvJitLinkCreate, MAJOR)
VERSIONS(nvJitLinkDestroy, MAJOR)
VERSIONS(nvJitLinkAddData, MAJOR)
VERSIONS(nvJitLinkAddFile, MAJOR)
VERSIONS(nvJitLinkComplete, MAJOR)
VERSIONS(nvJitLinkGetLinkedCubinSize, MAJOR)
VERSIONS(nvJitLinkGetLinkedCubin, MAJOR)
VERSIONS(nvJitLinkGetLinkedPtxSize, MAJOR)
VERSIONS(nvJitLinkGetLinkedPtx, MAJOR)
VERSIONS(nvJitLinkGetLinkedLTOIRSize, MAJOR)
VERSIONS(nvJitLinkGetLinkedLTOIR, MAJOR)
VERSIONS(nvJitLinkGetErrorLogSize, MAJOR)
VERSIONS(nvJitLinkGetErrorLog, MAJOR)
VERSIONS(nvJitLinkGetInfoLogSize, MAJOR)
VERSIONS(nvJitLinkGetInfoLog, MAJOR)
