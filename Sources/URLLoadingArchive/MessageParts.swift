// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

/// The parameters of a query or a form: `name=value`, separated by `&`.
enum QueryParts {
    static func of(_ url: String) -> [HTTPArchive.Field] {
        let address = url.prefix { $0 != "#" }
        guard let mark = address.firstIndex(of: "?") else { return [] }
        return address[address.index(after: mark)...].split(separator: "&").map { part in
            let name = part.prefix { $0 != "=" }
            return HTTPArchive.Field(name: decoded(name), value: decoded(part[name.endIndex...].dropFirst()))
        }
    }

    /// Encodes form parameters.
    static func text(_ fields: [HTTPArchive.Field]) -> String {
        fields.map { "\(encoded($0.name))=\(encoded($0.value))" }.joined(separator: "&")
    }

    static func encoded(_ text: String) -> String {
        let plain = CharacterSet(charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
        return text.addingPercentEncoding(withAllowedCharacters: plain) ?? text
    }

    static func decoded(_ text: Substring) -> String {
        let text = text.replacing("+", with: " ")
        return text.removingPercentEncoding ?? String(text)
    }
}

/// The cookies of a message's header fields.
enum CookieParts {
    static func sent(_ headers: [HTTPArchive.Field]) -> [HTTPArchive.Cookie] {
        headers.filter { $0.name.lowercased() == "cookie" }.flatMap { field in
            field.value.split(separator: ";").map { pair in
                let (name, value) = parts(pair)
                return HTTPArchive.Cookie(name: name, value: value)
            }
        }
    }

    static func set(_ headers: [HTTPArchive.Field]) -> [HTTPArchive.Cookie] {
        headers.filter { $0.name.lowercased() == "set-cookie" }.map { field in
            let pieces = field.value.split(separator: ";", omittingEmptySubsequences: false)
            let (name, value) = parts(pieces.first ?? "")
            var cookie = HTTPArchive.Cookie(name: name, value: value)
            cookie.httpOnly = false
            cookie.secure = false
            for piece in pieces.dropFirst() {
                let (attribute, value) = parts(piece)
                switch attribute.lowercased() {
                case "path": cookie.path = value
                case "domain": cookie.domain = value
                case "httponly": cookie.httpOnly = true
                case "secure": cookie.secure = true
                default: break
                }
            }
            cookie.expires = expiry(field.value)
            return cookie
        }
    }

    /// Returns the expiration time, computed by the library's cookie parser for a host that may set the cookie.
    private static func expiry(_ value: String) -> Date? {
        let host = value.split(separator: ";").lazy.map(parts).first { $0.name.lowercased() == "domain" }?.value ?? "localhost"
        guard let url = URL(string: "https://\(host.drop { $0 == "." })/") else { return nil }
        return HTTPCookie.cookies(withResponseHeaderFields: ["Set-Cookie": value], for: url).first?.expiresDate
    }

    private static func parts(_ pair: Substring) -> (name: String, value: String) {
        let pieces = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            .map { $0.trimmingCharacters(in: .whitespaces) }
        return (pieces.first ?? "", pieces.count > 1 ? pieces[1] : "")
    }
}
