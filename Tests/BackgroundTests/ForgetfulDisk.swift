// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit

/// A disk that loses names in a loss of power: those that files were given since the last sync of their folder.
///
/// A library that is preloaded into the daemon and its programs records changes of names. The library does not change the content
/// of files.
struct ForgetfulDisk: Sendable {
    private let library: PreloadedLibrary
    private var folder: URL { library.folder.url }
    private var journal: URL { folder.appendingPathComponent("journal") }
    private var bootID: URL { folder.appendingPathComponent("boot_id") }

    init() throws {
        library = try PreloadedLibrary(source: Self.source)
        try FileManager.default.createDirectory(
            at: folder.appendingPathComponent("graves"), withIntermediateDirectories: true)
        try startMachine()
    }

    /// The environment of the daemon and of its programs; the simulated disk is everything below the folder `disk`.
    func environment(disk: String) -> [String: String] {
        library.environment.merging(["FORGETFUL_DISK": disk, "FORGETFUL_FOLDER": folder.path]) { $1 }
    }

    private func startMachine() throws { try Data(UUID().uuidString.lowercased().utf8).write(to: bootID) }

    /// Undoes the changes that were not synced, after every process was killed.
    ///
    /// - Returns: The number of undone changes.
    @discardableResult
    func losePower() throws -> Int {
        let lines = (try? String(contentsOf: journal, encoding: .utf8))?.split(separator: "\n") ?? []
        var synced: Set<String> = []
        var count = 0
        for line in lines.reversed() {
            let parts = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 4 else { continue }
            let (kind, old, new, grave) = (parts[0], parts[1], parts[2], parts[3])
            guard kind != "sync" else {
                synced.insert(old)
                continue
            }
            // The change of a name is one transaction: a sync of either folder makes it durable.
            guard !synced.contains(Self.parent(old)), new.isEmpty || !synced.contains(Self.parent(new)) else { continue }
            count += 1
            switch kind {
            case "rename":
                rename(new, old)
                if !grave.isEmpty { rename(grave, new) }
            case "unlink": link(grave, old)
            case "link": unlink(new)
            default: break
            }
        }
        try? FileManager.default.removeItem(at: journal)
        try startMachine()
        return count
    }

    private static func parent(_ path: String) -> String { URL(fileURLWithPath: path).deletingLastPathComponent().path }

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
        #include <sys/stat.h>
        #include <sys/syscall.h>
        #include <unistd.h>

        #define ORIGINAL(name) \
            static __typeof__(&name) original; \
            if (original == NULL) original = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

        // The files of the database are synced by their users, and keep their names.
        static int is_on_disk(const char *path) {
            const char *disk = getenv("FORGETFUL_DISK");
            return disk && strncmp(path, disk, strlen(disk)) == 0 && !strstr(path, ".sqlite");
        }

        static void note(const char *kind, const char *old, const char *new, const char *grave) {
            char path[PATH_MAX], line[3 * PATH_MAX];
            int saved = errno;
            snprintf(path, sizeof path, "%s/journal", getenv("FORGETFUL_FOLDER"));
            int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
            int count = snprintf(line, sizeof line, "%s\t%s\t%s\t%s\n", kind, old, new, grave);
            if (fd >= 0) {
                syscall(SYS_write, fd, line, (size_t)count);
                syscall(SYS_close, fd);
            }
            errno = saved;
        }

        // Preserves a file that is about to lose its name.
        static void bury(const char *path, char *grave) {
            static int count;
            int saved = errno;
            snprintf(grave, PATH_MAX, "%s/graves/%d-%d", getenv("FORGETFUL_FOLDER"), getpid(), __sync_add_and_fetch(&count, 1));
            if (syscall(SYS_linkat, AT_FDCWD, path, AT_FDCWD, grave, 0) != 0) grave[0] = 0;
            errno = saved;
        }

        int rename(const char *old, const char *new) {
            char grave[PATH_MAX] = "";
            int counts = is_on_disk(old) || is_on_disk(new);
            if (counts) bury(new, grave);
            int result = (int)syscall(SYS_renameat, AT_FDCWD, old, AT_FDCWD, new);
            if (result == 0 && counts) note("rename", old, new, grave);
            return result;
        }

        int unlink(const char *path) {
            char grave[PATH_MAX] = "";
            int counts = is_on_disk(path);
            if (counts) bury(path, grave);
            int result = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
            if (result == 0 && counts && grave[0]) note("unlink", path, "", grave);
            return result;
        }

        int link(const char *old, const char *new) {
            int result = (int)syscall(SYS_linkat, AT_FDCWD, old, AT_FDCWD, new, 0);
            if (result == 0 && is_on_disk(new)) note("link", old, new, "");
            return result;
        }

        int fsync(int fd) {
            char path[PATH_MAX], own[64];
            struct stat facts;
            int result = (int)syscall(SYS_fsync, fd);
            int saved = errno;
            if (result == 0 && fstat(fd, &facts) == 0 && S_ISDIR(facts.st_mode)) {
                snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
                long length = syscall(SYS_readlinkat, AT_FDCWD, own, path, sizeof path - 1);
                if (length > 0) {
                    path[length] = 0;
                    note("sync", path, "", "");
                }
            }
            errno = saved;
            return result;
        }

        // After a loss of power the machine has a new boot identifier.
        static const char *placed(const char *path, char *own) {
            if (strcmp(path, "/proc/sys/kernel/random/boot_id") != 0) return path;
            snprintf(own, PATH_MAX, "%s/boot_id", getenv("FORGETFUL_FOLDER"));
            return own;
        }

        int open(const char *path, int flags, ...) {
            char own[PATH_MAX];
            va_list list;
            va_start(list, flags);
            int mode = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(list, int) : 0;
            va_end(list);
            return (int)syscall(SYS_openat, AT_FDCWD, placed(path, own), flags, mode);
        }

        int open64(const char *path, int flags, ...) __attribute__((alias("open")));
        """#
}
