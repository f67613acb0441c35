// SPDX-License-Identifier: Apache-2.0

/// A key in the dictionaries of ``HTTPCookie/init(properties:)`` and ``HTTPCookie/properties``.
///
/// Raw values are Apple's. Other keys are ignored, except "HttpOnly", "Created" and "StoragePartition", which Apple's cookies also
/// have, although Apple defines no constants for them.
public struct HTTPCookiePropertyKey: RawRepresentable, Hashable, Sendable {
    /// The name.
    public var rawValue: String

    /// Makes a key from its name.
    public init(_ rawValue: String) { self.rawValue = rawValue }

    /// Makes a key from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The cookie's name, a string.
    ///
    /// Required.
    public static let name = HTTPCookiePropertyKey("Name")
    /// The cookie's value, a string.
    ///
    /// Required.
    public static let value = HTTPCookiePropertyKey("Value")
    /// The URL that set the cookie, a `URL` or a string.
    ///
    /// Required if there is no ``domain``; the URL's host is then the domain.
    public static let originURL = HTTPCookiePropertyKey("OriginURL")
    /// The version "0" or "1", a string or a number.
    ///
    /// Default 0.
    public static let version = HTTPCookiePropertyKey("Version")
    /// The domain, a string: with a leading dot to include subdomains, without a dot for only that host.
    public static let domain = HTTPCookiePropertyKey("Domain")
    /// The path, a string.
    ///
    /// Required, unless there is an ``originURL`` to take the path from.
    public static let path = HTTPCookiePropertyKey("Path")
    /// Whether the cookie is sent only over secure connections: "TRUE", another string, or true.
    ///
    /// "FALSE", "NO", "0", an empty string and false mean the same as a missing key.
    public static let secure = HTTPCookiePropertyKey("Secure")
    /// The expiration date, a `Date` or a string.
    ///
    /// Only for version 0.
    public static let expires = HTTPCookiePropertyKey("Expires")
    /// A human-readable comment, a string.
    public static let comment = HTTPCookiePropertyKey("Comment")
    /// A URL with more information, a `URL` or a string.
    public static let commentURL = HTTPCookiePropertyKey("CommentURL")
    /// Whether the cookie ends with the session: "TRUE" or "FALSE", or a Boolean.
    ///
    /// The default is true for cookies of version 1 without a ``maximumAge``.
    public static let discard = HTTPCookiePropertyKey("Discard")
    /// The lifetime in seconds, a string or a number.
    ///
    /// Only for version 1.
    public static let maximumAge = HTTPCookiePropertyKey("Max-Age")
    /// The ports that the cookie is sent to: a string with numbers separated by commas, or numbers.
    ///
    /// Version 0 uses only the first one.
    public static let port = HTTPCookiePropertyKey("Port")
    /// Which cross-site requests carry the cookie: an ``HTTPCookieStringPolicy`` or its raw value.
    public static let sameSitePolicy = HTTPCookiePropertyKey("SameSite")
    /// Whether a script set the cookie: "TRUE" or true.
    ///
    /// The library itself does not use the value, because it runs no scripts.
    public static let setByJavaScript = HTTPCookiePropertyKey("SetInJavaScript")

    /// Whether the cookie is hidden from scripts.
    ///
    /// Apple has no constant for this key.
    static let httpOnly = HTTPCookiePropertyKey("HttpOnly")
    /// The creation time, in seconds since January 1, 2001.
    ///
    /// Apple has no constant for this key.
    static let created = HTTPCookiePropertyKey("Created")
    /// The partition of the cookie.
    ///
    /// Apple has no constant for this key.
    static let partition = HTTPCookiePropertyKey("StoragePartition")
}
