//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import FoundationEssentials

/// A challenge for the app: from a server or proxy that requires authentication (RFC 9110, section 11.3), or from a TLS handshake.
package struct ChallengeQuestion: Sendable {
    package var space: ProtectionSpace
    /// The certificates that the server presented, in DER, its own first; only for ``AuthenticationMethod/serverTrust``.
    package var serverTrust: [Data] = []
    /// The issuers whose client certificates the server accepts, in DER; empty if the server names none.
    package var distinguishedNames: [Data] = []
    package var previousFailureCount = 0
    package var proposed: LoadCredential?
    /// The response that contained the challenge; nil if no response contained it, as in a TLS handshake.
    package var response: LoadResponse?

    package init(_ space: ProtectionSpace) {
        self.space = space
    }
}

package enum ChallengeAnswer: Sendable {
    /// Nil continues the load without a credential.
    case useCredential(LoadCredential?)
    case performDefaultHandling
    case cancel
    case rejectProtectionSpace
}
