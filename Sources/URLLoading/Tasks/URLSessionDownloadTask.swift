//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation

/// A task that writes the response's body to a temporary file, and can be stopped and gone on with later.
///
/// The file belongs to the app while `urlSession(_:downloadTask:didFinishDownloadingTo:)` or the completion handler runs; it is
/// deleted when they return, unless it was moved. What the async `download` methods return stays until the app deletes it.
open class URLSessionDownloadTask: URLSessionTask, @unchecked Sendable {
    /// Gives the download up and keeps what is needed to go on with it.
    ///
    /// The handler gets resume data if the request was a GET over HTTP without a `Range` of its own, the response named an `ETag`
    /// or `Last-Modified`, and the server supports ranges; otherwise nil. It is called on no particular thread, once the load
    /// has ended. A download that was complete by then completes as any other, and the handler gets nil.
    open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        cancelKeepingResumeData(completionHandler)
    }

    /// Gives the download up and returns what is needed to go on with it, or nil where that is not possible.
    ///
    /// - Returns: The resume data, or nil.
    open func cancelByProducingResumeData() async -> Data? {
        await AnswerOnce.wait { cancel(byProducingResumeData: $0) }
    }
}
