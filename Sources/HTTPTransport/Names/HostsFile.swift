// SPDX-License-Identifier: Apache-2.0

import LibC
import Synchronization

/// The names in the system's hosts file (hosts(5)), whose addresses name servers do not know.
package final class HostsFile: Sendable {
    package static let system = HostsFile("/etc/hosts")

    /// The maximum size of a file that is read: lists of blocked hosts have some megabytes.
    private static let maximumSize = 33_554_432

    private struct Content {
        /// The times, size and number of the file that was read.
        var stamp: [Int] = []
        /// The hash values of the names in lower case, which take less memory than names; nil if the file cannot be read.
        var names: Set<Int>? = []
    }

    private let path: String
    private let content = Mutex(Content())

    package init(_ path: String) { self.path = path }

    /// Whether the file has a host; also true if the file is too large or cannot be read.
    ///
    /// Reads the file if it has changed, which may block. On rare occasions, a host is found that the file does not have.
    package func contains(_ host: String) -> Bool {
        let name = Self.hash(Array(host.lowercased().utf8)[...])
        return content.withLock { content in
            let stamp = stamp()
            if content.stamp != stamp { content = Content(stamp: stamp, names: stamp.isEmpty ? [] : read()) }
            return content.names?.contains(name) ?? true
        }
    }

    /// Returns nothing if there is no file.
    private func stamp() -> [Int] {
        var facts = stat()
        guard stat(path, &facts) == 0 else { return [] }
        return [
            Int(facts.st_ino), Int(facts.st_size), facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec, facts.st_ctim.tv_sec,
            facts.st_ctim.tv_nsec,
        ]
    }

    private func read() -> Set<Int>? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = LibC.read(file, &buffer, buffer.count)
            guard count > 0 else { return count == 0 ? Self.names(bytes) : nil }
            bytes += buffer[..<count]
            guard bytes.count <= Self.maximumSize else { return nil }
        }
    }

    /// Returns the names: the words of a line after the first, up to a number sign.
    private static func names(_ bytes: [UInt8]) -> Set<Int> {
        var names: Set<Int> = []
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            let words = line.prefix { $0 != UInt8(ascii: "#") }
                .split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") || $0 == 0x0D }
            for word in words.dropFirst() { names.insert(hash(word)) }
        }
        return names
    }

    private static func hash(_ name: ArraySlice<UInt8>) -> Int {
        var hasher = Hasher()
        for byte in name.last == UInt8(ascii: ".") ? name.dropLast() : name {
            hasher.combine(byte &- UInt8(ascii: "A") < 26 ? byte | 0x20 : byte)
        }
        return hasher.finalize()
    }
}
