// SPDX-License-Identifier: Apache-2.0

// A library to preload for `Benchmarks/scale`: it makes host name lookups and disks slow.
//
// Names that end in `.test` resolve to 127.0.0.1 without a query; those that begin with `wMS.` do so after MS milliseconds.
// Every call that reads or changes files in SLOW_FOLDER takes SLOW_MS milliseconds. Reads that only accept cached pages fail: none is cached.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static void wait_for(long milliseconds) {
    int saved = errno;
    struct timespec rest = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000};
    while (nanosleep(&rest, &rest) < 0 && errno == EINTR) {}
    errno = saved;
}

#define REAL(result, name, ...) \
    static result (*real)(__VA_ARGS__); \
    if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, #name)

// Names

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result) {
    REAL(int, getaddrinfo, const char *, const char *, const struct addrinfo *, struct addrinfo **);
    size_t length = node == NULL ? 0 : strlen(node);
    if (length < 5 || strcmp(node + length - 5, ".test") != 0) return real(node, service, hints, result);
    if (node[0] == 'w') wait_for(atol(node + 1));
    if (hints != NULL && hints->ai_family == AF_INET6) return EAI_NONAME;
    struct addrinfo numeric = hints == NULL ? (struct addrinfo){0} : *hints;
    numeric.ai_family = AF_INET;
    numeric.ai_flags = AI_NUMERICHOST;
    return real("127.0.0.1", service, &numeric, result);
}

// The disk

#define DESCRIPTORS 65536
static atomic_bool is_slow_file[DESCRIPTORS];

static int is_inside(const char *path) {
    const char *folder = getenv("SLOW_FOLDER");
    return path != NULL && folder != NULL && strncmp(path, folder, strlen(folder)) == 0;
}

static int is_file(int fd) { return fd >= 0 && fd < DESCRIPTORS && is_slow_file[fd]; }

static int is_at(int folder, const char *path) { return is_inside(path) || (path != NULL && path[0] != '/' && is_file(folder)); }

// Waits as long as the slow disk takes, if the call accesses it.
static int turn(int concerns_disk) {
    if (concerns_disk) {
        const char *time = getenv("SLOW_MS");
        wait_for(time == NULL ? 0 : atol(time));
    }
    return concerns_disk;
}

static int opened(int fd, int is_slow) {
    if (fd >= 0 && fd < DESCRIPTORS) is_slow_file[fd] = is_slow;
    return fd;
}

#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | __O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }
#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        MODE(flags) \
        int is_slow = turn(is_inside(path)); \
        return opened((int)syscall(SYS_openat, AT_FDCWD, path, flags | O_LARGEFILE, mode), is_slow); \
    }
#define OPENAT(name) \
    int name(int folder, const char *path, int flags, ...) { \
        MODE(flags) \
        int is_slow = turn(is_at(folder, path)); \
        return opened((int)syscall(SYS_openat, folder, path, flags | O_LARGEFILE, mode), is_slow); \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

int close(int fd) {
    opened(fd, 0);
    return (int)syscall(SYS_close, fd);
}

#define BY_PATH(name, parameters, arguments, path) \
    int name parameters { \
        static int (*real) parameters; \
        if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, #name); \
        turn(is_inside(path)); \
        return real arguments; \
    }
BY_PATH(stat, (const char *path, struct stat *status), (path, status), path)
BY_PATH(lstat, (const char *path, struct stat *status), (path, status), path)
BY_PATH(stat64, (const char *path, struct stat64 *status), (path, status), path)
BY_PATH(lstat64, (const char *path, struct stat64 *status), (path, status), path)
BY_PATH(access, (const char *path, int mode), (path, mode), path)
BY_PATH(mkdir, (const char *path, mode_t mode), (path, mode), path)
BY_PATH(rmdir, (const char *path), (path), path)
BY_PATH(unlink, (const char *path), (path), path)
BY_PATH(rename, (const char *from, const char *to), (from, to), to)
BY_PATH(link, (const char *from, const char *to), (from, to), to)

#define BY_FOLDER(name, parameters, arguments, folder, path) \
    int name parameters { \
        static int (*real) parameters; \
        if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, #name); \
        turn(is_at(folder, path)); \
        return real arguments; \
    }
BY_FOLDER(fstatat, (int folder, const char *path, struct stat *status, int flags), (folder, path, status, flags), folder, path)
BY_FOLDER(fstatat64, (int folder, const char *path, struct stat64 *status, int flags), (folder, path, status, flags), folder, path)
BY_FOLDER(mkdirat, (int folder, const char *path, mode_t mode), (folder, path, mode), folder, path)
BY_FOLDER(unlinkat, (int folder, const char *path, int flags), (folder, path, flags), folder, path)
BY_FOLDER(renameat, (int from, const char *old, int to, const char *path), (from, old, to, path), to, path)
BY_FOLDER(renameat2, (int from, const char *old, int to, const char *path, unsigned flags), (from, old, to, path, flags), to, path)
BY_FOLDER(linkat, (int from, const char *old, int to, const char *path, int flags), (from, old, to, path, flags), to, path)
BY_FOLDER(utimensat, (int folder, const char *path, const struct timespec times[2], int flags), (folder, path, times, flags), folder, path)

#define BY_FILE(result, name, parameters, arguments) \
    result name parameters { \
        static result (*real) parameters; \
        if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, #name); \
        turn(is_file(fd)); \
        return real arguments; \
    }
BY_FILE(int, fsync, (int fd), (fd))
BY_FILE(int, fdatasync, (int fd), (fd))
BY_FILE(int, ftruncate, (int fd, off_t length), (fd, length))
BY_FILE(int, fallocate, (int fd, int mode, off_t offset, off_t length), (fd, mode, offset, length))
BY_FILE(ssize_t, write, (int fd, const void *bytes, size_t size), (fd, bytes, size))
BY_FILE(ssize_t, writev, (int fd, const struct iovec *pieces, int count), (fd, pieces, count))
BY_FILE(ssize_t, pwrite, (int fd, const void *bytes, size_t size, off_t offset), (fd, bytes, size, offset))
BY_FILE(ssize_t, read, (int fd, void *bytes, size_t size), (fd, bytes, size))
BY_FILE(ssize_t, pread, (int fd, void *bytes, size_t size, off_t offset), (fd, bytes, size, offset))

ssize_t preadv2(int fd, const struct iovec *pieces, int count, off_t offset, int flags) {
    REAL(ssize_t, preadv2, int, const struct iovec *, int, off_t, int);
    if (is_file(fd) && flags & RWF_NOWAIT) {
        errno = EAGAIN;
        return -1;
    }
    turn(is_file(fd));
    return real(fd, pieces, count, offset, flags);
}
