// SPDX-License-Identifier: Apache-2.0

import Foundation
internal import LoadingModel

extension URLSessionConfiguration {
    /// Whether an interrupted upload task can resume from the offset that the server has reached
    /// (draft-ietf-httpbis-resumable-upload).
    ///
    /// An upload resumes automatically after a short loss of the connection, or through
    /// ``URLSession/uploadTask(withResumeData:)``.
    ///
    /// Default true, as for Apple's upload tasks. The requests of upload tasks have the fields `Upload-Draft-Interop-Version`,
    /// `Upload-Complete` and `Upload-Length`; servers that do not support resumable uploads ignore these fields. Data tasks never
    /// send them. Upload tasks do not send them either if the body is empty, if the body is a stream that the delegate cannot
    /// provide again, or if the app sets a header field whose name begins with `Upload-`.
    ///
    /// If a server refuses an upload as too large (413) without stating its limits, an `OPTIONS` request asks for the limits.
    /// Otherwise, an upload that is not interrupted sends no additional request.
    ///
    /// Not in Apple's API, where resumable uploads cannot be disabled.
    public var usesResumableUploads: Bool {
        get { get { $0.policy.usesResumableUploads } }
        set { set { $0.policy.usesResumableUploads = newValue } }
    }
}
