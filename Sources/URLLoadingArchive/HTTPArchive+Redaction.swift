// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPRules

extension HTTPArchive {
    /// The secrets to remove from an archive; they are replaced with `REDACTED`.
    ///
    /// The secrets are credentials and cookie values in header fields, user names and passwords in URLs, and query parameters, form
    /// fields and JSON members with secret names. URLs in fields such as `Location` and `Referer` are redacted like the request's
    /// URL.
    ///
    /// Secrets without a name are not recognized, for example in a URL's path, or in the text of a page. Check an archive before
    /// you share it.
    public struct Redaction: Sendable, Equatable {
        /// The replacement for a secret.
        static let marker = "REDACTED"

        /// The names of header fields that contain credentials, in lower case.
        public var headerFields: Set<String> = [
            "authorization", "proxy-authorization", "authentication-info", "proxy-authentication-info",
            "x-amz-security-token", "x-api-key", "x-auth-key", "x-csrf", "x-xsrf", "dpop", "x-github-otp",
        ]

        /// The names of secrets in queries, forms and JSON, in lower case and with `_` instead of `-`.
        public var parameters: Set<String> = SecretNames.whole

        /// Substrings that mark a name as secret.
        public var nameParts: Set<String> = SecretNames.parts

        /// Creates the default rules.
        public init() {}
    }
}

extension HTTPArchive.Redaction {
    /// Whether a name denotes a secret.
    func isSecret(_ name: String) -> Bool {
        let name = name.lowercased().replacing("-", with: "_")
        return parameters.contains(name) || nameParts.contains { name.contains($0) }
    }

    private func isSecretField(_ name: String) -> Bool {
        let name = name.lowercased()
        return headerFields.contains(name) || nameParts.contains { name.replacing("-", with: "_").contains($0) }
    }

    func entry(_ entry: HTTPArchive.Entry) -> HTTPArchive.Entry {
        var entry = entry
        entry.request.url = url(entry.request.url)
        entry.request.headers = entry.request.headers.map(field)
        entry.request.cookies = entry.request.cookies.map(cookie)
        // Query parameters may contain URLs.
        entry.request.queryString = entry.request.queryString.map { part in
            .init(name: part.name, value: isSecret(part.name) ? Self.marker : url(part.value))
        }
        entry.request.postData = entry.request.postData.map(postData)
        entry.response.headers = entry.response.headers.map(field)
        entry.response.cookies = entry.response.cookies.map(cookie)
        entry.response.redirectURL = url(entry.response.redirectURL)
        entry.response.error = entry.response.error.map(text)
        entry.response.content = content(entry.response.content)
        entry.comment = entry.comment.map(text)
        return entry
    }

    // MARK: Fields

    func field(_ field: HTTPArchive.Field) -> HTTPArchive.Field {
        .init(name: field.name, value: value(field.value, of: field.name.lowercased()))
    }

    private func value(_ value: String, of name: String) -> String {
        switch name {
        case "cookie", "cookie2":
            return value.split(separator: ";", omittingEmptySubsequences: false).map(pair).joined(separator: ";")
        case "set-cookie", "set-cookie2":
            let parts = value.split(separator: ";", maxSplits: 1, omittingEmptySubsequences: false)
            return pair(parts.first ?? "") + (parts.count > 1 ? ";" + parts[1] : "")
        case "www-authenticate", "proxy-authenticate": return challenge(value)
        case _ where isSecretField(name): return credential(value)
        case "location", "content-location", "referer": return url(value)
        default: return text(value)
        }
    }

    private func cookie(_ cookie: HTTPArchive.Cookie) -> HTTPArchive.Cookie {
        var cookie = cookie
        cookie.value = Self.marker
        return cookie
    }

    /// Keeps the name before `=`; text without `=` is replaced as a whole, because the text may itself be a value.
    private func pair(_ text: Substring) -> String {
        guard !text.allSatisfy(\.isWhitespace) else { return String(text) }
        let blanks = text.prefix { $0.isWhitespace }
        guard let sign = text.firstIndex(of: "=") else { return blanks + Self.marker }
        return text[...sign] + Self.marker
    }

    private static let schemes: Set<String> = [
        "basic", "bearer", "digest", "ntlm", "negotiate", "token", "hoba", "mutual", "dpop", "scram-sha-256", "aws4-hmac-sha256",
    ]

    /// Keeps the name of a known scheme; any other word may itself be a secret.
    private func credential(_ value: String) -> String {
        let words = value.split(separator: " ", maxSplits: 1)
        guard words.count == 2, Self.schemes.contains(words[0].lowercased()) else { return Self.marker }
        return "\(words[0]) \(Self.marker)"
    }

    /// Removes the messages of NTLM and Negotiate handshakes, which contain the server's domain and other names.
    private func challenge(_ value: String) -> String {
        let words = value.split(separator: " ", maxSplits: 1)
        return words.count == 2 && ["ntlm", "negotiate"].contains(words[0].lowercased()) ? "\(words[0]) \(Self.marker)" : value
    }

    // MARK: Bodies

    private func postData(_ body: HTTPArchive.PostData) -> HTTPArchive.PostData {
        var body = body
        if body.mimeType.lowercased().hasPrefix("multipart/"), !body.text.isEmpty {
            body.text = ""
            body.encoding = nil
            body.comment = "left out: the parts of a form may be secret"
        } else if let text = self.body(body.text, body.encoding, body.mimeType) {
            (body.text, body.encoding) = (text, nil)
        }
        return body
    }

    private func content(_ content: HTTPArchive.Content) -> HTTPArchive.Content {
        var content = content
        if let text = content.text, let redacted = body(text, content.encoding, content.mimeType) {
            (content.text, content.encoding) = (redacted, nil)
        }
        return content
    }

    /// Returns a form or JSON body without its secrets; nil if there is nothing to remove.
    private func body(_ text: String, _ encoding: String?, _ type: String) -> String? {
        let type = type.lowercased()
        guard let data = ArchiveBody.data(text, encoding) else { return nil }
        // JSON is recognized by its first character, because many servers send it with another media type.
        let isJSON = data.first { !" \t\r\n".utf8.contains($0) }.map { "[{".utf8.contains($0) } == true
        guard isJSON || type.hasPrefix("application/x-www-form-urlencoded") || type.contains("json") else { return nil }
        let plain = String(decoding: data, as: UTF8.self)
        let redacted = isJSON || type.contains("json") ? json(plain) : String(url("?" + plain).dropFirst())
        return redacted == plain ? nil : redacted
    }
}
