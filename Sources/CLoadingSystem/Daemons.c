// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "CLoadingSystem.h"
#include "Calls.h"

#include <errno.h>
#include <fcntl.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

// Removes the limits of the starting program, because the daemon serves all programs.
static void forget_limits(void) {
    umask(022);
    static const int limits[] = { RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_DATA, RLIMIT_AS };
    for (size_t index = 0; index < sizeof limits / sizeof limits[0]; index++) {
        struct rlimit limit;
        if (getrlimit(limits[index], &limit) < 0) continue;
        limit.rlim_cur = limit.rlim_max;
        setrlimit(limits[index], &limit);
    }
}

// Runs between fork and exec in a copy of a process with threads, so it may only make system calls.
static void become_daemon(const char *path, char *const arguments[], char *const environment[], const char *directory, const char *log,
                          int trouble, int output) {
    sigset_t none;
    sigemptyset(&none);
    for (int number = 1; number < 65; number++) signal(number, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    if (log != NULL) forget_limits();
    int null = open("/dev/null", O_RDWR);
    int errors = log == NULL ? null : open(log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
    if (errors < 0) errors = null;
    // The duplicates get numbers of at least 10, because the calls of dup2 would overwrite duplicates with the numbers 0 to 2.
    int kept = fcntl(trouble, F_DUPFD_CLOEXEC, 10);
    int spoken = output < 0 ? null : fcntl(output, F_DUPFD_CLOEXEC, 10);
    dup2(null, 0);
    dup2(spoken < 0 ? null : spoken, 1);
    dup2(errors, 2);
    if (kept >= 0) {
        if (syscall(SYS_close_range, 3u, (unsigned)kept - 1, 0u) < 0 || syscall(SYS_close_range, (unsigned)kept + 1, ~0u, 0u) < 0) {
            for (int fd = 3; fd < 1024; fd++) if (fd != kept) close(fd);
        }
    }
    if (directory != NULL && chdir(directory) < 0) chdir("/");
    execve(path, arguments, environment);
    int error = errno;
    if (kept >= 0 && write(kept, &error, sizeof error) < 0) _exit(126);
    _exit(127);
}

int cls_start_daemon(const char *path, char *const arguments[], char *const environment[], const char *directory, const char *log,
                     int *report, int *process) {
    int ends[2], spoken[2] = { -1, -1 };
    if (pipe2(ends, O_CLOEXEC) < 0) return -errno;
    int error = report != NULL && pipe2(spoken, O_CLOEXEC) < 0 ? errno : 0;
    pid_t child = error == 0 ? fork() : -1;
    if (child < 0) {
        if (error == 0) error = errno;
        close(ends[0]);
        close(ends[1]);
        if (spoken[0] >= 0) close(spoken[0]);
        if (spoken[1] >= 0) close(spoken[1]);
        return -error;
    }
    if (child == 0) {
        // When this child has exited, the grandchild is no longer a descendant of the app.
        pid_t grandchild = fork();
        if (grandchild == 0) become_daemon(path, arguments, environment, directory, log, ends[1], spoken[1]);
        // An error is positive; the number of the process is sent negated.
        error = grandchild < 0 ? errno : -grandchild;
        if (write(ends[1], &error, sizeof error) < 0) _exit(126);
        _exit(0);
    }
    close(ends[1]);
    if (spoken[1] >= 0) close(spoken[1]);
    int status;
    (void)RETRIED(waitpid(child, &status, 0));
    // A successful exec closes the pipe; otherwise the error is read from the pipe.
    int word;
    pid_t number = 0;
    error = 0;
    while (RETRIED(read(ends[0], &word, sizeof word)) == sizeof word) {
        if (word < 0) number = -word; else error = word;
    }
    close(ends[0]);
    if (error > 0) {
        if (spoken[0] >= 0) close(spoken[0]);
        return -error;
    }
    if (report != NULL) {
        fcntl(spoken[0], F_SETFL, O_NONBLOCK);
        *report = spoken[0];
    }
    if (process != NULL) {
        *process = number > 1 ? checked(syscall(SYS_pidfd_open, number, 0)) : -ENOSYS;
    }
    return 0;
}

int cls_begin_anew(char *const arguments[], int kept) {
    struct rlimit limit;
    int count = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 1 << 20 ? (int)limit.rlim_cur : 1 << 20;
    for (int fd = 3; fd < count; fd++) fcntl(fd, F_SETFD, fd == kept ? 0 : FD_CLOEXEC);
    execv("/proc/self/exe", arguments);
    return -errno;
}

int cls_clock_watch(void) {
    int fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd < 0) return -errno;
    // The timer itself never fires: only a step of the clock makes the descriptor readable.
    struct itimerspec never = { .it_value = { .tv_sec = INT64_MAX / 1000000000 } };
    return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL) < 0 ? close_failed(fd) : fd;
}

