//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
package import LoadingModel

/// Why a server's certificate is not trusted.
package struct TrustFailure: Error, Sendable, Hashable {
    package enum Reason: Sendable, Hashable {
        /// It cannot be read, or holds a kind of key that is not supported.
        case malformed
        case expired
        case notYetValid
        case wrongHost
        case selfSigned
        /// The certificate of its issuer was neither sent nor is it known.
        case missingIssuer
        case unknownRoot
        /// A certificate that was named as trusted cannot be read.
        case unreadableRoot
        /// Nothing is trusted on this machine, as there are no roots.
        case noRoots
        case weakKey
        case weakSignature
        /// It is an authority's, or is for something else than what it is used for.
        case wrongUse
        /// No certificate of the chain has the key that the host is to have.
        case pins
        /// A rule of RFC 5280 is broken: name constraints, path length, critical extensions.
        case rules
        /// Too many others wait to be checked.
        case unchecked
    }

    package var kind: LoadError.Kind
    package var message: String
    package var reason: Reason

    init(_ reason: Reason, _ message: String, kind: LoadError.Kind = .serverCertificateUntrusted) {
        self.kind = kind
        self.message = message
        self.reason = reason
    }

    /// There was no room for one more check.
    package static func unchecked(_ host: String) -> TrustFailure {
        TrustFailure(
            .unchecked, "the certificate of \(host) was not checked: too many others wait to be", kind: .secureConnectionFailed
        )
    }
}
