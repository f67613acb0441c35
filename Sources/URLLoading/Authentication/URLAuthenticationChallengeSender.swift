//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation

/// Takes the answer to an authentication challenge, where the challenge came from a `URLProtocol`.
///
/// The last two methods are optional.
public protocol URLAuthenticationChallengeSender: NSObjectProtocol, Sendable {
    /// Continues with a credential.
    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge)
    /// Continues without one.
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge)
    /// Gives up the load.
    func cancel(_ challenge: URLAuthenticationChallenge)
    /// Does what would be done without the app.
    func performDefaultHandling(for challenge: URLAuthenticationChallenge)
    /// Refuses this method of authentication, so that the next one is tried.
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge)
}

extension URLAuthenticationChallengeSender {
    /// Uses the proposed credential, or continues without one.
    public func performDefaultHandling(for challenge: URLAuthenticationChallenge) {
        if let credential = challenge.proposedCredential, challenge.previousFailureCount == 0 {
            use(credential, for: challenge)
        } else {
            continueWithoutCredential(for: challenge)
        }
    }

    /// Continues without a credential.
    public func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {
        continueWithoutCredential(for: challenge)
    }
}
