//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Whether bytes are JSON (RFC 8259) that a decoder may be given.
///
/// `JSONDecoder` is not for bytes that anybody may have written: it traps where nesting that is too deep for it ends the text, and takes its
/// time for a text of millions of values. It is told nothing before the whole text was gone through here, which takes no memory.
struct JSONShape {
    /// Messages are nested ten deep.
    static let depthLimit = 64
    /// A list of tens of thousands of transfers has fewer.
    static let valueLimit = 1 << 20

    private enum State {
        case value
        /// Just behind `[` or `{`.
        case valueOrEnd, nameOrEnd
        case name
        case commaOrEnd
        case end
    }

    private let bytes: UnsafeBufferPointer<UInt8>
    private var at = 0
    private var state = State.value
    private var depth = 0
    /// A bit for each open bracket, the innermost lowest: set for an object.
    private var objects: UInt64 = 0
    private var values = 0
    private var isASCII = true

    private init(_ bytes: UnsafeBufferPointer<UInt8>) {
        self.bytes = bytes
    }

    /// Whether they are one object, in UTF-8, within the limits, and without halves of characters.
    static func isObject(_ bytes: [UInt8]) -> Bool {
        let isASCII = bytes.withUnsafeBufferPointer { bytes in
            var shape = JSONShape(bytes)
            return shape.isWhole() ? shape.isASCII : nil
        }
        guard let isASCII else { return false }
        return isASCII || String(validating: bytes, as: UTF8.self) != nil
    }

    private mutating func isWhole() -> Bool {
        skipSpace()
        guard peek == UInt8(ascii: "{") else { return false }
        while true {
            skipSpace()
            guard let byte = peek else { return state == .end }
            guard step(byte) else { return false }
        }
    }

    private mutating func step(_ byte: UInt8) -> Bool {
        switch (state, byte) {
        case (.valueOrEnd, UInt8(ascii: "]")), (.nameOrEnd, UInt8(ascii: "}")): return close(byte)
        case (.value, _), (.valueOrEnd, _): return takeValue(byte)
        case (.name, UInt8(ascii: "\"")), (.nameOrEnd, UInt8(ascii: "\"")):
            guard takeString() else { return false }
            skipSpace()
            guard peek == UInt8(ascii: ":") else { return false }
            at += 1
            state = .value
            return true
        case (.commaOrEnd, UInt8(ascii: ",")):
            at += 1
            state = objects & 1 == 1 ? .name : .value
            return true
        case (.commaOrEnd, UInt8(ascii: "]")), (.commaOrEnd, UInt8(ascii: "}")): return close(byte)
        case (.name, _), (.nameOrEnd, _), (.commaOrEnd, _), (.end, _): return false
        }
    }

    // MARK: Brackets

    private mutating func open(isObject: Bool) -> Bool {
        guard depth < Self.depthLimit else { return false }
        depth += 1
        objects = objects << 1 | (isObject ? 1 : 0)
        at += 1
        state = isObject ? .nameOrEnd : .valueOrEnd
        return true
    }

    private mutating func close(_ byte: UInt8) -> Bool {
        guard depth > 0, (objects & 1 == 1) == (byte == UInt8(ascii: "}")) else { return false }
        depth -= 1
        objects >>= 1
        at += 1
        state = depth == 0 ? .end : .commaOrEnd
        return true
    }

    // MARK: Values

    private mutating func takeValue(_ byte: UInt8) -> Bool {
        values += 1
        guard values <= Self.valueLimit else { return false }
        state = .commaOrEnd
        switch byte {
        case UInt8(ascii: "{"): return open(isObject: true)
        case UInt8(ascii: "["): return open(isObject: false)
        case UInt8(ascii: "\""): return takeString()
        case UInt8(ascii: "t"): return take("true")
        case UInt8(ascii: "f"): return take("false")
        case UInt8(ascii: "n"): return take("null")
        default: return takeNumber()
        }
    }

    private mutating func take(_ word: StaticString) -> Bool {
        let end = at + word.utf8CodeUnitCount
        guard end <= bytes.count, bytes[at..<end].elementsEqual(UnsafeBufferPointer(start: word.utf8Start, count: end - at))
        else {
            return false
        }
        at = end
        return true
    }

    private mutating func takeNumber() -> Bool {
        if peek == UInt8(ascii: "-") { at += 1 }
        if peek == UInt8(ascii: "0") { at += 1 } else if !takeDigits() { return false }
        if peek == UInt8(ascii: ".") {
            at += 1
            if !takeDigits() { return false }
        }
        if peek == UInt8(ascii: "e") || peek == UInt8(ascii: "E") {
            at += 1
            if peek == UInt8(ascii: "+") || peek == UInt8(ascii: "-") { at += 1 }
            if !takeDigits() { return false }
        }
        return true
    }

    private mutating func takeDigits() -> Bool {
        let start = at
        while let byte = peek, UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte { at += 1 }
        return at > start
    }

    private mutating func takeString() -> Bool {
        at += 1
        while let byte = peek {
            at += 1
            switch byte {
            case UInt8(ascii: "\""): return true
            case UInt8(ascii: "\\"): if !takeEscape() { return false }
            case ..<0x20: return false
            case 0x80...: isASCII = false
            default: break
            }
        }
        return false
    }

    private mutating func takeEscape() -> Bool {
        guard let byte = peek else { return false }
        at += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"), UInt8(ascii: "n"),
            UInt8(ascii: "r"), UInt8(ascii: "t"):
            return true
        case UInt8(ascii: "u"):
            guard let unit = takeCodeUnit() else { return false }
            if UTF16.isTrailSurrogate(unit) { return false }
            guard UTF16.isLeadSurrogate(unit) else { return true }
            guard take("\\u"), let second = takeCodeUnit() else { return false }
            return UTF16.isTrailSurrogate(second)
        default: return false
        }
    }

    private mutating func takeCodeUnit() -> UInt16? {
        var unit: UInt16 = 0
        for _ in 0..<4 {
            guard let byte = peek else { return nil }
            let digit: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
            default: return nil
            }
            unit = unit << 4 | UInt16(digit)
            at += 1
        }
        return unit
    }

    // MARK: Bytes

    private var peek: UInt8? { at < bytes.count ? bytes[at] : nil }

    private mutating func skipSpace() {
        while let byte = peek, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { at += 1 }
    }
}
