// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import LoadingModel
internal import Synchronization

extension URLSessionWebSocketTask {
    /// Sends a command to the load, and registers the caller that waits for the result; both happen in the order of the calls.
    ///
    /// If the task has completed or was cancelled, calls `refused` with the error.
    func issue(_ command: WebSocketCommand, _ wait: (inout WebSocketCalls) -> Void, refused: (any Error) -> Void) {
        var toWake: (any LoadingService)?
        let refusal: (any Error)? = calls.withLock { calls in
            if let end = calls.end { return end }
            let isTaken = mutex.withLock { $0.issue(command, for: identity, waking: &toWake) }
            guard isTaken else { return reasonForRefusal() }
            wait(&calls)
            return nil
        }
        toWake?.wake()
        if let refusal { refused(refusal) }
    }

    /// Returns the error that explains why the load accepts no more commands.
    private func reasonForRefusal() -> any Error {
        let (isOver, error, url) = mutex.withLock { ($0.lifecycle.isOver, $0.messages.error, $0.messages.url) }
        return error ?? (isOver ? closed() : ErrorTranslation.appError(.cancelled, url: url))
    }

    func setMaximumMessageSize(_ size: Int) {
        var toWake: (any LoadingService)?
        mutex.withLock { state in
            state.changeOrder { $0.maximumMessageSize = size }
            if !state.lifecycle.isUnstarted { _ = state.issue(.limit(size), for: identity, waking: &toWake) }
        }
        toWake?.wake()
    }

    /// Changes an option, if the task has not been resumed.
    func changeOrder(_ change: (inout WebSocketOrder) -> Void) {
        mutex.withLock { if $0.lifecycle.isUnstarted { $0.changeOrder(change) } }
    }

    func closeLoad(code: UInt16?, reason: Data) {
        abandonLoad(with: .webSocket(.close(code: code, reason: reason)))
    }

    /// Returns the error for calls made after the closing handshake.
    func closed() -> any Error {
        let error = LoadError(.connectionLost, "the WebSocket is closed", cause: POSIXError(.ENOTCONN))
        return ErrorTranslation.appError(error, url: mutex.withLock { $0.messages.url })
    }
}

extension TaskState {
    /// The WebSocket options of the load; nil for other tasks.
    var webSocket: WebSocketOrder? { if case .webSocket(let order) = delivery { order } else { nil } }

    mutating func changeOrder(_ change: (inout WebSocketOrder) -> Void) {
        guard case .webSocket(var order) = delivery else { return }
        // Releases the second reference to the order, so that the change does not copy it.
        delivery = .stream
        change(&order)
        delivery = .webSocket(order)
    }

    fileprivate mutating func issue(
        _ command: WebSocketCommand, for identity: Int, waking toWake: inout (any LoadingService)?
    ) -> Bool {
        issue(.webSocket(command), for: identity, waking: &toWake) { $0.changeOrder { $0.queued.append(command) } }
    }

    /// Sends a command to the load, or queues it until the load starts; returns false if the task has no load.
    mutating func issue(
        _ command: TaskCommand, for identity: Int, waking toWake: inout (any LoadingService)?,
        keep: (inout TaskState) -> Void
    ) -> Bool {
        switch lifecycle.phase {
        case .unstarted:
            guard session != nil else { return false }
            keep(&self)
        case .running, .paused:
            guard let service else { return false }
            if service.command(command, for: identity) { toWake = service }
        case .cancelling, .completed: return false
        }
        return true
    }
}

extension URLSessionWebSocketTask.Message {
    init(_ message: WebSocketMessage) {
        switch message {
        case .text(let text): self = .string(text)
        case .binary(let data): self = .data(data)
        }
    }

    var traffic: WebSocketMessage {
        switch self {
        case .string(let text): .text(text)
        case .data(let data): .binary(data)
        }
    }
}
