//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import Foundation
internal import LoadingModel
internal import Synchronization

/// Carries what a load tells and asks to the delegates, on the delegate queue and in order (docs/DELEGATE-ORDER.md).
///
/// Everything goes through one mailbox per task. One operation at a time empties it, so that order holds even on a queue that
/// runs several operations at once. What a task's properties say changes right before the delegate hears of it. Credit for data
/// is returned when the delegate's method returned.
///
/// Results for handlers and callers pass through the same mailbox, behind the messages that come before them; the data of an
/// `AsyncBytes` does not, as no delegate hears of it.
final class DelegateBridge: LoadClient {
    enum Item: Sendable {
        case event(TaskEvent)
        case question(TaskQuestion, reply: @Sendable (TaskAnswer) -> Void)
        /// From an app's `URLProtocol`.
        case challenge(URLAuthenticationChallenge, reply: @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)
    }

    private struct State {
        var mail: [Item] = []
        var isScheduled = false
        /// Changes when a data task becomes a download.
        var task: URLSessionTask
    }

    let calls: DelegateCalls
    private let queue: OperationQueue
    private let state: Mutex<State>

    init(task: URLSessionTask, calls: DelegateCalls) {
        self.calls = calls
        queue = calls.session.delegateQueue
        state = Mutex(State(task: task))
    }

    /// What the engine must tell and ask because a delegate may want it.
    var interests: TaskOrder.Interests {
        var interests: TaskOrder.Interests = []
        if calls.mayImplement(.redirection) { interests.insert(.redirects) }
        if calls.mayImplement(.taskChallenge) { interests.insert(.challenges) }
        if calls.mayImplement(.sentBodyData) { interests.insert(.sentBytes) }
        if calls.mayImplement(.informationalResponse) { interests.insert(.informational) }
        if calls.mayImplement(.delayedRequest) { interests.insert(.delayedRequests) }
        return interests
    }

    // MARK: The engine's side

    func tell(_ event: TaskEvent) {
        if case .data(let data) = event, let task = directReader() { return task.take(data) }
        post(.event(event))
    }

    func ask(_ question: TaskQuestion, reply: @escaping @Sendable (TaskAnswer) -> Void) {
        switch question {
        case .customLoader(let request):
            state.withLock { $0.task }.findCustomLoader(for: request) { reply(.customLoader($0)) }
        case .response where directReader() != nil:
            directReader()?.ask(question, reply: reply)
        case .redirect, .response, .newBodyStream, .delayedRequest, .challenge:
            post(.question(question, reply: reply))
        }
    }

