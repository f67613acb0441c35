// SPDX-License-Identifier: Apache-2.0

public import Foundation

/// A challenge: a server or proxy requests authentication from the app.
///
/// Sendable because it is immutable.
open class URLAuthenticationChallenge: NSObject, NSSecureCoding, @unchecked Sendable {
    private let space: URLProtectionSpace
    private let proposal: URLCredential?
    private let failureCount: Int
    private let response: URLResponse?
    private var failure: (any Error)?
    private var challengeSender: (any URLAuthenticationChallengeSender)?

    /// Makes a challenge.
    ///
    /// - Parameters:
    ///   - space: The protection space.
    ///   - credential: The credential that the challenge proposes to the app, or nil.
    ///   - previousFailureCount: How many answers were rejected.
    ///   - response: The response with the challenge, or nil.
    ///   - error: The error of the last authentication attempt, or nil.
    ///   - sender: The object that receives the answer.
    public init(
        protectionSpace space: URLProtectionSpace, proposedCredential credential: URLCredential?,
        previousFailureCount: Int, failureResponse response: URLResponse?, error: (any Error)?,
        sender: any URLAuthenticationChallengeSender
    ) {
        self.space = space
        proposal = credential
        failureCount = previousFailureCount
        self.response = response
        failure = error
        challengeSender = sender
        super.init()
    }

    /// Makes a copy of a challenge with another sender.
    public convenience init(
        authenticationChallenge challenge: URLAuthenticationChallenge, sender: any URLAuthenticationChallengeSender
    ) {
        self.init(
            protectionSpace: challenge.protectionSpace, proposedCredential: challenge.proposedCredential,
            previousFailureCount: challenge.previousFailureCount, failureResponse: challenge.failureResponse,
            error: challenge.error, sender: sender
        )
    }

    /// Makes a challenge for a session's delegate, which answers through the completion handler.
    package init(
        protectionSpace: URLProtectionSpace, proposedCredential: URLCredential?, previousFailureCount: Int,
        failureResponse: URLResponse?
    ) {
        space = protectionSpace
        proposal = proposedCredential
        failureCount = previousFailureCount
        response = failureResponse
        super.init()
    }

    /// Always true.
    open class var supportsSecureCoding: Bool { true }

    /// Decodes an archived challenge, without its error and sender.
    public required init?(coder: NSCoder) {
        guard let space = coder.decodeObject(of: URLProtectionSpace.self, forKey: "protectionSpace") else { return nil }
        self.space = space
        proposal = coder.decodeObject(of: URLCredential.self, forKey: "proposedCredential")
        failureCount = coder.decodeInteger(forKey: "previousFailureCount")
        response = coder.decodeObject(of: [URLResponse.self, HTTPURLResponse.self], forKey: "failureResponse") as? URLResponse
        super.init()
    }

    /// Encodes the challenge, without its error and sender.
    open func encode(with coder: NSCoder) {
        coder.encode(space, forKey: "protectionSpace")
        coder.encode(proposal, forKey: "proposedCredential")
        coder.encode(failureCount, forKey: "previousFailureCount")
        coder.encode(response, forKey: "failureResponse")
    }

    /// The protection space that requests authentication.
    open var protectionSpace: URLProtectionSpace { space }

    /// The credential that the challenge proposes to the app: the rejected credential after a failure, otherwise a stored
    /// credential, or nil.
    open var proposedCredential: URLCredential? { proposal }

    /// How many answers to this challenge were rejected.
    ///
    /// Zero the first time.
    open var previousFailureCount: Int { failureCount }

    /// The response that contained the challenge, or nil if there was none.
    open var failureResponse: URLResponse? { response }

    /// The error of the last authentication attempt, or nil.
    open var error: (any Error)? { failure }

    /// The object that receives the answer; nil if the challenge is for a session's delegate, which answers through the completion
    /// handler.
    open var sender: (any URLAuthenticationChallengeSender)? { challengeSender }
}
