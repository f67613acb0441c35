//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPWire

/// A `Set-Cookie` value as parsed (RFC 6265bis, section 5.6): what the server said, before it is judged.
package struct SetCookie: Hashable, Sendable {
    /// Which requests from other sites carry a cookie (section 5.6.7); "Default" is nil.
    package enum SameSite: String, Sendable, Hashable {
        case none
        case lax
        case strict
    }

    /// As text that stands for octets.
    package var name: String
    package var value: String
    /// Of the last `Expires` that is a date, in seconds since the reference date.
    package var expires: Double?
    /// Of the last `Max-Age` that is a number, drawn to the bounds of an `Int`; it goes before ``expires``.
    package var maxAge: Int?
    /// Of the last `Domain`, in lower case and without its leading dot; nil where it is empty.
    package var domain: String?
    /// Of the last `Path`; nil for one that means the default path (section 5.6.4).
    package var path: String?
    package var isSecure = false
    package var isHTTPOnly = false
    /// CHIPS (draft-cutler-httpbis-partitioned-cookies, section 2.1).
    package var isPartitioned = false
    package var sameSite: SameSite?

    /// Nil where the RFC says "ignore the set-cookie-string entirely": control characters, neither name nor value, or too long.
    ///
    /// The field's value may stand for octets (``OctetText``), and the name and the value do then.
    package init?(_ fieldValue: String) {
        let bytes = OctetText.octets(of: fieldValue)
        guard !bytes.contains(where: Self.isControl) else { return nil }
        let parts = bytes.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
        let pair = parts.first ?? bytes[...]
        // Step 3: without "=", the name is empty and all of it is the value.
        let separator = pair.firstIndex(of: UInt8(ascii: "="))
        let name = ASCII.trimmed(separator.map { pair[..<$0] } ?? [])
        let value = ASCII.trimmed(separator.map { pair[($0 + 1)...] } ?? pair)
        guard 1...CookieJar.maximumBytes ~= name.count + value.count else { return nil }
        self.name = OctetText.text(of: name)
        self.value = OctetText.text(of: value)
        for part in parts.dropFirst() { read(part) }
    }

    /// The control characters that spoil a cookie: all but HTAB.
    static func isControl(_ byte: UInt8) -> Bool {
        byte < 0x20 && byte != 0x09 || byte == 0x7F
    }

    /// One attribute; unknown ones and values of more than 1024 octets are ignored (steps 4 to 7).
    private mutating func read(_ attribute: ArraySlice<UInt8>) {
        let separator = attribute.firstIndex(of: UInt8(ascii: "="))
        let name = ASCII.trimmed(separator.map { attribute[..<$0] } ?? attribute)
        let value = ASCII.trimmed(separator.map { attribute[($0 + 1)...] } ?? [])
        // No known name is longer.
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
            // Section 5.6.7: an unknown value means "Default", also after a known one.
            sameSite = SameSite(rawValue: String(decoding: value.map(ASCII.lowercased), as: UTF8.self))
        default: break
        }
    }

    /// Section 5.6.2: digits, perhaps after a minus; nil for anything else.
    private static func seconds(_ value: ArraySlice<UInt8>) -> Int? {
        let isNegative = value.first == UInt8(ascii: "-")
        let digits = isNegative ? value.dropFirst() : value
        guard !digits.isEmpty else { return nil }
        var number = 0
        for digit in digits {
            guard digit >= UInt8(ascii: "0"), digit <= UInt8(ascii: "9") else { return nil }
            let (product, overflows) = number.multipliedReportingOverflow(by: 10)
            let (sum, overflowsToo) = product.addingReportingOverflow(Int(digit - UInt8(ascii: "0")))
            number = overflows || overflowsToo ? .max : sum
        }
        return isNegative ? -number : number
    }
}
