// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// A preloaded library that blocks its process's calls for files below one folder for as long as the test needs.
///
/// It also records which of these calls were made on event loops. When a call has been blocked for half a minute, all calls continue
/// and the test fails; otherwise, a test could hang in a blocked call forever.
struct StalledDisk: Sendable {
    private let library: PreloadedLibrary

    init() throws { library = try PreloadedLibrary(source: Self.source) }

    /// The environment variables that the process needs.
    func environment(for folder: String) -> [String: String] {
        library.environment.merging(["STALLED_FOLDER": folder]) { $1 }
    }

    /// Controls the library from within the process that it was preloaded into.
    struct Here: Sendable {
        struct Calls: OptionSet, Sendable {
            let rawValue: Int32
            /// All calls that take a path, or that read, write or close a file.
            static let access = Calls(rawValue: 1)
            static let sync = Calls(rawValue: 2)
            /// All calls that read a file; while they are blocked, a read with `RWF_NOWAIT` finds nothing in the page cache.
            static let reading = Calls(rawValue: 4)
        }

        private typealias IntFunction = @convention(c) @Sendable (Int32) -> Int32
        private typealias ReadFunction = @convention(c) @Sendable () -> UnsafePointer<CChar>?

        private let setStalled: IntFunction
        private let awaitCalls: IntFunction
        private let loopCalls: ReadFunction

        init?() {
            guard let setStalled = PreloadedLibrary.function("stalled_disk_set", as: IntFunction.self),
                let awaitCalls = PreloadedLibrary.function("stalled_disk_await", as: IntFunction.self),
                let loopCalls = PreloadedLibrary.function("stalled_disk_take_loop_calls", as: ReadFunction.self)
            else { return nil }
            self.setStalled = setStalled
            self.awaitCalls = awaitCalls
            self.loopCalls = loopCalls
        }

        /// Blocks these calls, and no others; calls that were blocked continue.
        func stall(_ calls: Calls, sourceLocation: SourceLocation = #_sourceLocation) {
            if setStalled(calls.rawValue) == 0 { Issue.record("a call was blocked for too long", sourceLocation: sourceLocation) }
        }

        /// Waits until at least this number of calls are blocked.
        func stalled(_ count: Int32 = 1, sourceLocation: SourceLocation = #_sourceLocation) async {
            let came = await withCheckedContinuation { continuation in
                Thread.detachNewThread { continuation.resume(returning: awaitCalls(count)) }
            }
            if came == 0 { Issue.record("too few calls were blocked", sourceLocation: sourceLocation) }
        }

        /// Returns the calls that event loops have made since the previous call.
        func takeCallsOnLoops() -> String { loopCalls().map { String(cString: $0) } ?? "" }
    }

    private static let source = #"""
        #define _GNU_SOURCE
        #include <dirent.h>
        #include <dlfcn.h>
        #include <errno.h>
        #include <fcntl.h>
        #include <limits.h>
        #include <pthread.h>
        #include <stdarg.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/stat.h>
        #include <sys/syscall.h>
        #include <sys/sendfile.h>
        #include <sys/uio.h>
        #include <time.h>
        #include <unistd.h>

        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
        static int stalled, waiting, gave_up;
        static char loop_calls[4096];

        static void deadline(struct timespec *time) {
            clock_gettime(CLOCK_REALTIME, time);
            time->tv_sec += 30;
        }
        int stalled_disk_set(int calls) {
            pthread_mutex_lock(&lock);
            int held = !gave_up;
            gave_up = 0;
            stalled = calls;
            pthread_cond_broadcast(&changed);
            pthread_mutex_unlock(&lock);
            return held;
        }
        int stalled_disk_await(int count) {
            struct timespec time;
            deadline(&time);
            pthread_mutex_lock(&lock);
            while (waiting < count && pthread_cond_timedwait(&changed, &lock, &time) == 0) {}
            int came = waiting >= count;
            pthread_mutex_unlock(&lock);
            return came;
        }
        const char *stalled_disk_take_loop_calls(void) {
            static char taken[sizeof loop_calls];
            pthread_mutex_lock(&lock);
            strcpy(taken, loop_calls);
            loop_calls[0] = 0;
            pthread_mutex_unlock(&lock);
            return taken;
        }

