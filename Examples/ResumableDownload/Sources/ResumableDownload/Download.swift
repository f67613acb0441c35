// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import URLLoading

/// A download as a sequence of events; the sequence ends when the file is in its place, or with an error.
final class Download: NSObject, URLSessionDownloadDelegate {
    enum Event: Sendable {
        /// The download resumes after the bytes that an earlier download received.
        case resumed(at: Int64)
        case progress(percent: Int64)
    }

    /// An error that means that the response is not the file.
    struct Refused: Error {
        let status: Int
    }

    private let target: URL
    private let shownTenth = Mutex<Int64>(-1)
    private let (events, continuation) = AsyncThrowingStream.makeStream(of: Event.self)

    init(to target: URL) { self.target = target }

    func events(of url: URL, resumeData: Data?) -> AsyncThrowingStream<Event, any Error> {
        let session = URLSession(configuration: .default, delegate: self, delegateQueue: nil)
        let task = resumeData.map { session.downloadTask(withResumeData: $0) } ?? session.downloadTask(with: url)
        task.resume()
        // The session accepts no other tasks, and releases its delegate when this task is complete.
        session.finishTasksAndInvalidate()
        return events
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        continuation.yield(.resumed(at: fileOffset))
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        // The length may be unknown.
        guard totalBytesExpectedToWrite > 0 else { return }
        let tenth = 10 * totalBytesWritten / totalBytesExpectedToWrite
        let isNew = shownTenth.withLock { shown in
            defer { shown = max(shown, tenth) }
            return tenth > shown
        }
        if isNew { continuation.yield(.progress(percent: 10 * tenth)) }
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
        // The body of an error response is downloaded to a file, too. The file is deleted when this method returns.
        let status = (downloadTask.response as? HTTPURLResponse)?.statusCode ?? 0
        do {
            guard (200..<300).contains(status) else { throw Refused(status: status) }
            if FileManager.default.fileExists(atPath: target.path) { try FileManager.default.removeItem(at: target) }
            try FileManager.default.moveItem(at: location, to: target)
        } catch {
            continuation.finish(throwing: error)
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        continuation.finish(throwing: error)
    }
}
