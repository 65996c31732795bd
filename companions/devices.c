/* Answers for NVIDIA's device files where there are none: that they exist. Programs that look for them before they ask the driver
 * (JAX does) go on to ask it. `margay run` preloads this where /dev/nvidiactl is missing. To open such a file fails as before. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* The minor number of such a file; -1 of others. */
static int minor_of(const char *path) {
    if (path && !strcmp(path, "/dev/nvidia0")) {
        return 0;
    }
    return path && !strcmp(path, "/dev/nvidiactl") ? 255 : -1;
}

static int look(const char *path, struct stat *found) {
    int result = fstatat(AT_FDCWD, path, found, 0);
    if (!result || errno != ENOENT || minor_of(path) < 0) {
        return result;
    }
    memset(found, 0, sizeof *found);
    found->st_mode = S_IFCHR | 0666;
    found->st_nlink = 1;
    found->st_rdev = makedev(195, (unsigned)minor_of(path));
    return 0;
}

EXPORT int stat(const char *restrict path, struct stat *restrict found) { return look(path, found); }

/* The same layout, on 64-bit systems. */
EXPORT int stat64(const char *restrict path, struct stat64 *restrict found) { return look(path, (struct stat *)found); }

/* What programs call that were linked with a glibc before 2.33; there is one layout of the structure. */
EXPORT int __xstat(int version, const char *path, struct stat *found);
EXPORT int __xstat(int version, const char *path, struct stat *found) {
    (void)version;
    return look(path, found);
}

EXPORT int __xstat64(int version, const char *path, struct stat64 *found);
EXPORT int __xstat64(int version, const char *path, struct stat64 *found) {
    (void)version;
    return look(path, (struct stat *)found);
}

EXPORT int access(const char *path, int mode) {
    int result = faccessat(AT_FDCWD, path, mode, 0);
    return result && errno == ENOENT && minor_of(path) >= 0 && !(mode & X_OK) ? 0 : result;
}
