// SPDX-License-Identifier: Apache-2.0

import Foundation
import HistoryModel
import Synchronization
import URLLoading

extension LoadRequest {
    /// The content of the request.
    var content: Data? { uploadLength.map { Data(UploadPlan.content(of: load, $0)) } ?? body.map { Data($0.utf8) } }
}

/// Resumable uploads.
extension Worker {
    func cancelUpload(_ load: Int) async {
        if let task = state.withLock({ $0.tasks[load] }) as? URLSessionUploadTask {
            let data = await task.cancelByProducingResumeData()
            state.withLock { $0.resumeData[load] = data ?? $0.resumeData[load] }
        }
        var report = WorkerReport(.did, load: load)
        report.hasResumeData = state.withLock { $0.resumeData[load] != nil }
        say(report)
    }

    func resumeUpload(_ load: Int, of first: Int, in number: Int) {
        let (session, data, order) = state.withLock { ($0.sessions[number], $0.resumeData[first], $0.requests[first]) }
        guard let session, let data, let order else {
            var report = WorkerReport(.end, load: load)
            report.error = 0
            report.message = "nothing to continue"
            return say(report)
        }
        let before = cookies(of: session, order.url)
        state.withLock { state in
            state.requests[load] = order
            state.cookiesBefore[load] = before
        }
        start(session.uploadTask(withResumeData: data) { self.end(load, $0, $1, $2) }, load)
    }
}
