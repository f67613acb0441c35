// SPDX-License-Identifier: Apache-2.0

extension URLSession {
    /// What to do with a delayed task whose earliest begin date has come.
    public enum DelayedRequestDisposition: Int, Sendable {
        /// Load the request that the task was made with.
        case continueLoading = 0
        /// Load another request.
        case useNewRequest = 1
        /// Cancel the task.
        case cancel = 2
    }

    /// How to answer an authentication challenge.
    public enum AuthChallengeDisposition: Int, Sendable {
        /// Use the credential passed with the disposition. If it is nil, continue without one.
        case useCredential = 0
        /// Behave as if the delegate did not implement the method.
        case performDefaultHandling = 1
        /// Cancel the task.
        case cancelAuthenticationChallenge = 2
        /// Try the next protection space offered by the server.
        case rejectProtectionSpace = 3
    }

    /// How to continue a task after its response has arrived.
    public enum ResponseDisposition: Int, Sendable {
        /// Cancel the task.
        case cancel = 0
        /// Continue, and deliver the body.
        case allow = 1
        /// Continue as a download task.
        case becomeDownload = 2
        /// Continue as a stream task, which owns the connection.
        case becomeStream = 3
    }
}
