// SPDX-License-Identifier: Apache-2.0

/// Distinguishes names from addresses: the rules of cookies and HSTS for domains must not be applied to IP addresses.
package enum HostName {
    /// Whether a host is an IPv4 or IPv6 address, with or without brackets and zone.
    ///
    /// A host whose last label is a number is never a name (WHATWG URL, "ends in a number checker"): `1.2.3.4`, `127.1`, `0x7f.1`.
    package static func isAddress(_ host: String) -> Bool {
        withBytes(of: host, isAddress)
    }

    /// Returns an IPv6 literal without brackets and with a decoded zone (RFC 6874).
    ///
    /// Any other host is returned unchanged.
    package static func unbracketed(_ host: String) -> String {
        var bare = host[...]
        if bare.first == "[", bare.last == "]" { bare = bare.dropFirst().dropLast() }
        guard bare.contains(":"), let zone = bare.firstIndex(of: "%") else { return String(bare) }
        let name = bare[zone...].dropFirst()
        return bare[..<zone] + "%" + (name.hasPrefix("25") && name.count > 2 ? name.dropFirst(2) : name)
    }

    /// Like ``isAddress(_:)``, for the bytes of a lowercase host.
    static func isAddress(_ host: UnsafeBufferPointer<UInt8>) -> Bool {
        var end = host.count
        if end > 1, host[end - 1] == UInt8(ascii: ".") { end -= 1 }
        var start = end
        var isDecimal = true
        while start > 0, host[start - 1] != UInt8(ascii: ".") {
            start -= 1
            if host[start] == UInt8(ascii: ":") { return true }
            if host[start] &- UInt8(ascii: "0") > 9 { isDecimal = false }
        }
        guard start < end else { return false }
        if isDecimal { return true }
        if host[0] == UInt8(ascii: "[") || host[..<start].contains(UInt8(ascii: ":")) { return true }
        guard end - start >= 2, host[start] == UInt8(ascii: "0"), host[start + 1] | 0x20 == UInt8(ascii: "x")
        else { return false }
        return host[(start + 2)..<end].allSatisfy { $0 &- UInt8(ascii: "0") <= 9 || ($0 | 0x20) &- UInt8(ascii: "a") <= 5 }
    }

    /// Returns a name in the form used in lists: in lowercase, without the trailing dot of the root.
    ///
    /// Returns nil for addresses and invalid names: empty names and names with an empty label.
    static func normalized(_ host: String) -> String? {
        withBytes(of: host) { bytes -> String? in
            guard !isAddress(bytes), let count = nameLength(bytes) else { return nil }
            let hasCapitals = bytes.contains { $0 &- UInt8(ascii: "A") < 26 }
            if count == bytes.count, !hasCapitals { return host }
            let name = String(decoding: bytes[..<count], as: UTF8.self)
            return hasCapitals ? name.lowercased() : name
        }
    }

    /// Returns the length of a name in bytes without the trailing dot of the root, or nil if a label is empty.
    static func nameLength(_ host: UnsafeBufferPointer<UInt8>) -> Int? {
        var previous = UInt8(ascii: ".")
        for (index, byte) in host.enumerated() {
            if byte == UInt8(ascii: "."), previous == byte { return nil }
            previous = byte
            if index == host.count - 1 { return byte == UInt8(ascii: ".") ? index : index + 1 }
        }
        return nil
    }

    static func withBytes<Result>(of host: String, _ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        if let result = host.utf8.withContiguousStorageIfAvailable(body) { return result }
        return Array(host.utf8).withUnsafeBufferPointer(body)
    }
}
