// SPDX-License-Identifier: Apache-2.0

import CombinationModel
import Foundation
import LoadingTestKit
import URLLoading

/// The delegate of a session whose only task is a stream task or an FTP load.
final class WireRecorder: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, URLSessionStreamDelegate, Sendable {
    struct Notes: Sendable {
        /// A letter for each call, in order: c created, p password, s sent, r reading side closed, w writing side closed, R
        /// response, D data, W written, F file, M metrics, E end, I invalid.
        var callLog = ""
        var body: [UInt8] = []
        var error: Outcome?
        var isOver = false
        var isHolding = false
        /// The answer to the held question.
        var held: (@Sendable () -> Void)?
        /// The number of calls of a stream task, and of their completion handlers.
        var calls: (made: Int, answered: Int) = (0, 0)
        var callError: Outcome?
    }

    let notes = Watched(Notes())
    private let row: WireRow

    init(_ row: WireRow) {
        self.row = row
        super.init()
        if row.moment == .challenge { notes.change { $0.isHolding = true } }
    }

    private func note(_ letter: Character, _ change: (inout Notes) -> Void = { _ in }) {
        notes.change { notes in
            notes.callLog.append(letter)
            change(&notes)
        }
    }

    /// Gives an answer now, or when the question is released.
    private func answer(_ answer: @escaping @Sendable () -> Void) {
        let isHeld = notes.change { notes in
            guard notes.isHolding else { return false }
            (notes.isHolding, notes.held) = (false, answer)
            return true
        }
        if !isHeld { answer() }
    }

    func release() {
        let held = notes.change { notes in
            defer { (notes.isHolding, notes.held) = (false, nil) }
            return notes.held
        }
        held?()
    }

    // MARK: Challenges

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        switch row.trust {
        case .delegateAccepts:
            let credential = challenge.protectionSpace.serverTrust.map { URLCredential(trust: $0) }
            answer { completionHandler(.useCredential, credential) }
        case .delegateRefuses: answer { completionHandler(.cancelAuthenticationChallenge, nil) }
        default: completionHandler(.performDefaultHandling, nil)
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        note("p")
        guard row.login == .delegateAnswer, !challenge.protectionSpace.isProxy(), challenge.previousFailureCount == 0 else {
            return completionHandler(.performDefaultHandling, nil)
        }
        answer { completionHandler(.useCredential, URLCredential(user: "ada", password: "secret", persistence: .forSession)) }
    }

    // MARK: Tasks

    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) { note("c") }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) { note("s") }

    func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask) { note("r") }
    func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask) { note("w") }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        note("R")
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) { note("D") { $0.body += data } }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) { note("W") }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        let data = (try? Data(contentsOf: location)) ?? Data("no file".utf8)
        note("F") { $0.body = Array(data) }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) { note("M") }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        note("E") { notes in
            notes.error = error.map(Failure.outcome)
            notes.isOver = true
        }
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { note("I") }

    // MARK: Calls of a stream task

    /// Counts a call; ``answered(_:)`` counts its completion handler.
    func calls() { notes.change { $0.calls.made += 1 } }

    func answered(_ error: (any Error)?, _ data: Data? = nil) {
        notes.change { notes in
            notes.calls.answered += 1
            notes.body += data ?? Data()
            if let error, notes.callError == nil { notes.callError = Failure.outcome(error) }
        }
    }

    /// The allowed order of calls, whatever the task's outcome.
    static func grammar(_ kind: WireKind) -> String {
        switch kind {
        case .stream: "c[psrw]*MEI"
        case .ftpGet, .ftpList: "cp*(RD*)?MEI"
        case .ftpDownload: "cp*W*F?MEI"
        case .ftpUpload: "c[ps]*(Rs*)?MEI"
        }
    }
}
