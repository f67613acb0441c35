// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit

/// A library that is preloaded into the tool, and makes the k-th call of one kind fail.
struct FaultShim: Sendable {
    /// One failure: `kind` is a name in the source below, and `at` is the number of the call, counted from 1.
    struct Fault: Sendable, CustomStringConvertible {
        var kind: String
        var at: Int
        var error: Int32

        var description: String { "\(kind) #\(at) fails with \(String(cString: strerror(error))) (\(error))" }
    }

    private let library: PreloadedLibrary
    private var mark: URL { library.folder.file("happened") }

    init() throws { library = try PreloadedLibrary(source: Self.source) }

    /// Returns the tool's environment for a fault; of the calls on files, only those on files in or below `folder` count.
    func environment(_ fault: Fault, in folder: TemporaryDirectory) -> [String: String] { environment(fault, in: folder.url) }

    func environment(_ fault: Fault, in folder: URL) -> [String: String] {
        let own = [
            "FAULT_CALL": fault.kind, "FAULT_AT": "\(fault.at)", "FAULT_ERRNO": "\(fault.error)",
            "FAULT_FOLDER": folder.resolvingSymlinksInPath().path, "FAULT_MARK": mark.path,
        ]
        return own.merging(library.environment) { $1 }
    }

    /// Returns whether the call failed since the last call of this function.
    func happened() -> Bool { unlink(mark.path) == 0 }

    private static let source = #"""
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <errno.h>
        #include <fcntl.h>
        #include <limits.h>
        #include <netdb.h>
        #include <stdarg.h>
        #include <stdatomic.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/sendfile.h>
        #include <sys/socket.h>
        #include <sys/stat.h>
        #include <sys/syscall.h>
        #include <sys/uio.h>
        #include <unistd.h>

        static atomic_int count;

