//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation

/// What a session tells and asks its delegate about the session itself.
///
/// Every method is optional: a class implements those it wants, each asked one either with its completion handler or as `async`.
/// The methods are called on the session's `delegateQueue`, the `async` ones on Swift's concurrent executor.
///
/// Differs from Apple's: a subclass adds a method to a delegate class that lacks it without effect, because Swift decides what
/// implements a protocol where a class first conforms to it; override methods the superclass has.
public protocol URLSessionDelegate: NSObjectProtocol, Sendable {
    /// The session was invalidated: the last message a delegate gets, after which the session lets go of it.
    ///
    /// - Parameters:
    ///   - session: The session, which is invalid now.
    ///   - error: Nil when the app invalidated the session.
    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?)

    /// A connection needs an answer about trust or identity that counts for the whole session.
    ///
    /// Without it, the task's method of the same kind is asked, and else the default handling applies.
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    )

    /// The `async` form of `urlSession(_:didReceive:completionHandler:)`.
    ///
    /// - Returns: What to do, and the credential that `.useCredential` is about.
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

    /// All events of a background session that were waiting for the app have been delivered.
    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession)
}

extension URLSessionDelegate {
    /// Does nothing.
    public func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        _ = DelegateProbe.note(.becameInvalid, on: self)
    }

    /// Stands for a class that does not implement the method: default handling.
    public func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        if DelegateProbe.note(.sessionChallenge, on: self) { return }
        DelegateCall.answer(
            .sessionChallenge, self, otherwise: (.performDefaultHandling, nil),
            asyncForm: { await self.urlSession(session, didReceive: challenge) },
            handler: { completionHandler($0.0, $0.1) }
        )
    }

    /// Stands for a class that does not implement the method: default handling.
    ///
    /// - Returns: `.performDefaultHandling`, or what the completion handler's form answers.
    public func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        if DelegateProbe.note(.sessionChallenge, .async, on: self) { return (.performDefaultHandling, nil) }
        return await DelegateCall.answer(.sessionChallenge, self, otherwise: (.performDefaultHandling, nil)) { handler in
            self.urlSession(session, didReceive: challenge) { handler(($0, $1)) }
        }
    }

    /// Does nothing.
    public func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
        _ = DelegateProbe.note(.finishedBackgroundEvents, on: self)
    }
}
