//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation

/// What a session tells and asks about its tasks, of whatever kind.
///
/// A task's own `delegate` is asked first; each method it lacks goes to the session's delegate. The order of the messages of one
/// task: created; waiting for connectivity; challenges, body streams, sent data, informational responses and redirects as they
/// happen; what the task's kind adds; metrics; completed, which is the last.
public protocol URLSessionTaskDelegate: URLSessionDelegate {
    /// A task was made. Called on the thread that makes it, before it gets it, not on the delegate queue.
    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask)

    /// A task's `earliestBeginDate` has come: it may go on, with another request if need be, or be cancelled.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void
    )

    /// The `async` form of `urlSession(_:task:willBeginDelayedRequest:completionHandler:)`.
    ///
    /// - Returns: What to do, and the request that `.useNewRequest` is about.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest
    ) async -> (URLSession.DelayedRequestDisposition, URLRequest?)

    /// A task waits until there is a network, as its configuration's `waitsForConnectivity` asks. At most once for each task.
    ///
    /// Differs from Apple's so far: it is never called, since loads do not wait.
    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask)

    /// A redirect is about to be followed: answer with the request to follow it with, or nil to get the redirect itself as the
    /// response. Without the method it is followed.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    )

    /// The `async` form of `urlSession(_:task:willPerformHTTPRedirection:newRequest:completionHandler:)`.
    ///
    /// - Returns: The request to follow with, or nil for the redirect itself as the response.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest?

    /// A server or proxy asks this task for credentials. Without the method the default handling applies.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    )

    /// The `async` form of `urlSession(_:task:didReceive:completionHandler:)`.
    ///
    /// - Returns: What to do, and the credential that `.useCredential` is about.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

    /// The body must be sent, for the first time or again: answer with a new, unopened stream from its start.
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    )

    /// The `async` form of `urlSession(_:task:needNewBodyStream:)`.
    ///
    /// - Returns: A stream that nobody has opened, or nil, with which the task fails.
    func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask) async -> InputStream?

    /// An interrupted upload goes on: answer with a new, unopened stream that starts at an offset in bytes.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
        completionHandler: @escaping @Sendable (InputStream?) -> Void
    )

    /// The `async` form of `urlSession(_:task:needNewBodyStreamFrom:completionHandler:)`.
    ///
    /// - Returns: A stream that nobody has opened, or nil, with which the task fails.
    func urlSession(
        _ session: URLSession, needNewBodyStreamForTask task: URLSessionTask, from offset: Int64
    ) async -> InputStream?

    /// Bytes of the body were sent: newly, in all, and of how many (-1 where that is not known).
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    )

    /// The head of a request was sent: of the first one, and of each that follows a redirect or a challenge.
    ///
    /// What the cache answers without a request has none.
    ///
    /// Not in Apple's API, which shows a request as the app made it and never as it was sent.
    ///
    /// - Parameters:
    ///   - session: The session of the task.
    ///   - task: The task that the request is sent for.
    ///   - head: The request line and the field lines as they are on the wire, in their order, credentials and cookies among them;
    ///     without line ends.
    func urlSession(_ session: URLSession, task: URLSessionTask, didSendRequestHead head: [String])

    /// A response with a 1xx status other than 101 came before the final one.
    func urlSession(_ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse)

    /// The task's metrics are complete. The last message but one.
    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics)

    /// The task is over: the last message about it.
    ///
    /// - Parameters:
    ///   - session: The session of the task.
    ///   - task: The task, which has completed.
    ///   - error: Nil on success, whatever the status code; mostly a `URLError` otherwise.
    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
}