int cls_names_watch(void) {
    return checked(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
}

int cls_names_watch_add(int fd, const char *folder) {
    uint32_t events = IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
    return inotify_add_watch(fd, folder, events) < 0 ? -errno : 0;
}

void cls_watch_clear(int fd) {
    char bytes[4096];
    // Reading reports a step of the clock as the error ECANCELED, once.
    while (read(fd, bytes, sizeof bytes) > 0 || errno == ECANCELED || errno == EINTR) {}
}

int64_t cls_read_some(int fd, void *target, size_t count) {
    return RETRIED(read(fd, target, count));
}

int cls_connect(const char *path, int seconds) {
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof address.sun_path) return -ENAMETOOLONG;
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    struct timeval limit = { .tv_sec = seconds };
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    return RETRIED(connect(fd, (struct sockaddr *)&address, sizeof address)) < 0 ? close_failed(fd) : fd;
}

int cls_send_all(int socket_fd, const void *bytes, size_t count) {
    const char *next = bytes;
    while (count > 0) {
        int64_t sent = RETRIED(send(socket_fd, next, count, MSG_NOSIGNAL));
        if (sent < 0) return sent;
        next += sent;
        count -= (size_t)sent;
    }
    return 0;
}

int64_t cls_receive_some(int socket_fd, void *target, size_t count) {
    return RETRIED(recv(socket_fd, target, count, 0));
}

void cls_limit_receiving(int socket_fd, int seconds) {
    struct timeval limit = { .tv_sec = seconds };
    setsockopt(socket_fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

void cls_end_connection(int socket_fd) {
    shutdown(socket_fd, SHUT_RDWR);
}

int cls_peer(int socket_fd, struct cls_peer *peer) {
    struct ucred credentials;
    socklen_t length = sizeof credentials;
    if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0) return -errno;
    peer->process = credentials.pid;
    peer->user = credentials.uid;
    return 0;
}

int cls_lock_file(const char *path, int wait) {
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return -errno;
    return RETRIED(flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB))) < 0 ? close_failed(fd) : fd;
}

void cls_lock_sign(int fd, const char *reason, int version) {
    char text[1024];
    int length = snprintf(text, sizeof text, "%d\n%.960s\n%d\n", (int)getpid(), reason, version);
    size_t count = length < (int)sizeof text ? (size_t)length : sizeof text - 1;
    // The file is overwritten in place, which also works on a full disk.
    if (pwrite(fd, text, count, 0) < 0 || ftruncate(fd, (off_t)count) < 0) return;
}

static int program_name(const char *link, char *name, size_t size) {
    char path[4096];
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return -1;
    path[length] = 0;
    char *mark = strstr(path, " (deleted)");
    if (mark != NULL) *mark = 0;
    const char *slash = strrchr(path, '/');
    snprintf(name, size, "%s", slash == NULL ? path : slash + 1);
    return 0;
}

