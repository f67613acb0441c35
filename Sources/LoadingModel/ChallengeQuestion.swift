//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import FoundationEssentials

/// One challenge as the app is to see it: of a server or proxy that wants to know who asks (RFC 9110, section 11.3), or of a TLS
/// handshake.
package struct ChallengeQuestion: Sendable {
    package var space: ProtectionSpace
    /// What the server presented, in DER, its own certificate first; for ``AuthenticationMethod/serverTrust`` only.
    package var serverTrust: [Data] = []
    /// The issuers whose client certificates the server takes, in DER; empty where it does not say.
    package var distinguishedNames: [Data] = []
    package var previousFailureCount = 0
    package var proposed: LoadCredential?
    /// The response that asked, or nil where no response did.
    package var response: LoadResponse?

    package init(_ space: ProtectionSpace) {
        self.space = space
    }
}

package enum ChallengeAnswer: Sendable {
    /// Nil means: go on without.
    case useCredential(LoadCredential?)
    case performDefaultHandling
    case cancel
    case rejectProtectionSpace
}
