//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation

extension HTTPArchive.Redaction {
    private static let marks = Set(#" <>"'"#.utf8).union([0x09, 0x0A, 0x0D])

    /// A URL, or a text with URLs in it, without users, passwords and secret parts of queries.
    func url(_ text: String) -> String { url(text, depth: 0) }

    private func url(_ text: String, depth: Int) -> String {
        let bytes = Array(text.utf8)
        var result: [UInt8] = []
        var at = 0
        func end(from start: Int, of more: String) -> Int {
            let ends = Self.marks.union(more.utf8)
            return bytes[start...].firstIndex(where: ends.contains) ?? bytes.count
        }
        while at < bytes.count {
            let byte = bytes[at]
            result.append(byte)
            at += 1
            if byte == UInt8(ascii: "/"), at < bytes.count, bytes[at] == byte {
                result.append(byte)
                at += 1
                // The last sign, as a password may have one.
                if let sign = bytes[at..<end(from: at, of: "/?#\\")].lastIndex(of: UInt8(ascii: "@")) {
                    result += Self.marker.utf8
                    at = sign
                }
            }
            guard "?&#;".utf8.contains(byte) else { continue }
            let nameEnd = end(from: at, of: "?&#;=")
            guard nameEnd < bytes.count, bytes[nameEnd] == UInt8(ascii: "=") else { continue }
            // A parameter of the path ends before the query.
            let valueEnd = end(from: nameEnd + 1, of: byte == UInt8(ascii: ";") ? "?&#;" : "&#")
            let name = decoded(bytes[at..<nameEnd])
            let value = bytes[(nameEnd + 1)..<valueEnd]
            if isSecret(name) {
                result += bytes[at...nameEnd] + (value.isEmpty ? [] : Array(Self.marker.utf8))
                at = valueEnd
            } else if value.contains(UInt8(ascii: "%")) {
                // The value may be a URL with secrets of its own.
                let inner = decoded(value)
                let redacted = depth < 4 ? url(inner, depth: depth + 1) : Self.marker
                result += bytes[at...nameEnd] + (redacted == inner ? Array(value) : Array(QueryParts.encoded(redacted).utf8))
                at = valueEnd
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    private func decoded(_ bytes: ArraySlice<UInt8>) -> String {
        QueryParts.decoded(Substring(String(decoding: bytes, as: UTF8.self)))
    }

    /// JSON without the strings and numbers whose names say that they are secret.
    func json(_ text: String) -> String {
        let bytes = Array(text.utf8)
        let (quote, blanks) = (UInt8(ascii: "\""), Set(" \t\r\n".utf8))
        var result: [UInt8] = []
        var at = 0
        /// The place behind the string that begins here.
        func stringEnd(_ start: Int) -> Int {
            var at = start + 1
            while at < bytes.count, bytes[at] != quote { at += bytes[at] == UInt8(ascii: "\\") ? 2 : 1 }
            return min(at + 1, bytes.count)
        }
        while at < bytes.count {
            guard bytes[at] == quote else {
                result.append(bytes[at])
                at += 1
                continue
            }
            let nameEnd = stringEnd(at)
            let string = bytes[at..<nameEnd]
            result += string
            at = nameEnd
            guard let colon = bytes[at...].firstIndex(where: { !blanks.contains($0) }), bytes[colon] == UInt8(ascii: ":"),
                let value = bytes[(colon + 1)...].firstIndex(where: { !blanks.contains($0) }), isSecret(name(string)),
                !"[{".utf8.contains(bytes[value])
            else { continue }
            result += bytes[at..<value] + Array("\"\(Self.marker)\"".utf8)
            at = bytes[value] == quote ? stringEnd(value) : bytes[value...].firstIndex { ",]}".utf8.contains($0) } ?? bytes.count
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// What a string of JSON says.
    private func name(_ string: ArraySlice<UInt8>) -> String {
        (try? JSONDecoder().decode(String.self, from: Data(string))) ?? String(decoding: string, as: UTF8.self)
    }
}
