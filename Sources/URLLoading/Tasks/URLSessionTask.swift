// SPDX-License-Identifier: Apache-2.0

internal import BackgroundProtocol
public import Foundation
internal import LoadingModel
internal import Synchronization

/// A task of a session: the load of one resource, with its state, counters and result.
///
/// `URLSession` makes tasks suspended; `resume()` starts them. The session retains a task from its creation to its completion, so
/// the app need not retain it. Cancel a task that is no longer needed. Copying a task returns the task itself.
///
/// One `Mutex` guards all mutable state. Commands are sent to the engine while the mutex is held, so that they arrive in the order
/// in which they took effect here. The app's code is never called while the mutex is held.
open class URLSessionTask: NSObject, NSCopying, ProgressReporting, @unchecked Sendable {
    /// The state of a task.
    public enum State: Int, Sendable {
        /// The load is running or queued.
        case running = 0
        /// The task was not started, or was suspended.
        case suspended = 1
        /// The task was cancelled, but its completion has not been reported yet.
        case canceling = 2
        /// The task is complete; no more delegate methods are called, except the method that reports the completion.
        case completed = 3
    }

    /// The default priority: 0.5.
    public class var defaultPriority: Float { 0.5 }
    /// A priority below the default: 0.25.
    public class var lowPriority: Float { 0.25 }
    /// A priority above the default: 0.75.
    public class var highPriority: Float { 0.75 }

    let identity: Int
    let mutex: Mutex<TaskState>

    /// Makes a task that belongs to no session and does nothing, for programs that mock tasks with their own subclasses.
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
        // Moves the state into the mutex without a copy.
        mutex = Mutex(consume state)
        super.init()
    }

    /// Makes a task of another kind, which takes over the load of an existing task.
    init(takingOver state: consuming TaskState, identifier: Int) {
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

    // MARK: Properties

    /// The task's identifier, unique within its session.
    open var taskIdentifier: Int { identity }

    /// The request that the task was made with; nil for a stream task, or if the task was made from invalid resume data.
    open var originalRequest: URLRequest? { mutex.withLock { $0.messages.original } }

    /// The current request, which differs from the original after the session's header fields were added, and after a redirect.
    open var currentRequest: URLRequest? { mutex.withLock { $0.visibleRequest() } }

    /// The response; nil until it arrives.
    open var response: URLResponse? {
        mutex.withLock { state in
            startReportingCounts(&state)
            return state.messages.visibleResponse()
        }
    }

    /// The error of the task; nil if it has not failed.
    open var error: (any Error)? { mutex.withLock { $0.messages.error } }

    /// A description that the app may set; default nil.
    open var taskDescription: String? {
        get { mutex.withLock { $0.wishes.notes.description } }
        set { changeNotes { $0.wishes.notes.description = newValue } }
    }

    /// The task-specific delegate; default nil.
    ///
    /// Methods that this delegate does not implement are called on the session's delegate.
    ///
    /// Set the delegate before the task is first resumed; setting it later has no effect. The task retains the delegate until the
    /// task completes; after that, this property is nil.
    open var delegate: (any URLSessionTaskDelegate)? {
        get { mutex.withLock { $0.recipients.ownDelegate }?.task }
        set {
            let conformances = newValue.map { DelegateConformances($0) }
            mutex.withLock { if $0.lifecycle.isUnstarted { $0.recipients.ownDelegate = conformances } }
        }
    }

    // MARK: Controlling the task

    /// The current state.
    open var state: State {
        switch mutex.withLock({ $0.lifecycle.phase }) {
        case .unstarted, .paused: .suspended
        case .running: .running
        case .cancelling: .canceling
        case .completed: .completed
        }
    }

    /// Starts or continues the task.
    ///
    /// A new task starts after one call of this method, plus one further call for each earlier call of `suspend()`.
    open func resume() { resumeLoad() }

    /// Suspends the task: there is no network traffic, and timeouts do not run.
    ///
    /// Data that has already arrived may still be delivered.
    open func suspend() { suspendLoad() }

    /// Cancels the task.
    ///
    /// The task completes with `URLError.cancelled`. Until then, progress may still be reported.
    open func cancel() { cancelLoad() }

    /// The urgency of the task relative to others of its session, from 0 to 1; default 0.5, ``defaultPriority``.
    ///
    /// The priority is a hint that can be changed at any time.
    open var priority: Float {
        get { mutex.withLock { $0.wishes.priority } }
        set { changePriority(newValue) }
    }

    /// The earliest time at which the load may begin; default nil: immediately.
    ///
    /// Set it before the task is first resumed.
    open var earliestBeginDate: Date? {
        get { mutex.withLock { $0.wishes.earliestBegin } }
        set { mutex.withLock { $0.wishes.earliestBegin = newValue } }
    }

    /// Whether data is delivered as it arrives: true for data and upload tasks that deliver to the delegate.
    ///
    /// Setting this property does not change the delivery, which the kind of task determines.
    open var prefersIncrementalDelivery: Bool {
        get { mutex.withLock { $0.wishes.prefersIncrementalDelivery } }
        set { mutex.withLock { $0.wishes.prefersIncrementalDelivery = newValue } }
    }

    /// Receives an event of a WebSocket, before the app does.
    func handle(_ event: WebSocketEvent, isOnDelegateQueue: Bool) {}

    /// Receives an event of a byte stream, before the app does.
    func handle(_ event: StreamEvent, isOnDelegateQueue: Bool) {}

    /// Handles the completion of the task, with its error, if any.
    func loadEnded(_ error: (any Error)?, isOnDelegateQueue: Bool) {}

    /// Whether `captureStreams()` has completed the task, whose load now serves the captured pair of streams.
    var isCaptured: Bool { false }

    /// Handles the end of a load whose task has already completed.
    func loadEndedAfterCompletion(_ outcome: TaskOutcome) {}

    // MARK: Progress

    /// The progress of the task in bytes sent and received.
    ///
    /// Pausing, resuming or canceling the `Progress` suspends, resumes or cancels the task.
    open var progress: Progress { visibleProgress() }

    /// The app's estimate of the bytes to send; default `NSURLSessionTransferSizeUnknown`.
    ///
    /// Background sessions use it for scheduling; other sessions ignore it.
    open var countOfBytesClientExpectsToSend: Int64 {
        get { mutex.withLock { $0.wishes.notes.expectedToSend } }
        set { changeNotes { $0.wishes.notes.expectedToSend = newValue } }
    }

    /// The app's estimate of the bytes to receive; default `NSURLSessionTransferSizeUnknown`.
    ///
    /// Background sessions use it for scheduling; other sessions ignore it.
    open var countOfBytesClientExpectsToReceive: Int64 {
        get { mutex.withLock { $0.wishes.notes.expectedToReceive } }
        set { changeNotes { $0.wishes.notes.expectedToReceive = newValue } }
    }

    /// The number of request body bytes sent.
    open var countOfBytesSent: Int64 { count { $0.counts.sent } }

    /// The number of response body bytes received.
    open var countOfBytesReceived: Int64 { count { $0.counts.received } }

    /// The length of the request body, or `NSURLSessionTransferSizeUnknown` for a stream.
    open var countOfBytesExpectedToSend: Int64 { count { $0.counts.expectedToSend } }

    /// The length of the response body as announced by the server, or `NSURLSessionTransferSizeUnknown`.
    open var countOfBytesExpectedToReceive: Int64 { count { $0.counts.expectedToReceive } }
}
