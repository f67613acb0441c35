// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// The form of messages and stored data: a field is its number, the length of its content, and the content.
///
/// A number takes one byte. A length takes up to five bytes of seven bits each, the lowest first; all but the last have the
/// highest bit set. An integer takes the bytes it needs, big-endian, in two's complement; a floating-point number takes eight
/// bytes, as IEEE 754. A list element is its length and its content. Fields are in ascending order of their numbers, so that
/// unknown ones can be skipped.
enum BinaryFormat {
    /// Precedes the length of the message; no JSON text begins with it.
    static let mark: UInt8 = 2
    static let lengthBytes = 5
    /// The maximum number of fields and elements in a message, far more than messages have.
    static let valueLimit = 1 << 20

    static func write<Value: Coded>(_ value: Value) throws -> [UInt8] {
        let writer = BinaryWriter()
        try writer.sized { _ = try Value.coded(value, writer) }
        return writer.bytes
    }

    static func read<Value: Coded>(_ bytes: [UInt8]) throws -> Value {
        let reader = BinaryReader(bytes)
        var value: Value?
        try reader.within(try reader.length()) { value = try Value.coded(nil, reader) }
        guard let value, reader.isAtEnd else { throw MessageFailure.malformed("there are bytes after the message") }
        return value
    }

    /// The fields of a value from the first one with at least this number.
    static func fields(of bytes: [UInt8], from number: UInt8) throws -> ArraySlice<UInt8> {
        let reader = BinaryReader(bytes)
        _ = try reader.length()
        return try reader.fields(from: number)
    }

    /// The content of a field, as a value of its own.
    static func value(ofField number: UInt8, in bytes: [UInt8]) throws -> [UInt8] {
        let reader = BinaryReader(bytes)
        _ = try reader.length()
        return try [mark] + reader.value(ofField: number)
    }
}

final class BinaryWriter: Coder {
    @exclusivity(unchecked) fileprivate(set) var bytes = [BinaryFormat.mark]

    init() { super.init(isReading: false) }

    override func boolean(_ value: Bool?) throws -> Bool { try written(value) { bytes.append($0 ? 1 : 0) } }

    override func integer(_ value: Int64?) throws -> Int64 {
        try written(value) { value in
            let unused = (value < 0 ? ~value : value).leadingZeroBitCount
            // The sign takes one more bit.
            for byte in (0...(64 - unused) / 8).reversed() where byte < 8 {
                bytes.append(UInt8(truncatingIfNeeded: value >> Int64(byte * 8)))
            }
        }
    }

    override func double(_ value: Double?) throws -> Double {
        try written(value) { value in
            for byte in (0..<8).reversed() as ReversedCollection<Range<UInt64>> {
                bytes.append(UInt8(truncatingIfNeeded: value.bitPattern >> (byte * 8)))
            }
        }
    }

    override func text(_ value: String?) throws -> String { try written(value) { bytes.append(contentsOf: $0.utf8) } }
    override func data(_ value: Data?) throws -> Data { try written(value) { bytes.append(contentsOf: $0) } }
    override func octets(_ value: ArraySlice<UInt8>?) throws -> ArraySlice<UInt8> {
        try written(value) { bytes.append(contentsOf: $0) }
    }
    override func null(_ value: Bool?) throws -> Bool { value ?? true }
    override func begin() throws -> Int { 0 }

    override func list(_ count: Int?, _ each: (Int) throws -> Void) throws {
        for index in 0..<(count ?? 0) { try sized { try each(index) } }
    }

    override func enter(_ number: UInt8, _ name: StaticString) throws -> Int? {
        bytes.append(number)
        bytes.append(0)
        path.append(name)
        return bytes.count
    }

    override func leave(_ outer: Int) throws {
        path.removeLast()
        size(from: outer)
    }

    private func written<Value>(_ value: Value?, _ write: (Value) -> Void) throws -> Value {
        guard let value else { throw unknown }
        write(value)
        return value
    }

    /// Puts the length before the bytes that `body` writes.
    fileprivate func sized(_ body: () throws -> Void) throws {
        bytes.append(0)
        let start = bytes.count
        try body()
        size(from: start)
    }

    /// Puts the length in the preceding byte, and inserts further bytes if needed.
    private func size(from start: Int) {
        var rest = bytes.count - start
        guard rest >= 0x80 else {
            bytes[start - 1] = UInt8(truncatingIfNeeded: rest)
            return
        }
        var length: [UInt8] = []
        while rest >= 0x80 {
            length.append(UInt8(truncatingIfNeeded: rest & 0x7F) | 0x80)
            rest >>= 7
        }
        length.append(UInt8(truncatingIfNeeded: rest))
        bytes.replaceSubrange(start - 1..<start, with: length)
    }
}

