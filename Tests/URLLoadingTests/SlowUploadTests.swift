//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Files on a disk that does not answer: nobody else waits for it.
///
/// In a process of its own, where such files are not in memory, and reading them takes until the test says so.
@Suite(.timeLimit(.minutes(2))) struct SlowUploadTests {
    @Test func `uploads from a disk that does not answer hold up nobody else`() async throws {
        let library = try PreloadedLibrary(source: SlowDisk.source)
        try await OwnProcess.run("WithSlowUploadTests", environment: library.environment)
    }
}

@Suite(.enabled(if: OwnProcess.isHere("WithSlowUploadTests")), .timeLimit(.minutes(1))) struct WithSlowUploadTests {
    @Test func `the loop goes on while the disk does not answer`() async throws {
        let directory = try TemporaryDirectory()
        let content = ScriptedFile.pattern(3_000_000)
        let file = try directory.write(content, to: "slow-disk")
        try await withScenario(reply: { .ok($0.method == "PUT" ? "\($0.bodyLength)" : "there") }) {
            (server, session) async throws in
            var request = URLRequest(url: server.url("/upload"))
            request.httpMethod = "PUT"
            let uploads = (0..<5).map { _ in
                Task { [request] in String(decoding: try await session.upload(for: request, fromFile: file).0, as: UTF8.self) }
            }
            #expect(SlowDisk.wait(for: 1))
            for _ in 0..<3 { #expect(try await session.text(server.url()) == "there") }
            SlowDisk.openGate()
            for upload in uploads { #expect(try await upload.value == "3000000") }
        }
    }
}

/// A library to preload: files with `slow-disk` in their names are not in memory, and reading them waits for a gate.
private enum SlowDisk {
    /// Waits until so many calls wait for the disk; false when half a minute went by without.
    static func wait(for count: Int) -> Bool {
        typealias Function = @convention(c) (CInt) -> CInt
        return function("disk_wait", as: Function.self).map { $0(CInt(count)) == 1 } ?? false
    }

    static func openGate() {
        typealias Function = @convention(c) () -> Void
        function("disk_open", as: Function.self)?()
    }

    private static func function<Function>(_ name: String, as: Function.Type) -> Function? {
        dlsym(nil, name).map { unsafeBitCast($0, to: Function.self) }
    }

    static let source = #"""
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <errno.h>
        #include <limits.h>
        #include <pthread.h>
        #include <stdio.h>
        #include <string.h>
        #include <sys/sendfile.h>
        #include <sys/uio.h>
        #include <time.h>
        #include <unistd.h>

        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
        static int waiting, is_open;

        static int is_slow(int fd) {
            char name[64], path[PATH_MAX + 1];
            snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
            ssize_t length = readlink(name, path, PATH_MAX);
            path[length < 0 ? 0 : length] = 0;
            return strstr(path, "slow-disk") != NULL;
        }
        static void wait_until(int (*is_true)(int), int argument) {
            struct timespec time;
            clock_gettime(CLOCK_REALTIME, &time);
            time.tv_sec += 30;
            while (!is_true(argument) && pthread_cond_timedwait(&changed, &lock, &time) == 0) {}
        }
        static int gate_is_open(int ignored) { return is_open; }
        static int are_waiting(int count) { return waiting >= count; }
        static void disk(int fd) {
            if (!is_slow(fd)) return;
            pthread_mutex_lock(&lock);
            waiting++;
            pthread_cond_broadcast(&changed);
            wait_until(gate_is_open, 0);
            pthread_mutex_unlock(&lock);
        }

        int disk_wait(int count) {
            pthread_mutex_lock(&lock);
            wait_until(are_waiting, count);
            int came = are_waiting(count);
            pthread_mutex_unlock(&lock);
            return came;
        }
        void disk_open(void) {
            pthread_mutex_lock(&lock);
            is_open = 1;
            pthread_cond_broadcast(&changed);
            pthread_mutex_unlock(&lock);
        }

        #define REAL(result, name, ...) \
            static result (*real)(__VA_ARGS__); \
            if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, #name)
        #define PREADV2(name) \
            ssize_t name(int fd, const struct iovec *pieces, int count, off_t offset, int flags) { \
                REAL(ssize_t, name, int, const struct iovec *, int, off_t, int); \
                if (!is_open && is_slow(fd) && (flags & RWF_NOWAIT)) { errno = EAGAIN; return -1; } \
                return real(fd, pieces, count, offset, flags); \
            }
        #define PREAD(name) \
            ssize_t name(int fd, void *bytes, size_t size, off_t offset) { \
                REAL(ssize_t, name, int, void *, size_t, off_t); \
                disk(fd); \
                return real(fd, bytes, size, offset); \
            }
        #define SENDFILE(name) \
            ssize_t name(int out, int in, off_t *offset, size_t size) { \
                REAL(ssize_t, name, int, int, off_t *, size_t); \
                disk(in); \
                return real(out, in, offset, size); \
            }
        PREADV2(preadv2)
        PREADV2(preadv64v2)
        PREAD(pread)
        PREAD(pread64)
        SENDFILE(sendfile)
        SENDFILE(sendfile64)
        """#
}
