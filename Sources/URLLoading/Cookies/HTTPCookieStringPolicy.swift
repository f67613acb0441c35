// SPDX-License-Identifier: Apache-2.0

/// Which cross-site requests carry a cookie (RFC 6265bis, section 5.6.7).
///
/// Raw values are Apple's.
public struct HTTPCookieStringPolicy: RawRepresentable, Hashable, Sendable {
    /// The policy's name, in lower case.
    public var rawValue: String

    /// Makes a policy from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Cross-site requests carry the cookie only if they navigate the user to the cookie's site with a safe method.
    public static let sameSiteLax = HTTPCookieStringPolicy(rawValue: "lax")
    /// No cross-site request carries the cookie.
    public static let sameSiteStrict = HTTPCookieStringPolicy(rawValue: "strict")
}
