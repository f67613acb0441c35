// SPDX-License-Identifier: Apache-2.0

import LibC

/// The process's limit on file descriptors, and how the descriptors are divided.
///
/// Some descriptors are reserved for short-lived use inside the library: one for each thread that looks up a host name or opens a
/// file, three for each disk lane, three for each event loop, and a dozen for the standard streams, libdispatch and the network
/// monitors. Of the rest, a quarter is left to the app. Three eighths, but at most 4,096 descriptors, are for files that stay
/// open (``FileBudget``). The remainder is for connections (`ConnectionBudget`). Descriptors that are needed only occasionally
/// are taken from the app's quarter: those for connections of libunbound, Kerberos and proxy scripts, for host name lookups that
/// take longer than a second, for lookups of HTTPS records, and for one connection to the daemon per background session.
package enum DescriptorLimit {
    /// The maximum number of files that are opened, read or written at a time.
    package static let threadsForFiles = 16
    private static let lanes = 4
    private static let others = 12

    /// Returns the soft `RLIMIT_NOFILE`.
    ///
    /// The limit is read on each call, because the app may change it.
    package static func system() -> Int {
        var limit = rlimit()
        #if canImport(Glibc)
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1_024 }
        #else
        guard getrlimit(RLIMIT_NOFILE, &limit) == 0 else { return 1_024 }
        #endif
        return Int(clamping: limit.rlim_cur)
    }

    /// Returns the number of descriptors that connections, files and the app share.
    package static func divisible() -> Int {
        let limit = system()
        return max(0, limit - setAside - threadsForNames(limit))
    }

    /// Returns the share for files, with a maximum: above that maximum, the connections that feed the files are the bottleneck.
    package static func files(of divisible: Int) -> Int { max(2, min(divisible / 8 * 3, maximumFiles)) }

    /// Returns the share for connections: the rest after the shares for files and the app.
    package static func connections(of divisible: Int) -> Int { max(2, divisible - divisible / 4 - files(of: divisible)) }

    private static let maximumFiles = 4_096

    /// Returns the maximum number of host names that are looked up at a time; limited, because each call of `getaddrinfo` opens a
    /// socket.
    package static func threadsForNames(_ limit: Int = system()) -> Int { min(64, max(4, limit / 16)) }

    private static let setAside: Int = {
        let loops = max(1, Int(clamping: sysconf(CInt(_SC_NPROCESSORS_ONLN))))
        return threadsForFiles + 3 * lanes + 3 * loops + others
    }()
}
