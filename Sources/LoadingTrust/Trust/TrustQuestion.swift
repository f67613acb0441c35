//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
package import FoundationEssentials

/// The parameters of a trust check.
package struct TrustQuestion: Sendable, Hashable {
    /// The use of the leaf certificate.
    package enum Use: Sendable, Hashable { case server, client, anything }

    /// DER, the certificate in question first, then the others that were sent with it.
    package var chain: [Data]
    /// The names and addresses that the certificate must be valid for, all of them.
    package var hosts: [String]
    package var use = Use.server
    /// DER; empty means the system's.
    package var roots: [Data] = []
    /// DER; trusted in addition to the roots.
    package var extraRoots: [Data] = []
    /// Whether only the extra roots are trusted, even if there are none.
    package var trustsOnlyExtraRoots = false
    /// The time at which the certificates must be valid; nil means now.
    package var date: Date?
    /// Whether App Transport Security applies: EC keys need 256 bits, and SHA-1 is rejected even in a certificate that is
    /// configured as trusted.
    package var requiresStrongKeys = false
    package var pins = TrustPins.none

    package init(_ chain: [Data], hosts: [String]) {
        self.chain = chain
        self.hosts = hosts
    }
}

/// The result of a trust check.
package struct TrustJudgement: Sendable, Hashable {
    /// Nil if the chain is trusted.
    package var failure: TrustFailure?
    /// DER, from the certificate in question to a root; empty if no chain was validated.
    package var chain: [Data]
}
