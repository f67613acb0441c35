// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import LibC
import LoadingStores

/// Where a user's daemon listens.
///
/// The place is the folder `urlloading` in `XDG_RUNTIME_DIR`; without that variable, in `/run/user/UID`; if that does not exist,
/// `/tmp/urlloading-UID`. A folder is only used if it belongs to the user.
///
/// Programs of one user may have different places, for instance in a login session and in cron, but the user has only one daemon,
/// which locks the state (``stateDirectory``) and notes its socket there.
package struct DaemonPlace: Sendable, Hashable {
    /// The folder of the socket; only the user can write to it.
    package let directory: String
    /// The daemon's persistent state; nil if the user has no home directory.
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
    /// Locked by the daemon during its lifetime.
    package var lock: String { directory + "/urlsessiond.lock" }
    /// The log of a daemon that the library started.
    package var log: String { Self.log(besideSocket: socket) }

    package static func log(besideSocket socket: String) -> String {
        socket.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/") + "/urlsessiond.log"
    }

    // MARK: The daemon that holds the state

    /// The maximum length of a socket's path.
    private static let pathLimit = 107

    /// The file in which the daemon notes its socket.
    package static func note(in stateDirectory: String) -> String { stateDirectory + "/urlsessiond.place" }

    /// The noted socket of the daemon that holds the state; nil if there is no valid note.
    package static func notedSocket(in stateDirectory: String) -> String? {
        guard let bytes = SmallFile.contents(of: note(in: stateDirectory), limit: pathLimit), bytes.first == UInt8(ascii: "/"),
            !bytes.contains(where: { $0 < 0x20 })
        else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    /// Whether an earlier daemon may have ended with unfinished work.
    package var hasUnfinishedWork: Bool {
        guard let stateDirectory else { return false }
        // If access is denied, there may be unfinished work.
        return access(stateDirectory + "/transfers.sqlite", F_OK) == 0 || ![ENOENT, ENOTDIR].contains(errno)
    }

    // MARK: Files exchanged between programs and the daemon

    /// The files that name the sessions for which a program was started.
    ///
    /// There is one beside the socket and one in the state's folder, because the daemon may use another socket folder or state
    /// folder than the program.
    package func events(for program: String) -> [String] { folders.map { "\($0)/events-\(Self.hash(program))" } }

    /// The files that list a session's tasks that failed for the program although the daemon still has them.
    package func losses(of identifier: String, in program: String) -> [String] {
        folders.map { "\($0)/\(Self.lossesName(of: identifier, in: program))" }
    }

    /// The files with the highest number that a session may have given to tasks of which the daemon does not know.
    package func numbers(of identifier: String, in program: String) -> [String] {
        folders.map { "\($0)/\(Self.numbersName(of: identifier, in: program))" }
    }

    package static func numbersName(of identifier: String, in program: String) -> String {
        "numbers-\(hash(program + "\0" + identifier))"
    }

    package static func lossesName(of identifier: String, in program: String) -> String {
        "lost-\(hash(program + "\0" + identifier))"
    }

    private var folders: [String] { [directory] + (stateDirectory.map { [$0] } ?? []) }

    private static func hash(_ text: String) -> String {
        let hash = text.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        return String(hash, radix: 16)
    }

    /// Creates the folder if it is missing, accessible only to its owner.
    ///
    /// - Returns: Nil, or the problem with the folder.
    package func prepare() -> String? {
        if mkdir(directory, 0o700) != 0, errno != EEXIST {
            return "cannot create the folder \(directory): \(String(cString: strerror(errno)))"
        }
        guard Self.isOwnDirectory(directory) else {
            return "\(directory) is not a folder that belongs to this user and that others cannot write to"
        }
        // sockaddr_un has space for 107 bytes.
        guard socket.utf8.count <= 100 else {
            return "the path \(socket) is too long for a socket; set XDG_RUNTIME_DIR to a shorter one"
        }
        return nil
    }

    /// Whether the path is a directory, not a link, that only its owner can write to.
    private static func isOwnDirectory(_ path: String) -> Bool {
        var facts = stat()
        return lstat(path, &facts) == 0 && facts.st_mode & S_IFMT == S_IFDIR && facts.st_uid == geteuid()
            && facts.st_mode & 0o022 == 0
    }
}
