// SPDX-License-Identifier: Apache-2.0

/// The supported authentication schemes, the weakest first.
package enum AuthenticationScheme: Int, Sendable, Comparable, CaseIterable {
    /// RFC 7617: sends the password.
    case basic
    /// RFC 7616: proves knowledge of the password without sending it.
    case digest
    /// MS-NLMP: authenticates a whole connection.
    case ntlm
    /// RFC 4559: Kerberos, or another mechanism negotiated with SPNEGO.
    case negotiate

    /// Looks up a scheme by name, ignoring case (RFC 9110, section 11.1).
    package init?(name: String) {
        let name = name.lowercased()
        guard let scheme = Self.allCases.first(where: { $0.name.lowercased() == name }) else { return nil }
        self = scheme
    }

    /// The name in header fields.
    package var name: String {
        switch self {
        case .basic: "Basic"
        case .digest: "Digest"
        case .ntlm: "NTLM"
        case .negotiate: "Negotiate"
        }
    }

    /// Whether authentication may take more than one round trip.
    package var isMultiStep: Bool { self >= .ntlm }

    /// Whether a value of `Authorization` or `Proxy-Authorization` may authenticate the connection that carries it, and not only its
    /// request.
    package static func bindsConnection(_ field: String) -> Bool {
        AuthenticationScheme(name: String(field.prefix { $0 != " " && $0 != "\t" }))?.isMultiStep ?? false
    }

    package static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }
}
