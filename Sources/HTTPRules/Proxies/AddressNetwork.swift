// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Addresses with a common prefix: `10.0.0.0/8`, `169.254/16`, `fd00::/8`, or a single address ("classless inter-domain routing",
/// RFC 4632).
package struct AddressNetwork: Sendable, Hashable {
    /// Four or sixteen bytes, in which all bits after the prefix are zero.
    private let address: [UInt8]
    let prefixLength: Int

    /// Returns nil if the text is neither an address nor a network.
    ///
    /// An exact text is a whole address in its usual notation, without brackets, a zone or numbers that begin with a zero, which some
    /// parsers would read as octal.
    package init?(_ text: String, isExact: Bool = false) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        var start = String(parts[0])
        if parts.count > 1, !isExact, !start.contains(":") {
            // "169.254/16" is 169.254.0.0.
            start += String(repeating: ".0", count: max(0, 3 - start.filter { $0 == "." }.count))
        }
        guard var address = isExact ? Self.bytes(start[...], isExact: true) : Self.address(start) else { return nil }
        var length = address.count * 8
        if parts.count > 1 {
            guard let given = Self.decimal(parts[1], isExact), given <= length else { return nil }
            length = given
        }
        for index in address.indices { address[index] &= Self.mask(byte: index, prefixLength: length) }
        self.address = address
        prefixLength = length
    }

    func contains(_ host: String) -> Bool { Self.address(host).map(contains) ?? false }

    /// Whether an address, as 4 or 16 bytes, belongs to the network.
    func contains(_ other: [UInt8]) -> Bool {
        other.count == address.count
            && other.indices.allSatisfy { other[$0] & Self.mask(byte: $0, prefixLength: prefixLength) == address[$0] }
    }

    private static func mask(byte: Int, prefixLength: Int) -> UInt8 {
        UInt8(truncatingIfNeeded: 0xFF00 >> min(max(prefixLength - byte * 8, 0), 8))
    }

    /// Returns the 4 or 16 bytes of an address, or nil if the text is not an address.
    ///
    /// Brackets and a zone (RFC 6874) are ignored.
    package static func address(_ text: String, isExact: Bool = false) -> [UInt8]? {
        var text = text[...]
        if text.first == "[", text.last == "]" { text = text.dropFirst().dropLast() }
        if let zone = text.firstIndex(of: "%") { text = text[..<zone] }
        return bytes(text, isExact: isExact)
    }

    private static func bytes(_ text: Substring, isExact: Bool) -> [UInt8]? {
        guard text.contains(":") else { return ipv4Bytes(text, isExact) }
        let halves = text.split(separator: "::", maxSplits: 1, omittingEmptySubsequences: false)
        guard let before = groups(halves[0], isLast: halves.count == 1, isExact) else { return nil }
        guard halves.count == 2 else { return before.count == 16 ? before : nil }
        guard let after = groups(halves[1], isLast: true, isExact), before.count + after.count <= 14 else { return nil }
        return before + [UInt8](repeating: 0, count: 16 - before.count - after.count) + after
    }

    private static func ipv4Bytes(_ text: Substring, _ isExact: Bool) -> [UInt8]? {
        let numbers = text.split(separator: ".", omittingEmptySubsequences: false)
        let bytes = numbers.compactMap { decimal($0, isExact).flatMap { UInt8(exactly: $0) } }
        return numbers.count == 4 && bytes.count == 4 ? bytes : nil
    }

    /// Parses groups of hexadecimal digits; an IPv4 address may stand in place of the last two (RFC 4291, section 2.2).
    private static func groups(_ text: Substring, isLast: Bool, _ isExact: Bool) -> [UInt8]? {
        guard !text.isEmpty else { return [] }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        var bytes: [UInt8] = []
        for (index, part) in parts.enumerated() {
            if isLast, index == parts.count - 1, part.contains(".") {
                guard let dotted = ipv4Bytes(part, isExact) else { return nil }
                bytes += dotted
            } else {
                guard part.utf8.count <= 4, part.first != "+", part.first != "-", let group = UInt16(part, radix: 16)
                else { return nil }
                bytes += [UInt8(group >> 8), UInt8(group & 0xFF)]
            }
        }
        return bytes.count <= 16 ? bytes : nil
    }

    private static func decimal(_ text: Substring, _ isExact: Bool) -> Int? {
        guard 1...3 ~= text.utf8.count, text.utf8.allSatisfy(ASCII.isDigit) else { return nil }
        return isExact && text.utf8.count > 1 && text.utf8.first == UInt8(ascii: "0") ? nil : Int(text)
    }
}
