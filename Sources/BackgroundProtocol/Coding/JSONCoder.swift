//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials

/// The encoding of version 1, which older programs and databases use; hello and refusals use it in every version.
enum JSONFormat {
    static func write<Value: Coded>(_ value: Value) throws -> [UInt8] {
        let writer = JSONWriter()
        _ = try Value.coded(value, writer)
        return writer.bytes
    }

    static func read<Value: Coded>(_ bytes: [UInt8]) throws -> Value {
        guard let value = JSONParser.object(bytes) else {
            throw MessageFailure.malformed("it is not a JSON object, or exceeds a message's limits")
        }
        return try Value.coded(nil, JSONReader(value))
    }
}

/// Writes the fields in alphabetical order.
final class JSONWriter: Coder {
    private(set) var bytes: [UInt8] = []
    private var fields: [(name: StaticString, value: [UInt8])] = []
    /// The bytes that precede each open field.
    private var outerBytes: [[UInt8]] = []

    init() { super.init(isReading: false) }

    override func boolean(_ value: Bool?) throws -> Bool {
        try written(value) { bytes.append(contentsOf: ($0 ? "true" : "false").utf8) }
    }
    override func integer(_ value: Int64?) throws -> Int64 {
        try written(value) { bytes.append(contentsOf: $0.description.utf8) }
    }
    override func double(_ value: Double?) throws -> Double { try written(value) { try write(number: $0) } }
    override func float(_ value: Float?) throws -> Float { try written(value) { try write(number: $0) } }
    override func text(_ value: String?) throws -> String { try written(value) { write($0) } }
    override func data(_ value: Data?) throws -> Data { try written(value) { write($0.base64EncodedString()) } }

    /// Encodes each byte as the character whose code point is the byte's value.
    override func octets(_ value: ArraySlice<UInt8>?) throws -> ArraySlice<UInt8> {
        try written(value) { write(String(String.UnicodeScalarView($0.map { Unicode.Scalar($0) }))) }
    }

    override func null(_ value: Bool?) throws -> Bool {
        try written(value) { if $0 { bytes.append(contentsOf: "null".utf8) } }
    }

    override func begin() throws -> Int { fields.count }

    override func end(_ outer: Int) throws {
        bytes.append(UInt8(ascii: "{"))
        for (index, field) in fields[outer...].sorted(by: { "\($0.name)" < "\($1.name)" }).enumerated() {
            bytes.append(contentsOf: "\(index == 0 ? "" : ",")\"\(field.name)\":".utf8)
            bytes.append(contentsOf: field.value)
        }
        bytes.append(UInt8(ascii: "}"))
        fields.removeSubrange(outer...)
    }

    override func list(_ count: Int?, _ each: (Int) throws -> Void) throws {
        bytes.append(UInt8(ascii: "["))
        for index in 0..<(count ?? 0) {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            try each(index)
        }
        bytes.append(UInt8(ascii: "]"))
    }

    override func enter(_ number: UInt8, _ name: StaticString) throws -> Int? {
        outerBytes.append(bytes)
        bytes = []
        path.append(name)
        return 0
    }

    override func leave(_ outer: Int) throws {
        guard let name = path.popLast(), let outer = outerBytes.popLast() else { throw unknown }
        fields.append((name, bytes))
        bytes = outer
    }

    private func written<Value>(_ value: Value?, _ write: (Value) throws -> Void) throws -> Value {
        guard let value else { throw unknown }
        try write(value)
        return value
    }

    private func write(number: some BinaryFloatingPoint & CustomStringConvertible) throws {
        guard number.isFinite else { throw fault("has a value that cannot be written") }
        let text = number.description
        bytes.append(contentsOf: text.hasSuffix(".0") ? text.utf8.dropLast(2) : text.utf8[...])
    }

    private func write(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(contentsOf: [UInt8(ascii: "\\"), byte])
            case 0x08: bytes.append(contentsOf: "\\b".utf8)
            case 0x09: bytes.append(contentsOf: "\\t".utf8)
            case 0x0A: bytes.append(contentsOf: "\\n".utf8)
            case 0x0C: bytes.append(contentsOf: "\\f".utf8)
            case 0x0D: bytes.append(contentsOf: "\\r".utf8)
            case ..<0x20: bytes.append(contentsOf: "\\u00\(byte < 0x10 ? "0" : "")\(String(byte, radix: 16))".utf8)
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }
}

final class JSONReader: Coder {
    private var value: JSONValue
    /// The enclosing values.
    private var outer: [JSONValue] = []

    init(_ value: JSONValue) {
        self.value = value
        super.init(isReading: true)
    }

    override func boolean(_ value: Bool?) throws -> Bool {
        guard case .boolean(let boolean) = self.value else { throw otherType }
        return boolean
    }

    override func integer(_ value: Int64?) throws -> Int64 {
        try number { Int64($0) ?? Double($0).flatMap { Int64(exactly: $0) } }
    }

    override func double(_ value: Double?) throws -> Double { try number { Double($0).flatMap { $0.isFinite ? $0 : nil } } }
    override func float(_ value: Float?) throws -> Float { try number { Float($0).flatMap { $0.isFinite ? $0 : nil } } }

    private func number<Number>(_ read: (String) -> Number?) throws -> Number {
        guard case .number(let text) = value else { throw otherType }
        guard let number = read(text) else { throw unreadable }
        return number
    }

    override func text(_ value: String?) throws -> String {
        guard case .text(let text) = self.value else { throw otherType }
        return text
    }

    override func data(_ value: Data?) throws -> Data {
        guard let data = Data(base64Encoded: try text(nil)) else { throw unreadable }
        return data
    }

    override func octets(_ value: ArraySlice<UInt8>?) throws -> ArraySlice<UInt8> {
        let bytes = try text(nil).unicodeScalars.map { UInt8(exactly: $0.value) }
        guard !bytes.contains(nil) else { throw MessageFailure.malformed("a field has a character that is not a byte") }
        return ArraySlice(bytes.compactMap { $0 })
    }

    override func null(_ value: Bool?) throws -> Bool {
        if case .null = self.value { true } else { false }
    }

    override func begin() throws -> Int {
        guard case .object = value else { throw otherType }
        return 0
    }

    override func list(_ count: Int?, _ each: (Int) throws -> Void) throws {
        guard case .list(let values) = value else { throw otherType }
        for (index, element) in values.enumerated() {
            value = element
            try each(index)
        }
        value = .list(values)
    }

    override func enter(_ number: UInt8, _ name: StaticString) throws -> Int? {
        guard case .object(let fields) = value, let field = fields.first(where: { name == $0.name }) else { return nil }
        if case .null = field.value { return nil }
        outer.append(value)
        value = field.value
        path.append(name)
        return 0
    }

    override func leave(_ outer: Int) throws {
        guard let last = self.outer.popLast() else { throw unknown }
        value = last
        path.removeLast()
    }
}

extension StaticString {
    fileprivate static func == (name: StaticString, text: String) -> Bool {
        text.utf8.elementsEqual(UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
    }
}
