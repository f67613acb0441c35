// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// The form of hello, of refusals and of the file of terms, and of all that a daemon of version 1 stored.
enum JSONFormat {
    /// A text with its quotes.
    static func quoted(_ text: String) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        return String(decoding: try encoder.encode(text), as: UTF8.self)
    }

    static func read<Value: Coded>(_ bytes: [UInt8]) throws -> Value {
        guard let value = JSONParser.object(bytes) else {
            throw MessageFailure.malformed("it is not a JSON object, or exceeds a message's limits")
        }
        return try Value.coded(nil, JSONReader(value))
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
