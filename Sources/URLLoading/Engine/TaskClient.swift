// SPDX-License-Identifier: Apache-2.0

internal import BackgroundClient
internal import Foundation
package import LoadingModel
internal import Synchronization

/// A task is the client of its own load if there are no delegates to call: results go directly to the waiting caller.
extension URLSessionTask: LoadClient {
    package func tell(_ event: TaskEvent) {
        switch event {
        case .data(let data):
            take(data)
        case .finished(let outcome):
            conclude(outcome)?.run()
        case .requestChanged, .response, .sent, .wrote, .resumed:
            let showsProgress = mutex.withLock { state in
                state.note(event)
                return state.progress != nil
            }
            if showsProgress { updateProgress() }
        case .webSocket(let event):
            handle(event, isOnDelegateQueue: false)
        case .stream(let event):
            handle(event, isOnDelegateQueue: false)
        case .waitingForConnectivity, .sentHead, .informational, .resumable, .becameDownload, .becameStream:
            break
        }
    }

    package func conclude(_ outcome: TaskOutcome) -> Waking? {
        if let waking = completeDirectly(outcome) { return waking }
        if let completion = complete(outcome) { finish(completion, keeping: outcome.keptUntilTold) }
        return nil
    }

    package func ask(_ question: TaskQuestion, reply: @escaping @Sendable (TaskAnswer) -> Void) {
        switch question {
        case .redirect(_, let proposed): reply(.request(proposed))
        case .response(let response):
            take(response)
            reply(.disposition(.allow))
        case .newBodyStream: reply(.bodyStream(nil))
        case .delayedRequest: reply(.delayed(.proceed))
        case .customLoader(let request): findCustomLoader(for: request) { reply(.customLoader($0)) }
        case .challenge: reply(.credential(.performDefaultHandling))
        case .cookies, .storeCookies, .cachedResponse, .storeCached, .storedCredential, .storeCredential:
            askAppStorages(question, reply: reply)
        case .willCache(let proposed): reply(.cached(proposed))
        }
    }

    /// Handles the response of a streamed body.
    func take(_ response: LoadResponse) {
        let (audience, visible, showsProgress) = mutex.withLock { state in
            state.note(response)
            let audience = state.recipients.audience
            guard case .bytes = audience else { return (audience, nil as URLResponse?, state.progress != nil) }
            return (audience, state.messages.visibleResponse(), state.progress != nil)
        }
        if showsProgress { updateProgress() }
        if case .bytes(let stream) = audience, let visible { stream.receive(visible) }
    }

    /// Handles data of a streamed body, which goes to an iterator, or is discarded.
    func take(_ data: Data) {
        let (audience, showsProgress) = mutex.withLock { state in
            state.note(.data(data))
            return (state.recipients.audience, state.progress != nil)
        }
        if showsProgress { updateProgress() }
        if case .bytes(let stream) = audience {
            stream.append(data)
        } else {
            consumed(data.count)
        }
    }

    private func finish(_ completion: TaskCompletion, keeping object: (any AnyObject & Sendable)?) {
        let session = completion.session
        completion.background?.acknowledge(identity)
        switch completion.audience {
        case .data, .download:
            guard let session else { return deliver(completion) }
            session.delegateQueue.addOperation {
                self.deliver(completion)
                session.registry.forget(self.identity)
                withExtendedLifetime(object) {}
            }
        case .delegate, .caller, .waitingForData, .waitingForFile, .bytes:
            session?.registry.forget(identity)
            deliver(completion)
        }
    }

    /// Whether the task's events and result are for the delegate, not for a completion handler or caller.
    var isForDelegate: Bool { mutex.withLock { if case .delegate = $0.recipients.audience { true } else { false } } }

    /// Records the response of a load that reported it only at the end.
    func recordResponse(_ response: LoadResponse?) {
        guard let response else { return }
        mutex.withLock { if !$0.messages.hasResponse { $0.note(response) } }
    }
}

extension URLSessionDataTask {
    /// Makes a download task that takes over this task's load and identifier, and completes this task without an event.
    ///
    /// Returns nil if this task was already complete.
    func convertToDownload() -> URLSessionDownloadTask? {
        convert(.download(resuming: nil)) { URLSessionDownloadTask(takingOver: $0, identifier: identity) }
    }

    /// Makes a stream task in the same way, for a load whose server has switched protocols.
    func convertToStream() -> URLSessionStreamTask? {
        let queue = mutex.withLock { $0.session?.delegateQueue }
        let url = currentRequest?.url
        let order = StreamOrder(host: url?.host ?? "", port: url?.port ?? 0)
        return convert(.byteStream(order)) { URLSessionStreamTask(takingOver: $0, identifier: identity, queue: queue) }
    }

    private func convert<Successor>(
        _ delivery: TaskOrder.Delivery, _ make: (consuming TaskState) -> Successor
    ) -> Successor? {
        mutex.withLock { state in
            let successor = TaskState(takingOver: state, delivery: delivery)
            guard state.lifecycle.handle(.finished) == .complete else { return nil }
            state.session = nil
            state.recipients.bridge = nil
            state.recipients.ownDelegate = nil
            return make(successor)
        }
    }
}
