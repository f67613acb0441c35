// SPDX-License-Identifier: Apache-2.0

public import Foundation

/// A data task that sends a body: data, a file, or a stream.
open class URLSessionUploadTask: URLSessionDataTask, @unchecked Sendable {
    /// Cancels the upload and calls a completion handler with the data needed to resume it.
    ///
    /// The handler receives resume data for ``URLSession/uploadTask(withResumeData:)`` if the server supports resumable uploads
    /// (draft-ietf-httpbis-resumable-upload) and has sent the upload's URL; otherwise nil. The handler is called on an arbitrary
    /// thread, after the load has ended. If the response arrived before that, the task succeeds, and the handler receives nil.
    open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        cancelKeepingResumeData(completionHandler)
    }

    /// Cancels the upload and returns the data needed to resume it, or nil if it cannot be resumed.
    ///
    /// - Returns: The resume data, or nil.
    open func cancelByProducingResumeData() async -> Data? {
        await AnswerOnce.wait { cancel(byProducingResumeData: $0) }
    }
}