/// Decodes untrusted bytes: no length may exceed the enclosing value, and nothing is allocated before its bytes are present.
final class BinaryReader: Coder {
    private let bytes: [UInt8]
    @exclusivity(unchecked) private var at = 1
    /// The end of the current value.
    @exclusivity(unchecked) private var end: Int
    /// The number of the last field in the current value.
    @exclusivity(unchecked) private var last: UInt8 = 0
    @exclusivity(unchecked) private var values = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        end = bytes.count
        super.init(isReading: true)
    }

    var isAtEnd: Bool { at == end }

    fileprivate func length() throws -> Int {
        var length = 0
        for index in 0..<BinaryFormat.lengthBytes {
            guard at < end else { break }
            let byte = bytes[at]
            at += 1
            length |= Int(byte & 0x7F) << (7 * index)
            if byte & 0x80 == 0 {
                guard length <= end - at else { break }
                return length
            }
        }
        throw fault("has a length that exceeds its bytes")
    }

    /// Reads exactly `length` bytes.
    fileprivate func within(_ length: Int, _ body: () throws -> Void) throws {
        let outer = try narrow(to: length)
        try body()
        try widen(to: outer)
    }

    private func narrow(to length: Int) throws -> Int {
        values += 1
        guard values <= BinaryFormat.valueLimit else { throw MessageFailure.malformed("it has too many values") }
        defer { end = at + length }
        return end
    }

    private func widen(to outer: Int) throws {
        guard at == end else { throw otherType }
        end = outer
    }

    private func take(_ count: Int) throws -> ArraySlice<UInt8> {
        guard count == end - at else { throw otherType }
        defer { at = end }
        return bytes[at..<end]
    }

    private var rest: ArraySlice<UInt8> {
        defer { at = end }
        return bytes[at..<end]
    }

    override func boolean(_ value: Bool?) throws -> Bool {
        guard let byte = try take(1).first, byte <= 1 else { throw unreadable }
        return byte == 1
    }

    override func integer(_ value: Int64?) throws -> Int64 {
        let rest = rest
        guard 1...8 ~= rest.count, let first = rest.first else { throw otherType }
        return rest.reduce(first & 0x80 == 0 ? 0 : -1) { $0 << 8 | Int64($1) }
    }

    override func double(_ value: Double?) throws -> Double {
        Double(bitPattern: try take(8).reduce(0) { $0 << 8 | UInt64($1) })
    }

    override func text(_ value: String?) throws -> String {
        guard let text = String(validating: rest, as: UTF8.self) else { throw fault("is not UTF-8 text") }
        return text
    }

    override func data(_ value: Data?) throws -> Data { Data(rest) }
    override func octets(_ value: ArraySlice<UInt8>?) throws -> ArraySlice<UInt8> { rest }
    override func null(_ value: Bool?) throws -> Bool { isAtEnd }

    override func begin() throws -> Int {
        defer { last = 0 }
        return Int(last)
    }

    override func end(_ outer: Int) throws {
        while !isAtEnd { try skip() }
        last = UInt8(truncatingIfNeeded: outer)
    }

    override func list(_ count: Int?, _ each: (Int) throws -> Void) throws {
        var index = 0
        while !isAtEnd {
            try within(try length()) { try each(index) }
            index += 1
        }
    }

    fileprivate func fields(from number: UInt8) throws -> ArraySlice<UInt8> {
        while !isAtEnd, bytes[at] < number { try skip() }
        return bytes[at..<end]
    }

    /// The length and the content of a field.
    fileprivate func value(ofField number: UInt8) throws -> ArraySlice<UInt8> {
        guard try fields(from: number).first == number else { throw unknown }
        let start = at + 1
        try skip()
        return bytes[start..<at]
    }

    override func enter(_ number: UInt8, _ name: StaticString) throws -> Int? {
        _ = try fields(from: number)
        guard !isAtEnd, bytes[at] == number else { return nil }
        path.append(name)
        return try narrow(to: try header())
    }

    override func leave(_ outer: Int) throws {
        try widen(to: outer)
        path.removeLast()
    }

    private func header() throws -> Int {
        let number = bytes[at]
        guard number > last else { throw fault("has fields that are out of order") }
        last = number
        at += 1
        return try length()
    }

    private func skip() throws { at += try header() }
}
