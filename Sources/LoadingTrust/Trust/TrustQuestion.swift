//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
package import FoundationEssentials

/// What is to be found out about a chain of certificates.
package struct TrustQuestion: Sendable, Hashable {
    /// What the first certificate of the chain is used for.
    package enum Use: Sendable, Hashable { case server, client, anything }

    /// DER, the certificate in question first, then what else was sent with it.
    package var chain: [Data]
    /// Names and addresses, each of which the certificate must be for.
    package var hosts: [String]
    package var use = Use.server
    /// DER; empty for the system's.
    package var roots: [Data] = []
    /// DER; trusted beside the roots.
    package var extraRoots: [Data] = []
    /// The extra roots are the only ones, even if there are none.
    package var trustsOnlyExtraRoots = false
    /// When the certificates must be valid; nil for now.
    package var date: Date?
    /// As App Transport Security wants it: EC keys of 256 bits, and no SHA-1 even where the certificate was named as trusted.
    package var requiresStrongKeys = false
    package var pins = TrustPins.none

    package init(_ chain: [Data], hosts: [String]) {
        self.chain = chain
        self.hosts = hosts
    }
}

/// What was found out about a chain.
package struct TrustJudgement: Sendable, Hashable {
    /// Nil if it is to be trusted.
    package var failure: TrustFailure?
    /// DER, from the certificate in question to a root; empty where there is no such way.
    package var chain: [Data]
}
