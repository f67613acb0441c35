// SPDX-License-Identifier: Apache-2.0

/// The field lines of one message in one buffer, so that a message costs two allocations regardless of the number of its fields.
///
/// Names compare without regard to ASCII case (RFC 9110, section 5.1). Order and repeated lines are kept. Values are bytes: a value
/// becomes a `String` on request, decoded as UTF-8 if valid and as ISO 8859-1 otherwise. ``octetTexts(of:)`` preserves the octets.
///
/// The block does not validate its content. ``ResponseParser`` validates fields from the network. ``RequestSerializer`` validates
/// fields from the caller and refuses to write invalid fields.
package struct HeaderBlock: Sendable {
    /// The position of one field line in ``HeaderBlock/bytes``.
    package struct Line: Sendable {
        package var nameStart: UInt32
        package var nameLength: UInt32
        package var valueStart: UInt32
        package var valueLength: UInt32
        /// The name, if it is in the table of known names; otherwise ``FieldName/other``.
        ///
        /// The block sets this property.
        var field = FieldName.other

        package init(nameStart: Int, nameLength: Int, valueStart: Int, valueLength: Int) {
            self.nameStart = UInt32(truncatingIfNeeded: nameStart)
            self.nameLength = UInt32(truncatingIfNeeded: nameLength)
            self.valueStart = UInt32(truncatingIfNeeded: valueStart)
            self.valueLength = UInt32(truncatingIfNeeded: valueLength)
        }

        package var name: Range<Int> { Int(nameStart)..<Int(nameStart) + Int(nameLength) }
        package var value: Range<Int> { Int(valueStart)..<Int(valueStart) + Int(valueLength) }
    }

    /// Names and values, and possibly other bytes between them.
    package private(set) var bytes: [UInt8]
    package private(set) var lines: [Line]
    /// The set of known names that occur in this block.
    ///
    /// The highest bit, which no name uses, says whether ``bytes`` are exactly the lines as HTTP/1 writes them. Storing the flag
    /// here keeps the size of a block at four pointers; accessors that yield a larger value would need to allocate memory for it.
    @usableFromInline
    private(set) var names: UInt64
    /// The range of the lines that were validated before they were appended and need no validation when they are written.
    private var validatedStart: UInt32 = 0
    private var validatedEnd: UInt32 = 0
    private static let laidOut: UInt64 = 1 << 63

    package init() {
        bytes = []
        lines = []
        names = 0
    }

    /// Creates a block from a buffer and the lines found in it.
    ///
    /// Every line must lie within the buffer.
    package init(bytes: [UInt8], lines: [Line]) {
        self.init(bytes: bytes, recognized: lines, names: 0)
        bytes.withUnsafeBytes { bytes in
            for (index, line) in lines.enumerated() {
                let field = FieldName(bytes, Int(line.nameStart), Int(line.nameLength))
                self.lines[index].field = field
                names |= field.bit
            }
        }
    }

    /// Creates a block like ``init(bytes:lines:)``, from lines whose names have already been looked up.
    init(bytes: [UInt8], recognized lines: [Line], names: UInt64) {
        self.bytes = bytes
        self.lines = lines
        self.names = names
    }

    package init(_ fields: [(name: String, value: String)]) {
        self.init()
        for field in fields { append(field.name, field.value) }
    }

    package var count: Int { lines.count }
    package var isEmpty: Bool { lines.isEmpty }

    /// Whether ``bytes`` are exactly the lines as HTTP/1 writes them.
    var isLaidOut: Bool { names & Self.laidOut != 0 }

    /// The indices of the lines that have been validated.
    var validated: Range<Int> { Int(validatedStart)..<Int(max(validatedStart, validatedEnd)) }

    /// Marks all lines as validated: every name is a token, and every value may be written.
    ///
    /// When this block is appended to another block, the appended lines keep the mark.
    package mutating func markAsValidated() {
        validatedStart = 0
        validatedEnd = UInt32(truncatingIfNeeded: count)
    }

    /// Returns the same fields, validated and laid out as HTTP/1 writes them.
    ///
    /// Use this for a block that many messages share.
    package func laidOut() throws(InvalidRequest) -> HeaderBlock {
        try RequestSerializer.validate(self)
        var block = HeaderBlock()
        block.reserveCapacity(bytes: bytes.count + 4 * count, lines: count)
        for line in lines {
            var moved = line
            moved.nameStart = UInt32(truncatingIfNeeded: block.bytes.count)
            block.bytes.append(contentsOf: bytes[line.name])
            block.bytes.append(contentsOf: [UInt8(ascii: ":"), UInt8(ascii: " ")])
            moved.valueStart = UInt32(truncatingIfNeeded: block.bytes.count)
            block.bytes.append(contentsOf: bytes[line.value])
            block.bytes.append(contentsOf: [0x0D, 0x0A])
            block.lines.append(moved)
        }
        block.names = names | Self.laidOut
        block.markAsValidated()
        return block
    }

    private mutating func forgetValidation() {
        names &= ~Self.laidOut
        validatedStart = 0
        validatedEnd = 0
    }

    // MARK: Reading

    package func name(at index: Int) -> String { Self.text(bytes[lines[index].name]) }
    package func value(at index: Int) -> String { Self.text(bytes[lines[index].value]) }

    /// Returns the first value of a field, or nil if the field is absent.
    package func first(_ name: String) -> String? { index(of: name).map(value(at:)) }

    /// Returns all values of a field in order, one for each line.
    package func all(_ name: String) -> [String] { indices(of: name).map(value(at:)) }

    /// Returns all values of a field joined by a comma and a space (RFC 9110, section 5.3), or nil if the field is absent.
    package func joined(_ name: String) -> String? {
        let values = all(name)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// Returns the values of a field in order, as text that preserves their octets (``OctetText``).
    ///
    /// Use this for values that are sent back unmodified.
    package func octetTexts(of name: String) -> [String] {
        indices(of: name).map { OctetText.text(of: bytes[lines[$0].value]) }
    }

    package func contains(_ name: String) -> Bool { index(of: name) != nil }

    /// Returns the index of the first line with a name, or nil.
    package func index(of name: String) -> Int? { index(of: name, from: 0) }

    /// Returns the index of the first line with a name, at or after a line index, or nil.
    package func index(of name: String, from start: Int) -> Int? {
        var name = name
        return name.withUTF8 { name in
            let name = UnsafeRawBufferPointer(name)
            let field = FieldName(name, 0, name.count)
            if field != .other { return index(of: field, from: start) }
            return bytes.withUnsafeBytes { bytes in
                for index in start..<max(start, lines.count) where Self.matches(bytes, lines[index], name) { return index }
                return nil
            }
        }
    }

    private func indices(of name: String) -> [Int] {
        var found: [Int] = []
        var next = index(of: name)
        while let index = next {
            found.append(index)
            next = self.index(of: name, from: index + 1)
        }
        return found
    }

    /// Every field in order; a repeated field appears once for each line.
    package var fields: [(name: String, value: String)] {
        lines.indices.map { (name(at: $0), value(at: $0)) }
    }

    // MARK: Changing

    /// Appends a line.
    ///
    /// A value created by ``OctetText`` is written as its original octets.
    package mutating func append(_ name: String, _ value: String) {
        var name = name
        guard !OctetText.isNeeded(for: value) else {
            let octets = OctetText.octets(of: value)
            return name.withUTF8 { name in
                octets.withUnsafeBytes { append(name: UnsafeRawBufferPointer(name), value: $0) }
            }
        }
        var value = value
        name.withUTF8 { name in value.withUTF8 { append(name: UnsafeRawBufferPointer(name), value: UnsafeRawBufferPointer($0)) } }
    }

    package mutating func append(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        let field = FieldName(name, 0, name.count)
        names = names & ~Self.laidOut | field.bit
        let nameStart = bytes.count
        bytes.append(contentsOf: name)
        let valueStart = bytes.count
        bytes.append(contentsOf: value)
        var line = Line(nameStart: nameStart, nameLength: name.count, valueStart: valueStart, valueLength: value.count)
        line.field = field
        lines.append(line)
    }

    package mutating func append(contentsOf other: HeaderBlock) {
        names = (names | other.names) & ~Self.laidOut
        if validated.isEmpty, other.validated == 0..<other.count {
            validatedStart = UInt32(truncatingIfNeeded: count)
            validatedEnd = validatedStart + UInt32(truncatingIfNeeded: other.count)
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

    /// Replaces all lines of a field by one line, in the place of the first line.
    package mutating func set(_ name: String, _ value: String) {
        guard let index = index(of: name) else { return append(name, value) }
        forgetValidation()
        var added = HeaderBlock()
        added.append(name, value)
        let tail = lines[(index + 1)...].filter { !matches($0, name) }
        lines.removeSubrange(index...)
        append(contentsOf: added)
        lines.append(contentsOf: tail)
    }

    package mutating func remove(_ name: String) {
        guard contains(name) else { return }
        forgetValidation()
        lines = lines.filter { !matches($0, name) }
        names = lines.reduce(0) { $0 | $1.field.bit }
    }

    /// Removes every line of these fields in one pass over the lines.
    ///
    /// The names are in lowercase.
    package mutating func remove(all names: Set<String>) {
        let kept = lines.filter { !names.contains(Self.text(bytes[$0.name]).lowercased()) }
        guard kept.count < lines.count else { return }
        forgetValidation()
        lines = kept
        self.names = lines.reduce(0) { $0 | $1.field.bit }
    }

    package mutating func reserveCapacity(bytes byteCount: Int, lines lineCount: Int) {
        bytes.reserveCapacity(byteCount)
        lines.reserveCapacity(lineCount)
    }

    // MARK: Bytes

    private func matches(_ line: Line, _ name: String) -> Bool {
        var name = name
        return name.withUTF8 { name in bytes.withUnsafeBytes { Self.matches($0, line, UnsafeRawBufferPointer(name)) } }
    }

    private static func matches(_ bytes: UnsafeRawBufferPointer, _ line: Line, _ name: UnsafeRawBufferPointer) -> Bool {
        Int(line.nameLength) == name.count && ASCII.equals(bytes, Int(line.nameStart), name)
    }

    /// Decodes UTF-8 if the bytes are valid UTF-8, and ISO 8859-1 otherwise.
    static func text(_ bytes: ArraySlice<UInt8>) -> String {
        if let text = String(validating: bytes, as: UTF8.self) { return text }
        return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
}

extension HeaderBlock: Hashable {
    /// Two blocks are equal if they contain the same fields in the same order.
    ///
    /// Names compare without regard to case.
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
