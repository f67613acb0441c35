// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// A stream task delegate that records its callbacks in order, and answers challenges as the test says.
final class StreamRecorder: NSObject, URLSessionStreamDelegate, Sendable {
    typealias Answer = (URLSession.AuthChallengeDisposition, URLCredential?)

    struct Record: Sendable {
        /// c created, C challenge, r read side closed, w write side closed, b better route, S streams, M metrics, E complete.
        var letters = ""
        var spaces: [URLProtectionSpace] = []
        var metrics: URLSessionTaskMetrics?
        var stateAtEnd: URLSessionTask.State?
        var isComplete = false
        var error: (any Error)?
        var code: URLError.Code? { (error as? URLError)?.code }
    }

    private struct State: Sendable {
        var tasks: [Int: Record] = [:]
        var invalidations = 0
        var faults: [String] = []
    }

    private let state = Watched(State())
    private let answer: @Sendable (URLAuthenticationChallenge) -> Answer?

    /// - Parameter answer: Returns the answer to a challenge; nil leaves the challenge unanswered.
    init(answer: @escaping @Sendable (URLAuthenticationChallenge) -> Answer? = { _ in (.performDefaultHandling, nil) }) {
        self.answer = answer
    }

    // MARK: Reading

    func record(of task: URLSessionTask) -> Record {
        let id = task.taskIdentifier
        return state.read { $0.tasks[id, default: Record()] }
    }

    var faults: [String] { state.read(\.faults) }

    func wait(for task: URLSessionTask, until condition: @escaping @Sendable (Record) -> Bool) async throws {
        let id = task.taskIdentifier
        try await state.value { state in state.tasks[id].map(condition) == true ? () : nil }
    }

    /// Waits for a callback, given by its letter.
    func waitForCallback(_ letter: Character, of task: URLSessionTask) async throws {
        try await wait(for: task) { $0.letters.contains(letter) }
    }

    /// Waits for `didCompleteWithError`.
    @discardableResult
    func completion(of task: URLSessionTask) async throws -> Record {
        let id = task.taskIdentifier
        return try await state.value { state in state.tasks[id].flatMap { $0.isComplete ? $0 : nil } }
    }

    /// Waits for `didBecomeInvalid`, and returns how often it was called.
    func invalidation() async throws -> Int {
        try await state.value { $0.invalidations > 0 ? $0.invalidations : nil }
    }

    private func note(_ task: URLSessionTask, _ letter: String, _ change: @escaping @Sendable (inout Record) -> Void = { _ in }) {
        let id = task.taskIdentifier
        state.change { state in
            if state.tasks[id]?.isComplete == true { state.faults.append("\(letter) after completion") }
            if state.invalidations > 0 { state.faults.append("\(letter) after invalidation") }
            state.tasks[id, default: Record()].letters += letter
            change(&state.tasks[id, default: Record()])
        }
    }

    // MARK: The delegate

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        state.change { $0.invalidations += 1 }
    }

    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) { note(task, "c") }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let space = challenge.protectionSpace
        note(task, "C") { $0.spaces.append(space) }
        if let answer = answer(challenge) { completionHandler(answer.0, answer.1) }
    }

    func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask) { note(streamTask, "r") }

    func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask) { note(streamTask, "w") }

    func urlSession(_ session: URLSession, betterRouteDiscoveredFor streamTask: URLSessionStreamTask) { note(streamTask, "b") }

    func urlSession(
        _ session: URLSession, streamTask: URLSessionStreamTask, didBecome inputStream: InputStream, outputStream: OutputStream
    ) {
        note(streamTask, "S")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        note(task, "M") { $0.metrics = metrics }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let end = task.state
        note(task, "E") { record in
            record.error = error
            record.stateAtEnd = end
            record.isComplete = true
        }
    }
}
