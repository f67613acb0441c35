//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation
internal import LoadingModel
internal import Synchronization

/// A task of a session: one resource to load, with its state, its counters, and what came of it.
///
/// Tasks are made by `URLSession`, suspended; `resume()` starts them. The session holds them from then until they ended, so that the app
/// need not; a task that is not wanted after all is cancelled. Copying a task returns the task itself.
///
/// All mutable state is one `Mutex`; commands reach the engine while it is held, so that they arrive in the order in which they
/// took effect here. No code of the app runs under it.
open class URLSessionTask: NSObject, NSCopying, ProgressReporting, @unchecked Sendable {
    /// What a task is doing.
    public enum State: Int, Sendable {
        /// The load runs, or waits for its turn.
        case running = 0
        /// Not started, or held back by the app.
        case suspended = 1
        /// Given up by the app; its end has not been told yet.
        case canceling = 2
        /// Over: no more messages come, except the last that tells so.
        case completed = 3
    }

    /// The priority of a task that was given none: 0.5.
    public class var defaultPriority: Float { 0.5 }
    /// A priority below the default: 0.25.
    public class var lowPriority: Float { 0.25 }
    /// A priority above the default: 0.75.
    public class var highPriority: Float { 0.75 }

    let identity: Int
    let mutex: Mutex<TaskState>

    /// Makes a task that belongs to no session and does nothing, for programs that put objects of their own in place of tasks.
    public override init() {
        identity = 0
        mutex = Mutex(TaskState(session: nil, request: nil, delivery: .collect, audience: .delegate))
        super.init()
    }

    init(
        session: URLSession, identifier: Int, request: URLRequest?, delivery: TaskOrder.Delivery, audience: TaskAudience,
        uploadBody: RequestBody? = nil
    ) {
        identity = identifier
        let state = TaskState(session: session, request: request, delivery: delivery, audience: audience, uploadBody: uploadBody)
        // Without `consume` it is copied, and then destroyed.
        mutex = Mutex(consume state)
        super.init()
    }

    /// Takes the place of a task whose load goes on as another kind of task.
    init(succeeding state: consuming TaskState, identifier: Int) {
        identity = identifier
        mutex = Mutex(consume state)
        super.init()
    }

    /// Returns the task itself.
    ///
    /// - Returns: The task.
    open override func copy() -> Any { self }

    /// Returns the task itself.
    ///
    /// - Returns: The task.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    // MARK: What it is

    /// The number of the task, unique within its session.
    open var taskIdentifier: Int { identity }

    /// The request the task was made with, or nil for a task made from resume data that did not name one.
    open var originalRequest: URLRequest? { mutex.withLock { $0.original } }

    /// The request that is being loaded now: differs from the original once it was completed with the session's fields, or redirected.
    open var currentRequest: URLRequest? { mutex.withLock { $0.visibleRequest() } }

    /// The response, once there is one.
    open var response: URLResponse? {
        mutex.withLock { state in
            watch(&state)
            return state.visibleResponse()
        }
    }

    /// Why the task failed, once it did.
    open var error: (any Error)? { mutex.withLock { $0.error } }

    /// A text of the app's; default nil.
    open var taskDescription: String? {
        get { mutex.withLock { $0.description } }
        set { changeNotes { $0.description = newValue } }
    }

    /// A delegate for this task alone; default nil.
    ///
    /// What it does not implement goes to the session's delegate, method by method.
    ///
    /// It can be set until the task is first resumed; setting it later has no effect. It is held until the task completes, then nil.
    open var delegate: (any URLSessionTaskDelegate)? {
        get { mutex.withLock { $0.ownDelegate }?.task }
        set {
            let conformances = newValue.map { DelegateConformances($0) }
            mutex.withLock { if $0.lifecycle.isUnstarted { $0.ownDelegate = conformances } }
        }
    }

    // MARK: Running it

