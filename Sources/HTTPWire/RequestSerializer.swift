// SPDX-License-Identifier: Apache-2.0

/// Writes request heads (RFC 9112, sections 3 and 5).
///
/// The serializer refuses to write a head that a peer would misread. Such a head contains CR, LF or NUL in a field value, or its
/// target contains whitespace, or its method or a field name is not a token.
///
/// The serializer adds no fields: the given head must already contain `Host`, the framing fields and the connection fields.
package enum RequestSerializer {
    private static let version: StaticString = " HTTP/1.1\r\n"

    /// Returns the number of bytes that a head takes when it is sent.
    package static func encodedLength(of head: borrowing RequestHead) -> Int {
        var length = head.method.utf8.count + 1 + head.target.utf8.count + version.utf8CodeUnitCount + 2
        if head.headers.isLaidOut { return length + head.headers.bytes.count }
        for line in head.headers.lines { length += Int(line.nameLength) + Int(line.valueLength) + 4 }
        return length
    }

    package static func validate(_ head: borrowing RequestHead) throws(InvalidRequest) {
        var method = head.method
        guard method.withUTF8({ isToken(UnsafeRawBufferPointer($0), $0.indices) }) else { throw .method }
        var target = head.target
        guard target.withUTF8({ isVisible($0) }) else { throw .target }
        try validate(head.headers)
    }

    /// Validates the fields of a header or trailer section.
    package static func validate(_ headers: HeaderBlock) throws(InvalidRequest) {
        let validated = headers.validated
        guard validated != 0..<headers.count else { return }
        for (index, line) in headers.lines.enumerated() where !validated.contains(index) {
            let (isName, isValue) = headers.bytes.withUnsafeBytes { bytes in
                (isToken(bytes, line.name), isFieldValue(bytes, line.value))
            }
            guard isName else { throw .fieldName(headers.name(at: index)) }
            guard isValue else { throw .fieldValue(name: headers.name(at: index)) }
        }
    }

    package static func append(_ head: borrowing RequestHead, to bytes: inout [UInt8]) throws(InvalidRequest) {
        try validate(head)
        let length = encodedLength(of: head)
        let added = [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
            count = write(head, into: UnsafeMutableRawBufferPointer(buffer))
        }
        if bytes.isEmpty { bytes = added } else { bytes.append(contentsOf: added) }
    }

    /// Writes a head into a buffer of at least ``encodedLength(of:)`` bytes and returns the number of bytes written.
    ///
    /// If this function throws, nothing has been written.
    package static func encode(
        _ head: borrowing RequestHead,
        into buffer: UnsafeMutableRawBufferPointer
    ) throws(InvalidRequest) -> Int {
        try validate(head)
        guard buffer.count >= encodedLength(of: head) else { throw .bufferTooSmall }
        return write(head, into: buffer)
    }

    // MARK: Bytes

    /// Writes a head; the caller has validated the head and checked the size of the buffer.
    private static func write(_ head: borrowing RequestHead, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        var writer = Writer(buffer: buffer)
        writer.put(head.method)
        writer.put(UInt8(ascii: " "))
        writer.put(head.target)
        writer.put(UnsafeRawBufferPointer(start: version.utf8Start, count: version.utf8CodeUnitCount))
        head.headers.bytes.withUnsafeBytes { bytes in
            guard !head.headers.isLaidOut else { return writer.put(bytes) }
            for line in head.headers.lines {
                writer.put(UnsafeRawBufferPointer(rebasing: bytes[line.name]))
                writer.put(UInt8(ascii: ":"))
                writer.put(UInt8(ascii: " "))
                writer.put(UnsafeRawBufferPointer(rebasing: bytes[line.value]))
                writer.put(0x0D)
                writer.put(0x0A)
            }
        }
        writer.put(0x0D)
        writer.put(0x0A)
        return writer.position
    }

    private struct Writer {
        let buffer: UnsafeMutableRawBufferPointer
        var position = 0

        mutating func put(_ byte: UInt8) {
            buffer[position] = byte
            position += 1
        }

        mutating func put(_ source: UnsafeRawBufferPointer) {
            UnsafeMutableRawBufferPointer(rebasing: buffer[position...]).copyMemory(from: source)
            position += source.count
        }

        mutating func put(_ text: String) {
            var text = text
            text.withUTF8 { put(UnsafeRawBufferPointer($0)) }
        }
    }

    /// Whether there is at least one byte and all bytes are visible ASCII.
    private static func isVisible(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        for byte in bytes where byte <= 0x20 || byte >= 0x7F { return false }
        return !bytes.isEmpty
    }

    private static func isToken(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> Bool {
        guard !range.isEmpty else { return false }
        for position in range where !ASCII.isTokenCharacter(bytes[position]) { return false }
        return true
    }

    private static func isFieldValue(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> Bool {
        var position = ByteScan.firstControl(bytes, from: range.lowerBound, to: range.upperBound)
        while position < range.upperBound {
            switch bytes[position] {
            case 0, 0x0A, 0x0D: return false
            default: position = ByteScan.firstControl(bytes, from: position + 1, to: range.upperBound)
            }
        }
        return true
    }
}
