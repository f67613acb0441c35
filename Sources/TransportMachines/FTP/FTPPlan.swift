// SPDX-License-Identifier: Apache-2.0

/// Describes an FTP transfer.
package struct FTPPlan: Hashable, Sendable {
    package enum Security: Hashable, Sendable {
        case none
        /// TLS from the first byte.
        case implicit
        /// `AUTH TLS` before the login (RFC 4217); the load fails without it.
        case explicit
    }

    package enum Transfer: Hashable, Sendable {
        case retrieve
        case list
        case listNames
        /// Only describes the file, or verifies that the directory exists; without a data connection.
        case describe
        /// If the transfer resumes, the bytes that the server already has are skipped.
        case store(resumes: Bool)

        package var isStore: Bool { if case .store = self { true } else { false } }
    }

    /// Distinguishes two states of a file.
    package struct Version: Hashable, Sendable {
        package var size: Int64
        /// The value of `MDTM`: digits (RFC 3659, section 2.3).
        package var modified: String

        package init(size: Int64, modified: String) {
            self.size = size
            self.modified = modified
        }
    }

    package var security: Security
    package var directories: [[UInt8]]
    /// The name of the file; nil for a directory.
    package var name: [UInt8]?
    package var transfer: Transfer
    package var isText = false
    /// The number of bytes to store; nil if it is unknown until the end.
    package var length: Int64?
    /// The version of the partly downloaded file; the download resumes at `offset` only if the server still has that version.
    package var earlier: Version?
    package var offset: Int64 = 0

    package init(security: Security, directories: [[UInt8]], name: [UInt8]?, transfer: Transfer, isText: Bool = false) {
        self.security = security
        self.directories = directories
        self.name = name
        self.transfer = transfer
        self.isText = isText
    }
}

/// One command to an FTP server.
package struct FTPCommand: Hashable, Sendable {
    /// The name of the command in capitals; safe to log, unlike the argument.
    package let verb: String
    private let argument: [UInt8]

    init(_ verb: String, _ argument: [UInt8] = []) {
        self.verb = verb
        self.argument = argument
    }

    init(_ verb: String, _ argument: String) { self.init(verb, Array(argument.utf8)) }

    package static let abort = FTPCommand("ABOR")
    package static let quit = FTPCommand("QUIT")

    /// The command line, including its end.
    package var line: [UInt8] {
        Array(verb.utf8) + (argument.isEmpty ? [] : [0x20] + argument) + [0x0D, 0x0A]
    }
}
