//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import BackgroundClient
internal import Foundation
internal import HTTPWire
internal import LoadingModel
internal import LoadingObservers

/// The mutable state of a task, guarded by the `Mutex` of its `URLSessionTask`.
///
/// It is not copyable: a copy into the mutex would retain a dozen objects for each task.
struct TaskState: ~Copyable, Sendable {
    var lifecycle = TaskLifecycle()
    /// Retained until the task has completed, because the session's delegate must be called for the task.
    var session: URLSession?
    /// Whether this process performs the task, also in a background session; set when the task starts.
    var isLocal = false
    var delivery: TaskOrder.Delivery
    var audience: TaskAudience
    /// The priority of an async caller that is resumed on the process's thread pool (``Waking``).
    var priorityInPool: UInt8?
    /// Replaces the request body in upload tasks.
    var uploadBody: RequestBody?
    /// Whether another task's redirect has led away from the origin of the app's request; fields bound to that origin are then not
    /// sent.
    var leftOrigin = false
    /// How the upload can be resumed; nil if the task is not an upload.
    var upload: UploadOrder?

    var original: URLRequest?
    /// The current request; nil while it equals the original.
    var current: URLRequest?
    /// The request from which `current` is made lazily.
    var sentRequest: LoadRequest?
    /// The configuration's header fields, which are added to `current` when the load begins.
    let sessionFields: [(name: String, value: String)]
    /// All header fields of the current request as sent; set when an app-defined cache was asked about the request.
    var sentFields: HeaderBlock?
    var response: URLResponse?
    /// The response from which `response` is made lazily.
    var loadResponse: LoadResponse?
    var error: (any Error)?

    var sentCount: Int64 = 0
    var expectedToSend: Int64 = 0
    var receivedCount: Int64 = 0
    var expectedToReceive: Int64 = 0
    var clientExpectsToSend: Int64 = NSURLSessionTransferSizeUnknown
    var clientExpectsToReceive: Int64 = NSURLSessionTransferSizeUnknown

    var priority: Float = URLSessionTask.defaultPriority
    var description: String?
    var earliestBegin: Date?
    var prefersIncrementalDelivery: Bool
    var progress: Progress?
    /// Whether the load reports its byte counts: set if the app observes them, or there is a delegate.
    var reportsCounts = false
    /// Whether the task succeeds if its load succeeds before a cancellation takes effect.
    ///
    /// True after a cancellation that produces resume data or closes a WebSocket.
    var mayStillSucceed = false
    var created = Date.timeIntervalSinceReferenceDate

    /// The task-specific delegate, until the task has completed.
    var ownDelegate: DelegateConformances?
    /// Created when the load starts, if there are calls to make on the delegate queue.
    var bridge: DelegateBridge?
    /// The handlers that wait for resume data after `cancel(byProducingResumeData:)`.
    var resumeDataHandlers: [@Sendable (Data?) -> Void] = []
    #if Logging || Metrics || Tracing
    /// Observes the task's requests, in the context in which the task was made.
    let observer: (any LoadObserver)?
    #endif

    init(
        session: URLSession?, request: URLRequest?, delivery: TaskOrder.Delivery, audience: TaskAudience,
        uploadBody: RequestBody? = nil
    ) {
        self.session = session
        self.uploadBody = uploadBody
        sessionFields = session?.additionalFields ?? []
        self.original = request
        self.delivery = delivery
        self.audience = audience
        if case .delegate = audience, case .stream = delivery {
            prefersIncrementalDelivery = true
        } else {
            prefersIncrementalDelivery = false
        }
        #if Logging || Metrics || Tracing
        observer = session?.equipment.observers?.observer()
        #endif
    }

    /// Makes the state for another kind of task, which takes over the load.
    func successor(_ delivery: TaskOrder.Delivery) -> TaskState {
        var next = TaskState(
            session: session, request: original, delivery: delivery, audience: audience, uploadBody: uploadBody
        )
        next.lifecycle = lifecycle
        next.isLocal = isLocal
        next.priorityInPool = priorityInPool
        next.current = current
        next.sentRequest = sentRequest
        next.response = response
        next.loadResponse = loadResponse
        next.error = error
        next.sentCount = sentCount
        next.expectedToSend = expectedToSend
        next.receivedCount = receivedCount
        next.expectedToReceive = expectedToReceive
        next.clientExpectsToSend = clientExpectsToSend
        next.clientExpectsToReceive = clientExpectsToReceive
        next.priority = priority
        next.description = description
        next.earliestBegin = earliestBegin
        next.reportsCounts = reportsCounts
        next.mayStillSucceed = mayStillSucceed
        next.created = created
        next.ownDelegate = ownDelegate
        next.bridge = bridge
        next.resumeDataHandlers = resumeDataHandlers
        return next
    }

    /// The service that performs the task; nil after the task has completed.
    var service: (any LoadingService)? { isLocal ? session?.equipment.localService : session?.service }

    /// The connection to the daemon, if the daemon performs the task.
    var background: RemoteSession? { isLocal ? nil : session?.equipment.background }

    /// Whether the task is a data task, which a background session performs in this process.
    var isDataTask: Bool {
        guard uploadBody == nil else { return false }
        switch delivery {
        case .stream, .collect: return true
        case .download, .webSocket, .byteStream: return false
        }
    }

    /// Whether the app cancelled the task and wants no result: in that case, only the completion is reported.
    var discardsResult: Bool { lifecycle.phase == .cancelling && !mayStillSucceed }

    /// Returns the response as the app sees it, the same object each time.
    mutating func visibleResponse() -> URLResponse? {
        if response == nil, let loadResponse { response = URLResponse.make(loadResponse) }
        return response
    }

    mutating func visibleRequest() -> URLRequest? {
        if let sentRequest {
            self.sentRequest = nil
            current = URLRequest(loadRequest: sentRequest, template: original)
        }
        let fields = sessionFields
        if !fields.isEmpty, !lifecycle.isUnstarted {
            var request = current ?? original
            request?.complete(with: fields)
            current = request
        }
        return current ?? original
    }

    /// Records the contents of an event, before the app receives it.
    mutating func note(_ event: TaskEvent) {
        switch event {
        case .requestChanged(let request):
            sentRequest = request
            sentFields = nil
        case .sent(_, let total, let expected):
            sentCount = total
            expectedToSend = expected
        case .response(let response):
            note(response)
        case .data(let data):
            receivedCount = receivedCount.addingSaturating(Int64(data.count))
        case .wrote(_, let total, let expected):
            receivedCount = total
            expectedToReceive = expected
        case .resumed(let offset, let expected):
            receivedCount = offset
            expectedToReceive = expected
        case .waitingForConnectivity, .sentHead, .informational, .resumable, .becameDownload, .becameStream, .webSocket, .stream,
            .finished:
            break
        }
    }

    mutating func note(_ response: LoadResponse) {
        loadResponse = response
        self.response = nil
        expectedToReceive = response.expectedLength
    }
}

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
