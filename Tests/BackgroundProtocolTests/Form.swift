// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import LoadingModel

@testable import BackgroundProtocol

/// The two forms of values: JSON, which daemons of version 1 stored, and the current form.
enum Form: CaseIterable, Sendable {
    case json, binary

    func write<Value: Coded>(_ value: Value) throws -> [UInt8] {
        if self == .binary { return try BinaryFormat.write(value) }
        let writer = JSONWriter()
        _ = try Value.coded(value, writer)
        return writer.bytes
    }

    func read<Value: Coded>(_ bytes: [UInt8]) throws(MessageFailure) -> Value {
        do {
            return self == .json ? try JSONFormat.read(bytes) : try BinaryFormat.read(bytes)
        } catch { throw error as? MessageFailure ?? .malformed("\(error)") }
    }

    func client(_ bytes: [UInt8]) throws(MessageFailure) -> ClientMessage { try read(bytes) }
    func daemon(_ bytes: [UInt8]) throws(MessageFailure) -> DaemonMessage { try read(bytes) }
    func order(_ bytes: [UInt8]) throws(MessageFailure) -> BackgroundOrder { try read(bytes) }
    func settings(_ bytes: [UInt8]) throws(MessageFailure) -> BackgroundSettings { try read(bytes) }
    func outcome(_ bytes: [UInt8]) throws(MessageFailure) -> TaskOutcome { try read(bytes) }
    func response(_ bytes: [UInt8]) throws(MessageFailure) -> LoadResponse { try read(bytes) }
}

/// Writes what version 1 wrote: the fields in alphabetical order.
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

    private func write(number: Double) throws {
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
