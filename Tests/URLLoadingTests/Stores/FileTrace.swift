// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit

/// A preloaded library that records every file that its process opens, creates, renames, removes or syncs.
///
/// Paths are absolute, but links in them are not resolved. The library cannot intercept calls within glibc, so it also intercepts
/// the functions that make such calls, as `fopen` and `mkstemp` do.
struct FileTrace: Sendable {
    /// One recorded call.
    struct Line: Sendable, Hashable, CustomStringConvertible {
        /// `read` if a file was opened only for reading, `sync` if it was made durable; other verbs name a change of a folder or a file.
        let verb: String
        let path: String
        var description: String { "\(verb) \(path)" }

        var changes: Bool { verb != "read" && verb != "sync" }
        func isBelow(_ folder: String) -> Bool { path == folder || path.hasPrefix(folder + "/") }
    }

    private let library: PreloadedLibrary
    private var file: URL { library.folder.file("trace") }

    init() throws { library = try PreloadedLibrary(source: Self.source) }

    /// The environment variables that the process needs.
    var environment: [String: String] { library.environment.merging(["FILE_TRACE": file.path]) { $1 } }

    /// Returns the calls of all processes so far, and clears the list.
    func takeLines() throws -> [Line] {
        let text = try String(contentsOf: file, encoding: .utf8)
        try FileManager.default.removeItem(at: file)
        return text.split(separator: "\n").compactMap { line in
            let parts = line.split(separator: " ", maxSplits: 1)
            return parts.count == 2 ? Line(verb: String(parts[0]), path: String(parts[1])) : nil
        }
    }

    private static let source = #"""
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <errno.h>
        #include <fcntl.h>
        #include <limits.h>
        #include <stdarg.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/socket.h>
        #include <sys/stat.h>
        #include <sys/syscall.h>
        #include <sys/un.h>
        #include <unistd.h>

        #define O_ANYTMP (O_TMPFILE & ~O_DIRECTORY)

