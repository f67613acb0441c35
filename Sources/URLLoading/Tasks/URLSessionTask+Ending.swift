// SPDX-License-Identifier: Apache-2.0

internal import BackgroundClient
internal import BackgroundProtocol
internal import Foundation
internal import LoadingModel
internal import Synchronization

/// A task that has ended, before its result is delivered.
struct TaskCompletion: Sendable {
    var session: URLSession?
    /// The connection to the daemon, which waits for the acknowledgment of the end, if the daemon performed the task.
    var background: RemoteSession?
    var audience: TaskAudience
    var response: URLResponse?
    var result: Result<TaskOutcome.Body, any Error>
    var resumeData: Data?
    var resumeDataHandlers: [@Sendable (Data?) -> Void]
    var showsProgress: Bool

    var error: (any Error)? {
        if case .failure(let error) = result { error } else { nil }
    }

    /// Deletes the downloaded file, if it is still where the engine put it.
    func discardFile() {
        guard case .success(.file(let path)) = result else { return }
        try? FileManager.default.removeItem(atPath: path)
    }
}

/// The end of a task: its final state, and the delivery of its result.
extension URLSessionTask {
    /// Completes the task; returns nil if it was already completed.
    ///
    /// A task that the app cancelled completes as cancelled, whatever the result of its load.
    func complete(_ outcome: TaskOutcome, isOnDelegateQueue: Bool = false) -> TaskCompletion? {
        let completion: TaskCompletion? = mutex.withLock { state in
            let resultIsDiscarded = state.discardsResult
            guard state.lifecycle.handle(.finished) == .complete else { return nil }
            state.noteEnd(outcome, resultIsDiscarded: resultIsDiscarded)
            let background = state.background
            var completion = TaskCompletion(
                session: state.session.take(),
                background: background,
                audience: state.recipients.audience,
                response: state.recipients.audience.takesResponse ? state.messages.visibleResponse() : nil,
                result: .success(.none),
                resumeDataHandlers: state.recipients.resumeDataHandlers,
                showsProgress: state.progress != nil
            )
            switch outcome.result {
            case .success(let body) where !resultIsDiscarded:
                completion.result = .success(body)
            case .success(let body):
                if case .file(let path) = body { try? FileManager.default.removeItem(atPath: path) }
                completion.result = .failure(ErrorTranslation.appError(.cancelled, url: state.messages.url))
            case .failure(var error):
                if resultIsDiscarded, error.kind != .cancelled {
                    error = LoadError(.cancelled, "cancelled", cause: error, url: error.url)
                }
                completion.resumeData = error.resumeData ?? error.uploadResumeData
                completion.result = .failure(ErrorTranslation.appError(error, url: state.messages.url))
            }
            state.messages.error = completion.error
            state.recipients.resumeDataHandlers = []
            state.recipients.release()
            return completion
        }
        if completion?.showsProgress == true { updateProgress() }
        if let completion {
            loadEnded(completion.error, isOnDelegateQueue: isOnDelegateQueue)
        } else {
            loadEndedAfterCompletion(outcome)
        }
        return completion
    }

    /// Completes the task if all that remains is to resume the caller that waits for its data; otherwise returns nil.
    ///
    /// Most loads take this fast path. It creates no objects for delegates.
    func completeDirectly(_ outcome: TaskOutcome) -> Waking? {
        guard case .success(let body) = outcome.result else { return nil }
        var session: URLSession?
        let waking: Waking? = mutex.withLock { state in
            guard case .waitingForData(let caller) = state.recipients.audience, state.progress == nil, !state.discardsResult,
                state.lifecycle.handle(.finished) == .complete
            else { return nil }
            state.noteEnd(outcome, resultIsDiscarded: false)
            session = state.session.take()
            state.recipients.release()
            return Waking(caller, priority: state.recipients.priorityInPool, with: body.data)
        }
        session?.registry.forget(identity)
        return waking
    }

