//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
internal import LoadingModel

extension URLSessionConfiguration {
    /// Whether upload tasks are resumable (draft-ietf-httpbis-resumable-upload): an interrupted upload continues from the server's
    /// offset, automatically after a short loss of the connection, or with ``URLSession/uploadTask(withResumeData:)``.
    ///
    /// Default true, as for Apple's upload tasks. Their requests have `Upload-Draft-Interop-Version`, `Upload-Complete` and
    /// `Upload-Length`, which servers without support ignore. Data tasks never send these fields. Upload tasks do not send them
    /// either if the body is empty, if it is a stream that the delegate cannot provide again, or if the app sets a header field
    /// whose name begins with `Upload-`.
    ///
    /// If a server refuses an upload for its size (413) without stating its limits, an `OPTIONS` request asks for them. Otherwise,
    /// an upload that is not interrupted sends no additional request.
    ///
    /// Not in Apple's API, where it cannot be disabled.
    public var usesResumableUploads: Bool {
        get { get { $0.policy.usesResumableUploads } }
        set { set { $0.policy.usesResumableUploads = newValue } }
    }
}
