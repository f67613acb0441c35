// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import LoadingModel

/// Encodes or decodes a value: each type is described once for both directions and all formats of the protocol.
///
/// A field has a number and a name; the binary format uses the number, JSON the name. Numbers ascend in the order of the fields
/// and are never reused.
///
/// A class rather than a protocol, so that generic functions are specialized for each type; each format overrides all methods.
class Coder {
    final let isReading: Bool
    /// The fields that lead to the current position, for error messages.
    @exclusivity(unchecked) final var path: [StaticString] = []

    init(isReading: Bool) { self.isReading = isReading }

    // Each function writes its argument at the current position, or reads a value there if the argument is nil.
    func boolean(_ value: Bool?) throws -> Bool { throw unknown }
    func integer(_ value: Int64?) throws -> Int64 { throw unknown }
    func double(_ value: Double?) throws -> Double { throw unknown }
    func text(_ value: String?) throws -> String { throw unknown }
    func data(_ value: Data?) throws -> Data { throw unknown }
    /// The bytes of an HTTP field, which usually are text.
    func octets(_ value: ArraySlice<UInt8>?) throws -> ArraySlice<UInt8> { throw unknown }
    /// Whether the element at the current position is null.
    func null(_ value: Bool?) throws -> Bool { throw unknown }

    /// Begins an object, whose fields follow until ``end(_:)``.
    ///
    /// - Returns: The argument for ``end(_:)``.
    func begin() throws -> Int { throw unknown }
    func end(_ outer: Int) throws {}
    /// Encodes `count` elements, or decodes all that are present.
    func list(_ count: Int?, _ each: (Int) throws -> Void) throws { throw unknown }
    /// Enters a field, until ``leave(_:)``.
    ///
    /// - Returns: The argument for ``leave(_:)``; nil if the field is absent.
    func enter(_ number: UInt8, _ name: StaticString) throws -> Int? { throw unknown }
    func leave(_ outer: Int) throws {}
}

/// A type that can be part of a message.
protocol Coded {
    /// Encodes the value, or decodes one if it is nil.
    static func coded(_ value: Self?, _ coder: Coder) throws -> Self
}

/// A type that is encoded field by field.
protocol CodedFields: Coded {
    /// The value before any of its fields is decoded.
    static var blank: Self { get }
    mutating func visit(_ coder: Coder) throws
}

extension CodedFields {
    static func coded(_ value: Self?, _ coder: Coder) throws -> Self {
        let outer = try coder.begin()
        var value = value ?? blank
        try value.visit(coder)
        try coder.end(outer)
        return value
    }
}

/// A type with several kinds, each with its own fields.
protocol CodedKinds: Coded {
    init(kind: String, from coder: Coder) throws
    func write(to coder: Coder) throws
}

extension CodedKinds {
    static func coded(_ value: Self?, _ coder: Coder) throws -> Self {
        try coder.object {
            guard let value else { return try Self(kind: coder.required(1, "kind"), from: coder) }
            try value.write(to: coder)
            return value
        }
    }
}

extension Coder {
    final func object<Value>(_ body: () throws -> Value) throws -> Value {
        let outer = try begin()
        let value = try body()
        try end(outer)
        return value
    }

    func fault(_ fault: String) -> MessageFailure {
        let path = path.suffix(16).map { "\($0)" }.joined(separator: ".")
        return .malformed("\(path.isEmpty ? "the message" : path) \(fault)")
    }

    var otherType: MessageFailure { fault("has the wrong type") }
    var unreadable: MessageFailure { fault("cannot be read") }
    var unknown: MessageFailure { fault("is missing or unknown") }

    /// An optional field.
    @discardableResult
    func optional<Value: Coded>(
        _ number: UInt8, _ name: StaticString, _ value: Value? = nil, _ rule: Rule<Value> = .any
    ) throws -> Value? {
        let value = try value.map(rule.validate)
        if !isReading, value == nil { return nil }
        guard let outer = try enter(number, name) else { return nil }
        let coded = try Value.coded(isReading ? nil : value, self)
        try leave(outer)
        return isReading ? try rule.validate(coded) : coded
    }

    /// A required field.
    @discardableResult
    func required<Value: Coded>(
        _ number: UInt8, _ name: StaticString, _ value: Value? = nil, _ rule: Rule<Value> = .any
    ) throws -> Value {
        if let found = try optional(number, name, value, rule) { return found }
        path.append(name)
        throw unknown
    }

    /// A field that is omitted if it has its default value.
    @discardableResult
    func defaulted<Value: Coded & Equatable>(
        _ number: UInt8, _ name: StaticString, _ defaulted: Value, _ value: Value? = nil, _ rule: Rule<Value> = .any
    ) throws -> Value {
        let value = try value.map(rule.validate)
        return try optional(number, name, value == defaulted ? nil : value, isReading ? rule : .any) ?? defaulted
    }

    /// A list that is omitted if it is empty.
    @discardableResult
    func list<Element: Coded>(
        _ number: UInt8, _ name: StaticString, _ values: [Element]? = nil, _ rule: Rule<[Element]> = .any
    ) throws -> [Element] {
        try optional(number, name, values?.isEmpty == true ? nil : values, rule) ?? []
    }

