// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// A parsed `Set-Cookie` value (RFC 6265bis, section 5.6), before validation.
package struct SetCookie: Hashable, Sendable {
    /// Which cross-site requests send a cookie (section 5.6.7); nil stands for "Default".
    package enum SameSite: String, Sendable, Hashable {
        case none
        case lax
        case strict
    }

    /// The name and the value are texts that represent octets (``OctetText``).
    package var name: String
    package var value: String
    /// The last valid `Expires`, in seconds since the reference date.
    package var expires: Double?
    /// The last valid `Max-Age`, clamped to the range of `Int`.
    ///
    /// `Max-Age` has precedence over ``expires``.
    package var maxAge: Int?
    /// The last `Domain`, in lowercase and without a leading dot; nil if it is empty.
    package var domain: String?
    /// The last `Path`; nil if it means the default path (section 5.6.4).
    package var path: String?
    package var isSecure = false
    package var isHTTPOnly = false
    /// Whether the cookie is `Partitioned` (CHIPS: draft-cutler-httpbis-partitioned-cookies, section 2.1).
    package var isPartitioned = false
    package var sameSite: SameSite?

    /// Returns nil where the RFC says "ignore the set-cookie-string entirely": for control characters, a missing name and value, or
    /// excessive length.
    ///
    /// If the field value represents octets (``OctetText``), so do the name and the value.
    package init?(_ fieldValue: String) {
        let bytes = OctetText.octets(of: fieldValue)
        guard !bytes.contains(where: Self.isControl) else { return nil }
        let parts = bytes.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
        let pair = parts.first ?? bytes[...]
        // Step 3: without "=", the name is empty and the whole text is the value.
        let separator = pair.firstIndex(of: UInt8(ascii: "="))
        let name = ASCII.trimmed(separator.map { pair[..<$0] } ?? [])
        let value = ASCII.trimmed(separator.map { pair[($0 + 1)...] } ?? pair)
        guard 1...CookieJar.maximumBytes ~= name.count + value.count else { return nil }
        self.name = OctetText.text(of: name)
        self.value = OctetText.text(of: value)
        for part in parts.dropFirst() { read(part) }
    }

    /// Whether a byte is a control character that invalidates a cookie: any control character except HTAB.
    static func isControl(_ byte: UInt8) -> Bool {
        byte < 0x20 && byte != 0x09 || byte == 0x7F
    }

    /// Reads one attribute.
    ///
    /// Unknown attributes and values of more than 1024 octets are ignored (steps 4 to 7).
    private mutating func read(_ attribute: ArraySlice<UInt8>) {
        let separator = attribute.firstIndex(of: UInt8(ascii: "="))
        let name = ASCII.trimmed(separator.map { attribute[..<$0] } ?? attribute)
        let value = ASCII.trimmed(separator.map { attribute[($0 + 1)...] } ?? [])
        // No known name is longer than 11 octets.
        guard value.count <= CookieJar.maximumAttributeBytes, name.count <= 11 else { return }
        switch String(decoding: name.map(ASCII.lowercased), as: UTF8.self) {
        case "expires":
            if let date = CookieDate.parse(String(decoding: value, as: UTF8.self)) { expires = date }
        case "max-age":
            if let seconds = Self.seconds(value) { maxAge = seconds }
        case "domain":
            let host = value.first == UInt8(ascii: ".") ? value.dropFirst() : value
            domain = host.isEmpty ? nil : String(decoding: host.map(ASCII.lowercased), as: UTF8.self)
        case "path":
            path = value.first == UInt8(ascii: "/") ? String(decoding: value, as: UTF8.self) : nil
        case "secure": isSecure = true
        case "httponly": isHTTPOnly = true
        case "partitioned": isPartitioned = true
        case "samesite":
            // Section 5.6.7: an unknown value means "Default", even after a known one.
            sameSite = SameSite(rawValue: String(decoding: value.map(ASCII.lowercased), as: UTF8.self))
        default: break
        }
    }

    /// Parses digits with an optional minus sign (section 5.6.2); returns nil for any other text.
    private static func seconds(_ value: ArraySlice<UInt8>) -> Int? {
        let isNegative = value.first == UInt8(ascii: "-")
        return ASCII.number(isNegative ? value.dropFirst() : value).map { Int(isNegative ? -$0 : $0) }
    }
}
