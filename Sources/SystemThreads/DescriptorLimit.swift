//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// How many descriptors the process may have, and whose they are.
///
/// Some are set aside for what the library opens without asking: a descriptor for each thread that looks up a name or opens a file for a
/// moment, three for each lane of the disk, three for each event loop, and a dozen for the standard streams, libdispatch and what watches the
/// networks. Of the others a quarter is left to the app, three eighths are for files that stay open (``FileBudget``), up to 4,096, and the
/// rest is for connections (`ConnectionBudget`). What is there now and then comes out of the app's quarter: the connections of libunbound, of Kerberos and
/// of proxy scripts, and one to the daemon for each background session.
package enum DescriptorLimit {
    /// How many files may be opened, read or written at a time.
    package static let threadsForFiles = 16
    private static let lanes = 4
    private static let others = 12

    /// The soft `RLIMIT_NOFILE`.
    ///
    /// The app may change it, so it is asked for each time.
    package static func system() -> Int {
        var limit = rlimit()
        #if canImport(Glibc)
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1_024 }
        #else
        guard getrlimit(RLIMIT_NOFILE, &limit) == 0 else { return 1_024 }
        #endif
        return Int(clamping: limit.rlim_cur)
    }

    /// What connections, files and the app have together.
    package static func divisible() -> Int {
        let limit = system()
        return max(0, limit - setAside - threadsForNames(limit))
    }

    /// The files' part: no more than so many, as then it is their connections that are slow.
    package static func files(of divisible: Int) -> Int { max(2, min(divisible / 8 * 3, mostFiles)) }

    /// What files and the app leave to connections.
    package static func connections(of divisible: Int) -> Int { max(2, divisible - divisible / 4 - files(of: divisible)) }

    private static let mostFiles = 4_096

    /// How many names may be looked up at a time: `getaddrinfo` has a socket.
    package static func threadsForNames(_ limit: Int = system()) -> Int { min(64, max(4, limit / 16)) }

    private static let setAside: Int = {
        let loops = max(1, Int(clamping: sysconf(CInt(_SC_NPROCESSORS_ONLN))))
        return threadsForFiles + 3 * lanes + 3 * loops + others
    }()
}
