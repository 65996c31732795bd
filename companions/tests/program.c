/* A program that finds its compilers at run time, as Python's clients do: `program CASE` ends with 0 if what it finds is right.
 * The libraries of NVIDIA's are those beside this file. */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

static const char *const NAMES[] = {"libnvrtc.so.12", "libnvrtc.so.13", "libnvJitLink.so.12", "libnvJitLink.so.13"};

/* A library that is loaded already; NULL if it is not. */
static void *loaded(const char *name) { return dlopen(name, RTLD_NOW | RTLD_NOLOAD); }

static bool is_companion(const char *name) {
    void *library = loaded(name);
    return library && dlsym(library, "margay_companion_for");
}

static int companions(void) {
    int count = 0;
    for (int i = 0; i < 4; i++) {
        count += is_companion(NAMES[i]);
    }
    return count;
}

static void *driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    EXPECT(library);
    return library;
}

/* A function of the driver's, by the symbol that cuda.h gives it. */
#define CU(name) ((__typeof__(name) *)dlsym(driver(), SYMBOL(name)))

static void initialise(void) { EXPECT(CU(cuInit)(0) == CUDA_SUCCESS); }

static void none(void) {
    initialise();
    for (int i = 0; i < 4; i++) {
        EXPECT(!loaded(NAMES[i]));
    }
}

static void at_load(void) {
    EXPECT(companions() == 0);
    driver();
    EXPECT(companions() == 4);
}

static void at_init(void) {
    driver();
    EXPECT(companions() == 0);
    /* A library beside NVIDIA's shows where they are. */
    EXPECT(dlopen(getenv("NEIGHBOUR"), RTLD_NOW));
    EXPECT(companions() == 0);
    initialise();
    EXPECT(companions() == 4);
}

static void too_late(void) {
    EXPECT(dlopen("libnvJitLink.so.13", RTLD_NOW));
    initialise();
    EXPECT(!is_companion("libnvJitLink.so.13") && companions() == 3);
}

/* NVRTC that was there first hands out PTX all the same, to who has had its functions since before; unless that is not wanted. */
static void redirected(void) {
    void *library = dlopen("libnvrtc.so.13", RTLD_NOW);
    EXPECT(library);
    int (*create)(void **, const char *, const char *, int, const char **, const char **) = dlsym(library, "nvrtcCreateProgram");
    int (*size_of_cubin)(void *, size_t *) = dlsym(library, "nvrtcGetCUBINSize");
    int (*cubin)(void *, char *) = dlsym(library, "nvrtcGetCUBIN");
    void *program;
    const char *text = "text", *name = "name";
    size_t size;
    char bytes[64];
    EXPECT(create(&program, "source", "file", 1, &text, &name) == 0);
    EXPECT(size_of_cubin(program, &size) == 0 && size == 6 && cubin(program, bytes) == 0 && !strcmp(bytes, "cubin"));
    initialise();
    EXPECT(!is_companion("libnvrtc.so.13"));
    const char *expected = getenv("MARGAY_COMPANIONS") ? "cubin" : "source file 1 text name";
    EXPECT(size_of_cubin(program, &size) == 0 && size == strlen(expected) + 1);
    EXPECT(cubin(program, bytes) == 0 && !strcmp(bytes, expected));
    EXPECT(cubin == dlsym(library, "nvrtcGetCUBIN") && dlclose(library) == 0);
}

static void *each(void *unused) {
    (void)unused;
    initialise();
    return NULL;
}

static void from_threads(void) {
    pthread_t threads[8];
    driver();
    EXPECT(dlopen(getenv("NEIGHBOUR"), RTLD_NOW) && companions() == 0);
    for (int i = 0; i < 8; i++) {
        EXPECT(!pthread_create(&threads[i], NULL, each, NULL));
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
    }
    EXPECT(companions() == 4);
}

