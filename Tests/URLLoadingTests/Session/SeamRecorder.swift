// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import URLLoading

/// Records the calls of a delegate as lines of text, and lets a test wait for a line.
final class Journal: Sendable {
    private struct State {
        var lines: [String] = []
        var waiters: [(String, CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    var lines: [String] { state.withLock { $0.lines } }

    func note(_ line: String) {
        let waiters = state.withLock { state in
            state.lines.append(line)
            let due = state.waiters.filter { line.hasPrefix($0.0) }
            state.waiters.removeAll { line.hasPrefix($0.0) }
            return due
        }
        for waiter in waiters { waiter.1.resume() }
    }

    /// Waits for a line that begins with a prefix.
    func wait(for prefix: String) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if state.lines.contains(where: { $0.hasPrefix(prefix) }) { return true }
                state.waiters.append((prefix, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }
}

/// Implements the delegate methods that report events, but none that ask a question.
///
/// The delegates share the methods through this protocol, not through a superclass: a method that only a subclass has is not visible
/// through a protocol that the superclass conforms to.
protocol JournalingDelegate: URLSessionDataDelegate, URLSessionDownloadDelegate {
    var journal: Journal { get }
}

final class QuietRecorder: NSObject, JournalingDelegate, Sendable {
    let journal = Journal()
}

extension JournalingDelegate {
    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) { journal.note("created") }
    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { journal.note("invalid") }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        journal.note("data \(String(decoding: data, as: UTF8.self)) state \(dataTask.state.rawValue)")
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask) {
        journal.note("became \(dataTask.taskIdentifier == downloadTask.taskIdentifier)")
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        journal.note("sent \(totalBytesSent)/\(totalBytesExpectedToSend) count \(task.countOfBytesSent)")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse) {
        journal.note("informational \(response.statusCode)")
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        journal.note("wrote \(totalBytesWritten)/\(totalBytesExpectedToWrite)")
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        journal.note("resumed \(fileOffset)/\(expectedTotalBytes)")
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        journal.note("file \((try? String(contentsOf: location, encoding: .utf8)) ?? "none")")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        journal.note("metrics \(metrics.transactionMetrics.count)")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        journal.note("complete \((error as? URLError).map { "\($0.errorCode)" } ?? "ok") state \(task.state.rawValue)")
    }
}

/// A delegate that records events and also answers questions, through completion handlers.
final class Recorder: NSObject, JournalingDelegate, Sendable {
    let journal = Journal()
    let disposition: URLSession.ResponseDisposition
    let answers: Int

    init(_ disposition: URLSession.ResponseDisposition = .allow, answers: Int = 1) {
        self.disposition = disposition
        self.answers = answers
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        journal.note("response \((response as? HTTPURLResponse)?.statusCode ?? 0)")
        for _ in 0..<answers { completionHandler(disposition) }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        journal.note("redirect \(response.statusCode) \(request.url?.absoluteString ?? "")")
        completionHandler(nil)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        journal.note("challenge \(challenge.protectionSpace.realm ?? "")")
        completionHandler(.useCredential, URLCredential(user: "u", password: "p", persistence: .none))
    }
}
