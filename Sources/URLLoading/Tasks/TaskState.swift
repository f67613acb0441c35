// SPDX-License-Identifier: Apache-2.0

internal import BackgroundClient
internal import BackgroundProtocol
internal import Foundation
internal import HTTPWire
internal import LoadingModel
internal import LoadingObservers

/// The mutable state of a task, guarded by the `Mutex` of its `URLSessionTask`.
///
/// It is not copyable: a copy into the mutex would retain a dozen objects for each task.
struct TaskState: ~Copyable, Sendable {
    var lifecycle: TaskLifecycle
    /// Retained until the task has completed, because the session's delegate must be called for the task.
    var session: URLSession?
    var delivery: TaskOrder.Delivery
    var start: TaskStart
    var messages: TaskMessages
    var counts: TransferCounts
    var wishes: TaskWishes
    var recipients: TaskRecipients
    var progress: Progress?

    init(
        session: URLSession?, request: URLRequest?, delivery: TaskOrder.Delivery, audience: TaskAudience,
        uploadBody: RequestBody? = nil
    ) {
        lifecycle = TaskLifecycle()
        self.session = session
        self.delivery = delivery
        start = TaskStart(uploadBody: uploadBody, in: session)
        messages = TaskMessages(original: request, sessionFields: session?.additionalFields ?? [])
        counts = TransferCounts()
        (counts.expectedToSend, counts.expectedToReceive) = (0, 0)
        wishes = TaskWishes()
        if case .delegate = audience, case .stream = delivery { wishes.prefersIncrementalDelivery = true }
        recipients = TaskRecipients(audience: audience)
    }

    /// Makes the state for another kind of task, which takes over the load.
    init(takingOver state: borrowing TaskState, delivery: TaskOrder.Delivery) {
        lifecycle = state.lifecycle
        session = state.session
        self.delivery = delivery
        start = state.start
        messages = state.messages
        counts = state.counts
        wishes = state.wishes
        // Only data and upload tasks deliver data as they arrive.
        wishes.prefersIncrementalDelivery = false
        recipients = state.recipients
        // Not the `Progress`, which controls the first task: the other task makes its own.
        progress = nil
    }

    /// The service that performs the task; nil after the task has completed.
    var service: (any LoadingService)? { start.isLocal ? session?.equipment.localService : session?.service }

    /// The connection to the daemon, if the daemon performs the task.
    var background: RemoteSession? { start.isLocal ? nil : session?.equipment.background }

    /// Whether the task is a data task, which a background session performs in this process.
    var isDataTask: Bool {
        guard start.uploadBody == nil else { return false }
        switch delivery {
        case .stream, .collect: return true
        case .download, .webSocket, .byteStream: return false
        }
    }

    /// Whether the app cancelled the task and wants no result: in that case, only the completion is reported.
    var discardsResult: Bool { lifecycle.phase == .cancelling && !recipients.mayStillSucceed }

    mutating func visibleRequest() -> URLRequest? { messages.visibleRequest(isStarted: !lifecycle.isUnstarted) }

    /// Records the contents of an event, before the app receives it.
    mutating func note(_ event: TaskEvent) {
        switch event {
        case .requestChanged(let request):
            messages.note(request)
        case .sent(_, let total, let expected):
            counts.sent = total
            counts.expectedToSend = expected
        case .response(let response):
            note(response)
        case .data(let data):
            counts.received = counts.received.addingSaturating(Int64(data.count))
        case .wrote(_, let total, let expected):
            counts.received = total
            counts.expectedToReceive = expected
        case .resumed(let offset, let expected):
            counts.received = offset
            counts.expectedToReceive = expected
        case .waitingForConnectivity, .sentHead, .informational, .resumable, .becameDownload, .becameStream, .webSocket, .stream,
            .finished:
            break
        }
    }

    mutating func note(_ response: LoadResponse) {
        messages.note(response)
        counts.expectedToReceive = response.expectedLength
    }
}

/// What a task's load is started with, besides its request.
struct TaskStart: Sendable {
    /// Whether this process performs the task, also in a background session; set when the task starts.
    var isLocal = false
    /// Replaces the request body in upload tasks.
    var uploadBody: RequestBody?
    /// Whether another task's redirect has led away from the origin of the app's request; fields bound to that origin are then not
    /// sent.
    var leftOrigin = false
    /// How the upload can be resumed; nil if the task is not an upload.
    var upload: UploadOrder?
    var created = Date.timeIntervalSinceReferenceDate
    #if Logging || Metrics || Tracing
    /// Observes the task's requests, in the context in which the task was made.
    let observer: (any LoadObserver)?
    #endif

    init(uploadBody: RequestBody?, in session: URLSession?) {
        self.uploadBody = uploadBody
        #if Logging || Metrics || Tracing
        observer = session?.equipment.observers?.observer()
        #endif
    }
}

/// What the app wants for a task.
struct TaskWishes: Sendable {
    /// The app's description and estimates, which the daemon keeps too.
    var notes = BackgroundOrder.Notes()
    var priority: Float = URLSessionTask.defaultPriority
    var earliestBegin: Date?
    var prefersIncrementalDelivery = false
    /// Whether the load reports its byte counts: set if the app observes them, or there is a delegate.
    var reportsCounts = false
}