static void in_child(void) {
    driver();
    pid_t child = fork();
    EXPECT(child >= 0);
    if (!child) {
        initialise();
        EXPECT(companions() == 4);
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

static void nvrtc(void) {
    driver();
    const char *const names[] = {"libnvrtc.so.12", "libnvrtc.so.13"};
    for (int i = 0; i < 2; i++) {
        void *library = loaded(names[i]);
        EXPECT(library);
        int (*version)(int *, int *) = dlsym(library, "nvrtcVersion");
        int (*create)(void **, const char *, const char *, int, const char **, const char **) = dlsym(library, "nvrtcCreateProgram");
        int (*size_of_ptx)(void *, size_t *) = dlsym(library, "nvrtcGetPTXSize");
        int (*size_of_cubin)(void *, size_t *) = dlsym(library, "nvrtcGetCUBINSize");
        int (*cubin)(void *, char *) = dlsym(library, "nvrtcGetCUBIN");
        const char *(*error)(int) = dlsym(library, "nvrtcGetErrorString");
        int (*tile)(void *, char *) = dlsym(library, "nvrtcGetTileIR");
        int major, minor;
        EXPECT(version(&major, &minor) == 0 && major == 12 + i && minor == 77);
        void *program;
        const char *text = "text", *name = "name";
        EXPECT(create(&program, "source", "file", 1, &text, &name) == 0);
        size_t ptx, size;
        char bytes[64];
        EXPECT(size_of_ptx(program, &ptx) == 0 && size_of_cubin(program, &size) == 0 && size == ptx);
        EXPECT(cubin(program, bytes) == 0 && !strcmp(bytes, "source file 1 text name"));
        EXPECT(!strcmp(error(5), "five"));
        /* NVIDIA's of this age does not have it. */
        EXPECT(tile(program, bytes) == 11);
    }
}

#define HEAD ".version 8.0\n.target sm_75\n.address_size 64\n"
#define DECLARATION ".extern .func (.param .b32 r) answer(.param .b32 x);\n"
static const char KERNEL[] = HEAD DECLARATION
    ".visible .entry k(.param .u64 out) { .reg .b32 %v; .reg .b64 %p; ld.param.u64 %p, [out];\n"
    "{ .param .b32 x; .param .b32 r; st.param.b32 [x], 20; call (r), answer, (x); ld.param.b32 %v, [r]; }\n"
    "st.global.u32 [%p], %v; ret; }\n";
#define ANSWER                                                                                      \
    ".visible .func (.param .b32 r) answer(.param .b32 x) { .reg .b32 %v; ld.param.b32 %v, [x];\n"  \
    "mad.lo.s32 %v, %v, 2, 2; st.param.b32 [r], %v; ret; }\n"
static const char FUNCTION[] = HEAD ANSWER;

typedef void *Handle;
static int (*create)(Handle *, uint32_t, const char **);
static int (*add)(Handle, int, const void *, size_t, const char *);
static int (*add_file)(Handle, int, const char *);
static int (*complete)(Handle);
static int (*size_of_cubin)(Handle, size_t *);
static int (*cubin)(Handle, void *);
static int (*ptx)(Handle, char *);
static int (*size_of_log)(Handle, size_t *);
static int (*log_of)(Handle, char *);
static int (*destroy)(Handle *);
enum { CUBIN = 1, PTX, LTOIR, ANY = 10 };

static void find_linker(void) {
    driver();
    void *library = loaded("libnvJitLink.so.13");
    EXPECT(library);
    /* As compiled with the header of any version, and by the plain names. */
    EXPECT((create = dlsym(library, "__nvJitLinkCreate_13_0")));
    EXPECT((add = dlsym(library, "__nvJitLinkAddData_13_5")));
    EXPECT((add_file = dlsym(library, "nvJitLinkAddFile")));
    EXPECT((complete = dlsym(library, "nvJitLinkComplete")));
    EXPECT((size_of_cubin = dlsym(library, "nvJitLinkGetLinkedCubinSize")));
    EXPECT((cubin = dlsym(library, "nvJitLinkGetLinkedCubin")));
    EXPECT((ptx = dlsym(library, "nvJitLinkGetLinkedPtx")));
    EXPECT((size_of_log = dlsym(library, "nvJitLinkGetErrorLogSize")));
    EXPECT((log_of = dlsym(library, "nvJitLinkGetErrorLog")));
    EXPECT((destroy = dlsym(library, "nvJitLinkDestroy")));
}

static Handle begin(const char *second_option) {
    const char *options[] = {"-arch=sm_120", second_option};
    Handle link = NULL;
    EXPECT(create(&link, second_option ? 2 : 1, options) == 0 && link);
    return link;
}

static bool log_says(Handle link, const char *words) {
    size_t size;
    EXPECT(size_of_log(link, &size) == 0);
    char *text = malloc(size + 1);
    EXPECT(log_of(link, text) == 0 && strlen(text) + 1 == size);
    bool said = strstr(text, words) != NULL;
    free(text);
    return said;
}

/* Ends the link, and runs its kernel. */
static void expect_42(Handle link) {
    EXPECT(complete(link) == 0);
    size_t size;
    EXPECT(size_of_cubin(link, &size) == 0 && size > 0);
    void *image = malloc(size);
    EXPECT(cubin(link, image) == 0);
    EXPECT(destroy(&link) == 0 && !link);
    CUcontext context;
    CUmodule module;
    CUfunction kernel;
    CUdeviceptr out;
    int value = 0;
    void *arguments[] = {&out};
    initialise();
    EXPECT(CU(cuDevicePrimaryCtxRetain)(&context, 0) == CUDA_SUCCESS);
    EXPECT(CU(cuCtxSetCurrent)(context) == CUDA_SUCCESS && CU(cuModuleLoadData)(&module, image) == CUDA_SUCCESS);
    EXPECT(CU(cuModuleGetFunction)(&kernel, module, "k") == CUDA_SUCCESS && CU(cuMemAlloc)(&out, 4) == CUDA_SUCCESS);
    EXPECT(CU(cuLaunchKernel)(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL) == CUDA_SUCCESS);
    EXPECT(CU(cuMemcpyDtoH)(&value, out, 4) == CUDA_SUCCESS && value == 42);
    free(image);
}

static void links_ptx(void) {
    find_linker();
    Handle link = begin(NULL);
    EXPECT(add(link, PTX, KERNEL, sizeof KERNEL, "kernel") == 0);
    EXPECT(add(link, ANY, FUNCTION, strlen(FUNCTION), NULL) == 0);
    size_t size;
    EXPECT(size_of_cubin(link, &size) != 0);
    expect_42(link);
}

static void links_files(void) {
    find_linker();
    Handle link = begin(NULL);
    char path[] = "/tmp/margay-companion-XXXXXX";
    int file = mkstemp(path);
    EXPECT(file >= 0 && write(file, FUNCTION, strlen(FUNCTION)) == (ssize_t)strlen(FUNCTION));
    EXPECT(add_file(link, PTX, path) == 0);
    unlink(path);
    EXPECT(add_file(link, PTX, path) == 3);
    EXPECT(add(link, PTX, KERNEL, sizeof KERNEL, NULL) == 0);
    expect_42(link);
}

/* LTO-IR becomes PTX behind the companion, and is linked with PTX that the program adds. */
static void links_ltoir(void) {
    find_linker();
    char ir[sizeof KERNEL + 4] = "\xed\x43\x4e\x7f";
    strcat(ir, KERNEL);
    Handle link = begin("-lto");
    EXPECT(add(link, LTOIR, ir, strlen(ir), NULL) == 0);
    EXPECT(add(link, PTX, FUNCTION, sizeof FUNCTION, NULL) == 0);
    expect_42(link);
    /* What no kernel of the LTO-IR calls is there for a kernel in PTX, and where nobody else can call it, it is not. */
    static const char UNUSED[] = "\xed\x43\x4e\x7f" HEAD "// unused\n" ANSWER;
    link = begin("-lto");
    EXPECT(add(link, PTX, KERNEL, sizeof KERNEL, NULL) == 0);
    EXPECT(add(link, LTOIR, UNUSED, sizeof UNUSED - 1, NULL) == 0);
    expect_42(link);
    char alone[4096];
    link = begin("-lto");
    EXPECT(add(link, LTOIR, UNUSED, sizeof UNUSED - 1, NULL) == 0 && complete(link) == 0);
    EXPECT(ptx(link, alone) == 0 && !strcmp(alone, HEAD) && destroy(&link) == 0);
    /* Without -lto it is refused, as NVIDIA's library refuses it. */
    link = begin(NULL);
    EXPECT(add(link, LTOIR, ir, strlen(ir), NULL) == 18 && log_says(link, "-lto"));
    EXPECT(destroy(&link) == 0);
    /* Who asks for PTX has NVIDIA's. */
    const char *options[] = {"-arch=sm_120", "-lto", "-ptx"};
    char text[4096];
    EXPECT(create(&link, 3, options) == 0 && add(link, LTOIR, ir, strlen(ir), NULL) == 0 && complete(link) == 0);
    EXPECT(ptx(link, text) == 0 && !strcmp(text, KERNEL));
    EXPECT(destroy(&link) == 0);
}

/* Where nobody can run what is linked, NVIDIA's library links all of it. */
static void links_without_devices(void) {
    find_linker();
    for (int lto = 0; lto < 2; lto++) {
        Handle link = begin(lto ? "-lto" : NULL);
        char bytes[16];
        size_t size;
        EXPECT(add(link, PTX, KERNEL, sizeof KERNEL, NULL) == 0 && complete(link) == 0);
        EXPECT(size_of_cubin(link, &size) == 0 && size == 6 && cubin(link, bytes) == 0 && !strcmp(bytes, "cubin"));
        EXPECT(destroy(&link) == 0);
    }
}

static void says_what_is_wrong(void) {
    find_linker();
    Handle link = begin(NULL);
    EXPECT(add(link, PTX, KERNEL, sizeof KERNEL, NULL) == 0);
    EXPECT(complete(link) != 0 && log_says(link, "answer"));
    size_t size;
    EXPECT(size_of_cubin(link, &size) != 0 && destroy(&link) == 0);
    link = begin(NULL);
    static const char WRONG[] = HEAD ".visible .entry k() { add.u33 %r, 1, 2; ret; }\n";
    EXPECT(add(link, PTX, WRONG, sizeof WRONG, "wrong") == 4 && log_says(link, "u33"));
    EXPECT(destroy(&link) == 0);
    link = begin(NULL);
    EXPECT(add(link, CUBIN, "nothing like it", 15, NULL) == 3 && destroy(&link) == 0);
    const char *options[] = {"-nonsense"};
    EXPECT(create(&link, 1, options) == 1 && log_says(link, "-nonsense") && destroy(&link) == 0);
    EXPECT(add(NULL, PTX, WRONG, 1, NULL) == 10 && complete(NULL) == 10 && destroy(&link) == 10);
}

#define CASE(name) {#name, name}
static const struct {
    const char *name;
    void (*run)(void);
} CASES[] = {
    CASE(none), CASE(at_load), CASE(at_init), CASE(too_late), CASE(redirected), CASE(from_threads), CASE(in_child), CASE(nvrtc),
    CASE(links_ptx), CASE(links_files), CASE(links_ltoir), CASE(links_without_devices),
    CASE(says_what_is_wrong),
};

int main(int count, char **words) {
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        if (count > 1 && !strcmp(words[1], CASES[i].name)) {
            CASES[i].run();
            return 0;
        }
    }
    return 2;
}
