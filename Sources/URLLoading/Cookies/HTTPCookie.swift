//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation
import HTTPRules
import HTTPWire

/// A cookie: a name and a value that a server gave, and which requests they go back with.
///
/// Version 0 is the format that Netscape came up with, which nearly all cookies have; version 1 that of RFC 2965.
///
/// Sendable because it never changes once made.
open class HTTPCookie: NSObject, @unchecked Sendable {
    /// The cookie as the rules have it.
    let cookie: Cookie
    private let originURL: URL?
    private let isSetByJavaScript: Bool

    /// Makes a cookie of its properties.
    ///
    /// All values may be strings; ``HTTPCookiePropertyKey`` says which other types they may have. Properties with other keys are
    /// ignored.
    ///
    /// Nil where one of those that are needed is missing, or where the name, the value, the domain or the path has a control character
    /// in it.
    ///
    /// - Parameter properties: At least the name, the value, and the domain or the URL of origin. Apple's documentation requires
    ///   the path, too; where there is a URL of origin, its path is the default (RFC 6265bis, section 5.1.4).
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

    /// The header fields that send cookies with a request: `Cookie`, or none where there are no cookies.
    ///
    /// Which cookies a request may have is not asked here; ``HTTPCookieStorage/cookies(for:)-(URL)`` knows.
    ///
    /// - Returns: A dictionary with one field, or an empty one.
    open class func requestHeaderFields(with cookies: [HTTPCookie]) -> [String: String] {
        guard !cookies.isEmpty else { return [:] }
        return ["Cookie": cookies.map(\.pair).joined(separator: "; ")]
    }

    /// The cookies that a response sets, in the order it sets them.
    ///
    /// Nothing is judged: a cookie for another domain than the URL's is among them, and
    /// ``HTTPCookieStorage/setCookies(_:for:mainDocumentURL:)`` refuses it. Where a field holds no `=` before its first semicolon, the
    /// cookie is all value, and its name is empty (RFC 6265bis, section 5.6). A cookie without a domain is for the URL's host alone; one
    /// without a path is for the path "/", as Apple documents it. (What a session itself stores goes by RFC 6265bis, section 5.1.4,
    /// instead.)
    ///
    /// - Parameters:
    ///   - headerFields: The response's header fields; those other than `Set-Cookie` are ignored. Several cookies in one value are
    ///     parted by commas.
    ///   - url: Where the response came from.
    /// - Returns: The cookies; fields that set none are left out.
    open class func cookies(withResponseHeaderFields headerFields: [String: String], for url: URL) -> [HTTPCookie] {
        let lines = headerFields.filter { $0.key.lowercased() == "set-cookie" }.sorted { $0.key < $1.key }
        return cookies(fields: lines.flatMap { SetCookie.split(unfolded($0.value)) }, from: url, defaultPath: "/")
    }

    // MARK: What it says

    /// The properties from which ``init(properties:)`` makes an equal cookie.
    open var properties: [HTTPCookiePropertyKey: Any]? {
        var properties = storedProperties
        properties[.originURL] = originURL
        if isSetByJavaScript { properties[.setByJavaScript] = "TRUE" }
        return properties
    }

    /// 0 for Netscape's format, 1 for that of RFC 2965.
    open var version: Int { cookie.version }

    /// The name.
    open var name: String { OctetText.shown(cookie.name) }

    /// The value.
    ///
    /// Octets that are no UTF-8 are shown as ISO 8859-1; the server gets them as it sent them.
    open var value: String { OctetText.shown(cookie.value) }

    /// When the cookie expires; nil where it ends with the session.
    open var expiresDate: Date? {
        isSessionOnly ? nil : cookie.expires.map(Self.date)
    }

    /// Whether the cookie ends with the session, and is never written to disk.
    ///
    /// So do all cookies that have no date to expire at, as Apple's do.
    open var isSessionOnly: Bool { cookie.isDiscarded || cookie.expires == nil }

    /// The domain, in lower case: with a dot in front where the cookie goes to all hosts in it, without where it goes to that host
    /// alone.
    open var domain: String { cookie.isHostOnly ? cookie.domain : "." + cookie.domain }

    /// The path: the cookie goes to it and to what is below it.
    open var path: String { cookie.path }

    /// Whether the cookie goes over secure connections alone.
    open var isSecure: Bool { cookie.isSecure }

    /// Whether the cookie is for HTTP alone, and not for scripts.
    open var isHTTPOnly: Bool { cookie.isHTTPOnly }

    /// What the cookie is for, in words for people.
    open var comment: String? { cookie.comment }

    /// Where there is more to read about the cookie.
    open var commentURL: URL? { cookie.commentURL.flatMap { URL(string: $0) } }

    /// The ports that the cookie goes to; nil where it goes to all.
    open var portList: [NSNumber]? { cookie.ports.isEmpty ? nil : cookie.ports.map { NSNumber(value: $0) } }

    /// To which requests of other sites the cookie goes along; nil where it does not say, or says "none".
    open var sameSitePolicy: HTTPCookieStringPolicy? {
        switch cookie.sameSite {
        case .some(.lax): .sameSiteLax
        case .some(.strict): .sameSiteStrict
        case .some(.none), nil: nil
        }
    }

    // MARK: As an object

    /// Whether the other object is a cookie that says the same, whenever it was made.
    ///
    /// - Returns: Whether they are equal.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? HTTPCookie else { return false }
        return other === self || other.content == content
    }

    /// The hash of what makes the cookie another one than its neighbours.
    open override var hash: Int {
        var hasher = Hasher()
        hasher.combine(cookie.name)
        hasher.combine(cookie.value)
        hasher.combine(cookie.domain)
        hasher.combine(cookie.path)
        return hasher.finalize()
    }

    /// The cookie in one line, as Apple's system writes it: its value is in it, too.
    open override var description: String {
        let expires = expiresDate.map(String.init(describing:)) ?? "(null)"
        let created = Self.date(cookie.creation)
        func text(_ flag: Bool) -> String { flag ? "TRUE" : "FALSE" }
        return "<NSHTTPCookie version:\(version) name:\"\(name)\" value:\"\(value)\" expiresDate:\(expires) created:\(created)"
            + " sessionOnly:\(text(isSessionOnly)) domain:\"\(domain)\" partition:\"\(cookie.partition ?? "none")\" path:\"\(path)\""
            + " isSecure:\(text(isSecure))>"
    }

    /// Servers and apps write any number; calendars do not go that far.
    private static func date(_ seconds: Double) -> Date {
        min(max(Date(timeIntervalSinceReferenceDate: seconds), .distantPast), .distantFuture)
    }

    /// What two equal cookies have in common: all but when they were made and used.
    private var content: Cookie {
        var content = cookie
        content.creation = 0
        content.lastAccess = 0
        content.isDiscarded = isSessionOnly
        if isSessionOnly { content.expires = nil }
        return content
    }
}
