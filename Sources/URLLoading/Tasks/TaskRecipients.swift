// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// The recipient of a task's result.
enum TaskAudience: Sendable {
    /// The delegate, if there is one.
    case delegate
    /// A completion handler, called on the delegate queue.
    case data(@Sendable (Data?, URLResponse?, (any Error)?) -> Void)
    case download(@Sendable (URL?, URLResponse?, (any Error)?) -> Void)
    /// An async call that has not suspended.
    case caller
    /// A suspended async call.
    case waitingForData(UnsafeContinuation<Data, any Error>)
    case waitingForFile(UnsafeContinuation<URL, any Error>)
    /// An `AsyncBytes`.
    case bytes(ByteStream)

    /// Whether the response is delivered with the result; async callers read it from the task.
    var takesResponse: Bool {
        switch self {
        case .waitingForData, .waitingForFile: false
        case .delegate, .data, .download, .caller, .bytes: true
        }
    }
}

/// Who hears of a task's events and of its result.
struct TaskRecipients: Sendable {
    var audience: TaskAudience
    /// The priority of an async caller that is resumed on the process's thread pool (``Waking``).
    var priorityInPool: UInt8?
    /// The task-specific delegate, until the task has completed.
    var ownDelegate: DelegateConformances?
    /// Created when the load starts, if there are calls to make on the delegate queue.
    var bridge: DelegateBridge?
    /// The handlers that wait for resume data after `cancel(byProducingResumeData:)`.
    var resumeDataHandlers: [@Sendable (Data?) -> Void] = []
    /// Whether the task succeeds if its load succeeds before a cancellation takes effect.
    ///
    /// True after a cancellation that produces resume data or closes a WebSocket.
    var mayStillSucceed = false

    init(audience: TaskAudience) { self.audience = audience }

    /// Releases the recipients of the result; they are deallocated when the task's mutex is released, at the latest.
    mutating func release() {
        ownDelegate = nil
        bridge = nil
        audience = .delegate
    }
}
