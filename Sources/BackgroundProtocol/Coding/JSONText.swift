// SPDX-License-Identifier: Apache-2.0

/// A decoded JSON value.
enum JSONValue {
    case null
    case boolean(Bool)
    /// The number's text.
    case number(String)
    case text(String)
    case list([JSONValue])
    /// The fields in order; if a name occurs twice, the first one applies.
    case object([(name: String, value: JSONValue)])
}

/// Parses untrusted JSON: UTF-8, with limits on depth and number of values, without unpaired surrogates.
struct JSONParser {
    /// Far above the nesting of messages, which is at most ten.
    static let depthLimit = 64

    private let bytes: UnsafeBufferPointer<UInt8>
    private var at = 0
    private var depth = 0
    private var values = 0

    private init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    /// - Returns: Nil if the bytes are not a single object.
    static func object(_ bytes: [UInt8]) -> JSONValue? {
        guard String(validating: bytes, as: UTF8.self) != nil else { return nil }
        return bytes.withUnsafeBufferPointer { bytes in
            var parser = JSONParser(bytes)
            guard case .object(let fields)? = parser.value() else { return nil }
            parser.skipSpace()
            return parser.at == bytes.count ? .object(fields) : nil
        }
    }

    private mutating func value() -> JSONValue? {
        values += 1
        skipSpace()
        guard values <= BinaryFormat.valueLimit, let byte = peek else { return nil }
        switch byte {
        case UInt8(ascii: "{"): return object()
        case UInt8(ascii: "["): return list()
        case UInt8(ascii: "\""): return string().map { .text($0) }
        case UInt8(ascii: "t"): return take("true") ? .boolean(true) : nil
        case UInt8(ascii: "f"): return take("false") ? .boolean(false) : nil
        case UInt8(ascii: "n"): return take("null") ? .null : nil
        default: return number()
        }
    }

    private mutating func object() -> JSONValue? {
        var fields: [(name: String, value: JSONValue)] = []
        let isWhole = entries("}") { parser in
            parser.skipSpace()
            guard parser.peek == UInt8(ascii: "\""), let name = parser.string() else { return false }
            parser.skipSpace()
            guard parser.take(":"), let value = parser.value() else { return false }
            fields.append((name, value))
            return true
        }
        return isWhole ? .object(fields) : nil
    }

    private mutating func list() -> JSONValue? {
        var values: [JSONValue] = []
        return entries("]") { parser in parser.value().map { values.append($0) } != nil } ? .list(values) : nil
    }

    private mutating func entries(_ end: StaticString, _ entry: (inout JSONParser) -> Bool) -> Bool {
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.depthLimit else { return false }
        at += 1
        skipSpace()
        if take(end) { return true }
        repeat {
            guard entry(&self) else { return false }
            skipSpace()
        } while take(",")
        return take(end)
    }

    private mutating func number() -> JSONValue? {
        let start = at
        _ = take("-")
        if !take("0"), !takeDigits() { return nil }
        if take("."), !takeDigits() { return nil }
        if take("e") || take("E") {
            if !take("+") { _ = take("-") }
            if !takeDigits() { return nil }
        }
        return .number(String(decoding: bytes[start..<at], as: UTF8.self))
    }

    private mutating func takeDigits() -> Bool {
        let start = at
        while let byte = peek, UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte { at += 1 }
        return at > start
    }

    private mutating func string() -> String? {
        at += 1
        var plain: [UInt8] = []
        var start = at
        while let byte = peek {
            at += 1
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: plain + bytes[start..<at - 1], as: UTF8.self)
            case UInt8(ascii: "\\"):
                plain.append(contentsOf: bytes[start..<at - 1])
                guard let scalar = escaped() else { return nil }
                plain.append(contentsOf: String(scalar).utf8)
                start = at
            case ..<0x20: return nil
            default: break
            }
        }
        return nil
    }

    private mutating func escaped() -> Unicode.Scalar? {
        guard let byte = peek else { return nil }
        at += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"):
            guard let unit = codeUnit() else { return nil }
            guard UTF16.isLeadSurrogate(unit) else { return Unicode.Scalar(unit) }
            guard take("\\u"), let second = codeUnit(), UTF16.isTrailSurrogate(second) else { return nil }
            return Unicode.Scalar(0x1_0000 + (UInt32(unit & 0x3FF) << 10 | UInt32(second & 0x3FF)))
        default: return nil
        }
    }

    private mutating func codeUnit() -> UInt16? {
        guard bytes.count - at >= 4, bytes[at..<at + 4].allSatisfy({ Unicode.Scalar($0).properties.isASCIIHexDigit }) else {
            return nil
        }
        defer { at += 4 }
        return UInt16(String(decoding: bytes[at..<at + 4], as: UTF8.self), radix: 16)
    }

    private var peek: UInt8? { at < bytes.count ? bytes[at] : nil }

    private mutating func take(_ word: StaticString) -> Bool {
        let end = at + word.utf8CodeUnitCount
        guard end <= bytes.count, bytes[at..<end].elementsEqual(UnsafeBufferPointer(start: word.utf8Start, count: end - at))
        else { return false }
        at = end
        return true
    }

    private mutating func skipSpace() {
        while let byte = peek, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { at += 1 }
    }
}