int32_t cls_lock_holder(const char *path) {
    char text[16] = "", link[64], own[256], other[256];
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    int process = length > 0 ? atoi(text) : 0;
    if (process <= 1) return 0;
    snprintf(link, sizeof link, "/proc/%d/exe", process);
    // The process ID may have been reused by another program.
    if (program_name("/proc/self/exe", own, sizeof own) < 0 || program_name(link, other, sizeof other) < 0) return 0;
    return strcmp(own, other) == 0 ? process : 0;
}

void cls_wait_for_end(int32_t process, int milliseconds) {
    // pidfd_open is not supported before Linux 5.3, and is blocked by older seccomp filters.
    int fd = process > 1 ? (int)syscall(SYS_pidfd_open, process, 0) : -1;
    if (fd < 0 && process > 1 && errno == ESRCH) return;
    struct pollfd watched = {.fd = fd, .events = POLLIN};
    // Without a descriptor, poll() only sleeps. A long timeout is shortened to 2 ms, because the caller checks again.
    poll(&watched, 1, fd < 0 && process > 1 && milliseconds > 50 ? 2 : milliseconds);
    if (fd >= 0) close(fd);
}

int cls_listens_at(int socket_fd, const char *path) {
    // SO_PEERCRED of a client reports the process that called listen() last (unix(7)): from now on, this process.
    if (listen(socket_fd, 128) < 0) return -errno;
    int fd = cls_connect(path, 1);
    if (fd == -EAGAIN || fd == -EINPROGRESS) return -EAGAIN;
    if (fd < 0) return 0;
    struct cls_peer peer = { 0 };
    int result = cls_peer(fd, &peer);
    close(fd);
    return result == 0 && peer.process == getpid();
}

int cls_accept_waiting(int socket_fd) {
    struct pollfd waiting = { .fd = socket_fd, .events = POLLIN };
    if (poll(&waiting, 1, 0) <= 0) return -EAGAIN;
    return checked(accept4(socket_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

int cls_sync(int fd) {
    return RETRIED(fsync(fd));
}

int cls_open_directory(const char *path) {
    return RETRIED(open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

double cls_boot_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_BOOTTIME, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void cls_clean_mappings(const char *map, void (*found)(void *context, uintptr_t start, uintptr_t end), void *context) {
    FILE *file = fopen(map, "re");
    if (file == NULL) return;
    char line[512], rights[5] = "", next_rights[5];
    unsigned long start = 0, end = 0, inode = 0, changed = 1, next_start, next_end, next_inode, kilobytes;
    int is_read = 0;
    while (!is_read) {
        is_read = fgets(line, sizeof line, file) == NULL;
        int is_head = !is_read && sscanf(line, "%lx-%lx %4s %*x %*x:%*x %lu", &next_start, &next_end, next_rights, &next_inode) == 4;
        if (is_read || is_head) {
            // A mapping that is not writable and has no modified pages: all of its content is in the file.
            if (inode != 0 && rights[1] == '-' && changed == 0) found(context, start, end);
            if (is_read) break;
            start = next_start;
            end = next_end;
            inode = next_inode;
            changed = 0;
            memcpy(rights, next_rights, sizeof rights);
        } else if (sscanf(line, "Private_Dirty: %lu kB", &kilobytes) == 1 || sscanf(line, "Anonymous: %lu kB", &kilobytes) == 1
                   || sscanf(line, "Shared_Dirty: %lu kB", &kilobytes) == 1 || sscanf(line, "Swap: %lu kB", &kilobytes) == 1) {
            // Modified pages that are swapped out (relocations, for example) are not part of the other counts.
            changed += kilobytes;
        }
    }
    fclose(file);
}

static void give_back(void *context, uintptr_t start, uintptr_t end) {
    (void)context;
    madvise((void *)start, end - start, MADV_DONTNEED);
}

void cls_rest(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    cls_clean_mappings("/proc/self/smaps", give_back, NULL);
}

int64_t cls_resident_bytes(void) {
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL) return 0;
    long long size = 0, resident = 0;
    int count = fscanf(file, "%lld %lld", &size, &resident);
    fclose(file);
    return count == 2 ? (int64_t)resident * sysconf(_SC_PAGESIZE) : 0;
}
