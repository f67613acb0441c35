// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPRules

extension HTTPCookie {
    /// Makes a cookie from properties with Apple's keys.
    static func cookie(of values: CookieProperties, origin: URL?, now: Double) -> Cookie? {
        guard let name = values.text(.name), let value = values.text(.value), let domain = domain(of: values, origin: origin),
            let path = path(of: values, origin: origin), [name, value, domain.name, path].allSatisfy(isPrintable)
        else { return nil }
        let version = max(0, values.integer(.version) ?? 0)
        let creation = values.number(.created).flatMap { $0.isFinite ? $0 : nil } ?? now
        let maximumAge = version == 0 ? nil : values.integer(.maximumAge)
        let isDiscarded = values.flag(.discard) ?? (version > 0 && maximumAge == nil)
        let expires = version == 0 ? values.date(.expires) : maximumAge.map { creation + Double($0) }
        let ports = values.ports(.port)
        return Cookie(
            name: name,
            value: value,
            domain: domain.name,
            isHostOnly: domain.isHostOnly,
            path: path,
            expires: isDiscarded ? nil : expires,
            creation: creation,
            lastAccess: creation,
            isSecure: values.flag(.secure) ?? false,
            isHTTPOnly: values.flag(.httpOnly) ?? false,
            sameSite: values.text(.sameSitePolicy).flatMap { SetCookie.SameSite(rawValue: $0.lowercased()) },
            partition: values.text(.partition),
            version: version,
            comment: values.text(.comment),
            commentURL: values.text(.commentURL),
            ports: version == 0 ? Array(ports.prefix(1)) : ports,
            isDiscarded: isDiscarded
        )
    }

    /// The properties, except the origin URL and whether a script set the cookie.
    var storedProperties: [HTTPCookiePropertyKey: Any] {
        var properties: [HTTPCookiePropertyKey: Any] = [
            .name: name, .value: value, .domain: domain, .path: path, .version: cookie.version, .created: cookie.creation,
        ]
        if cookie.isSecure { properties[.secure] = "TRUE" }
        if cookie.isHTTPOnly { properties[.httpOnly] = "TRUE" }
        if isSessionOnly { properties[.discard] = "TRUE" }
        properties[.expires] = expiresDate
        if cookie.version > 0, !isSessionOnly, let expires = cookie.expires {
            properties[.maximumAge] = String(format: "%.0f", expires - cookie.creation)
        }
        properties[.comment] = cookie.comment
        properties[.commentURL] = commentURL
        if !cookie.ports.isEmpty { properties[.port] = cookie.ports.map(String.init).joined(separator: ",") }
        properties[.sameSitePolicy] = cookie.sameSite?.rawValue
        properties[.partition] = cookie.partition
        return properties
    }

    /// Returns the domain in canonical form: lower case, A-labels, without a leading dot.
    ///
    /// A domain without a leading dot is host-only, and so is an IP address.
    static func domain(named text: String) -> (name: String, isHostOnly: Bool) {
        let isHostOnly = !text.hasPrefix(".")
        let name = canonicalHost(isHostOnly ? text : String(text.dropFirst()))
        return (name, isHostOnly || HostName.isAddress(name))
    }

    private static func domain(of values: CookieProperties, origin: URL?) -> (name: String, isHostOnly: Bool)? {
        if let text = values.text(.domain), !text.isEmpty { return domain(named: text) }
        guard let origin, let host = Origin(origin)?.host ?? origin.host, !host.isEmpty else { return nil }
        return (canonicalHost(host), true)
    }

    private static func path(of values: CookieProperties, origin: URL?) -> String? {
        let path = values.text(.path)
        if let path, path.hasPrefix("/") { return path }
        if let origin { return Cookie.defaultPath(ofPath: origin.path(percentEncoded: true)) }
        return path == nil ? nil : "/"
    }

    private static func canonicalHost(_ host: String) -> String {
        let bare = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        guard !bare.utf8.allSatisfy({ $0 < 0x80 }) else { return bare.lowercased() }
        return URL(string: "http://\(bare)/").flatMap(Origin.init)?.host ?? bare.lowercased()
    }

    /// Whether a text has no control character except tab.
    ///
    /// A cookie with such a character is ignored (RFC 6265bis, section 5.6, step 1); a line break, for example, would end the
    /// field.
    private static func isPrintable(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
    }
}
