//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation

/// What a session tells and asks about data and upload tasks that were made without a completion handler.
public protocol URLSessionDataDelegate: URLSessionTaskDelegate {
    /// The response has come: answer what becomes of its body. Nothing more is told before the answer. Without the method the body
    /// is delivered.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    )

    /// The `async` form of `urlSession(_:dataTask:didReceive:completionHandler:)`.
    ///
    /// - Returns: What becomes of the task.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
    ) async -> URLSession.ResponseDisposition

    /// The task was turned into a download, as the answer to its response asked. The data task says nothing more.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask)

    /// The data task became this stream task, which has the connection to itself and first reads what the server sent after the
    /// response's head. Nothing more is told of the data task.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask)

    /// Bytes of the body have come. No more are read from the server than the delegate takes.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data)

    /// A response of a status from 200 to 299 is about to be stored in the cache: answer with what to store, or nil for nothing.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    )

    /// The `async` form of `urlSession(_:dataTask:willCacheResponse:completionHandler:)`.
    ///
    /// - Returns: What to store, or nil for nothing.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
    ) async -> CachedURLResponse?
}

extension URLSessionDataDelegate {
    /// Stands for a class that does not implement the method: the body is delivered.
    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        if DelegateProbe.note(.response, on: self) { return }
        DelegateCall.answer(
            .response, self, otherwise: .allow,
            asyncForm: { await self.urlSession(session, dataTask: dataTask, didReceive: response) },
            handler: completionHandler
        )
    }

    /// Stands for a class that does not implement the method: the body is delivered.
    ///
    /// - Returns: `.allow`, or what the completion handler's form answers.
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

    /// Stands for a class that does not implement the method: the response is stored as proposed.
    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        if DelegateProbe.note(.willCacheResponse, on: self) { return }
        DelegateCall.answer(
            .willCacheResponse, self, otherwise: proposedResponse,
            asyncForm: { await self.urlSession(session, dataTask: dataTask, willCacheResponse: proposedResponse) },
            handler: completionHandler
        )
    }

    /// Stands for a class that does not implement the method: the response is stored as proposed.
    ///
    /// - Returns: The proposed response, or what the completion handler's form answers.
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
