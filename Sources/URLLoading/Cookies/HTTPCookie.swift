// SPDX-License-Identifier: Apache-2.0

public import Foundation
import HTTPRules
import HTTPWire

/// A cookie: a name and a value set by a server, with attributes that determine which requests carry the cookie.
///
/// Version 0 is Netscape's original format, which nearly all cookies have; version 1 is the format of RFC 2965.
///
/// Sendable because it is immutable.
open class HTTPCookie: NSObject, @unchecked Sendable {
    /// The cookie in the representation of the cookie rules.
    let cookie: Cookie
    private let originURL: URL?
    private let isSetByJavaScript: Bool

    /// Makes a cookie from properties.
    ///
    /// All values may be strings; ``HTTPCookiePropertyKey`` documents the other types. Properties with other keys are ignored.
    ///
    /// Returns nil if a required property is missing, or if the name, the value, the domain or the path contains a control
    /// character.
    ///
    /// - Parameter properties: At least the name, the value, and the domain or the origin URL. Apple's documentation requires the
    ///   path, too; with an origin URL, the path defaults to the URL's default path (RFC 6265bis, section 5.1.4).
    public init?(properties: [HTTPCookiePropertyKey: Any]) {
        let values = CookieProperties(properties)
        let origin = values.url(.originURL)
        guard let cookie = Self.cookie(of: values, origin: origin, now: Date().timeIntervalSinceReferenceDate) else { return nil }
        self.cookie = cookie
        originURL = origin
        isSetByJavaScript = values.flag(.setByJavaScript) ?? false
        super.init()
    }

    init(_ cookie: Cookie) {
        self.cookie = cookie
        originURL = nil
        isSetByJavaScript = false
        super.init()
    }

    // MARK: Header fields

    /// Returns the header fields for sending cookies with a request: `Cookie`, or none if there are no cookies.
    ///
    /// This does not check which cookies a request may have; see ``HTTPCookieStorage/cookies(for:)-(URL)``.
    ///
    /// - Returns: A dictionary with one field, or an empty one.
    open class func requestHeaderFields(with cookies: [HTTPCookie]) -> [String: String] {
        guard !cookies.isEmpty else { return [:] }
        return ["Cookie": cookies.map(\.pair).joined(separator: "; ")]
    }

    /// Parses the cookies that a response sets, in order.
    ///
    /// There is no validation: a cookie for a domain that does not match the URL is returned, and
    /// ``HTTPCookieStorage/setCookies(_:for:mainDocumentURL:)`` rejects it. If a field has no `=` before its first semicolon, the
    /// text before the semicolon is the value, and the name is empty (RFC 6265bis, section 5.6). A cookie without a domain is only
    /// for the URL's host; a cookie without a path has the path "/", as Apple's documentation says. When a session itself stores a
    /// cookie without a path, the path is that of RFC 6265bis, section 5.1.4, instead.
    ///
    /// - Parameters:
    ///   - headerFields: The response's header fields; only `Set-Cookie` is used. Several cookies in one value are separated by
    ///     commas.
    ///   - url: The URL of the response.
    /// - Returns: The cookies; malformed fields are skipped.
    open class func cookies(withResponseHeaderFields headerFields: [String: String], for url: URL) -> [HTTPCookie] {
        let lines = headerFields.filter { $0.key.lowercased() == "set-cookie" }.sorted { $0.key < $1.key }
        return cookies(fields: lines.flatMap { SetCookie.split(unfolded($0.value)) }, from: url, defaultPath: "/")
    }

    // MARK: Attributes

    /// The properties with which ``init(properties:)`` makes an equal cookie.
    open var properties: [HTTPCookiePropertyKey: Any]? {
        var properties = storedProperties
        properties[.originURL] = originURL
        if isSetByJavaScript { properties[.setByJavaScript] = "TRUE" }
        return properties
    }

    /// 0 for Netscape's format, 1 for the format of RFC 2965.
    open var version: Int { cookie.version }

    /// The name.
    open var name: String { OctetText.shown(cookie.name) }

    /// The value.
    ///
    /// Octets that are not valid UTF-8 are shown as ISO 8859-1; the server gets them back unchanged.
    open var value: String { OctetText.shown(cookie.value) }

    /// The expiration date; nil if the cookie ends with the session.
    open var expiresDate: Date? {
        isSessionOnly ? nil : cookie.expires.map(Self.date)
    }

    /// Whether the cookie ends with the session, and is never written to disk.
    ///
    /// This includes all cookies without an expiration date, as in Apple's implementation.
    open var isSessionOnly: Bool { cookie.isDiscarded || cookie.expires == nil }

    /// The domain in lower case: with a leading dot if the cookie is also sent to subdomains, without a dot if it is sent only to
    /// that host.
    open var domain: String { cookie.isHostOnly ? cookie.domain : "." + cookie.domain }

    /// The path: the cookie is sent to this path and to paths below it.
    open var path: String { cookie.path }

    /// Whether the cookie is sent only over secure connections.
    open var isSecure: Bool { cookie.isSecure }

    /// Whether the cookie is only for HTTP, and not for scripts.
    open var isHTTPOnly: Bool { cookie.isHTTPOnly }

    /// A human-readable comment on the purpose of the cookie.
    open var comment: String? { cookie.comment }

    /// A URL with more information on the cookie.
    open var commentURL: URL? { cookie.commentURL.flatMap { URL(string: $0) } }

    /// The ports that the cookie is sent to; nil for all ports.
    open var portList: [NSNumber]? { cookie.ports.isEmpty ? nil : cookie.ports.map { NSNumber(value: $0) } }

    /// Which cross-site requests carry the cookie; nil if the cookie does not restrict them, or has the policy "none".
    open var sameSitePolicy: HTTPCookieStringPolicy? {
        switch cookie.sameSite {
        case .some(.lax): .sameSiteLax
        case .some(.strict): .sameSiteStrict
        case .some(.none), nil: nil
        }
    }

    // MARK: Equality and description

    /// Whether the other object is an equal cookie; creation times are not compared.
    ///
    /// - Returns: Whether they are equal.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? HTTPCookie else { return false }
        return other === self || other.content == content
    }

    /// The hash of the name, value, domain and path.
    open override var hash: Int {
        var hasher = Hasher()
        hasher.combine(cookie.name)
        hasher.combine(cookie.value)
        hasher.combine(cookie.domain)
        hasher.combine(cookie.path)
        return hasher.finalize()
    }

    /// The cookie in one line, in the format of Apple's system, including its value.
    open override var description: String {
        let expires = expiresDate.map(String.init(describing:)) ?? "(null)"
        let created = Self.date(cookie.creation)
        func text(_ flag: Bool) -> String { flag ? "TRUE" : "FALSE" }
        return "<NSHTTPCookie version:\(version) name:\"\(name)\" value:\"\(value)\" expiresDate:\(expires) created:\(created)"
            + " sessionOnly:\(text(isSessionOnly)) domain:\"\(domain)\" partition:\"\(cookie.partition ?? "none")\" path:\"\(path)\""
            + " isSecure:\(text(isSecure))>"
    }

    /// Converts seconds to a date, clamped because servers and apps can use numbers that calendars cannot represent.
    private static func date(_ seconds: Double) -> Date {
        min(max(Date(timeIntervalSinceReferenceDate: seconds), .distantPast), .distantFuture)
    }

    /// The properties to compare: all except the times of creation and last access.
    private var content: Cookie {
        var content = cookie
        content.creation = 0
        content.lastAccess = 0
        content.isDiscarded = isSessionOnly
        if isSessionOnly { content.expires = nil }
        return content
    }
}
