// SPDX-License-Identifier: Apache-2.0

internal import BackgroundClient
internal import Foundation
internal import LoadingModel
internal import Synchronization

/// Passes the events and questions of a load to the delegates, on the delegate queue and in order (docs/DELEGATE-ORDER.md).
///
/// Everything goes through one mailbox per task. Only one operation at a time empties the mailbox, so that the order holds even on
/// a queue that runs operations concurrently. A task's properties change immediately before the delegate is called. Credit for data
/// is returned after the delegate's method has returned.
///
/// Results for completion handlers and callers go through the same mailbox, after earlier events; the data of an `AsyncBytes`
/// bypasses the mailbox, because no delegate receives it.
final class DelegateBridge: LoadClient {
    private struct State {
        var mailbox = DelegateMailbox()
        /// Changes when a data task becomes a download or stream task.
        var task: URLSessionTask
        /// Set while the body of a `multipart/x-mixed-replace` response arrives.
        var parts: MultipartParts?
    }

    let calls: DelegateCalls
    private let queue: OperationQueue
    private let state: Mutex<State>

    init(task: URLSessionTask, calls: DelegateCalls) {
        self.calls = calls
        queue = calls.session.delegateQueue
        state = Mutex(State(task: task))
    }

    /// The events and questions that a delegate may handle.
    var interests: TaskOrder.Interests {
        var interests: TaskOrder.Interests = []
        if calls.mayImplement(.redirection) { interests.insert(.redirects) }
        if calls.mayImplement(.taskChallenge) || calls.shared?.mayImplement(.sessionChallenge) == true {
            interests.insert(.challenges)
        }
        if calls.mayImplement(.sentBodyData) { interests.insert(.sentBytes) }
        if calls.mayImplement(.informationalResponse) { interests.insert(.informational) }
        if calls.mayImplement(.sentRequestHead) { interests.insert(.sentHeads) }
        if calls.mayImplement(.beganFile) { interests.insert(.createdFiles) }
        if calls.mayImplement(.delayedRequest) { interests.insert(.delayedRequests) }
        if calls.mayImplement(.willCacheResponse) { interests.insert(.willCache) }
        if calls.mayImplement(.collectedMetrics) { interests.insert(.metrics) }
        return interests
    }

    /// Stands for the task's own delegate, if that evaluates servers; nil if the session's delegate, or no delegate, evaluates
    /// servers.
    var connectionHolder: ConnectionHolder? {
        // Before the first call of the session-level method, it is unknown whether the class implements that method: assume that
        // the class does not.
        let sessionDecides = calls.shared.map {
            ![nil, .absent].contains(DelegateForms.form(of: .sessionChallenge, in: type(of: $0.object)))
        }
        guard let own = calls.own, own.mayImplement(.taskChallenge), sessionDecides != true else { return nil }
        return DelegateHolders.holder(for: own.object)
    }

    // MARK: Called by the engine

    func tell(_ event: TaskEvent) {
        switch event {
        case .data(let data):
            if let task = iteratorTask() { return task.take(data) }
        // If the result is for an async caller, no delegate receives these events. Update the task's properties immediately,
        // because the caller may read them at any time.
        case .response, .wrote:
            if let task = callerTask() { return task.tell(event) }
        case .webSocket(let event):
            // If a delegate handles WebSocket events, all of them go through the mailbox, so that they stay in order.
            guard calls.handlesWebSockets else { return state.withLock { $0.task }.handle(event, isOnDelegateQueue: false) }
        case .stream(let event):
            let task = state.withLock { $0.task }
            guard calls.handlesStreams, !task.isCaptured else { return task.handle(event, isOnDelegateQueue: false) }
        case .finished(let outcome):
            let task = state.withLock { $0.task }
            // After the app has captured the streams, the load's result does not go to the delegate queue.
            if task.isCaptured { return task.loadEndedAfterCompletion(outcome) }
        case .requestChanged, .waitingForConnectivity, .sentHead, .informational, .sent, .resumed, .resumable, .becameDownload,
            .becameStream:
            break
        }
        post(.event(event))
    }

