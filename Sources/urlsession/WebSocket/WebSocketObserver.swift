//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import Synchronization
import URLLoading

/// Answers a WebSocket task's challenges, shows the handshake, and waits for the task's completion.
final class WebSocketObserver: NSObject, ChallengeAnswering, URLSessionWebSocketDelegate {
    private struct State {
        var isOpen = false
        var isOver = false
        var waiters: [(isReached: @Sendable (State) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
        var redirectCount = 0
    }

    let answers: ChallengeAnswers
    private let isVerbose: Bool
    private let showsMetrics: Bool
    private let redirects: RedirectRule
    private let state = Mutex(State())

    init(answers: ChallengeAnswers, isVerbose: Bool, showsMetrics: Bool, redirects: RedirectRule) {
        self.answers = answers
        self.isVerbose = isVerbose
        self.showsMetrics = showsMetrics
        self.redirects = redirects
    }

    /// Waits until the handshake has succeeded, or the task is complete.
    func opening() async { await wait { $0.isOpen || $0.isOver } }

    /// Waits until the task is complete.
    func end() async { await wait(until: \.isOver) }

    private func wait(until isReached: @escaping @Sendable (State) -> Bool) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if isReached(state) { return true }
                state.waiters.append((isReached, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    private func change(_ change: @Sendable (inout State) -> Void) {
        let reached = state.withLock { state in
            change(&state)
            let now = state
            state.waiters.removeAll { $0.isReached(now) }
            return now.waiters.filter { $0.isReached(now) }
        }
        for waiter in reached { waiter.continuation.resume() }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        let count = state.withLock { state in
            state.redirectCount += 1
            return state.redirectCount
        }
        completionHandler((try? redirects.allows(count, to: request.url)) == true ? request : nil)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didSendRequestHead head: [String]) {
        if isVerbose { StandardError.write(HeadText.request(head, prefix: "> ")) }
    }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
    ) {
        if isVerbose, let response = webSocketTask.response {
            StandardError.write(HeadText.response(response, prefix: "< "))
        }
        change { $0.isOpen = true }
    }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) {
        guard isVerbose else { return }
        let text = reason.map { String(decoding: $0, as: UTF8.self) } ?? ""
        StandardError.print(TextTable.sanitized("* closed with \(closeCode.rawValue)" + (text.isEmpty ? "" : ": \(text)")))
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        if showsMetrics { StandardError.write(Waterfall(metrics).text()) }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        change { $0.isOver = true }
    }
}
