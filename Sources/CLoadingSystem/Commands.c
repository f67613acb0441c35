// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "CLoadingSystem.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long milliseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static int spawn(pid_t *child, const char *path, char *const arguments[], char *const environment[], int errors) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    if (posix_spawn_file_actions_init(&actions) != 0) return ENOMEM;
    if (posix_spawnattr_init(&attributes) != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return ENOMEM;
    }
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    int result = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
    if (result == 0) result = posix_spawn_file_actions_adddup2(&actions, 0, 1);
    if (result == 0) result = posix_spawn_file_actions_adddup2(&actions, errors, 2);
    if (result == 0) result = posix_spawn(child, path, &actions, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return result;
}

int cls_run_command(const char *path, char *const arguments[], char *const environment[], int seconds, char *said, size_t size) {
    int ends[2];
    pid_t child;
    if (size == 0) return -EINVAL;
    said[0] = 0;
    if (pipe2(ends, O_CLOEXEC) < 0) return -errno;
    int result = spawn(&child, path, arguments, environment, ends[1]);
    close(ends[1]);
    if (result != 0) {
        close(ends[0]);
        return -result;
    }
    long end = milliseconds() + seconds * 1000L;
    size_t count = 0;
    int status = 0, is_open = 1;
    pid_t ended;
    // Output beyond the buffer is read and discarded, so that the command does not block while writing it.
    while ((ended = waitpid(child, &status, WNOHANG)) == 0 && milliseconds() < end) {
        struct pollfd wait = { .fd = is_open ? ends[0] : -1, .events = POLLIN };
        // The end of standard error does not mean that the process has ended, because the command may have closed its standard
        // error.
        if (poll(&wait, 1, 20) <= 0) continue;
        char rest[512];
        int is_full = count + 1 >= size;
        ssize_t read_count = read(ends[0], is_full ? rest : said + count, is_full ? sizeof rest : size - 1 - count);
        if (read_count <= 0) is_open = 0;
        else if (!is_full) count += (size_t)read_count;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    ssize_t last = is_open && count + 1 < size ? read(ends[0], said + count, size - 1 - count) : 0;
    if (last > 0) count += (size_t)last;
    said[count] = 0;
    close(ends[0]);
    if (ended == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    return -ETIMEDOUT;
}