        // Counts a call of a kind; true for the one that has to fail.
        static int fails(const char *kind) {
            const char *call = getenv("FAULT_CALL");
            if (call == NULL || strcmp(call, kind) != 0) return 0;
            if (atomic_fetch_add(&count, 1) + 1 != atoi(getenv("FAULT_AT"))) return 0;
            int fd = (int)syscall(SYS_openat, AT_FDCWD, getenv("FAULT_MARK"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
            if (fd >= 0) syscall(SYS_close, fd);
            errno = atoi(getenv("FAULT_ERRNO"));
            return 1;
        }

        static int is_socket(int fd) {
            int domain = 0;
            socklen_t length = sizeof domain;
            int saved = errno;
            int yes = getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && (domain == AF_INET || domain == AF_INET6);
            errno = saved;
            return yes;
        }

        static int is_inside(const char *path) {
            const char *folder = getenv("FAULT_FOLDER");
            return folder != NULL && strncmp(path, folder, strlen(folder)) == 0;
        }

        static int is_file(int fd) {
            char name[64], path[PATH_MAX + 1];
            int saved = errno;
            snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
            ssize_t length = readlink(name, path, PATH_MAX);
            errno = saved;
            if (length < 0) return 0;
            path[length] = 0;
            return is_inside(path);
        }

        // Files opened for writing. The tool works in the folder.
        static int is_output(const char *path, int flags) {
            return (flags & O_ACCMODE) != O_RDONLY && (path[0] != '/' || is_inside(path));
        }

        #define REAL(result, name, ...) \
            static result (*real)(__VA_ARGS__); \
            if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, #name)

        int socket(int domain, int type, int protocol) {
            REAL(int, socket, int, int, int);
            if ((domain == AF_INET || domain == AF_INET6) && fails("socket")) return -1;
            return real(domain, type, protocol);
        }
        int connect(int fd, const struct sockaddr *address, socklen_t length) {
            REAL(int, connect, int, const struct sockaddr *, socklen_t);
            if (is_socket(fd) && fails("connect")) return -1;
            return real(fd, address, length);
        }
        int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result) {
            REAL(int, getaddrinfo, const char *, const char *, const struct addrinfo *, struct addrinfo **);
            if (fails("resolve")) return errno == ENOMEM ? EAI_MEMORY : errno == EAGAIN ? EAI_AGAIN : EAI_SYSTEM;
            return real(node, service, hints, result);
        }

        ssize_t send(int fd, const void *bytes, size_t size, int flags) {
            REAL(ssize_t, send, int, const void *, size_t, int);
            if (is_socket(fd) && fails("send")) return -1;
            return real(fd, bytes, size, flags);
        }
        ssize_t sendto(int fd, const void *bytes, size_t size, int flags, const struct sockaddr *address, socklen_t length) {
            REAL(ssize_t, sendto, int, const void *, size_t, int, const struct sockaddr *, socklen_t);
            if (is_socket(fd) && fails("send")) return -1;
            return real(fd, bytes, size, flags, address, length);
        }
        ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
            REAL(ssize_t, sendmsg, int, const struct msghdr *, int);
            if (is_socket(fd) && fails("send")) return -1;
            return real(fd, message, flags);
        }
        ssize_t write(int fd, const void *bytes, size_t size) {
            REAL(ssize_t, write, int, const void *, size_t);
            if (is_socket(fd) ? fails("send") : is_file(fd) && fails("write")) return -1;
            return real(fd, bytes, size);
        }
        ssize_t writev(int fd, const struct iovec *pieces, int pieceCount) {
            REAL(ssize_t, writev, int, const struct iovec *, int);
            if (is_socket(fd) ? fails("send") : is_file(fd) && fails("write")) return -1;
            return real(fd, pieces, pieceCount);
        }
        ssize_t sendfile(int out, int in, off_t *offset, size_t size) {
            REAL(ssize_t, sendfile, int, int, off_t *, size_t);
            if (is_socket(out) ? fails("send") : is_file(out) && fails("write")) return -1;
            return real(out, in, offset, size);
        }
        ssize_t sendfile64(int out, int in, off64_t *offset, size_t size) {
            REAL(ssize_t, sendfile64, int, int, off64_t *, size_t);
            if (is_socket(out) ? fails("send") : is_file(out) && fails("write")) return -1;
            return real(out, in, offset, size);
        }
        ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset) {
            REAL(ssize_t, pwrite, int, const void *, size_t, off_t);
            if (is_file(fd) && fails("write")) return -1;
            return real(fd, bytes, size, offset);
        }
        ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset) {
            REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
            if (is_file(fd) && fails("write")) return -1;
            return real(fd, bytes, size, offset);
        }

        ssize_t recv(int fd, void *bytes, size_t size, int flags) {
            REAL(ssize_t, recv, int, void *, size_t, int);
            if (is_socket(fd) && fails("receive")) return -1;
            return real(fd, bytes, size, flags);
        }
        ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
            REAL(ssize_t, recvmsg, int, struct msghdr *, int);
            if (is_socket(fd) && fails("receive")) return -1;
            return real(fd, message, flags);
        }
        ssize_t read(int fd, void *bytes, size_t size) {
            REAL(ssize_t, read, int, void *, size_t);
            if (is_socket(fd) ? fails("receive") : is_file(fd) && fails("read")) return -1;
            return real(fd, bytes, size);
        }
        ssize_t pread(int fd, void *bytes, size_t size, off_t offset) {
            REAL(ssize_t, pread, int, void *, size_t, off_t);
            if (is_file(fd) && fails("read")) return -1;
            return real(fd, bytes, size, offset);
        }
        ssize_t pread64(int fd, void *bytes, size_t size, off64_t offset) {
            REAL(ssize_t, pread64, int, void *, size_t, off64_t);
            if (is_file(fd) && fails("read")) return -1;
            return real(fd, bytes, size, offset);
        }
        ssize_t splice(int in, off64_t *inOffset, int out, off64_t *outOffset, size_t size, unsigned flags) {
            REAL(ssize_t, splice, int, off64_t *, int, off64_t *, size_t, unsigned);
            if (is_socket(in) ? fails("receive") : is_file(out) && fails("write")) return -1;
            return real(in, inOffset, out, outOffset, size, flags);
        }

        #define MODE(flags) \
            mode_t mode = 0; \
            if ((flags) & (O_CREAT | __O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }
        #define OPEN(name) \
            int name(const char *path, int flags, ...) { \
                MODE(flags) \
                if (is_output(path, flags) && fails("open")) return -1; \
                return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_LARGEFILE, mode); \
            }
        #define OPENAT(name) \
            int name(int folder, const char *path, int flags, ...) { \
                MODE(flags) \
                if (is_output(path, flags) && fails("open")) return -1; \
                return (int)syscall(SYS_openat, folder, path, flags | O_LARGEFILE, mode); \
            }
        OPEN(open)
        OPEN(open64)
        OPENAT(openat)
        OPENAT(openat64)
        int creat(const char *path, mode_t mode) { return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
        int creat64(const char *path, mode_t mode) { return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
        int mkstemp(char *template) {
            REAL(int, mkstemp, char *);
            if (is_output(template, O_RDWR) && fails("open")) return -1;
            return real(template);
        }
        int mkdir(const char *path, mode_t mode) {
            REAL(int, mkdir, const char *, mode_t);
            if (is_output(path, O_RDWR) && fails("mkdir")) return -1;
            return real(path, mode);
        }

        int rename(const char *from, const char *to) {
            REAL(int, rename, const char *, const char *);
            if (is_output(to, O_RDWR) && fails("rename")) return -1;
            return real(from, to);
        }
        int renameat2(int fromFolder, const char *from, int toFolder, const char *to, unsigned flags) {
            REAL(int, renameat2, int, const char *, int, const char *, unsigned);
            if (is_output(to, O_RDWR) && fails("rename")) return -1;
            return real(fromFolder, from, toFolder, to, flags);
        }
        int fsync(int fd) {
            REAL(int, fsync, int);
            if (is_file(fd) && fails("sync")) return -1;
            return real(fd);
        }
        int fallocate(int fd, int mode, off_t offset, off_t length) {
            REAL(int, fallocate, int, int, off_t, off_t);
            if (is_file(fd) && fails("preallocate")) return -1;
            return real(fd, mode, offset, length);
        }
        int fallocate64(int fd, int mode, off64_t offset, off64_t length) {
            REAL(int, fallocate64, int, int, off64_t, off64_t);
            if (is_file(fd) && fails("preallocate")) return -1;
            return real(fd, mode, offset, length);
        }
        int close(int fd) {
            REAL(int, close, int);
            int counts = is_file(fd) && fails("close");
            int result = real(fd);
            if (!counts) return result;
            // close(2) releases the descriptor even when it fails.
            errno = atoi(getenv("FAULT_ERRNO"));
            return -1;
        }
        """#
}