    /// Delivers the result to the completion handler, which runs synchronously, or to the caller that waits for it.
    func deliver(_ completion: TaskCompletion) {
        let response = completion.response
        switch completion.audience {
        case .delegate, .caller:
            completion.discardFile()
        case .data(let handler):
            switch completion.result {
            case .success(let body): handler(body.data, response, nil)
            case .failure(let error): handler(nil, response, error)
            }
        case .download(let handler):
            switch completion.result {
            case .success(.file(let path)):
                handler(URL(fileURLWithPath: path), response, nil)
                completion.discardFile()
            case .success: handler(nil, response, Self.missingResponseError)
            case .failure(let error): handler(nil, response, error)
            }
        case .waitingForData(let continuation):
            continuation.resume(with: completion.result.map { $0.data })
        case .waitingForFile(let continuation):
            switch completion.result {
            case .success(.file(let path)): continuation.resume(returning: URL(fileURLWithPath: path))
            case .success: continuation.resume(throwing: Self.missingResponseError)
            case .failure(let error): continuation.resume(throwing: error)
            }
        case .bytes(let stream):
            stream.finish(completion.error, response: response)
        }
        for handler in completion.resumeDataHandlers { handler(completion.resumeData) }
    }

    /// The error of a load whose custom `URLProtocol` finished without reporting a response.
    static var missingResponseError: any Error {
        ErrorTranslation.appError(.badServerResponse, "the load ended without a response", url: nil)
    }

    /// Calls a completion handler of a WebSocket or stream task on the delegate queue: after the events that were reported before
    /// it, and before the task's last call.
    func call(_ handler: @escaping @Sendable () -> Void, on queue: OperationQueue?) {
        if let bridge = mutex.withLock({ $0.recipients.bridge }) {
            bridge.post(.call(handler))
        } else if let queue {
            queue.addOperation(handler)
        } else {
            handler()
        }
    }

    // MARK: Async callers

    /// Runs the task and waits for its data.
    ///
    /// Inlined, because every suspended async function needs a frame, and looks up its executor when it resumes.
    @inline(__always)
    nonisolated(nonsending) func data() async throws -> (Data, URLResponse) {
        let priority = Self.priorityInPool(#isolation)
        let data = try await withTaskCancellationHandler {
            try await withUnsafeThrowingContinuation { continuation in
                begin(for: .waitingForData(continuation), priority) { continuation.resume(throwing: $0) }
            }
        } onCancel: {
            cancel()
        }
        return (data, try endedResponse())
    }

    /// Runs the task and waits for its file, which the caller then owns.
    nonisolated(nonsending) func file() async throws -> (URL, URLResponse) {
        let file = try await withTaskCancellationHandler {
            try await withUnsafeThrowingContinuation { continuation in
                begin(for: .waitingForFile(continuation)) { continuation.resume(throwing: $0) }
            }
        } onCancel: {
            cancel()
        }
        do {
            return (file, try endedResponse())
        } catch {
            try? FileManager.default.removeItem(at: file)
            throw error
        }
    }

    /// Returns the response, converted here on the caller's thread, not on the event loop.
    private func endedResponse() throws -> URLResponse {
        guard let response = mutex.withLock({ $0.messages.visibleResponse() }) else { throw Self.missingResponseError }
        return response
    }

    /// Returns the priority of the calling Swift task; nil if the caller resumes on an actor or a task executor, not on the thread
    /// pool.
    private static func priorityInPool(_ isolation: (any Actor)?) -> UInt8? {
        guard isolation == nil else { return nil }
        return withUnsafeCurrentTask { task in
            guard let task, task.unownedTaskExecutor == nil else { return nil }
            return task.priority.rawValue
        }
    }

    private func begin(for audience: TaskAudience, _ priority: UInt8? = nil, refused: (any Error) -> Void) {
        var refusal: (any Error)?
        resumeLoad { state in
            switch state.lifecycle.phase {
            case .unstarted, .running, .paused:
                state.recipients.audience = audience
                state.recipients.priorityInPool = priority
                return true
            case .cancelling, .completed:
                refusal = state.messages.error ?? ErrorTranslation.appError(.cancelled, url: state.messages.url)
                return false
            }
        }
        if let refusal { refused(refusal) }
    }
}

extension TaskState {
    /// Records the final counts and the response of the load.
    fileprivate mutating func noteEnd(_ outcome: TaskOutcome, resultIsDiscarded: Bool) {
        counts.sent = max(counts.sent, outcome.sentBodyBytes)
        counts.received = max(counts.received, outcome.receivedBodyBytes)
        if let response = outcome.response, !messages.hasResponse { note(response) }
        guard counts.received == 0, !resultIsDiscarded, case .success(.collected(let data)) = outcome.result else { return }
        counts.received = Int64(data.count)
    }
}

extension TaskOutcome.Body {
    var data: Data {
        if case .collected(let data) = self { data } else { Data() }
    }
}
