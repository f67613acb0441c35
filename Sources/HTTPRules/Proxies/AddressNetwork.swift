//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Addresses with a common prefix: `10.0.0.0/8`, `169.254/16`, `fd00::/8`, or a single address.
package struct AddressNetwork: Sendable, Hashable {
    private let bytes: [UInt8]
    private let bits: Int

    /// Returns nil if the text is neither an address nor a network.
    init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        var address = String(parts[0])
        if parts.count > 1, !address.contains(":") {
            // "169.254/16" is 169.254.0.0.
            address += String(repeating: ".0", count: max(0, 3 - address.filter { $0 == "." }.count))
        }
        guard let bytes = Self.address(address) else { return nil }
        self.bytes = bytes
        guard parts.count > 1 else {
            bits = bytes.count * 8
            return
        }
        guard let bits = Int(parts[1]), 0...(bytes.count * 8) ~= bits else { return nil }
        self.bits = bits
    }

    func contains(_ host: String) -> Bool {
        guard let address = Self.address(host), address.count == bytes.count else { return false }
        for (index, byte) in address.enumerated() {
            let relevant = min(8, max(0, bits - index * 8))
            let mask = relevant == 0 ? 0 : UInt8(truncatingIfNeeded: 0xFF << (8 - relevant))
            if byte & mask != bytes[index] & mask { return false }
        }
        return true
    }

    /// Returns the 4 or 16 bytes of an address, or nil if the text is not an address.
    package static func address(_ text: String) -> [UInt8]? {
        var text = text[...]
        if text.first == "[", text.last == "]" { text = text.dropFirst().dropLast() }
        if let zone = text.firstIndex(of: "%") { text = text[..<zone] }
        return text.contains(":") ? ipv6Bytes(text) : ipv4Bytes(text)
    }

    private static func ipv4Bytes(_ text: Substring) -> [UInt8]? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var bytes: [UInt8] = []
        for part in parts {
            guard 1...3 ~= part.utf8.count, part.utf8.allSatisfy({ $0 &- UInt8(ascii: "0") <= 9 }), let byte = UInt8(part) else {
                return nil
            }
            bytes.append(byte)
        }
        return bytes
    }

    private static func ipv6Bytes(_ text: Substring) -> [UInt8]? {
        var halves: [[UInt8]] = []
        var rest = text
        while true {
            guard let gap = rest.firstRange(of: "::"), halves.isEmpty else {
                guard let half = groups(rest) else { return nil }
                halves.append(half)
                break
            }
            guard let half = groups(rest[..<gap.lowerBound]) else { return nil }
            halves.append(half)
            rest = rest[gap.upperBound...]
        }
        guard halves.count == 2 else { return halves[0].count == 16 ? halves[0] : nil }
        let missing = 16 - halves[0].count - halves[1].count
        guard missing >= 2 else { return nil }
        return halves[0] + [UInt8](repeating: 0, count: missing) + halves[1]
    }

    private static func groups(_ text: Substring) -> [UInt8]? {
        if text.isEmpty { return [] }
        var bytes: [UInt8] = []
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            if index == parts.count - 1, part.contains("."), let last = ipv4Bytes(part) {
                bytes += last
            } else {
                guard 1...4 ~= part.utf8.count, !part.hasPrefix("+"), !part.hasPrefix("-"), let group = UInt16(part, radix: 16)
                else { return nil }
                bytes += [UInt8(group >> 8), UInt8(truncatingIfNeeded: group)]
            }
        }
        return bytes
    }
}
