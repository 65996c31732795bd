/* Stands in for NVIDIA's nvJitLink behind the companion: LTO-IR is here the four bytes of its magic number and a PTX text. What
 * follows UNUSED in it no kernel of the LTO-IR calls: as NVIDIA's library does, it is left out unless an option says otherwise. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNUSED "// unused\n"

struct Link {
    bool lto, ptx, keep, other;
    char text[4096], log[64];
};

int nvJitLinkCreate(struct Link **handle, uint32_t count, const char **options) {
    struct Link *link = *handle = calloc(1, sizeof *link);
    for (uint32_t i = 0; i < count; i++) {
        link->lto |= !strcmp(options[i], "-lto");
        link->ptx |= !strcmp(options[i], "-ptx");
        link->keep |= !strcmp(options[i], "-Xnvvm=--force-device-c");
        if (!strcmp(options[i], "-nonsense")) {
            strcpy(link->log, "what is -nonsense?");
            return 1;
        }
    }
    return 0;
}

int nvJitLinkDestroy(struct Link **handle) {
    free(*handle);
    *handle = NULL;
    return 0;
}

int nvJitLinkAddData(struct Link *link, int kind, const void *data, size_t size, const char *name) {
    (void)kind;
    (void)name;
    if (size < 4 || memcmp(data, "\xed\x43\x4e\x7f", 4)) {
        link->other = true;
    } else if (!link->lto) {
        strcpy(link->log, "LTO-IR needs -lto");
        return 18;
    } else {
        const char *text = (const char *)data + 4;
        const char *unused = memmem(text, size - 4, UNUSED, sizeof UNUSED - 1);
        strncat(link->text, text, unused && !link->keep ? (size_t)(unused - text) : size - 4);
    }
    return 0;
}

int nvJitLinkComplete(struct Link *link) { return link->ptx && link->other ? 12 : 0; }

int nvJitLinkGetLinkedCubinSize(struct Link *link, size_t *size) {
    *size = sizeof "cubin";
    return link->ptx ? 6 : 0;
}

int nvJitLinkGetLinkedCubin(struct Link *link, void *cubin) {
    strcpy(cubin, "cubin");
    return link->ptx ? 6 : 0;
}

int nvJitLinkGetLinkedPtxSize(struct Link *link, size_t *size) {
    *size = strlen(link->text) + 1;
    return link->ptx ? 0 : 6;
}

int nvJitLinkGetLinkedPtx(struct Link *link, char *text) {
    strcpy(text, link->text);
    return link->ptx ? 0 : 6;
}

int nvJitLinkGetErrorLogSize(struct Link *link, size_t *size) {
    *size = strlen(link->log) + 1;
    return 0;
}

int nvJitLinkGetErrorLog(struct Link *link, char *log) {
    strcpy(log, link->log);
    return 0;
}

int nvJitLinkVersion(unsigned *major, unsigned *minor) {
    *major = MAJOR;
    *minor = 77;
    return 0;
}
