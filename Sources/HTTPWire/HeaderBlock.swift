//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Keeps the field lines of one message in one buffer, so that a message costs two allocations however many fields it has.
///
/// Names compare without regard to ASCII case (RFC 9110, section 5.1); order and repetitions are kept. Values are bytes: they become
/// a `String` only when asked for, as UTF-8 where they are that and as ISO 8859-1 otherwise.
///
/// The block does not judge what it is given. What comes from the network was judged by ``ResponseParser``; what comes from the
/// caller is judged by ``RequestSerializer``, which refuses to write it.
package struct HeaderBlock: Sendable {
    /// Where one field line stands in ``HeaderBlock/bytes``.
    package struct Line: Sendable {
        package var nameStart: UInt32
        package var nameLength: UInt32
        package var valueStart: UInt32
        package var valueLength: UInt32

        package init(nameStart: Int, nameLength: Int, valueStart: Int, valueLength: Int) {
            self.nameStart = UInt32(truncatingIfNeeded: nameStart)
            self.nameLength = UInt32(truncatingIfNeeded: nameLength)
            self.valueStart = UInt32(truncatingIfNeeded: valueStart)
            self.valueLength = UInt32(truncatingIfNeeded: valueLength)
        }

        package var name: Range<Int> { Int(nameStart)..<Int(nameStart) + Int(nameLength) }
        package var value: Range<Int> { Int(valueStart)..<Int(valueStart) + Int(valueLength) }
    }

    /// Names and values, and whatever lies between them.
    package private(set) var bytes: [UInt8]
    package private(set) var lines: [Line]
    /// A bit for each name that is here, by its length and first letter: most fields that are asked for are absent.
    private var marks: UInt64
    /// Lines that need not be judged before they are written, as they were before they came here.
    private var judgedStart: UInt32 = 0
    private var judgedEnd: UInt32 = 0

    package init() {
        bytes = []
        lines = []
        marks = 0
    }

    /// Takes over a buffer and the lines found in it.
    ///
    /// Every line must lie within the buffer.
    package init(bytes: [UInt8], lines: [Line]) {
        self.bytes = bytes
        self.lines = lines
        marks = bytes.withUnsafeBytes { bytes in
            lines.reduce(0) { $0 | Self.mark(UnsafeRawBufferPointer(rebasing: bytes[$1.name])) }
        }
    }

    package init(_ fields: [(name: String, value: String)]) {
        self.init()
        for field in fields { append(field.name, field.value) }
    }

    package var count: Int { lines.count }
    package var isEmpty: Bool { lines.isEmpty }

    /// Where the lines stand that were judged.
    var judged: Range<Int> { Int(judgedStart)..<Int(max(judgedStart, judgedEnd)) }

    /// Says that every name is a token, and every value may be written: blocks that this one is appended to remember it.
    package mutating func markAsJudged() {
        judgedStart = 0
        judgedEnd = UInt32(truncatingIfNeeded: count)
    }

    private mutating func forgetJudged() {
        judgedStart = 0
        judgedEnd = 0
    }

    // MARK: Reading

    package func name(at index: Int) -> String { Self.text(bytes[lines[index].name]) }
    package func value(at index: Int) -> String { Self.text(bytes[lines[index].value]) }

    /// The first value of a field, or nil where it is absent.
    package func first(_ name: String) -> String? {
        guard let index = index(of: name) else { return nil }
        return value(at: index)
    }

    /// All values of a field, in order, each line for itself.
    package func all(_ name: String) -> [String] {
        var found: [String] = []
        var next = index(of: name)
        while let index = next {
            found.append(value(at: index))
            next = self.index(of: name, from: index + 1)
        }
        return found
    }

    /// All values of a field joined by a comma and a space (RFC 9110, section 5.3), or nil where it is absent.
    package func joined(_ name: String) -> String? {
        guard let index = index(of: name) else { return nil }
        let values = all(name)
        return values.count == 1 ? value(at: index) : values.joined(separator: ", ")
    }

    package func contains(_ name: String) -> Bool { index(of: name) != nil }

    /// The position of the first line with a name, or nil.
    package func index(of name: String) -> Int? { index(of: name, from: 0) }

    /// The position of the first line with a name at or after a position, or nil.
    package func index(of name: String, from start: Int) -> Int? {
        var name = name
        return name.withUTF8 { name in
            guard marks & Self.mark(UnsafeRawBufferPointer(name)) != 0 else { return nil }
            return bytes.withUnsafeBytes { bytes in
                for index in start..<max(start, lines.count) where Self.matches(bytes, lines[index], name) { return index }
                return nil
            }
        }
    }

    /// Every field in order; repeated fields stand once for each line.
    package var fields: [(name: String, value: String)] {
        lines.indices.map { (name(at: $0), value(at: $0)) }
    }

    /// Whether one of a field's comma-separated members is a token, without regard to case, as in `Connection: close`.
    package func hasToken(_ token: String, in name: String) -> Bool {
        var token = token
        var next = index(of: name)
        while let index = next {
            let isMember = token.withUTF8 { token in
                bytes.withUnsafeBytes { Self.list($0, lines[index].value, contains: token) }
            }
            if isMember { return true }
            next = self.index(of: name, from: index + 1)
        }
        return false
    }

    // MARK: Changing

    package mutating func append(_ name: String, _ value: String) {
        var name = name
        var value = value
        name.withUTF8 { name in value.withUTF8 { append(name: UnsafeRawBufferPointer(name), value: UnsafeRawBufferPointer($0)) } }
    }

    package mutating func append(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        marks |= Self.mark(name)
        let nameStart = bytes.count
        bytes.append(contentsOf: name)
        let valueStart = bytes.count
        bytes.append(contentsOf: value)
        lines.append(
            Line(nameStart: nameStart, nameLength: name.count, valueStart: valueStart, valueLength: value.count)
        )
    }

    package mutating func append(contentsOf other: HeaderBlock) {
        marks |= other.marks
        if judged.isEmpty, other.judged == 0..<other.count {
            judgedStart = UInt32(truncatingIfNeeded: count)
            judgedEnd = judgedStart + UInt32(truncatingIfNeeded: other.count)
        }
        let offset = UInt32(truncatingIfNeeded: bytes.count)
        bytes.append(contentsOf: other.bytes)
        lines.reserveCapacity(lines.count + other.lines.count)
        for var line in other.lines {
            line.nameStart &+= offset
            line.valueStart &+= offset
            lines.append(line)
        }
    }

    /// Replaces every line of a field by one, at the place of the first.
    package mutating func set(_ name: String, _ value: String) {
        guard let index = index(of: name) else { return append(name, value) }
        forgetJudged()
        var added = HeaderBlock()
        added.append(name, value)
        let tail = lines[(index + 1)...].filter { !matches($0, name) }
        lines.removeSubrange(index...)
        append(contentsOf: added)
        lines.append(contentsOf: tail)
    }

    package mutating func remove(_ name: String) {
        guard contains(name) else { return }
        forgetJudged()
        lines = lines.filter { !matches($0, name) }
    }

    package mutating func reserveCapacity(bytes byteCount: Int, lines lineCount: Int) {
        bytes.reserveCapacity(byteCount)
        lines.reserveCapacity(lineCount)
    }

    // MARK: Bytes

    @inline(__always)
    private static func mark(_ name: UnsafeRawBufferPointer) -> UInt64 {
        guard let first = name.first else { return 1 }
        return 1 << UInt64((name.count &* 5 &+ Int(first | 0x20)) & 63)
    }

    private func matches(_ line: Line, _ name: String) -> Bool {
        var name = name
        return name.withUTF8 { name in bytes.withUnsafeBytes { Self.matches($0, line, name) } }
    }

    private static func matches(_ bytes: UnsafeRawBufferPointer, _ line: Line, _ name: UnsafeBufferPointer<UInt8>) -> Bool {
        Int(line.nameLength) == name.count && equals(bytes, Int(line.nameStart), name)
    }

    /// Compares without regard to case; the lengths are known to be equal.
    private static func equals(_ bytes: UnsafeRawBufferPointer, _ start: Int, _ text: UnsafeBufferPointer<UInt8>) -> Bool {
        for index in 0..<text.count where ASCII.lowercased(bytes[start &+ index]) != ASCII.lowercased(text[index]) {
            return false
        }
        return true
    }

    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        if let text = String(validating: bytes, as: UTF8.self) { return text }
        return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }

    private static func list(
        _ bytes: UnsafeRawBufferPointer,
        _ value: Range<Int>,
        contains token: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        var start = value.lowerBound
        while start < value.upperBound {
            var comma = start
            while comma < value.upperBound, bytes[comma] != UInt8(ascii: ",") { comma &+= 1 }
            var end = comma
            while start < end, ASCII.isWhitespace(bytes[start]) { start &+= 1 }
            while end > start, ASCII.isWhitespace(bytes[end &- 1]) { end &-= 1 }
            if end > start, end - start == token.count, equals(bytes, start, token) { return true }
            start = comma + 1
        }
        return false
    }
}

extension HeaderBlock: Hashable {
    /// Two blocks are equal when they hold the same fields in the same order, names compared without regard to case.
    package static func == (left: HeaderBlock, right: HeaderBlock) -> Bool {
        guard left.count == right.count else { return false }
        for (a, b) in zip(left.lines, right.lines) {
            guard left.bytes[a.value] == right.bytes[b.value], left.bytes[a.name].count == right.bytes[b.name].count,
                zip(left.bytes[a.name], right.bytes[b.name]).allSatisfy({ ASCII.lowercased($0) == ASCII.lowercased($1) })
            else { return false }
        }
        return true
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(count)
        for line in lines { for byte in bytes[line.value] { hasher.combine(byte) } }
    }
}

extension HeaderBlock: CustomStringConvertible {
    package var description: String { fields.map { "\($0.name): \($0.value)" }.joined(separator: "\n") }
}
