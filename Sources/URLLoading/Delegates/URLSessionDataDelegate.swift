// SPDX-License-Identifier: Apache-2.0

public import Foundation

/// The delegate methods for data and upload tasks that were made without a completion handler.
public protocol URLSessionDataDelegate: URLSessionTaskDelegate {
    /// Asks the delegate how to continue after the response's head has arrived.
    ///
    /// No further events are delivered before the answer. Without this method the body is delivered.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    )

    /// The `async` form of `urlSession(_:dataTask:didReceive:completionHandler:)`.
    ///
    /// - Returns: How to continue.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
    ) async -> URLSession.ResponseDisposition

    /// Tells the delegate that the data task became a download task, because the delegate answered the response with
    /// `.becomeDownload`.
    ///
    /// The data task has no further events.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask)

    /// Tells the delegate that the data task became a stream task, which owns the connection and first reads the bytes that follow
    /// the response's head.
    ///
    /// The data task has no further events.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask)

    /// Tells the delegate that bytes of the body have arrived.
    ///
    /// The task reads from the server only as fast as the delegate processes data.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data)

    /// Asks the delegate what to store in the cache for a response with a status from 200 to 299; nil stores nothing.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    )

    /// The `async` form of `urlSession(_:dataTask:willCacheResponse:completionHandler:)`.
    ///
    /// - Returns: The response to store, or nil for none.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
    ) async -> CachedURLResponse?
}

extension URLSessionDataDelegate {
    /// The default for classes that do not implement the method: the body is delivered.
    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        DelegateCall.answer(
            .response, self, otherwise: .allow,
            asyncForm: { await self.urlSession(session, dataTask: dataTask, didReceive: response) },
            handler: completionHandler
        )
    }

    /// The default for classes that do not implement the method: the body is delivered.
    ///
    /// - Returns: `.allow`, or the answer of the completion-handler form.
    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
    ) async -> URLSession.ResponseDisposition {
        if DelegateProbe.note(.response, .async, on: self) { return .allow }
        return await DelegateCall.answer(.response, self, otherwise: .allow) { handler in
            self.urlSession(session, dataTask: dataTask, didReceive: response, completionHandler: handler)
        }
    }

    /// Does nothing.
    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask
    ) {
        _ = DelegateProbe.note(.becameDownload, on: self)
    }

    /// Does nothing.
    public func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask) {
        _ = DelegateProbe.note(.becameStreamTask, on: self)
    }

    /// Does nothing.
    public func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        _ = DelegateProbe.note(.data, on: self)
    }

    /// The default for classes that do not implement the method: the response is stored as proposed.
    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        DelegateCall.answer(
            .willCacheResponse, self, otherwise: proposedResponse,
            asyncForm: { await self.urlSession(session, dataTask: dataTask, willCacheResponse: proposedResponse) },
            handler: completionHandler
        )
    }

    /// The default for classes that do not implement the method: the response is stored as proposed.
    ///
    /// - Returns: The proposed response, or the answer of the completion-handler form.
    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
    ) async -> CachedURLResponse? {
        if DelegateProbe.note(.willCacheResponse, .async, on: self) { return proposedResponse }
        return await DelegateCall.answer(.willCacheResponse, self, otherwise: proposedResponse) { handler in
            self.urlSession(
                session, dataTask: dataTask, willCacheResponse: proposedResponse, completionHandler: handler
            )
        }
    }
}
