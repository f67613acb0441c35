//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Names an attribute of a cookie in the dictionary that ``HTTPCookie/init(properties:)`` takes and ``HTTPCookie/properties`` gives.
///
/// Raw values are Apple's. Other names than those below are allowed, and ignored but for "HttpOnly", "Created" and
/// "StoragePartition", which Apple's cookies have too without a constant of their own.
public struct HTTPCookiePropertyKey: RawRepresentable, Hashable, Sendable {
    /// The name.
    public var rawValue: String

    /// Makes a key of a name.
    public init(_ rawValue: String) { self.rawValue = rawValue }

    /// Makes a key of a name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// A string with the cookie's name.
    ///
    /// Required.
    public static let name = HTTPCookiePropertyKey("Name")
    /// A string with the cookie's value.
    ///
    /// Required.
    public static let value = HTTPCookiePropertyKey("Value")
    /// The URL, as a `URL` or a string, that set the cookie.
    ///
    /// Needed where there is no ``domain``, and its host is then the domain.
    public static let originURL = HTTPCookiePropertyKey("OriginURL")
    /// "0" or "1", as a string or a number.
    ///
    /// Default 0.
    public static let version = HTTPCookiePropertyKey("Version")
    /// A string with the domain: with a dot in front, for all hosts in it; without, for that host alone.
    public static let domain = HTTPCookiePropertyKey("Domain")
    /// A string with the path.
    ///
    /// Required, unless there is an ``originURL`` whose path it can be taken from.
    public static let path = HTTPCookiePropertyKey("Path")
    /// That the cookie goes over secure connections alone: "TRUE", another string or true.
    ///
    /// "FALSE", "NO", "0", an empty string or false are as if it were absent.
    public static let secure = HTTPCookiePropertyKey("Secure")
    /// When the cookie expires, as a `Date` or a string.
    ///
    /// Of version 0 alone.
    public static let expires = HTTPCookiePropertyKey("Expires")
    /// A string with a comment, meant for people.
    public static let comment = HTTPCookiePropertyKey("Comment")
    /// Where there is more to read, as a `URL` or a string.
    public static let commentURL = HTTPCookiePropertyKey("CommentURL")
    /// Whether the cookie ends with the session: "TRUE" or "FALSE", or a Boolean.
    ///
    /// Where it is absent, cookies of version 1 without a ``maximumAge`` do.
    public static let discard = HTTPCookiePropertyKey("Discard")
    /// How many seconds the cookie lives, as a string or a number.
    ///
    /// Of version 1 alone.
    public static let maximumAge = HTTPCookiePropertyKey("Max-Age")
    /// The ports the cookie goes to: a string with numbers parted by commas, or numbers.
    ///
    /// Version 0 keeps the first one.
    public static let port = HTTPCookiePropertyKey("Port")
    /// To which requests of other sites the cookie goes along: an ``HTTPCookieStringPolicy`` or its raw value.
    public static let sameSitePolicy = HTTPCookiePropertyKey("SameSite")
    /// That a script set the cookie: "TRUE" or true.
    ///
    /// Kept for code that reads it; there are no scripts here.
    public static let setByJavaScript = HTTPCookiePropertyKey("SetInJavaScript")

    /// That scripts must not see the cookie.
    ///
    /// Apple has no constant for it.
    static let httpOnly = HTTPCookiePropertyKey("HttpOnly")
    /// When the cookie was made, in seconds since the reference date.
    ///
    /// Apple has no constant for it.
    static let created = HTTPCookiePropertyKey("Created")
    /// The partition that the cookie belongs to.
    ///
    /// Apple has no constant for it.
    static let partition = HTTPCookiePropertyKey("StoragePartition")
}
