//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation

/// A data task that sends a body of its own: data, a file, or a stream.
open class URLSessionUploadTask: URLSessionDataTask, @unchecked Sendable {
    /// Gives the upload up and keeps what is needed to continue it.
    ///
    /// The handler gets resume data for ``URLSession/uploadTask(withResumeData:)`` if the server supports resumable uploads
    /// (draft-ietf-httpbis-resumable-upload) and has said where this one is continued; otherwise nil. It is called on no particular thread,
    /// once the load has ended. An upload that is answered by then completes as any other, and the handler gets nil.
    open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        cancelKeepingResumeData(completionHandler)
    }

    /// Gives the upload up and returns what is needed to continue it, or nil where that is not possible.
    ///
    /// - Returns: The resume data, or nil.
    open func cancelByProducingResumeData() async -> Data? {
        await AnswerOnce.wait { cancel(byProducingResumeData: $0) }
    }
}
