//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

extension URLSession {
    /// What to do with a task whose earliest begin date has come.
    public enum DelayedRequestDisposition: Int, Sendable {
        /// Load the request the task was made with.
        case continueLoading = 0
        /// Load another request.
        case useNewRequest = 1
        /// Cancel the task.
        case cancel = 2
    }

    /// How to answer an authentication challenge.
    public enum AuthChallengeDisposition: Int, Sendable {
        /// Use the credential that comes with the answer, or go on without if there is none.
        case useCredential = 0
        /// Do as if the delegate did not implement the method.
        case performDefaultHandling = 1
        /// Cancel the task.
        case cancelAuthenticationChallenge = 2
        /// Try the next protection space that the server offers.
        case rejectProtectionSpace = 3
    }

    /// What becomes of a task whose response has come.
    public enum ResponseDisposition: Int, Sendable {
        /// Cancel it.
        case cancel = 0
        /// Go on, and deliver the body.
        case allow = 1
        /// Go on as a download task.
        case becomeDownload = 2
        /// Go on as a stream task. Stream tasks are not offered yet: the task is cancelled.
        case becomeStream = 3
    }
}