    /// Whether the task runs, waits, was given up or is over.
    open var state: State {
        switch mutex.withLock({ $0.lifecycle.phase }) {
        case .unstarted, .paused: .suspended
        case .running: .running
        case .cancelling: .canceling
        case .completed: .completed
        }
    }

    /// Starts the task, or lets it go on; needed once for the new task and once more for each `suspend()`.
    open func resume() { resumeLoad() }

    /// Holds the task back: no traffic, no timeouts.
    ///
    /// What has arrived may still be told.
    open func suspend() { suspendLoad() }

    /// Gives the task up.
    ///
    /// It ends with `URLError.cancelled`; until that is told, some work may still be reported.
    open func cancel() { cancelLoad() }

    /// How urgent the task is beside others of its session: 0 to 1; default 0.5, ``defaultPriority``.
    ///
    /// A hint that may change at any time.
    open var priority: Float {
        get { mutex.withLock { $0.priority } }
        set { changePriority(newValue) }
    }

    /// The time before which the load does not begin; default nil: at once.
    ///
    /// Takes effect when set before the task is first resumed.
    open var earliestBeginDate: Date? {
        get { mutex.withLock { $0.earliestBegin } }
        set { mutex.withLock { $0.earliestBegin = newValue } }
    }

    /// Whether data is handed over as it arrives: true for data and upload tasks whose delegate gets the data.
    ///
    /// Setting it has no effect: what the kind of task says is what happens.
    open var prefersIncrementalDelivery: Bool {
        get { mutex.withLock { $0.prefersIncrementalDelivery } }
        set { mutex.withLock { $0.prefersIncrementalDelivery = newValue } }
    }

    /// Takes over what comes of a WebSocket, before the app hears of it.
    func heard(_ event: WebSocketEvent, isOnDelegateQueue: Bool) {}

    /// Takes over what comes of a byte stream, before the app hears of it.
    func heard(_ event: StreamEvent, isOnDelegateQueue: Bool) {}

    /// The task completed, with this error.
    func loadEnded(_ error: (any Error)?) {}

    /// The task is complete, and its load serves a pair of captured streams.
    var isCaptured: Bool { false }

    /// The load ended after the task had completed.
    func loadEndedLate(_ outcome: TaskOutcome) {}

    // MARK: Counting

    /// How far the task is, in bytes sent and received.
    ///
    /// Pausing, resuming and cancelling it does so to the task.
    open var progress: Progress { visibleProgress() }

    /// The app's guess at the bytes it will send; `NSURLSessionTransferSizeUnknown` unless set.
    ///
    /// It is for the scheduling of background sessions; other sessions keep it and make nothing of it.
    open var countOfBytesClientExpectsToSend: Int64 {
        get { mutex.withLock { $0.clientExpectsToSend } }
        set { changeNotes { $0.clientExpectsToSend = newValue } }
    }

    /// The app's guess at the bytes it will receive; `NSURLSessionTransferSizeUnknown` unless set.
    ///
    /// It is for the scheduling of background sessions; other sessions keep it and make nothing of it.
    open var countOfBytesClientExpectsToReceive: Int64 {
        get { mutex.withLock { $0.clientExpectsToReceive } }
        set { changeNotes { $0.clientExpectsToReceive = newValue } }
    }

    /// Bytes of the request's body that were sent.
    open var countOfBytesSent: Int64 { count { $0.sentCount } }

    /// Bytes of the response's body that were received.
    open var countOfBytesReceived: Int64 { count { $0.receivedCount } }

    /// Bytes of the request's body, or `NSURLSessionTransferSizeUnknown` for a stream.
    open var countOfBytesExpectedToSend: Int64 { count { $0.expectedToSend } }

    /// Bytes of the response's body as the server announced them, or `NSURLSessionTransferSizeUnknown`.
    open var countOfBytesExpectedToReceive: Int64 { count { $0.expectedToReceive } }
}