    func optional<Value: Coded>(
        _ number: UInt8, _ name: StaticString, _ value: inout Value?, _ rule: Rule<Value> = .any
    ) throws {
        value = try optional(number, name, value, rule)
    }

    func required<Value: Coded>(_ number: UInt8, _ name: StaticString, _ value: inout Value, _ rule: Rule<Value> = .any) throws {
        value = try required(number, name, isReading ? nil : value, rule)
    }

    func defaulted<Value: Coded & Equatable>(
        _ number: UInt8, _ name: StaticString, _ defaulted: Value, _ value: inout Value, _ rule: Rule<Value> = .any
    ) throws {
        value = try self.defaulted(number, name, defaulted, isReading ? nil : value, rule)
    }

    func list<Element: Coded>(
        _ number: UInt8, _ name: StaticString, _ values: inout [Element], _ rule: Rule<[Element]> = .any
    ) throws {
        values = try list(number, name, isReading ? nil : values, rule)
    }

    /// Encodes a field whose content `body` writes.
    func field(_ number: UInt8, _ name: StaticString, _ body: () throws -> Void) throws {
        guard let outer = try enter(number, name) else { return }
        try object(body)
        try leave(outer)
    }

    func kind(_ kind: String) throws { try required(1, "kind", kind) }

    /// One of several values that have names.
    func named<Value: Equatable>(_ names: KeyValuePairs<String, Value>, _ value: Value?) throws -> Value {
        let name = try text(value.flatMap { value in names.first { $0.value == value }?.key })
        guard let found = names.first(where: { $0.key == name }) else { throw unknown }
        return found.value
    }

    /// A value that newer versions may extend: an unknown one is decoded as the default.
    func choice<Choice: RawRepresentable & Equatable>(
        _ number: UInt8, _ name: StaticString, _ defaulted: Choice, _ value: inout Choice
    ) throws where Choice.RawValue == String {
        let raw = try self.defaulted(number, name, defaulted.rawValue, isReading ? nil : value.rawValue)
        value = Choice(rawValue: raw) ?? defaulted
    }

    func choice<Choice: RawRepresentable & Equatable>(
        _ number: UInt8, _ name: StaticString, _ defaulted: Choice, _ value: inout Choice
    ) throws where Choice.RawValue: BinaryInteger {
        let raw = try self.defaulted(
            number, name, Int64(clamping: defaulted.rawValue), isReading ? nil : Int64(clamping: value.rawValue))
        value = Choice.RawValue(exactly: raw).flatMap(Choice.init(rawValue:)) ?? defaulted
    }
}

// MARK: Values

extension Bool: Coded {
    static func coded(_ value: Bool?, _ coder: Coder) throws -> Bool { try coder.boolean(value) }
}

extension Double: Coded {
    static func coded(_ value: Double?, _ coder: Coder) throws -> Double { try coder.double(value) }
}

extension Float: Coded {
    static func coded(_ value: Float?, _ coder: Coder) throws -> Float { Float(try coder.double(value.map { Double($0) })) }
}

extension String: Coded {
    static func coded(_ value: String?, _ coder: Coder) throws -> String { try coder.text(value) }
}

extension Data: Coded {
    static func coded(_ value: Data?, _ coder: Coder) throws -> Data { try coder.data(value) }
}

extension FixedWidthInteger {
    static func coded(_ value: Self?, _ coder: Coder) throws -> Self {
        guard let value = Self(exactly: try coder.integer(value.map { Int64(clamping: $0) })) else { throw coder.unreadable }
        return value
    }
}

extension Int: Coded {}
extension Int64: Coded {}
extension Int32: Coded {}
extension UInt16: Coded {}
extension UInt8: Coded {}

extension URL: Coded {
    static func coded(_ value: URL?, _ coder: Coder) throws -> URL {
        let text = try coder.text(try value.map { try Rule.text("a URL").validate($0.absoluteString) })
        // A URL is only sent if its text parses as a URL: the other side could not decode it otherwise.
        guard let url = URL(string: try Rule.text("a URL").validate(text)) else { throw coder.fault("is not a URL") }
        return value ?? url
    }
}

extension Array: Coded where Element: Coded {
    static func coded(_ value: [Element]?, _ coder: Coder) throws -> [Element] {
        var read: [Element] = []
        try coder.list(value?.count) { index in
            if let value { _ = try Element.coded(value[index], coder) } else { read.append(try Element.coded(nil, coder)) }
        }
        return value ?? read
    }
}

/// A list element that may be null.
extension Optional: Coded where Wrapped == URL {
    static func coded(_ value: URL??, _ coder: Coder) throws -> URL? {
        if try coder.null(value.map { $0 == nil }) { return nil }
        return try URL.coded(value ?? nil, coder)
    }
}

extension Coded where Self: RawRepresentable, RawValue == String {
    static func coded(_ value: Self?, _ coder: Coder) throws -> Self {
        guard let value = Self(rawValue: try coder.text(value?.rawValue)) else { throw coder.unknown }
        return value
    }
}
