// SPDX-License-Identifier: Apache-2.0

extension FTPReply {
    /// The number at the beginning of the text, as in the reply to `SIZE` (RFC 3659, section 4).
    package var number: Int64? {
        let digits = value.prefix(while: Self.isDigit)
        guard let next = value.dropFirst(digits.count).first, next != UInt8(ascii: " ") else {
            return Int64(Self.text(of: digits))
        }
        return nil
    }

    /// The time in the reply to `MDTM` (RFC 3659, section 2.3): "YYYYMMDDhhmmss", with a fraction if the server provides one.
    package var time: String? {
        let time = value.prefix { Self.isDigit($0) || $0 == UInt8(ascii: ".") }
        guard time.count >= 14, time.count <= 32, time.prefix(14).allSatisfy(Self.isDigit) else { return nil }
        return Self.text(of: time)
    }

    /// The port in the reply to `EPSV` (RFC 2428, section 3): "(|||6446|)".
    ///
    /// Any delimiter is accepted.
    package var extendedPassivePort: Int? {
        let inner = text.utf8.drop { $0 != UInt8(ascii: "(") }.dropFirst().prefix { $0 != UInt8(ascii: ")") }
        guard let bar = inner.first, !Self.isDigit(bar), inner.count > 3, inner.prefix(3).allSatisfy({ $0 == bar }) else {
            return nil
        }
        let digits = inner.dropFirst(3).prefix(while: Self.isDigit)
        guard inner.dropFirst(3 + digits.count).elementsEqual([bar]) else { return nil }
        return Self.port(Int(Self.text(of: digits)))
    }

    /// The port in the reply to `PASV`: the last two of six numbers, with or without parentheses (RFC 1123, section 4.1.2.6).
    ///
    /// The address in the first four numbers is ignored: data connections are only made to the server itself.
    package var passivePort: Int? {
        let numbers = text.utf8.split { !Self.isDigit($0) && $0 != UInt8(ascii: ",") }
            .map { $0.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) }
            .first { $0.count == 6 }?
            .compactMap { UInt8(Self.text(of: $0)) }
        guard let numbers, numbers.count == 6 else { return nil }
        return Self.port(Int(numbers[4]) * 256 + Int(numbers[5]))
    }

    /// The directory in the reply to `PWD` (RFC 959, appendix II): in quotation marks, which are doubled within the name.
    ///
    /// Nil if it was not UTF-8, or contains a byte that no command may contain.
    package var directory: [UInt8]? {
        let quote = UInt8(ascii: "\"")
        var rest = text.utf8.drop { $0 != quote }.dropFirst()
        var name: [UInt8] = []
        while let byte = rest.popFirst() {
            if byte == quote, rest.popFirst() != quote {
                return name.isEmpty || name.contains(where: { $0 < 0x20 || $0 == 0x7F }) || text.contains("\u{FFFD}") ? nil : name
            }
            name.append(byte)
        }
        return nil
    }

    /// Whether the message mentions TLS, as refusals of connections without TLS do; no reply code says so alone.
    package var mentionsTLS: Bool {
        let words = message.lowercased().split { !("a"..."z" ~= $0 || "0"..."9" ~= $0) }
        return words.contains { ["tls", "ssl", "ftps", "encryption", "encrypted", "encrypt"].contains($0) }
    }

    private var value: Substring.UTF8View { text.utf8.drop { $0 == UInt8(ascii: " ") } }

    private static func isDigit(_ byte: UInt8) -> Bool { 0x30...0x39 ~= byte }
    private static func text(of digits: some Sequence<UInt8>) -> String { String(decoding: Array(digits), as: UTF8.self) }
    private static func port(_ number: Int?) -> Int? { number.flatMap { 1...65_535 ~= $0 ? $0 : nil } }
}
