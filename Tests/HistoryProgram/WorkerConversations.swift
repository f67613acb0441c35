// SPDX-License-Identifier: Apache-2.0

import Foundation
import HistoryModel
import Synchronization
import URLLoading

/// A load of a worker that has ended only when several calls have completed.
protocol Conversation: Sendable {
    /// Called when the delegate has received the end.
    func complete(_ calls: [String], _ cookies: [String]?, _ error: (any Error)?)
}

/// A WebSocket of a worker: its received messages, and its pending calls.
final class SocketLoad: Conversation {
    private struct State {
        var text = ""
        var error: (any Error)?
        var cookies: [String]?
        var isReading = true
        var sending = 0
        /// The delegate's calls at the end, if there is a delegate.
        var end: (calls: [String], cookies: [String]?, error: (any Error)?)?
        var isReported = false
    }

    private let worker: Worker
    private let load: Int
    private let task: URLSessionWebSocketTask
    private let hasDelegate: Bool
    private let state = Mutex(State())

    init(_ worker: Worker, _ load: Int, _ task: URLSessionWebSocketTask, hasDelegate: Bool) {
        self.worker = worker
        self.load = load
        self.task = task
        self.hasDelegate = hasDelegate
    }

    func send(_ messages: [String]) {
        state.withLock { $0.sending = messages.count }
        for message in messages {
            task.send(.string(message)) { _ in
                self.state.withLock { $0.sending -= 1 }
                self.reportEnd()
            }
        }
    }

    func receive() {
        task.receive { result in
            switch result {
            case .success(let message):
                let cookies = self.worker.cookies(for: self.load)
                let text =
                    switch message {
                    case .string(let text): text
                    case .data(let data): String(decoding: data, as: UTF8.self)
                    }
                self.state.withLock { ($0.text, $0.cookies) = ($0.text + text, $0.cookies ?? cookies) }
                self.receive()
            case .failure(let error):
                self.state.withLock { ($0.isReading, $0.error) = (false, error) }
                self.reportEnd()
            }
        }
    }

    func complete(_ calls: [String], _ cookies: [String]?, _ error: (any Error)?) {
        let isReported = state.withLock { state in
            state.end = (calls, cookies, error)
            return state.isReported
        }
        if isReported { worker.end(load, nil, nil, error, calls: calls) } else { reportEnd() }
    }

    /// Reports the end once every call has completed.
    private func reportEnd() {
        let said = state.withLock { state -> State? in
            guard !state.isReading, state.sending == 0, !state.isReported, state.end != nil || !hasDelegate else { return nil }
            state.isReported = true
            return state
        }
        guard let said else { return }
        // Without a delegate, the server's close code tells whether the task has succeeded.
        let error = hasDelegate ? said.end?.error : task.closeCode == .normalClosure ? nil : said.error
        worker.end(
            load, Data(said.text.utf8), task.response, error, calls: said.end?.calls ?? [],
            cookies: said.end?.cookies ?? said.cookies)
    }
}

extension Worker {
    func beginSocket(_ order: LoadRequest, _ request: URLRequest, _ session: URLSession) {
        let task = session.webSocketTask(with: request)
        if order.hasOwnTrust { task.delegate = TrustingDelegate() }
        let socket = SocketLoad(self, order.load, task, hasDelegate: session.delegate != nil)
        state.withLock { $0.conversations[order.load] = socket }
        socket.send(order.messages)
        socket.receive()
        start(task, order.load)
    }
}
