// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// The first line of a store's file, with the type and version of the file and checksums.
///
/// The format is `URLLoading-Store KIND VERSION WRITE LENGTH SUM SUM-OF-THE-LINE`, then `LENGTH` bytes. `WRITE` is a random
/// number, so that every write is different. Later versions may change everything but the first three words and the last one,
/// which distinguish the file of a newer release from a damaged one.
package struct StoreEnvelope: Sendable {
    /// The result of decoding a file.
    package enum Content: Sendable {
        /// The decoded line, and the offset of the body.
        case whole(Header, bodyStart: Int)
        case newer
        case damaged
    }

    /// Identifies a write of the file.
    package struct Header: Hashable, Sendable {
        let write: UInt64
        let length: Int
        let sum: UInt64

        func hasSameBody(as other: Header) -> Bool {
            length == other.length && sum == other.sum
        }
    }

    private static let mark = "URLLoading-Store"
    private static let longestLine = 256

    let kind: String
    let version: Int

    package init(kind: String, version: Int) {
        self.kind = kind
        self.version = version
    }

    package func header(of body: [UInt8]) -> Header {
        Header(write: .random(in: .min ... .max), length: body.count, sum: Checksum.of(body))
    }

    package func seal(_ body: [UInt8], _ header: Header) -> [UInt8] {
        let (write, sum) = (ASCII.hexadecimal(header.write), ASCII.hexadecimal(header.sum))
        let words = "\(Self.mark) \(kind) \(version) \(write) \(header.length) \(sum) "
        var bytes = Array(words.utf8)
        bytes += Array("\(ASCII.hexadecimal(Checksum.of(bytes)))\n".utf8)
        bytes.reserveCapacity(bytes.count + body.count)
        return bytes + body
    }

    package func open(_ bytes: [UInt8]) -> Content {
        guard let end = bytes.prefix(Self.longestLine).firstIndex(of: UInt8(ascii: "\n")),
            let line = String(validating: bytes[..<end], as: UTF8.self)
        else { return .damaged }
        let words = line.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count > 3, words[0] == Self.mark, words[1] == kind, let version = Int(words[2]), let seal = words.last,
            seal == ASCII.hexadecimal(Checksum.of(Array(bytes[..<(end - seal.utf8.count)])))
        else { return .damaged }
        if version > self.version { return .newer }
        guard version == self.version, words.count == 7, let write = UInt64(words[3], radix: 16), let length = Int(words[4]),
            let sum = UInt64(words[5], radix: 16), length == bytes.count - end - 1, Checksum.of(bytes, from: end + 1) == sum
        else { return .damaged }
        return .whole(Header(write: write, length: length, sum: sum), bodyStart: end + 1)
    }
}
