/* Stands in for NVIDIA's NVRTC behind the companion. */
#include <stdio.h>
#include <string.h>

int nvrtcVersion(int *major, int *minor) {
    *major = MAJOR;
    *minor = 77;
    return 0;
}

int nvrtcCreateProgram(void **program, const char *source, const char *name, int headers, const char **texts, const char **names) {
    static char all[256];
    snprintf(all, sizeof all, "%s %s %d %s %s", source, name, headers, texts[0], names[0]);
    *program = all;
    return 0;
}

int nvrtcGetPTXSize(void *program, size_t *size) {
    *size = strlen(program) + 1;
    return 0;
}

int nvrtcGetPTX(void *program, char *text) {
    strcpy(text, program);
    return 0;
}

int nvrtcGetCUBINSize(void *program, size_t *size) {
    (void)program;
    *size = 6;
    return 0;
}

int nvrtcGetCUBIN(void *program, char *cubin) {
    (void)program;
    strcpy(cubin, "cubin");
    return 0;
}

const char *nvrtcGetErrorString(int result) { return result == 5 ? "five" : "other"; }
