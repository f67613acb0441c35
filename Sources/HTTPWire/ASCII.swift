// SPDX-License-Identifier: Apache-2.0

/// The character classes of RFC 9110, section 5.6, tested on bytes without creating a `String`.
package enum ASCII {
    @inlinable
    package static func lowercased(_ byte: UInt8) -> UInt8 {
        byte &- UInt8(ascii: "A") < 26 ? byte | 0x20 : byte
    }

    /// Whether a byte is a `tchar` (section 5.6.2).
    ///
    /// Uses a table, because branches on the bytes of field names are hard to predict.
    @inlinable
    package static func isTokenCharacter(_ byte: UInt8) -> Bool {
        byte < 128 && tokenTable.utf8Start[Int(byte)] == UInt8(ascii: "t")
    }

    /// A table indexed by ASCII byte: `t` if the byte is a `tchar`.
    ///
    /// A `StaticString` needs no initialization and no bounds check.
    @inlinable
    static var tokenTable: StaticString {
        """
        ................................\
        .t.ttttt..tt.tt.tttttttttt......\
        .tttttttttttttttttttttttttt...tt\
        ttttttttttttttttttttttttttt.t.t.
        """
    }

    /// Whether the bytes at a position equal a lowercase word of letters, digits and hyphens, ignoring case.
    ///
    /// The caller has already compared the lengths.
    @inline(__always)
    package static func matches(_ bytes: UnsafeRawBufferPointer, _ start: Int, _ word: StaticString) -> Bool {
        ByteScan.spells(bytes, start, UnsafeRawPointer(word.utf8Start), word.utf8CodeUnitCount)
    }

    /// Whether the bytes at a position equal another text, ignoring case on both sides.
    ///
    /// The caller has already compared the lengths.
    static func equals(_ bytes: UnsafeRawBufferPointer, _ start: Int, _ text: UnsafeRawBufferPointer) -> Bool {
        for index in 0..<text.count where lowercased(bytes[start &+ index]) != lowercased(text[index]) { return false }
        return true
    }

    @inline(__always)
    package static func hexadecimalValue(_ byte: UInt8) -> UInt8? {
        let decimal = byte &- UInt8(ascii: "0")
        if decimal <= 9 { return decimal }
        let letter = (byte | 0x20) &- UInt8(ascii: "a")
        return letter <= 5 ? letter &+ 10 : nil
    }

    /// Returns two lowercase digits for each byte.
    package static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns two lowercase digits for each byte of the number, including leading zeros.
    package static func hexadecimal(_ number: some FixedWidthInteger) -> String {
        withUnsafeBytes(of: number.bigEndian) { hexadecimal($0) }
    }

    /// Whether a string is a `token`, as methods and field names must be.
    package static func isToken(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy(isTokenCharacter)
    }

    /// Removes whitespace and line ends at both ends, which are not a part of a field value (RFC 9110, section 5.5), such as the line
    /// end of a token that was read from a file.
    package static func fieldValue(_ text: String) -> String {
        func isOutside(_ byte: UInt8) -> Bool { isWhitespace(byte) || byte == 0x0D || byte == 0x0A }
        guard let first = text.utf8.first, let last = text.utf8.last, isOutside(first) || isOutside(last) else { return text }
        var bytes = Array(text.utf8)[...]
        bytes = bytes.drop(while: isOutside)
        while let last = bytes.last, isOutside(last) { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Whether a string may be a field value: no CR, LF or NUL (RFC 9110, section 5.5).
    package static func isFieldValue(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 != 0x0D && $0 != 0x0A && $0 != 0 }
    }

    @inlinable
    package static func isWhitespace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    /// Removes the optional whitespace (SP and HTAB) at both ends.
    package static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var bytes = bytes
        while let first = bytes.first, isWhitespace(first) { bytes.removeFirst() }
        while let last = bytes.last, isWhitespace(last) { bytes.removeLast() }
        return bytes
    }
}
