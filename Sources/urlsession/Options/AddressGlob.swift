// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A URL pattern in curl's syntax: `{one,two}`, `[1-10]`, `[001-100:10]`, `[a-z]`.
///
/// A backslash escapes a brace or a bracket.
struct AddressGlob {
    struct Address: Sendable {
        var text: String
        var parts: [String]
    }

    /// The maximum number of URLs of a command line.
    static let most = 100_000

    static var tooMany: ToolFailure { ToolFailure(2, "the URLs expand to more than \(most)") }

    /// The text before, between and after the globs, and the values of each glob.
    private var texts: [String] = []
    private var choices: [[String]] = []

    init(_ text: String) throws(ToolFailure) {
        let characters = Array(text)
        var fixed = ""
        var index = 0
        while index < characters.count {
            let character = characters[index]
            switch character {
            case "\\" where index + 1 < characters.count && "{}[]".contains(characters[index + 1]):
                fixed.append(characters[index + 1])
                index += 2
            case "{", "[":
                if character == "[", let end = Self.endOfAddress(characters, index) {
                    fixed += String(characters[index...end])
                    index = end + 1
                    continue
                }
                let (values, end) =
                    character == "{" ? try Self.set(characters, index) : try Self.range(characters, index)
                texts.append(fixed)
                choices.append(values)
                fixed = ""
                index = end + 1
            case "}", "]": throw Self.failure("an unmatched \(character)", index)
            default:
                fixed.append(character)
                index += 1
            }
        }
        texts.append(fixed)
    }

    /// Returns the index of the closing bracket if the brackets are literal, which means that they are empty or enclose an IPv6
    /// address.
    private static func endOfAddress(_ characters: [Character], _ start: Int) -> Int? {
        guard let end = characters[start...].firstIndex(of: "]") else { return nil }
        let inside = String(characters[(start + 1)..<end].prefix { $0 != "%" })
        var address = in6_addr()
        return inside.isEmpty && end == start + 1 || inet_pton(AF_INET6, inside, &address) == 1 ? end : nil
    }

    private static func set(_ characters: [Character], _ start: Int) throws(ToolFailure) -> ([String], Int) {
        var values = [""]
        var index = start + 1
        while index < characters.count {
            switch characters[index] {
            case "\\" where index + 1 < characters.count:
                index += 1
                values[values.count - 1].append(characters[index])
            case "{", "[": throw failure("a brace or bracket inside braces", index)
            case "]": throw failure("an unmatched ]", index)
            case ",": values.append("")
            case "}":
                if values == [""] { throw failure("empty braces", index) }
                return (values, index)
            case let other: values[values.count - 1].append(other)
            }
            index += 1
        }
        throw failure("an unmatched {", start)
    }

    private static func range(_ characters: [Character], _ start: Int) throws(ToolFailure) -> ([String], Int) {
        guard let end = characters[start...].firstIndex(of: "]") else { throw failure("an unmatched [", start) }
        let text = String(characters[(start + 1)..<end])
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        let bounds = parts[0].split(separator: "-", omittingEmptySubsequences: false).map(String.init)
        guard parts.count <= 2, bounds.count == 2, let step = parts.count == 2 ? Int(parts[1]) : 1, step > 0,
            let values = try numbers(bounds, step) ?? letters(bounds, step)
        else { throw failure("'[\(text)]', which is not a range: write [1-9], [01-20:5] or [a-z]", start) }
        return (values, end)
    }

    private static func numbers(_ bounds: [String], _ step: Int) throws(ToolFailure) -> [String]? {
        guard bounds.allSatisfy({ $0.allSatisfy { $0.isASCII && $0.isNumber } }), let first = Int(bounds[0]),
            let last = Int(bounds[1]),
            first <= last
        else { return nil }
        guard (last - first) / step < most else { throw tooMany }
        let width = bounds[0].hasPrefix("0") ? bounds[0].count : 0
        return stride(from: first, through: last, by: step).map { number in
            let text = "\(number)"
            return String(repeating: "0", count: max(0, width - text.count)) + text
        }
    }

    private static func letters(_ bounds: [String], _ step: Int) -> [String]? {
        let bytes = bounds.compactMap { $0.utf8.count == 1 ? $0.utf8.first : nil }
        guard bytes.count == 2, bytes[0] <= bytes[1], bytes.allSatisfy({ Character(UnicodeScalar($0)).isLetter }),
            Character(UnicodeScalar(bytes[0])).isLowercase == Character(UnicodeScalar(bytes[1])).isLowercase
        else { return nil }
        return stride(from: Int(bytes[0]), through: Int(bytes[1]), by: step).map { String(UnicodeScalar(UInt8($0))) }
    }

    private static func failure(_ problem: String, _ index: Int) -> ToolFailure {
        ToolFailure(3, "a URL has \(problem), at character \(index + 1); --globoff turns globbing off")
    }

    /// Returns the URLs; the last glob varies fastest.
    func addresses() throws(ToolFailure) -> [Address] {
        var addresses = [Address(text: texts[0], parts: [])]
        for (values, text) in zip(choices, texts.dropFirst()) {
            guard addresses.count * values.count <= Self.most else { throw Self.tooMany }
            addresses = addresses.flatMap { address in
                values.map { Address(text: address.text + $0 + text, parts: address.parts + [$0]) }
            }
        }
        return addresses
    }
}
