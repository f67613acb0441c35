// SPDX-License-Identifier: Apache-2.0

public import Foundation

/// The delegate methods for the session itself.
///
/// Every method is optional: a class implements only the methods it needs. A method with a result has two forms, one with a
/// completion handler and one that is `async`; a class implements one of them. The methods are called on the session's
/// `delegateQueue`, the `async` ones on Swift's concurrent executor.
///
/// Unlike on Apple's platforms, a subclass cannot add a delegate method that its superclass does not implement, because Swift selects
/// the implementations where a class first conforms to a protocol. Override methods of the superclass instead.
public protocol URLSessionDelegate: NSObjectProtocol, Sendable {
    /// Tells the delegate that the session has become invalid; after this last message, the session releases its delegate.
    ///
    /// - Parameters:
    ///   - session: The session, which is now invalid.
    ///   - error: Nil if the app invalidated the session.
    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?)

    /// Asks the delegate to answer a connection's challenge about trust or identity, for the whole session.
    ///
    /// If this method is not implemented, the task's challenge method is called; if that is not implemented either, the default
    /// handling applies.
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    )

    /// The `async` form of `urlSession(_:didReceive:completionHandler:)`.
    ///
    /// - Returns: The disposition, and the credential for `.useCredential`.
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

    /// Tells the delegate that all pending events of a background session have been delivered.
    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession)
}

extension URLSessionDelegate {
    /// Does nothing.
    public func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        _ = DelegateProbe.note(.becameInvalid, on: self)
    }

    /// The default for classes that do not implement the method: default handling.
    public func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        DelegateCall.answer(
            .sessionChallenge, self, otherwise: (.performDefaultHandling, nil),
            asyncForm: { await self.urlSession(session, didReceive: challenge) },
            handler: { completionHandler($0.0, $0.1) }
        )
    }

    /// The default for classes that do not implement the method: default handling.
    ///
    /// - Returns: `.performDefaultHandling`, or the answer of the completion-handler form.
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
