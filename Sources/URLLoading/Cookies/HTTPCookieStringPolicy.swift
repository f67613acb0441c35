//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Says to which requests of other sites a cookie goes along (RFC 6265bis, section 5.6.7).
///
/// Raw values are Apple's.
public struct HTTPCookieStringPolicy: RawRepresentable, Hashable, Sendable {
    /// The policy's name, in lower case.
    public var rawValue: String

    /// Makes a policy of its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// To those that lead the user to the cookie's site, with a safe method.
    public static let sameSiteLax = HTTPCookieStringPolicy(rawValue: "lax")
    /// To none.
    public static let sameSiteStrict = HTTPCookieStringPolicy(rawValue: "strict")
}
