// SPDX-License-Identifier: Apache-2.0

import LibC

/// Converts between file times and the times of the cache rules, which are in seconds since 2001.
enum FileTime {
    private static let referenceDate = 978_307_200.0

    static func seconds(_ time: timespec) -> Double {
        Double(time.tv_sec) - referenceDate + Double(time.tv_nsec) / 1e9
    }

    /// The nearest time that a file can have.
    static func stamp(_ seconds: Double) -> timespec {
        let time = min(max(seconds + referenceDate, 0), 0xFFFF_FFFF)
        guard time.isFinite else { return timespec() }
        let whole = time.rounded(.down)
        return timespec(tv_sec: Int(whole), tv_nsec: Int((time - whole) * 1e9))
    }

    /// Identifies a file or folder and its last modification.
    struct Stamp: Hashable, Sendable {
        var inode: UInt64
        var seconds: Int
        var nanoseconds: Int

        init(_ status: stat) {
            inode = UInt64(status.st_ino)
            seconds = status.st_mtim.tv_sec
            nanoseconds = status.st_mtim.tv_nsec
        }
    }

    static func stamp(_ path: String) -> Stamp? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        return Stamp(status)
    }

    /// Records when a file was last used.
    static func set(_ path: String, _ seconds: Double) {
        let time = stamp(seconds)
        _ = withUnsafeTemporaryAllocation(of: timespec.self, capacity: 2) { times in
            times.initialize(repeating: time)
            return utimensat(AT_FDCWD, path, times.baseAddress, AT_SYMLINK_NOFOLLOW)
        }
    }

    static func set(_ descriptor: CInt, _ seconds: Double) {
        let time = stamp(seconds)
        _ = withUnsafeTemporaryAllocation(of: timespec.self, capacity: 2) { times in
            times.initialize(repeating: time)
            return futimens(descriptor, times.baseAddress)
        }
    }
}
