// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Parses the `; name=value` parameters after a media type or disposition (RFC 9110, section 5.6.6).
///
/// The parser accepts common errors: spaces around the equals sign, unquoted values that are not tokens, a missing closing
/// quotation mark, and empty parameters.
struct FieldParameters {
    /// The parameters in order, with names in lowercase and values unquoted.
    private(set) var parameters: [(name: String, value: String)] = []

    init(_ bytes: ArraySlice<UInt8>) {
        var rest = bytes
        while let semicolon = rest.firstIndex(of: UInt8(ascii: ";")) {
            rest = rest[(semicolon + 1)...]
            let end = rest.firstIndex { $0 == UInt8(ascii: ";") || $0 == UInt8(ascii: "=") } ?? rest.endIndex
            guard end < rest.endIndex, rest[end] == UInt8(ascii: "=") else { continue }
            let name = ASCII.trimmed(rest[..<end])
            rest = rest[(end + 1)...]
            let value = Self.takeValue(&rest)
            guard !name.isEmpty, name.allSatisfy(ASCII.isTokenCharacter) else { continue }
            parameters.append(
                (String(decoding: name.map(ASCII.lowercased), as: UTF8.self), String(decoding: value, as: UTF8.self)))
        }
    }

    /// Returns the value of a parameter.
    ///
    /// If the parameter is repeated, the first value counts, as in browsers. RFC 6266, section 4.1, calls such a field invalid.
    func first(_ name: String) -> String? {
        parameters.first { $0.name == name }?.value
    }

    /// Reads a value.
    ///
    /// Text between a quoted value and the next semicolon is left unread.
    private static func takeValue(_ rest: inout ArraySlice<UInt8>) -> [UInt8] {
        while let first = rest.first, ASCII.isWhitespace(first) { rest.removeFirst() }
        let isQuoted = rest.first == UInt8(ascii: "\"")
        if isQuoted { rest.removeFirst() }
        var value: [UInt8] = []
        while let byte = rest.first {
            if byte == UInt8(ascii: isQuoted ? "\"" : ";") { break }
            rest.removeFirst()
            if byte == UInt8(ascii: "\\"), let next = rest.first {
                value.append(next)
                rest.removeFirst()
            } else {
                value.append(byte)
            }
        }
        if isQuoted { return value }
        return Array(ASCII.trimmed(value[...]))
    }
}
