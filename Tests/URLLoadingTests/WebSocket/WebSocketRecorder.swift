// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// A WebSocket task delegate that records its callbacks in order, and answers as the test says.
final class WebSocketRecorder: NSObject, URLSessionWebSocketDelegate, Sendable {
    struct Closing: Sendable, Equatable {
        var code: Int
        var reason: String?
    }

    struct Record: Sendable {
        /// c created, C challenge, r redirect, o open, x closed, M metrics, E complete.
        var letters = ""
        var protocols: [String?] = []
        var closings: [Closing] = []
        var redirects: [URLRequest] = []
        var metrics: URLSessionTaskMetrics?
        /// The task's properties when it opened and when it completed.
        var stateAtOpening: URLSessionTask.State?
        var closeCodeAtOpening: Int?
        var statusAtOpening: Int?
        var stateAtEnd: URLSessionTask.State?
        var isComplete = false
        var error: (any Error)?
        var code: URLError.Code? { (error as? URLError)?.code }
    }

    struct State: Sendable {
        var tasks: [Int: Record] = [:]
        var invalidations = 0
        var faults: [String] = []
    }

    struct Answers: Sendable {
        var challenge: @Sendable (URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?) = { _ in
            (.performDefaultHandling, nil)
        }
        var redirect: @Sendable (HTTPURLResponse, URLRequest) -> URLRequest? = { $1 }
        var opened: @Sendable (URLSessionWebSocketTask) -> Void = { _ in }
    }

    private let state = Watched(State())
    private let answers: Answers

    init(_ answers: Answers = Answers()) { self.answers = answers }

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

    /// Waits for `didOpenWithProtocol`, or the end of a task that never opens.
    func opening(of task: URLSessionTask, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        try await wait(for: task) { $0.letters.contains("o") || $0.isComplete }
        let record = record(of: task)
        #expect(record.letters.contains("o"), "\(String(describing: record.error))", sourceLocation: sourceLocation)
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
        state.change { state in
            if state.tasks.values.contains(where: { !$0.isComplete }) {
                state.faults.append("invalid before all tasks were complete")
            }
            state.invalidations += 1
        }
    }

    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) { note(task, "c") }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        note(task, "C")
        let answer = answers.challenge(challenge)
        completionHandler(answer.0, answer.1)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        note(task, "r") { $0.redirects.append(request) }
        completionHandler(answers.redirect(response, request))
    }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
    ) {
        let (state, code) = (webSocketTask.state, webSocketTask.closeCode.rawValue)
        let status = (webSocketTask.response as? HTTPURLResponse)?.statusCode
        note(webSocketTask, "o") { record in
            record.protocols.append(`protocol`)
            record.stateAtOpening = state
            record.closeCodeAtOpening = code
            record.statusAtOpening = status
        }
        answers.opened(webSocketTask)
    }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) {
        note(webSocketTask, "x") { record in
            record.closings.append(
                Closing(code: closeCode.rawValue, reason: reason.map { String(decoding: $0, as: UTF8.self) }))
        }
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