        // Each line is appended with one write, so that threads and processes do not interleave.
        static void note(const char *verb, int folder, const char *path) {
            char base[PATH_MAX + 1] = "", line[3 * PATH_MAX], name[64];
            int saved = errno;
            const char *list = getenv("FILE_TRACE");
            if (list == NULL || path == NULL) return;
            if (path[0] != '/') {
                snprintf(name, sizeof name, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
                long length = syscall(SYS_readlinkat, AT_FDCWD, name, base, PATH_MAX);
                if (length >= 0) base[length] = 0;
            }
            int length = snprintf(line, sizeof line, "%s %s%s%s\n", verb, base, base[0] && path[0] ? "/" : "", path);
            int fd = (int)syscall(SYS_openat, AT_FDCWD, list, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
            if (fd < 0 || length < 0 || syscall(SYS_write, fd, line, (size_t)length) != length) abort();
            syscall(SYS_close, fd);
            errno = saved;
        }

        static const char *verb_of(int flags) {
            if (flags & O_ANYTMP) return "make-unnamed";
            if (flags & O_CREAT) return "make";
            return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) ? "write" : "read";
        }

        #define REAL(result, name, ...) \
            static result (*real)(__VA_ARGS__); \
            if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, #name)
        #define MODE(flags) \
            mode_t mode = 0; \
            if ((flags) & (O_CREAT | O_ANYTMP)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }
        #define OPEN(name) \
            int name(const char *path, int flags, ...) { \
                MODE(flags) \
                note(verb_of(flags), AT_FDCWD, path); \
                return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_LARGEFILE, mode); \
            }
        #define OPENAT(name) \
            int name(int folder, const char *path, int flags, ...) { \
                MODE(flags) \
                note(verb_of(flags), folder, path); \
                return (int)syscall(SYS_openat, folder, path, flags | O_LARGEFILE, mode); \
            }
        OPEN(open)
        OPEN(open64)
        OPENAT(openat)
        OPENAT(openat64)
        int creat(const char *path, mode_t mode) { return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
        int creat64(const char *path, mode_t mode) { return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

        #define FOPEN(name) \
            FILE *name(const char *path, const char *mode) { \
                REAL(FILE *, name, const char *, const char *); \
                note(strpbrk(mode, "wa+") ? "make" : "read", AT_FDCWD, path); \
                return real(path, mode); \
            }
        FOPEN(fopen)
        FOPEN(fopen64)
        #define TEMPORARY(result, name, parameters, types, ...) \
            result name parameters { \
                REAL(result, name, types); \
                note("make", AT_FDCWD, template); \
                return real(__VA_ARGS__); \
            }
        #define TYPES(...) __VA_ARGS__
        TEMPORARY(int, mkstemp, (char *template), TYPES(char *), template)
        TEMPORARY(int, mkstemp64, (char *template), TYPES(char *), template)
        TEMPORARY(int, mkostemp, (char *template, int flags), TYPES(char *, int), template, flags)
        TEMPORARY(int, mkostemp64, (char *template, int flags), TYPES(char *, int), template, flags)
        TEMPORARY(int, mkstemps, (char *template, int length), TYPES(char *, int), template, length)
        TEMPORARY(int, mkstemps64, (char *template, int length), TYPES(char *, int), template, length)
        TEMPORARY(int, mkostemps, (char *template, int length, int flags), TYPES(char *, int, int), template, length, flags)
        TEMPORARY(int, mkostemps64, (char *template, int length, int flags), TYPES(char *, int, int), template, length, flags)
        TEMPORARY(char *, mkdtemp, (char *template), TYPES(char *), template)
        FILE *tmpfile(void) { REAL(FILE *, tmpfile, void); note("make-unnamed", AT_FDCWD, "/tmp"); return real(); }
        FILE *tmpfile64(void) { REAL(FILE *, tmpfile64, void); note("make-unnamed", AT_FDCWD, "/tmp"); return real(); }

        int mkdirat(int folder, const char *path, mode_t mode) {
            note("make-folder", folder, path);
            return (int)syscall(SYS_mkdirat, folder, path, mode);
        }
        int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }
        int mknodat(int folder, const char *path, mode_t mode, dev_t device) {
            note("make", folder, path);
            return (int)syscall(SYS_mknodat, folder, path, mode, (unsigned)device);
        }
        int mknod(const char *path, mode_t mode, dev_t device) { return mknodat(AT_FDCWD, path, mode, device); }
        int mkfifo(const char *path, mode_t mode) { return mknodat(AT_FDCWD, path, mode | S_IFIFO, 0); }
        int linkat(int fromFolder, const char *from, int toFolder, const char *to, int flags) {
            note("link", toFolder, to);
            return (int)syscall(SYS_linkat, fromFolder, from, toFolder, to, flags);
        }
        int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }
        int symlinkat(const char *from, int folder, const char *to) {
            note("link", folder, to);
            return (int)syscall(SYS_symlinkat, from, folder, to);
        }
        int symlink(const char *from, const char *to) { return symlinkat(from, AT_FDCWD, to); }
        int bind(int fd, const struct sockaddr *address, socklen_t length) {
            REAL(int, bind, int, const struct sockaddr *, socklen_t);
            if (address->sa_family == AF_UNIX && length > sizeof(sa_family_t)) {
                const char *path = ((const struct sockaddr_un *)address)->sun_path;
                if (path[0]) note("make", AT_FDCWD, path);
            }
            return real(fd, address, length);
        }

        int renameat2(int fromFolder, const char *from, int toFolder, const char *to, unsigned flags) {
            note("rename", fromFolder, from);
            note("rename", toFolder, to);
            return (int)syscall(SYS_renameat2, fromFolder, from, toFolder, to, flags);
        }
        int renameat(int fromFolder, const char *from, int toFolder, const char *to) {
            return renameat2(fromFolder, from, toFolder, to, 0);
        }
        int rename(const char *from, const char *to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }
        int unlinkat(int folder, const char *path, int flags) {
            note("remove", folder, path);
            return (int)syscall(SYS_unlinkat, folder, path, flags);
        }
        int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
        int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
        int remove(const char *path) {
            REAL(int, remove, const char *);
            note("remove", AT_FDCWD, path);
            return real(path);
        }
        int fsync(int fd) {
            note("sync", fd, "");
            return (int)syscall(SYS_fsync, fd);
        }
        int fdatasync(int fd) {
            note("sync", fd, "");
            return (int)syscall(SYS_fdatasync, fd);
        }
        int truncate(const char *path, off_t length) {
            REAL(int, truncate, const char *, off_t);
            note("write", AT_FDCWD, path);
            return real(path, length);
        }
        int truncate64(const char *path, off64_t length) {
            REAL(int, truncate64, const char *, off64_t);
            note("write", AT_FDCWD, path);
            return real(path, length);
        }
        """#
}
