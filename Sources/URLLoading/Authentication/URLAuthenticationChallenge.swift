//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation

/// A server's or proxy's demand for authentication, as it is put to the app.
///
/// Sendable because it never changes once made.
open class URLAuthenticationChallenge: NSObject, NSSecureCoding, @unchecked Sendable {
    private let space: URLProtectionSpace
    private let proposal: URLCredential?
    private let failureCount: Int
    private let response: URLResponse?
    private let failure: (any Error)?
    private let answerTo: (any URLAuthenticationChallengeSender)?

    /// Makes a challenge.
    ///
    /// - Parameters:
    ///   - space: What asks.
    ///   - credential: What would be used unless the app knows better, or nil.
    ///   - previousFailureCount: How often an answer was refused.
    ///   - response: The response that asked, or nil.
    ///   - error: What went wrong, or nil.
    ///   - sender: Whom to give the answer.
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
        answerTo = sender
        super.init()
    }

    /// Makes a challenge like another one, for another sender.
    public convenience init(
        authenticationChallenge challenge: URLAuthenticationChallenge, sender: any URLAuthenticationChallengeSender
    ) {
        self.init(
            protectionSpace: challenge.protectionSpace, proposedCredential: challenge.proposedCredential,
            previousFailureCount: challenge.previousFailureCount, failureResponse: challenge.failureResponse,
            error: challenge.error, sender: sender
        )
    }

    /// A challenge that a session puts to its delegate, whose answer goes to the completion handler.
    package init(
        protectionSpace: URLProtectionSpace, proposedCredential: URLCredential?, previousFailureCount: Int,
        failureResponse: URLResponse?
    ) {
        space = protectionSpace
        proposal = proposedCredential
        failureCount = previousFailureCount
        response = failureResponse
        failure = nil
        answerTo = nil
        super.init()
    }

    /// Always true.
    open class var supportsSecureCoding: Bool { true }

    /// Reads an archived challenge; it has no sender.
    public required init?(coder: NSCoder) {
        guard let space = coder.decodeObject(of: URLProtectionSpace.self, forKey: "protectionSpace") else { return nil }
        self.space = space
        proposal = coder.decodeObject(of: URLCredential.self, forKey: "proposedCredential")
        failureCount = coder.decodeInteger(forKey: "previousFailureCount")
        response = coder.decodeObject(of: [URLResponse.self, HTTPURLResponse.self], forKey: "failureResponse") as? URLResponse
        failure = nil
        answerTo = nil
        super.init()
    }

    /// Archives the challenge without its error and its sender.
    open func encode(with coder: NSCoder) {
        coder.encode(space, forKey: "protectionSpace")
        coder.encode(proposal, forKey: "proposedCredential")
        coder.encode(failureCount, forKey: "previousFailureCount")
        coder.encode(response, forKey: "failureResponse")
    }

    /// What asks.
    open var protectionSpace: URLProtectionSpace { space }

    /// What would be used unless the app knows better: the credential that was refused, or a stored one, or nil.
    open var proposedCredential: URLCredential? { proposal }

    /// How often an answer to this challenge was refused.
    ///
    /// 0 the first time.
    open var previousFailureCount: Int { failureCount }

    /// The response that asked, or nil where no response did.
    open var failureResponse: URLResponse? { response }

    /// What went wrong, or nil.
    open var error: (any Error)? { failure }

    /// Whom to give the answer; nil for the challenges of a session's delegate, which answers through the completion handler.
    open var sender: (any URLAuthenticationChallengeSender)? { answerTo }
}
