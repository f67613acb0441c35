// SPDX-License-Identifier: Apache-2.0

import Foundation
import HistoryModel
import Synchronization
import URLLoading

/// A stream task of a worker, which requests a page as an app with its own protocol would.
final class StreamLoad: Conversation {
    private struct State {
        var bytes = Data()
        var error: (any Error)?
        var isReading = true
        /// The delegate's calls at the end, if there is a delegate.
        var end: (calls: [String], error: (any Error)?)?
        var isReported = false
    }

    private let worker: Worker
    private let order: LoadRequest
    private let task: URLSessionStreamTask
    private let hasDelegate: Bool
    private let state = Mutex(State())

    init(_ worker: Worker, _ order: LoadRequest, _ task: URLSessionStreamTask, hasDelegate: Bool) {
        self.worker = worker
        self.order = order
        self.task = task
        self.hasDelegate = hasDelegate
    }

    /// Makes all calls of the task, which are executed once the task is resumed.
    func ask(_ request: URLRequest) {
        if order.startsInClear {
            write("STARTTLS\r\n")
            task.readData(ofMinLength: 4, maxLength: 4, timeout: 0) { _, _, _ in }
        }
        if order.isSecure { task.startSecureConnection() }
        let fields = request.allHTTPHeaderFields ?? [:]
        let lines = ["GET \(request.url?.path ?? "/") HTTP/1.1", "Host: history", "Connection: close"]
        write((lines + fields.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" } + ["", ""]).joined(separator: "\r\n"))
        read()
    }

    private func write(_ text: String) { task.write(Data(text.utf8), timeout: 0) { _ in } }

    private func read() {
        task.readData(ofMinLength: 1, maxLength: 30_000, timeout: 0) { data, isAtEnd, error in
            self.state.withLock { $0.bytes += data ?? Data() }
            guard isAtEnd || error != nil else { return self.read() }
            if isAtEnd { self.task.closeWrite() }
            self.state.withLock { ($0.isReading, $0.error) = (false, error) }
            self.reportEnd()
        }
    }

    func complete(_ calls: [String], _ cookies: [String]?, _ error: (any Error)?) {
        let isReported = state.withLock { state in
            state.end = (calls, error)
            return state.isReported
        }
        if isReported { worker.end(order.load, nil, nil, error, calls: calls) } else { reportEnd() }
    }

    /// Reports the end once every call has completed.
    private func reportEnd() {
        let said = state.withLock { state -> State? in
            guard !state.isReading, !state.isReported, state.end != nil || !hasDelegate else { return nil }
            state.isReported = true
            return state
        }
        guard let said else { return }
        let text = String(decoding: said.bytes, as: UTF8.self)
        let end = text.range(of: "\r\n\r\n")
        let status = text.split(separator: " ").dropFirst().first.flatMap { Int($0) }
        let response = URL(string: order.url).flatMap { url in
            status.flatMap { HTTPURLResponse(url: url, statusCode: $0, httpVersion: nil, headerFields: nil) }
        }
        worker.end(
            order.load, end.map { Data(text[$0.upperBound...].utf8) }, response, said.end.map(\.error) ?? said.error,
            calls: said.end?.calls ?? [])
    }
}

extension Worker {
    func beginStream(_ order: LoadRequest, _ request: URLRequest, _ session: URLSession) {
        let task = session.streamTask(withHostName: request.url?.host ?? "", port: request.url?.port ?? 0)
        if order.hasOwnTrust { task.delegate = TrustingDelegate() }
        let stream = StreamLoad(self, order, task, hasDelegate: session.delegate != nil)
        state.withLock { $0.conversations[order.load] = stream }
        stream.ask(request)
        start(task, order.load)
    }
}