    func ask(_ question: TaskQuestion, reply: @escaping @Sendable (TaskAnswer) -> Void) {
        switch question {
        case .customLoader(let request):
            state.withLock { $0.task }.findCustomLoader(for: request) { reply(.customLoader($0)) }
        case .response where iteratorTask() != nil:
            iteratorTask()?.ask(question, reply: reply)
        case .cookies, .storeCookies, .cachedResponse, .storeCached, .storedCredential, .storeCredential:
            state.withLock { $0.task }.askAppStorages(question, reply: reply)
        case .redirect, .response, .newBodyStream, .delayedRequest, .challenge, .willCache:
            post(.question(question, reply: reply))
        }
    }

    func post(_ item: DelegateMailbox.Item) {
        if state.withLock({ $0.mailbox.post(item) }) { schedule() }
    }

    private func schedule() { queue.addOperation { self.deliverMail() } }

    /// Returns the task if its body goes to an iterator; otherwise nil.
    private func iteratorTask() -> URLSessionTask? {
        let task = state.withLock { $0.task }
        return task.mutex.withLock { if case .bytes = $0.recipients.audience { true } else { false } } ? task : nil
    }

    /// Returns the task if its result is for an async caller; otherwise nil.
    private func callerTask() -> URLSessionTask? {
        let task = state.withLock { $0.task }
        let isForCaller = task.mutex.withLock { state in
            switch state.recipients.audience {
            case .caller, .waitingForData, .waitingForFile, .bytes: true
            case .delegate, .data, .download: false
            }
        }
        return isForCaller ? task : nil
    }

    // MARK: On the delegate queue

    /// Delivers the contents of the mailbox; items that arrive meanwhile wait for another operation, so that no task monopolizes
    /// the queue.
    private func deliverMail() {
        var mail = state.withLock { $0.mailbox.take() }
        while let item = mail.takeFirst() {
            let task = state.withLock { $0.task }
            switch deliver(item, to: task) {
            case .done: break
            case .replaced(let items): mail = items + mail
            case .paused(let response):
                guard state.withLock({ $0.mailbox.pause(mail) }) else { return schedule() }
                return ask(about: response, for: task)
            }
        }
        if state.withLock({ $0.mailbox.finishDelivery() }) { schedule() }
    }

    private enum DeliveryResult {
        case done
        case replaced(ArraySlice<DelegateMailbox.Item>)
        /// Delivery is paused until the delegate has decided about a part.
        case paused(LoadResponse)
    }

    private func deliver(_ item: DelegateMailbox.Item, to task: URLSessionTask) -> DeliveryResult {
        switch item {
        case .event(.becameDownload): becomeDownload(task)
        case .event(.becameStream): becomeStreamTask(task)
        case .event(.data(let data)):
            if let items = state.withLock({ $0.parts?.items(for: data) }) { return .replaced(items[...]) }
            deliver(.data(data), to: task)
        case .event(.finished(let outcome)):
            let rest = state.withLock { state in
                defer { state.parts = nil }
                return state.parts?.lastItems() ?? []
            }
            if !rest.isEmpty { return .replaced(rest[...] + [item]) }
            end(task, outcome)
        case .event(let event): deliver(event, to: task)
        case .question(.response(let response), let reply) where task.isForDelegate:
            if let parts = MultipartParts(response) {
                state.withLock { $0.parts = parts }
                reply(.disposition(.allow))
            } else {
                deliver(.response(response), to: task, reply: reply)
            }
        case .question(let question, let reply): deliver(question, to: task, reply: reply)
        case .challenge(let challenge, let reply):
            calls.challenge(task, challenge) { answer in reply(answer?.0 ?? .performDefaultHandling, answer?.1) }
        case .part(let part): return .paused(part.response)
        case .partData(let data): deliver(.data(data), to: task)
        case .call(let handler): handler()
        case .credit(let count): task.consumed(count)
        }
        return .done
    }

    /// Asks the delegate about one part of a body.
    ///
    /// At this point, the load cannot become a download or a stream: any answer other than `.allow` cancels the task.
    private func ask(about part: LoadResponse, for task: URLSessionTask) {
        deliver(.response(part), to: task) { answer in
            if case .disposition(.allow) = answer {} else { task.cancel() }
            if self.state.withLock({ $0.mailbox.resume() }) { self.schedule() }
        }
    }

    private func becomeStreamTask(_ task: URLSessionTask) {
        guard let dataTask = task as? URLSessionDataTask, let stream = dataTask.convertToStream() else { return }
        state.withLock { $0.task = stream }
        calls.session.registry.replace(by: stream)
        calls.became(dataTask, stream)
    }

