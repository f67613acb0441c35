// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit

/// A library to preload into the daemon, which makes its disk full or sets its clock on demand.
struct DaemonFaults: Sendable {
    private let library: PreloadedLibrary
    private var folder: URL { library.folder.url }

    init() throws { library = try PreloadedLibrary(source: Self.source) }

    /// The environment of the daemon; the simulated disk is everything below the folder `disk`.
    func environment(disk: String) -> [String: String] {
        library.environment.merging(["DAEMON_FAULTS": folder.path, "DAEMON_FAULTS_DISK": disk]) { $1 }
    }

    func fillDisk() throws { try Data().write(to: folder.appendingPathComponent("full")) }
    /// Makes the disk report this many free bytes.
    func setFree(_ bytes: Int) throws {
        try Data("\(bytes)".utf8).write(to: folder.appendingPathComponent("free"), options: .atomic)
    }
    func emptyDisk() throws { try FileManager.default.removeItem(at: folder.appendingPathComponent("full")) }

    /// Makes the disk lose part of the next file that is synced, and report the loss once.
    func loseOnce() throws { try Data().write(to: folder.appendingPathComponent("loses")) }

    /// Kills the daemon at the moment when it would send its next signal.
    func dieAtKill() throws { try Data().write(to: folder.appendingPathComponent("dies")) }

    /// Sets the daemon's clock ahead of the machine's.
    func setClock(by seconds: Int) throws {
        try Data("\(seconds)".utf8).write(to: folder.appendingPathComponent("clock"), options: .atomic)
    }

    private static let source = #"""
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <errno.h>
        #include <fcntl.h>
        #include <limits.h>
        #include <signal.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/inotify.h>
        #include <sys/stat.h>
        #include <sys/statvfs.h>
        #include <sys/syscall.h>
        #include <sys/time.h>
        #include <sys/timerfd.h>
        #include <sys/uio.h>
        #include <time.h>
        #include <unistd.h>

        static void in_folder(char *path, const char *file) {
            const char *folder = getenv("DAEMON_FAULTS");
            snprintf(path, PATH_MAX, "%s/%s", folder ? folder : "/nonexistent", file);
        }

        // Whether a descriptor is a file on the disk.
        static int is_on_disk(int fd) {
            char path[PATH_MAX], link[64];
            int saved = errno;
            const char *disk = getenv("DAEMON_FAULTS_DISK");
            snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
            long length = disk ? syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1) : 0;
            errno = saved;
            return length > 0 && strncmp(path, disk, strlen(disk)) == 0;
        }

        // Whether it is one, and the disk is full.
        static int is_full(int fd) {
            char path[PATH_MAX];
            struct stat facts;
            int saved = errno;
            in_folder(path, "full");
            int full = syscall(SYS_newfstatat, AT_FDCWD, path, &facts, 0) == 0 && is_on_disk(fd);
            errno = full ? ENOSPC : saved;
            return full;
        }

        #define ORIGINAL(name) \
            static __typeof__(&name) original; \
            if (original == NULL) original = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

        ssize_t write(int fd, const void *bytes, size_t count) {
            ORIGINAL(write);
            return is_full(fd) ? -1 : original(fd, bytes, count);
        }
        ssize_t writev(int fd, const struct iovec *pieces, int count) {
            ORIGINAL(writev);
            return is_full(fd) ? -1 : original(fd, pieces, count);
        }
        ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
            ORIGINAL(pwrite);
            return is_full(fd) ? -1 : original(fd, bytes, count, at);
        }
        ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
            ORIGINAL(pwrite64);
            return is_full(fd) ? -1 : original(fd, bytes, count, at);
        }
        int fallocate(int fd, int mode, off_t at, off_t count) {
            ORIGINAL(fallocate);
            return is_full(fd) ? -1 : original(fd, mode, at, count);
        }
        int fallocate64(int fd, int mode, off64_t at, off64_t count) {
            ORIGINAL(fallocate64);
            return is_full(fd) ? -1 : original(fd, mode, at, count);
        }

        int fsync(int fd) {
            ORIGINAL(fsync);
            char path[PATH_MAX];
            int saved = errno;
            in_folder(path, "loses");
            struct stat facts;
            int is_file = fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode);
            int loses = is_file && is_on_disk(fd) && syscall(SYS_unlinkat, AT_FDCWD, path, 0) == 0;
            errno = loses ? EIO : saved;
            return loses ? -1 : original(fd);
        }

        int kill(pid_t process, int number) {
            char path[PATH_MAX];
            in_folder(path, "dies");
            if (syscall(SYS_unlinkat, AT_FDCWD, path, 0) == 0) syscall(SYS_kill, getpid(), SIGKILL);
            return (int)syscall(SYS_kill, process, number);
        }

        ssize_t splice(int in, off64_t *from, int out, off64_t *to, size_t count, unsigned flags) {
            ORIGINAL(splice);
            return is_full(out) ? -1 : original(in, from, out, to, count, flags);
        }

        // The number in a file of the test, or 0.
        static long number(const char *name) {
            char path[PATH_MAX], text[32];
            int saved = errno;
            in_folder(path, name);
            int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
            long count = 0;
            if (fd >= 0) {
                count = syscall(SYS_read, fd, text, sizeof text - 1);
                syscall(SYS_close, fd);
            }
            errno = saved;
            if (count <= 0) return 0;
            text[count] = 0;
            return atol(text);
        }

        int fstatvfs(int fd, struct statvfs *facts) {
            ORIGINAL(fstatvfs);
            int result = original(fd, facts);
            long free = number("free");
            if (result == 0 && free > 0) {
                facts->f_bfree = (fsblkcnt_t)free;
                facts->f_bavail = facts->f_bfree;
                facts->f_frsize = 1;
            }
            return result;
        }
        int clock_gettime(clockid_t clock, struct timespec *time) {
            int result = (int)syscall(SYS_clock_gettime, clock, time);
            if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec += number("clock");
            return result;
        }
        // A change of the file `clock` is reported as a step of the clock is: the descriptor is readable.
        int timerfd_create(int clock, int flags) {
            ORIGINAL(timerfd_create);
            const char *folder = getenv("DAEMON_FAULTS");
            if (folder == NULL || clock != CLOCK_REALTIME) return original(clock, flags);
            int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
            inotify_add_watch(fd, folder, IN_MOVED_TO);
            return fd;
        }
        int timerfd_settime(int fd, int flags, const struct itimerspec *next, struct itimerspec *last) {
            ORIGINAL(timerfd_settime);
            int result = original(fd, flags, next, last);
            return getenv("DAEMON_FAULTS") ? 0 : result;
        }
        int gettimeofday(struct timeval *restrict time, void *restrict zone) {
            struct timespec now;
            clock_gettime(CLOCK_REALTIME, &now);
            time->tv_sec = now.tv_sec;
            time->tv_usec = now.tv_nsec / 1000;
            return 0;
        }
        """#
}
