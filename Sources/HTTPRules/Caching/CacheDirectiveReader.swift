//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPWire

/// Takes one `Cache-Control` line apart, directive by directive (RFC 9111, section 5.2).
///
/// A comma in a quoted string separates nothing, and what is quoted is never a directive.
struct CacheDirectiveReader {
    enum Argument {
        case none
        /// A token, or a quoted string without its quotes.
        case text([UInt8])
        /// Something stands after the name, and is no argument.
        case malformed
    }

    let bytes: [UInt8]
    var position: Int
    let end: Int
    /// Whether a quoted string had no end; its commas separated, then.
    private(set) var isUnterminated = false

    init(bytes: [UInt8], position: Int, end: Int) {
        self.bytes = bytes
        self.position = position
        self.end = end
    }

    /// The next directive, its name in lower case; nil at the end of the line.
    mutating func next() -> (name: String, argument: Argument)? {
        while position < end {
            skipBlanks()
            let start = position
            while position < end, ASCII.isTokenCharacter(bytes[position]) { position += 1 }
            guard position > start else {
                if position < end, bytes[position] == UInt8(ascii: ",") { position += 1 } else { skipToComma() }
                continue
            }
            let name = lowercased(start..<position)
            return (name, readArgument())
        }
        return nil
    }

    private mutating func readArgument() -> Argument {
        let isAssigned = position < end && bytes[position] == UInt8(ascii: "=")
        guard isAssigned else { return endsHere() ? .none : malformed() }
        position += 1
        guard position < end, bytes[position] == UInt8(ascii: "\"") else {
            let start = position
            while position < end, ASCII.isTokenCharacter(bytes[position]) { position += 1 }
            let text = Array(bytes[start..<position])
            return !text.isEmpty && endsHere() ? .text(text) : malformed()
        }
        guard let text = quotedString() else {
            isUnterminated = true
            position += 1
            return malformed()
        }
        return endsHere() ? .text(text) : malformed()
    }

    /// The text between the quote here and the next that is not escaped (RFC 9110, section 5.6.4); nil, and nothing taken,
    /// where there is none.
    private mutating func quotedString() -> [UInt8]? {
        var text: [UInt8] = []
        var index = position + 1
        while index < end {
            switch bytes[index] {
            case UInt8(ascii: "\""):
                position = index + 1
                return text
            case UInt8(ascii: "\\"):
                index += 1
                if index < end { text.append(bytes[index]) }
            default: text.append(bytes[index])
            }
            index += 1
        }
        return nil
    }

    /// Whether only white space stands before the next comma, which is then taken.
    private mutating func endsHere() -> Bool {
        skipBlanks()
        guard position < end else { return true }
        guard bytes[position] == UInt8(ascii: ",") else { return false }
        position += 1
        return true
    }

    private mutating func malformed() -> Argument {
        skipToComma()
        return .malformed
    }

    /// To behind the next comma that stands in no quoted string.
    private mutating func skipToComma() {
        while position < end {
            switch bytes[position] {
            case UInt8(ascii: ","):
                position += 1
                return
            case UInt8(ascii: "\"") where !isUnterminated:
                if quotedString() == nil {
                    isUnterminated = true
                    position += 1
                }
            default: position += 1
            }
        }
    }

    private mutating func skipBlanks() {
        while position < end, ASCII.isWhitespace(bytes[position]) { position += 1 }
    }

    private func lowercased(_ range: Range<Int>) -> String {
        String(unsafeUninitializedCapacity: range.count) { buffer in
            for (offset, index) in range.enumerated() { buffer[offset] = ASCII.lowercased(bytes[index]) }
            return range.count
        }
    }
}
