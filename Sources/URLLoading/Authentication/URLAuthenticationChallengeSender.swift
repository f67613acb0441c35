// SPDX-License-Identifier: Apache-2.0

public import Foundation

/// Receives the answer to an authentication challenge of a `URLProtocol`.
///
/// The last two methods have default implementations.
public protocol URLAuthenticationChallengeSender: NSObjectProtocol, Sendable {
    /// Continues with a credential.
    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge)
    /// Continues without a credential.
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge)
    /// Cancels the load.
    func cancel(_ challenge: URLAuthenticationChallenge)
    /// Handles the challenge as if the app had not been asked.
    func performDefaultHandling(for challenge: URLAuthenticationChallenge)
    /// Rejects this authentication method, so that the session tries the next method.
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge)
}

extension URLAuthenticationChallengeSender {
    /// Uses the proposed credential, or continues without a credential.
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
