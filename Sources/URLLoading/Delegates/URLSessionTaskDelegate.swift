// SPDX-License-Identifier: Apache-2.0

public import Foundation

/// The delegate methods for tasks of all kinds.
///
/// A task's own `delegate` is called first; methods that it does not implement are called on the session's delegate. The order of
/// the events of a task: creation; waiting for connectivity; challenges, body streams, bytes sent, informational responses and
/// redirects as they happen; the events of the task's kind; metrics; and completion, which is the last.
public protocol URLSessionTaskDelegate: URLSessionDelegate {
    /// Tells the delegate that a task was created.
    ///
    /// Called on the thread that creates the task, before the creating method returns, and not on the delegate queue.
    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask)

    /// Asks the delegate, at a task's `earliestBeginDate`, whether to continue, replace the request, or cancel.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void
    )

    /// The `async` form of `urlSession(_:task:willBeginDelayedRequest:completionHandler:)`.
    ///
    /// - Returns: The disposition, and the request for `.useNewRequest`.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest
    ) async -> (URLSession.DelayedRequestDisposition, URLRequest?)

    /// Tells the delegate that a task is waiting for a network, because the session's configuration sets `waitsForConnectivity`.
    ///
    /// Called at most once per task.
    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask)

    /// Asks the delegate for the request with which to follow a redirect; nil delivers the redirect response itself.
    ///
    /// Without this method the redirect is followed.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    )

    /// The `async` form of `urlSession(_:task:willPerformHTTPRedirection:newRequest:completionHandler:)`.
    ///
    /// - Returns: The request to follow the redirect with, or nil to deliver the redirect response itself.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest?

    /// Asks the delegate for the credentials that a server or proxy requests from this task.
    ///
    /// Without this method the default handling applies.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    )

    /// The `async` form of `urlSession(_:task:didReceive:completionHandler:)`.
    ///
    /// - Returns: The disposition, and the credential for `.useCredential`.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

    /// Asks the delegate for a new, unopened stream with the whole body, to send the body for the first time or again.
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    )

    /// The `async` form of `urlSession(_:task:needNewBodyStream:)`.
    ///
    /// - Returns: An unopened stream; if it is nil, the task fails.
    func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask) async -> InputStream?

    /// Asks the delegate for a new, unopened stream that begins at an offset in bytes, to resume an interrupted upload.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
        completionHandler: @escaping @Sendable (InputStream?) -> Void
    )

    /// The `async` form of `urlSession(_:task:needNewBodyStreamFrom:completionHandler:)`.
    ///
    /// - Returns: An unopened stream; if it is nil, the task fails.
    func urlSession(
        _ session: URLSession, needNewBodyStreamForTask task: URLSessionTask, from offset: Int64
    ) async -> InputStream?

    /// Reports how many bytes of the request body were sent since the last call and in total, and how many are expected (-1 if unknown).
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    )

    /// Tells the delegate that the head of a request was sent: of the first request, and of each request after a redirect or a
    /// challenge.
    ///
    /// Not called for a response from the cache that needed no request.
    ///
    /// Not in Apple's API, which shows the app only the requests that the app made, not the requests as sent.
    ///
    /// - Parameters:
    ///   - session: The session of the task.
    ///   - task: The task of the request.
    ///   - head: The request line and the field lines as on the wire, in order, including credentials and cookies; without line
    ///     terminators.
    func urlSession(_ session: URLSession, task: URLSessionTask, didSendRequestHead head: [String])

    /// Tells the delegate that a response with a 1xx status other than 101 arrived before the final response.
    func urlSession(_ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse)

    /// Tells the delegate that the task's metrics are complete.
    ///
    /// This is the second-to-last message about the task.
    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics)

    /// Tells the delegate that the task is complete: the last message about it.
    ///
    /// - Parameters:
    ///   - session: The session of the task.
    ///   - task: The task, which has completed.
    ///   - error: Nil on success, regardless of the status code; otherwise usually a `URLError`.
    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
}
