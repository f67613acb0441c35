//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials
import LoadingStores

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// Where the daemon of a user listens.
///
/// In `urlloading` below `XDG_RUNTIME_DIR`; without that variable below `/run/user/UID`, and where there is none of these in
/// `/tmp/urlloading-UID`. Whoever uses a folder makes sure that it is the user's own.
///
/// Programs of one user may have different ones, as of a login and of cron, and one daemon all the same: it is the one that has the state
/// (``stateDirectory``), and says there where it listens.
package struct DaemonPlace: Sendable, Hashable {
    /// The user's alone.
    package let directory: String
    /// What the daemon has to remember; nil where the user has no home.
    package let stateDirectory: String?

    package init(environment: [String: String] = ProcessInfo.processInfo.environment) {
        stateDirectory = StoreLocations.stateDirectory(environment: environment).map { $0 + "/background" }
        if let runtime = environment["XDG_RUNTIME_DIR"], runtime.utf8.first == UInt8(ascii: "/"), !runtime.utf8.contains(0) {
            directory = (runtime == "/" ? "" : runtime) + "/urlloading"
        } else if Self.isOwnDirectory("/run/user/\(getuid())") {
            directory = "/run/user/\(getuid())/urlloading"
        } else {
            directory = "/tmp/urlloading-\(getuid())"
        }
    }

    package var socket: String { directory + "/urlsessiond.socket" }
    /// Held by the daemon for its life.
    package var lock: String { directory + "/urlsessiond.lock" }
    /// What a daemon says that the library started.
    package var log: String { Self.log(besideSocket: socket) }

    package static func log(besideSocket socket: String) -> String {
        socket.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/") + "/urlsessiond.log"
    }

    // MARK: The daemon of the state

    /// The longest path that a socket can have.
    private static let pathLimit = 107

    /// Where the daemon says at which socket it listens.
    package static func note(in stateDirectory: String) -> String { stateDirectory + "/urlsessiond.place" }

    /// The socket of the daemon that has the state, as it says; nil where none says so, or not so that it can be believed.
    package static func notedSocket(in stateDirectory: String) -> String? {
        guard let bytes = SmallFile.contents(of: note(in: stateDirectory), limit: pathLimit), bytes.first == UInt8(ascii: "/"),
            !bytes.contains(where: { $0 < 0x20 })
        else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    /// Whether an earlier daemon had something to do, and may have been ended before that was done.
    package var hasLeftWork: Bool {
        guard let stateDirectory else { return false }
        // One that cannot be looked at may.
        return access(stateDirectory + "/transfers.sqlite", F_OK) == 0 || ![ENOENT, ENOTDIR].contains(errno)
    }

    // MARK: What programs and the daemon leave for each other

    /// Where the sessions are named that a program was started for: beside the socket, and with the state, as either may be another one's.
    package func events(for program: String) -> [String] { folders.map { "\($0)/events-\(Self.hash(program))" } }

    /// Where a program keeps which tasks of a session failed for it while the daemon has them.
    package func losses(of identifier: String, in program: String) -> [String] {
        folders.map { "\($0)/\(Self.lossesName(of: identifier, in: program))" }
    }

    package static func lossesName(of identifier: String, in program: String) -> String {
        "lost-\(hash(program + "\0" + identifier))"
    }

    private var folders: [String] { [directory] + (stateDirectory.map { [$0] } ?? []) }

    private static func hash(_ text: String) -> String {
        let hash = text.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        return String(hash, radix: 16)
    }

    /// Makes the folder where it is not there, for its owner alone.
    ///
    /// - Returns: Nil, or what is wrong with it.
    package func prepare() -> String? {
        if mkdir(directory, 0o700) != 0, errno != EEXIST {
            return "cannot make the folder \(directory): \(String(cString: strerror(errno)))"
        }
        guard Self.isOwnDirectory(directory) else { return "\(directory) is not a folder of this user's alone" }
        // sockaddr_un has room for 107 bytes.
        guard socket.utf8.count <= 100 else {
            return "the path \(socket) is too long for a socket; set XDG_RUNTIME_DIR to a shorter one"
        }
        return nil
    }

    /// A directory, and no link to one, that nobody else may write to.
    private static func isOwnDirectory(_ path: String) -> Bool {
        var facts = stat()
        return lstat(path, &facts) == 0 && facts.st_mode & S_IFMT == S_IFDIR && facts.st_uid == geteuid()
            && facts.st_mode & 0o022 == 0
    }
}
