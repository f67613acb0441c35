// SPDX-License-Identifier: Apache-2.0

public import Foundation

/// A task that writes the response body to a temporary file, and can be cancelled and resumed later.
///
/// The file exists while `urlSession(_:downloadTask:didFinishDownloadingTo:)` or the completion handler runs. It is deleted when
/// the method or handler returns, unless it was moved. A file returned by an async `download` method remains until the app deletes
/// it.
open class URLSessionDownloadTask: URLSessionTask, @unchecked Sendable {
    /// Cancels the download and calls a completion handler with the data needed to resume it.
    ///
    /// The handler receives resume data if the request was a GET over HTTP without its own `Range`, the response had an `ETag` or
    /// `Last-Modified`, and the server supports ranges; otherwise nil. The handler is called on an arbitrary thread, after the load
    /// has ended. If the download completed before that, the task succeeds, and the handler receives nil.
    open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        cancelKeepingResumeData(completionHandler)
    }

    /// Cancels the download and returns the data needed to resume it, or nil if it cannot be resumed.
    ///
    /// - Returns: The resume data, or nil.
    open func cancelByProducingResumeData() async -> Data? {
        await AnswerOnce.wait { cancel(byProducingResumeData: $0) }
    }
}