    private func becomeDownload(_ task: URLSessionTask) {
        guard let dataTask = task as? URLSessionDataTask, let download = dataTask.convertToDownload() else { return }
        state.withLock { $0.task = download }
        calls.session.registry.replace(by: download)
        calls.became(dataTask, download)
    }

    private func becomeStreams(_ task: URLSessionStreamTask) {
        guard let (streams, session) = task.becomeStreams(isOnDelegateQueue: true) else { return }
        calls.became(task, streams.0, streams.1)
        session.registry.forget(task.identity)
    }

    private func deliver(_ event: TaskEvent, to task: URLSessionTask) {
        if case .finished(let outcome) = event { return end(task, outcome) }
        let wasGivenUp = task.mutex.withLock { state in
            state.note(event)
            return state.discardsResult
        }
        task.updateProgress()
        // Events after a cancellation are not reported; Apple's API permits such reports, but does not require them.
        guard !wasGivenUp else { return }
        switch event {
        case .waitingForConnectivity:
            calls.waitsForConnectivity(task)
        case .sentHead(let head):
            calls.sentHead(task, head)
        case .informational(let head, let url):
            calls.informational(task, HTTPURLResponse(url: url, head: head, expectedLength: 0))
        case .sent(let bytes, let total, let expected):
            // A WebSocket's messages are counted, but are no body.
            if !(task is URLSessionWebSocketTask) { calls.sent(task, bytes: bytes, total: total, expected: expected) }
        case .data(let data):
            if let dataTask = task as? URLSessionDataTask, task.isForDelegate { calls.received(dataTask, data) }
            if state.withLock({ $0.parts == nil }) { task.consumed(data.count) }
        case .wrote(let bytes, let total, let expected):
            guard let download = task as? URLSessionDownloadTask, task.isForDelegate else { return }
            calls.wrote(download, bytes: bytes, total: total, expected: expected)
        case .resumed(let offset, let expected):
            guard let download = task as? URLSessionDownloadTask, task.isForDelegate else { return }
            calls.resumed(download, offset: offset, expected: expected)
        case .resumable(let resumeData):
            guard let resumeData, let download = task as? URLSessionDownloadTask, task.isForDelegate else { return }
            calls.began(download, resumeData)
        case .webSocket(let event):
            task.handle(event, isOnDelegateQueue: true)
            guard let socket = task as? URLSessionWebSocketTask else { return }
            calls.handle(event, of: socket)
        case .stream(let event):
            guard let stream = task as? URLSessionStreamTask else { return }
            if case .captured = event { return becomeStreams(stream) }
            task.handle(event, isOnDelegateQueue: true)
            if !task.mutex.withLock({ $0.lifecycle.isOver }) { calls.handle(event, of: stream) }
        case .requestChanged, .response, .becameDownload, .becameStream, .finished:
            break
        }
    }

    private func end(_ task: URLSessionTask, _ outcome: TaskOutcome) {
        defer { withExtendedLifetime(outcome) {} }
        let isForDelegate = task.isForDelegate
        if isForDelegate, case .success(.file(let path)) = outcome.result, let download = task as? URLSessionDownloadTask {
            task.recordResponse(outcome.response)
            if !task.mutex.withLock({ $0.discardsResult }) { calls.downloaded(download, to: URL(fileURLWithPath: path)) }
            try? FileManager.default.removeItem(atPath: path)
        }
        guard let completion = task.complete(outcome, isOnDelegateQueue: true) else { return }
        calls.collected(task, metrics(outcome, of: task))
        if isForDelegate { calls.completed(task, completion.error) }
        completion.background?.acknowledge(task.identity)
        switch completion.audience {
        case .delegate, .data, .download:
            task.deliver(completion)
            calls.session.registry.forget(task.identity)
        case .caller, .waitingForData, .waitingForFile, .bytes:
            calls.session.registry.forget(task.identity)
            task.deliver(completion)
        }
    }

    private func metrics(_ outcome: TaskOutcome, of task: URLSessionTask) -> URLSessionTaskMetrics {
        let (created, template) = task.mutex.withLock { ($0.start.created, $0.messages.original) }
        let start = Date(timeIntervalSinceReferenceDate: created)
        return URLSessionTaskMetrics(
            timelines: outcome.timelines, interval: DateInterval(start: start, end: max(start, Date())),
            redirectCount: outcome.redirectCount, template: template
        )
    }
}
