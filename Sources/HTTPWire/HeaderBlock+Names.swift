// SPDX-License-Identifier: Apache-2.0

/// Lookups by a known name.
extension HeaderBlock {
    /// Whether the field is present.
    @inlinable
    package func contains(_ name: FieldName) -> Bool { names & name.bit != 0 }

    /// Returns the index of the first line with a name, at or after a line index, or nil.
    package func index(of name: FieldName, from start: Int = 0) -> Int? {
        guard contains(name) else { return nil }
        let lines = lines.span
        var index = start
        while index < lines.count {
            if lines[index].field == name { return index }
            index &+= 1
        }
        return nil
    }

    /// Returns the first value of a field, or nil if the field is absent.
    package func first(_ name: FieldName) -> String? { index(of: name).map(value(at:)) }

    /// Returns the first value of a field as text that preserves its octets (``OctetText``), or nil if the field is absent.
    package func octetText(_ name: FieldName) -> String? {
        index(of: name).map { OctetText.text(of: bytes[lines[$0].value]) }
    }

    /// Whether one of a field's comma-separated members equals a token, ignoring case, as in `Connection: close`.
    @inlinable
    package func hasToken(_ token: String, in name: FieldName) -> Bool {
        contains(name) && lists(token, in: name)
    }

    @usableFromInline
    func lists(_ token: String, in name: FieldName) -> Bool {
        var token = token
        return token.withUTF8 { token in
            bytes.withUnsafeBytes { bytes in
                var next = index(of: name)
                while let index = next {
                    if Self.list(bytes, lines[index].value, contains: token) { return true }
                    next = self.index(of: name, from: index + 1)
                }
                return false
            }
        }
    }

    private static func list(
        _ bytes: UnsafeRawBufferPointer, _ value: Range<Int>, contains token: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        var start = value.lowerBound
        while start < value.upperBound {
            let comma = ByteScan.first(UInt8(ascii: ","), bytes, from: start, to: value.upperBound)
            var end = comma
            while start < end, ASCII.isWhitespace(bytes[start]) { start &+= 1 }
            while end > start, ASCII.isWhitespace(bytes[end &- 1]) { end &-= 1 }
            if end > start, end &- start == token.count, ASCII.equals(bytes, start, UnsafeRawBufferPointer(token)) { return true }
            start = comma &+ 1
        }
        return false
    }
}
