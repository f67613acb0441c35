// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPRules

extension HTTPCookie {
    /// The attributes that RFC 2965 defines and RFC 6265bis does not.
    private struct RFC2965Attributes {
        var version = 0
        var comment: String?
        var commentURL: String?
        var ports: [Int] = []
        var isDiscarded = false

        /// Parses a `Set-Cookie` value.
        ///
        /// If an attribute occurs several times, the last occurrence applies, as in RFC 6265bis.
        init(_ field: String, port: Int?) {
            for attribute in field.split(separator: ";").dropFirst() {
                let parts = attribute.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                let blanks = CharacterSet.whitespaces
                guard let name = parts.first?.trimmingCharacters(in: blanks).lowercased() else { continue }
                let value = parts.count < 2 || parts[1].isEmpty ? nil : parts[1].trimmingCharacters(in: blanks)
                switch (name, value) {
                case ("version", let value?): version = max(0, Int(Self.unquoted(value)) ?? 0)
                case ("comment", let value?): comment = Self.unquoted(value)
                case ("commenturl", let value?): commentURL = Self.unquoted(value)
                case ("discard", _): isDiscarded = true
                case ("port", let value?): ports = CookieProperties.ports(in: value).filter { (0...65535).contains($0) }
                // "If the attribute has no value, the cookie goes back to the port it came from" (RFC 2965, section 3.3.1).
                case ("port", nil): ports = port.map { [$0] } ?? []
                default: continue
                }
            }
        }

        private static func unquoted(_ text: String) -> String {
            text.utf8.count >= 2 && text.hasPrefix("\"") && text.hasSuffix("\"") ? String(text.dropFirst().dropLast()) : text
        }
    }

    /// Parses the cookies of a response's `Set-Cookie` fields, one per field.
    ///
    /// A cookie without a path gets `defaultPath` or, if `defaultPath` is nil, the default path of RFC 6265bis, section 5.1.4.
    static func cookies(fields: [String], from url: URL, defaultPath: String? = nil) -> [HTTPCookie] {
        let now = Date().timeIntervalSinceReferenceDate
        let origin = Origin(url)
        let host = origin?.host ?? url.host?.lowercased()
        let defaultPath = defaultPath ?? Cookie.defaultPath(ofPath: url.path(percentEncoded: true))
        return fields.compactMap { field in
            guard let parsed = SetCookie(field) else { return nil }
            let named = parsed.domain.flatMap { $0.isEmpty ? nil : domain(named: "." + $0) }
            guard var domain = named ?? host.map({ (name: $0, isHostOnly: true) }) else { return nil }
            // RFC 6265bis, section 5.7, step 9: a cookie for the domain "localhost" is for that host only.
            if domain.name == host, Cookie.isAlwaysHostOnly(domain.name) { domain.isHostOnly = true }
            let rfc2965 = RFC2965Attributes(field, port: origin?.port)
            return HTTPCookie(
                Cookie(
                    name: parsed.name,
                    value: parsed.value,
                    domain: domain.name,
                    isHostOnly: domain.isHostOnly,
                    path: parsed.path.flatMap { $0.hasPrefix("/") ? $0 : nil } ?? defaultPath,
                    expires: rfc2965.isDiscarded ? nil : parsed.maxAge.map { now + Double($0) } ?? parsed.expires,
                    creation: now,
                    lastAccess: now,
                    isSecure: parsed.isSecure,
                    isHTTPOnly: parsed.isHTTPOnly,
                    sameSite: parsed.sameSite,
                    partition: nil,
                    version: rfc2965.version,
                    comment: rfc2965.comment,
                    commentURL: rfc2965.commentURL,
                    ports: rfc2965.version == 0 ? Array(rfc2965.ports.prefix(1)) : rfc2965.ports,
                    isDiscarded: rfc2965.isDiscarded
                )
            )
        }
    }

    /// Replaces obsolete line folding by spaces (RFC 9112, section 5.2).
    static func unfolded(_ value: String) -> String {
        String(decoding: value.utf8.map { $0 == 0x0D || $0 == 0x0A ? 0x20 : $0 }, as: UTF8.self)
    }

    /// The name and value as written in a `Cookie` field; only the value if the name is empty (RFC 6265bis, section 5.8.3, step 4).
    var pair: String { cookie.name.isEmpty ? cookie.value : "\(cookie.name)=\(cookie.value)" }
}