    func post(_ item: Item) {
        let mustSchedule = state.withLock { state in
            if !state.mail.mergeLast(with: item) { state.mail.append(item) }
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        if mustSchedule { queue.addOperation { self.empty() } }
    }

    /// The task, if its body goes to an iterator.
    private func directReader() -> URLSessionTask? {
        let task = state.withLock { $0.task }
        return task.mutex.withLock { if case .bytes = $0.audience { true } else { false } } ? task : nil
    }

    // MARK: The delegate queue's side

    /// Delivers what is in the mailbox; what comes meanwhile waits for another operation, so that no task keeps the queue for itself.
    private func empty() {
        let (mail, task) = state.withLock { state in
            defer { state.mail = [] }
            return (state.mail, state.task)
        }
        var current = task
        for item in mail { current = deliver(item, to: current) }
        let hasMore = state.withLock { state in
            state.task = current
            state.isScheduled = !state.mail.isEmpty
            return state.isScheduled
        }
        if hasMore { queue.addOperation { self.empty() } }
    }

    /// Delivers one item and returns the task that further items are for.
    private func deliver(_ item: Item, to task: URLSessionTask) -> URLSessionTask {
        switch item {
        case .event(.becameDownload):
            guard let dataTask = task as? URLSessionDataTask, let download = dataTask.succeedAsDownload() else { return task }
            calls.session.registry.replace(task.identity, by: download)
            calls.became(dataTask, download)
            return download
        case .event(let event):
            deliver(event, to: task)
        case .question(let question, let reply):
            deliver(question, to: task, reply: reply)
        case .challenge(let challenge, let reply):
            calls.challenge(task, challenge) { answer in
                reply(answer?.0 ?? .performDefaultHandling, answer?.1)
            }
        }
        return task
    }

    private func deliver(_ event: TaskEvent, to task: URLSessionTask) {
        if case .finished(let outcome) = event { return end(task, outcome) }
        let wasGivenUp = task.mutex.withLock { state in
            state.note(event)
            return state.lifecycle.phase == .cancelling
        }
        task.updateProgress()
        // What comes between the app's giving up and the end is not reported: Apple's may report it, but need not.
        guard !wasGivenUp else { return }
        switch event {
        case .informational(let head, let url):
            calls.informational(task, HTTPURLResponse(url: url, head: head, expectedLength: 0))
        case .sent(let bytes, let total, let expected):
            calls.sent(task, bytes: bytes, total: total, expected: expected)
        case .data(let data):
            if let dataTask = task as? URLSessionDataTask, task.isForDelegate { calls.received(dataTask, data) }
            task.consumed(data.count)
        case .wrote(let bytes, let total, let expected):
            guard let download = task as? URLSessionDownloadTask, task.isForDelegate else { return }
            calls.wrote(download, bytes: bytes, total: total, expected: expected)
        case .resumed(let offset, let expected):
            guard let download = task as? URLSessionDownloadTask, task.isForDelegate else { return }
            calls.resumed(download, offset: offset, expected: expected)
        case .requestChanged, .response, .becameDownload, .finished:
            break
        }
    }

    private func end(_ task: URLSessionTask, _ outcome: TaskOutcome) {
        let isForDelegate = task.isForDelegate
        if isForDelegate, case .success(.file(let path)) = outcome.result, let download = task as? URLSessionDownloadTask {
            task.noteResponse(outcome.response)
            if task.state != .canceling { calls.downloaded(download, to: URL(fileURLWithPath: path)) }
            try? FileManager.default.removeItem(atPath: path)
        }
        guard let settlement = task.settle(outcome) else { return }
        calls.collected(task, metrics(outcome, of: task))
        if isForDelegate { calls.completed(task, settlement.error) }
        switch settlement.audience {
        case .delegate, .data, .download:
            task.deliver(settlement)
            calls.session.registry.forget(task.identity)
        case .caller, .waitingForData, .waitingForFile, .bytes:
            calls.session.registry.forget(task.identity)
            task.deliver(settlement)
        }
    }

    private func metrics(_ outcome: TaskOutcome, of task: URLSessionTask) -> URLSessionTaskMetrics {
        let (created, template) = task.mutex.withLock { ($0.created, $0.original) }
        let start = Date(timeIntervalSinceReferenceDate: created)
        return URLSessionTaskMetrics(
            timelines: outcome.timelines, interval: DateInterval(start: start, end: max(start, Date())),
            redirectCount: outcome.redirectCount, template: template
        )
    }
}

extension [DelegateBridge.Item] {
    /// Adds a count to the last item if that is a count of the same kind which was not delivered yet.
    fileprivate mutating func mergeLast(with item: DelegateBridge.Item) -> Bool {
        switch (last, item) {
        case (.event(.sent(let earlier, _, _)), .event(.sent(let bytes, let total, let expected))):
            self[count - 1] = .event(.sent(bytes: earlier + bytes, total: total, expected: expected))
        case (.event(.wrote(let earlier, _, _)), .event(.wrote(let bytes, let total, let expected))):
            self[count - 1] = .event(.wrote(bytes: earlier + bytes, total: total, expected: expected))
        default:
            return false
        }
        return true
    }
}
