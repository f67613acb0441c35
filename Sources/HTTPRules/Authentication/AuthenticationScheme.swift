//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// The ways in which a load can say who its user is, the weakest first.
package enum AuthenticationScheme: Int, Sendable, Comparable, CaseIterable {
    /// RFC 7617: the password itself.
    case basic
    /// RFC 7616: proves that the password is known, without sending it.
    case digest
    /// MS-NLMP: proves it for a whole connection.
    case ntlm
    /// RFC 4559: Kerberos, or what else SPNEGO finds.
    case negotiate

    /// Schemes compare without regard to case (RFC 9110, section 11.1).
    package init?(name: String) {
        let name = name.lowercased()
        guard let scheme = Self.allCases.first(where: { $0.name.lowercased() == name }) else { return nil }
        self = scheme
    }

    /// As it stands in the header.
    package var name: String {
        switch self {
        case .basic: "Basic"
        case .digest: "Digest"
        case .ntlm: "NTLM"
        case .negotiate: "Negotiate"
        }
    }

    /// Whether it may take more than one round of request and response.
    package var hasLegs: Bool { self >= .ntlm }

    package static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }
}
