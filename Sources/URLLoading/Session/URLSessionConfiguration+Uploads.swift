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
    /// Whether upload tasks say that they can be continued (draft-ietf-httpbis-resumable-upload), so that one that is interrupted goes on from
    /// where the server has it, by itself after a short loss, or with ``URLSession/uploadTask(withResumeData:)``.
    ///
    /// Default true, as Apple's upload tasks say so. Their requests have `Upload-Draft-Interop-Version`, `Upload-Complete` and `Upload-Length`,
    /// which servers that know nothing of it ignore. Data tasks, whatever their body, never say so; nor do uploads with an empty body, with
    /// a stream that the delegate cannot give anew, or with a field of the app's own whose name begins with `Upload-`.
    ///
    /// Not in Apple's API, where it cannot be switched off.
    public var usesResumableUploads: Bool {
        get { get { $0.policy.usesResumableUploads } }
        set { set { $0.policy.usesResumableUploads = newValue } }
    }
}