        static int is_inside(int folder, const char *path) {
            const char *watched = getenv("STALLED_FOLDER");
            char base[PATH_MAX + 1], name[64];
            if (watched == NULL || path == NULL) return 0;
            if (path[0] == '/') return strncmp(path, watched, strlen(watched)) == 0;
            snprintf(name, sizeof name, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
            long length = syscall(SYS_readlinkat, AT_FDCWD, name, base, PATH_MAX);
            if (length < 0) return 0;
            base[length] = 0;
            return strncmp(base, watched, strlen(watched)) == 0;
        }

        // Called before each intercepted call; returns whether such calls are stalled, and waits if this one may.
        static int look(const char *call, int kind, int may_wait, int folder, const char *path) {
            int saved = errno, is_stalled = 0;
            if (is_inside(folder, path)) {
                char thread[32] = "";
                pthread_getname_np(pthread_self(), thread, sizeof thread);
                pthread_mutex_lock(&lock);
                if (strncmp(thread, "NIO-", 4) == 0 && strlen(loop_calls) + strlen(call) + 2 < sizeof loop_calls) {
                    strcat(loop_calls, call);
                    strcat(loop_calls, " ");
                }
                is_stalled = (stalled & kind) != 0;
                if (is_stalled && may_wait) {
                    struct timespec time;
                    deadline(&time);
                    waiting++;
                    pthread_cond_broadcast(&changed);
                    while ((stalled & kind) && pthread_cond_timedwait(&changed, &lock, &time) == 0) {}
                    waiting--;
                    if (stalled & kind) {
                        gave_up = 1;
                        stalled = 0;
                        pthread_cond_broadcast(&changed);
                    }
                }
                pthread_mutex_unlock(&lock);
            }
            errno = saved;
            return is_stalled;
        }
        #define ACCESS(folder, path) look(__func__, 1, 1, folder, path)
        #define FILE_ACCESS(fd) look(__func__, 1, 1, fd, "")
        #define FILE_READING(fd) look(__func__, 1 | 4, 1, fd, "")
        #define REAL(result, name, ...) \
            static result (*real)(__VA_ARGS__); \
            if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, #name)
        #define MODE(flags) \
            mode_t mode = 0; \
            if ((flags) & (O_CREAT | __O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }
        #define OPEN(name) \
            int name(const char *path, int flags, ...) { \
                MODE(flags) \
                ACCESS(AT_FDCWD, path); \
                return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_LARGEFILE, mode); \
            }
        #define OPENAT(name) \
            int name(int folder, const char *path, int flags, ...) { \
                MODE(flags) \
                ACCESS(folder, path); \
                return (int)syscall(SYS_openat, folder, path, flags | O_LARGEFILE, mode); \
            }
        OPEN(open)
        OPEN(open64)
        OPENAT(openat)
        OPENAT(openat64)
        DIR *opendir(const char *path) { REAL(DIR *, opendir, const char *); ACCESS(AT_FDCWD, path); return real(path); }
        #define STATUS(name, type) \
            int name(const char *path, type *status) { \
                REAL(int, name, const char *, type *); \
                ACCESS(AT_FDCWD, path); \
                return real(path, status); \
            }
        STATUS(stat, struct stat)
        STATUS(lstat, struct stat)
        STATUS(stat64, struct stat64)
        STATUS(lstat64, struct stat64)
        #define STATUSAT(name, type) \
            int name(int folder, const char *path, type *status, int flags) { \
                REAL(int, name, int, const char *, type *, int); \
                ACCESS(folder, path); \
                return real(folder, path, status, flags); \
            }
        STATUSAT(fstatat, struct stat)
        STATUSAT(fstatat64, struct stat64)
        int mkdir(const char *path, mode_t mode) {
            ACCESS(AT_FDCWD, path);
            return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
        }
        int rename(const char *from, const char *to) {
            ACCESS(AT_FDCWD, to);
            return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
        }
        int renameat(int fromFolder, const char *from, int toFolder, const char *to) {
            ACCESS(toFolder, to);
            return (int)syscall(SYS_renameat2, fromFolder, from, toFolder, to, 0);
        }
        int unlink(const char *path) { ACCESS(AT_FDCWD, path); return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0); }
        int unlinkat(int folder, const char *path, int flags) {
            ACCESS(folder, path);
            return (int)syscall(SYS_unlinkat, folder, path, flags);
        }
        int utimensat(int folder, const char *path, const struct timespec times[2], int flags) {
            ACCESS(folder, path);
            return (int)syscall(SYS_utimensat, folder, path, times, flags);
        }
        int fsync(int fd) { look(__func__, 2, 1, fd, ""); return (int)syscall(SYS_fsync, fd); }
        int close(int fd) { FILE_ACCESS(fd); return (int)syscall(SYS_close, fd); }
        ssize_t read(int fd, void *bytes, size_t size) { FILE_READING(fd); return syscall(SYS_read, fd, bytes, size); }
        ssize_t write(int fd, const void *bytes, size_t size) { FILE_ACCESS(fd); return syscall(SYS_write, fd, bytes, size); }
        ssize_t writev(int fd, const struct iovec *pieces, int count) {
            FILE_ACCESS(fd);
            return syscall(SYS_writev, fd, pieces, count);
        }
        ssize_t splice(int from, off64_t *fromOffset, int to, off64_t *toOffset, size_t size, unsigned flags) {
            FILE_ACCESS(to);
            return syscall(SYS_splice, from, fromOffset, to, toOffset, size, flags);
        }
        #define PREAD(name, type) \
            ssize_t name(int fd, void *bytes, size_t size, type offset) { \
                FILE_READING(fd); \
                return syscall(SYS_pread64, fd, bytes, size, offset); \
            }
        PREAD(pread, off_t)
        PREAD(pread64, off64_t)
        #define PREADV2(name, type) \
            ssize_t name(int fd, const struct iovec *pieces, int count, type offset, int flags) { \
                REAL(ssize_t, name, int, const struct iovec *, int, type, int); \
                if (look(__func__, 1 | 4, !(flags & RWF_NOWAIT), fd, "") && (flags & RWF_NOWAIT)) { errno = EAGAIN; return -1; } \
                return real(fd, pieces, count, offset, flags); \
            }
        PREADV2(preadv2, off_t)
        PREADV2(preadv64v2, off64_t)
        #define SENDFILE(name, type) \
            ssize_t name(int out, int in, type *offset, size_t size) { \
                FILE_READING(in); \
                return syscall(SYS_sendfile, out, in, offset, size); \
            }
        SENDFILE(sendfile, off_t)
        SENDFILE(sendfile64, off64_t)
        """#
}
