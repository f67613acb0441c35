// SPDX-License-Identifier: Apache-2.0

internal import BackgroundClient
public import Foundation
internal import LoadingModel
internal import Synchronization

/// Loads resources over HTTP and FTP, from files, and through `URLProtocol` classes of the app.
///
/// A session makes tasks, reports their events to a delegate, and shares connections and settings among them.
///
/// The configuration is copied when the session is made. A session retains its delegate until the session is invalidated. Copying a
/// session returns the session itself.
open class URLSession: NSObject, NSCopying, @unchecked Sendable {
    struct State {
        /// The delegate, until the session has become invalid.
        var conformances: DelegateConformances?
        /// Created lazily, unless the app provided one: a session that is used only with `async` methods needs no queue.
        var queue: OperationQueue?
        var description: String?
        /// Created lazily, for a session that was made without a configuration.
        var equipment: SessionEquipment?
    }

    /// The shared session, with the default configuration and no delegate.
    ///
    /// It cannot be invalidated.
    open class var shared: URLSession { SharedSession.session }

    let registry = TaskRegistry()
    /// Written only in the initializers, before any other code has access to the session, so it needs no lock.
    @exclusivity(unchecked) private final var initialEquipment: SessionEquipment?
    /// Whether the session was made with a delegate; also written only in the initializers.
    @exclusivity(unchecked) private final var hadDelegate = false
    private let mutex = Mutex(State())

    /// Makes a session with the default configuration, for subclasses that override the session's methods.
    ///
    /// The only designated initializer, as on Apple's platforms: a subclass with stored properties need not call it.
    public override init() { super.init() }

    /// Makes a session without a delegate.
    public convenience init(configuration: URLSessionConfiguration) {
        self.init(configuration: configuration, delegate: nil, delegateQueue: nil)
    }

    /// Makes a session.
    ///
    /// - Parameters:
    ///   - configuration: The configuration, which is copied: later changes do not affect the session.
    ///   - delegate: The delegate. It is retained until the session has become invalid.
    ///   - queue: The queue for delegate methods and completion handlers, which should be serial; nil to create one.
    public convenience init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, delegateQueue queue: OperationQueue?
    ) {
        self.init()
        equip(SessionEquipment(configuration, hasDelegate: delegate != nil), delegate, queue)
        joinDaemon()
    }

    final func equip(_ equipment: SessionEquipment, _ delegate: (any URLSessionDelegate)?, _ queue: OperationQueue?) {
        initialEquipment = equipment
        hadDelegate = delegate != nil
        mutex.withLock { state in
            state.conformances = delegate.map { DelegateConformances($0) }
            state.queue = queue
        }
    }

    deinit {
        guard !registry.isClosed, let equipment = initialEquipment ?? mutex.withLock({ $0.equipment }) else { return }
        equipment.release()
    }

    final var equipment: SessionEquipment {
        if let initialEquipment { return initialEquipment }
        return mutex.withLock { state in
            if let equipment = state.equipment { return equipment }
            let equipment = SessionEquipment(.default)
            state.equipment = equipment
            return equipment
        }
    }

    /// Returns the session itself.
    ///
    /// - Returns: The session.
    open override func copy() -> Any { self }

    /// Returns the session itself.
    ///
    /// - Returns: The session.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    // MARK: Properties

    /// A copy of the session's configuration; changing it has no effect on the session.
    open var configuration: URLSessionConfiguration { SessionEquipment.snapshot(of: equipment.settings) }

    /// The delegate, until the session has become invalid.
    open var delegate: (any URLSessionDelegate)? { conformances?.object }

    /// The queue for the delegate's methods and completion handlers.
    open var delegateQueue: OperationQueue {
        mutex.withLock { state in
            if let queue = state.queue { return queue }
            let queue = OperationQueue()
            queue.name = "URLSession delegate queue"
            queue.maxConcurrentOperationCount = 1
            state.queue = queue
            return queue
        }
    }

    /// A description that the app may set; default nil.
    open var sessionDescription: String? {
        get { mutex.withLock { $0.description } }
        set { mutex.withLock { $0.description = newValue } }
    }

    var conformances: DelegateConformances? { hadDelegate ? mutex.withLock { $0.conformances } : nil }

    // MARK: Invalidating

    /// Invalidates the session when its outstanding tasks have finished, and then calls the delegate.
    ///
    /// Returns immediately. Tasks that were never resumed count as outstanding: resume or cancel them.
    ///
    /// A task made after this call fails with `URLError.cancelled` when it is resumed. Apple's implementation throws an exception
    /// for this programming error; here it must not crash a server. No effect on the shared session.
    open func finishTasksAndInvalidate() {
        guard !equipment.isShared else { return }
        registry.close { self.becomeInvalid() }
    }

    /// Cancels all outstanding tasks, resumed or not, invalidates the session, and then calls the delegate.
    ///
    /// Returns immediately. After this call the session lists no tasks, even if handlers of cancelled tasks are still to be called.
    ///
    /// No effect on the shared session.
    open func invalidateAndCancel() {
        guard !equipment.isShared else { return }
        let tasks = registry.abandon { self.becomeInvalid() }
        equipment.cancelAll()
        for task in tasks { task.cancel() }
    }

    /// Calls `didBecomeInvalidWithError`, and then releases the delegate.
    final func becomeInvalid(_ error: (any Error)? = nil) {
        // The app may invalidate a session that was refused before the session does so itself.
        let error = error ?? equipment.background?.loss.map { ErrorTranslation.appError($0, url: nil) }
        equipment.invalidate()
        guard let conformances else { return }
        delegateQueue.addOperation {
            DelegateCall.tell(.becameInvalid, conformances.object) {
                conformances.object.urlSession(self, didBecomeInvalidWithError: error)
            }
            self.mutex.withLock { $0.conformances = nil }
        }
    }

    /// Empties the session's cookie storage, cache and credential storage, discards HSTS policies (RFC 6797), and makes later
    /// requests use new connections; then calls the handler on the delegate queue.
    ///
    /// Stores that are shared with other sessions are emptied for all of them.
    open func reset(completionHandler: @escaping @Sendable () -> Void) {
        equipment.renew(.reset) { self.delegateQueue.addOperation { completionHandler() } }
    }

    /// Writes the session's stores to disk and makes later requests use new connections, then calls the handler on the delegate
    /// queue.
    ///
    /// When the handler is called, everything stored before `flush` is durable, unless the disk or the keyring takes more than
    /// fifteen seconds for one step: the session does not wait indefinitely for a store that does not respond.
    open func flush(completionHandler: @escaping @Sendable () -> Void) {
        equipment.renew(.flush) { self.delegateQueue.addOperation { completionHandler() } }
    }

    // MARK: Listing tasks

    /// Calls the handler on the delegate queue with the tasks that have not completed, including tasks that were never resumed.
    open func getTasksWithCompletionHandler(
        _ completionHandler: @escaping @Sendable ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) -> Void
    ) {
        delegateQueue.addOperation {
            let sorted = TasksByKind(self.tasksReportingCounts)
            completionHandler(sorted.data, sorted.upload, sorted.download)
        }
    }

    /// Calls the handler on the delegate queue with the tasks that have not completed, including tasks that were never resumed.
    open func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
        delegateQueue.addOperation { completionHandler(self.tasksReportingCounts) }
    }

    // MARK: Making tasks

    /// Makes a task that loads a request and calls the delegate.
    ///
    /// - Returns: The task, suspended: call ``URLSessionTask/resume()``.
    open func dataTask(with request: URLRequest) -> URLSessionDataTask { makeDataTask(request, .delegate) }

    /// Makes a task that loads a URL and calls the delegate.
    ///
    /// - Returns: The task, suspended.
    open func dataTask(with url: URL) -> URLSessionDataTask { makeDataTask(URLRequest(url: url), .delegate) }

    /// Makes a task that uploads a file as the request body.
    ///
    /// - Returns: The task, suspended.
    open func uploadTask(with request: URLRequest, fromFile fileURL: URL) -> URLSessionUploadTask {
        makeUploadTask(request, .file(fileURL), .delegate)
    }

    /// Makes a task that uploads data as the request body.
    ///
    /// - Returns: The task, suspended.
    open func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
        makeUploadTask(request, .data(bodyData), .delegate)
    }

    /// Makes a task that resumes an earlier upload, with the same request and body.
    ///
    /// A file must not have changed since the earlier upload. For a stream, the delegate's `needNewBodyStreamFrom` is called.
    ///
    /// - Parameter resumeData: The data from ``URLSessionUploadTask/cancel(byProducingResumeData:)``. With other data the task
    ///   fails with `URLError.cannotOpenFile`.
    /// - Returns: The task, suspended.
    open func uploadTask(withResumeData resumeData: Data) -> URLSessionUploadTask {
        makeUploadTask(resuming: resumeData, .delegate)
    }

    /// Makes a task that uploads a stream: the request's own, or one that the delegate provides in `needNewBodyStream`.
    ///
    /// - Returns: The task, suspended.
    open func uploadTask(withStreamedRequest request: URLRequest) -> URLSessionUploadTask {
        makeUploadTask(request, .stream, .delegate)
    }

    /// Makes a task that downloads the response to a request into a file and calls the delegate.
    ///
    /// - Returns: The task, suspended.
    open func downloadTask(with request: URLRequest) -> URLSessionDownloadTask { makeDownloadTask(request, nil, .delegate) }

    /// Makes a task that downloads a URL to a file and calls the delegate.
    ///
    /// - Returns: The task, suspended.
    open func downloadTask(with url: URL) -> URLSessionDownloadTask { makeDownloadTask(URLRequest(url: url), nil, .delegate) }

    /// Makes a task that resumes an earlier download.
    ///
    /// If the data is not resume data, the task fails when it is resumed.
    ///
    /// - Returns: The task, suspended.
    open func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask {
        makeDownloadTask(nil, resumeData, .delegate)
    }

    /// Makes a WebSocket task for a `ws` or `wss` URL.
    ///
    /// - Returns: The task, suspended.
    open func webSocketTask(with url: URL) -> URLSessionWebSocketTask { webSocketTask(with: URLRequest(url: url)) }

    /// Makes a WebSocket task that offers subprotocols, of which the server may choose one.
    ///
    /// - Returns: The task, suspended.
    open func webSocketTask(with url: URL, protocols: [String]) -> URLSessionWebSocketTask {
        makeWebSocketTask(URLRequest(url: url), protocols)
    }

    /// Makes a WebSocket task from a request, whose header fields, including `Sec-WebSocket-Protocol`, are sent in the handshake.
    ///
    /// - Returns: The task, suspended.
    open func webSocketTask(with request: URLRequest) -> URLSessionWebSocketTask { makeWebSocketTask(request, []) }

    // MARK: Making stream tasks

    /// Makes a task that reads and writes bytes over a dedicated connection.
    ///
    /// - Parameters:
    ///   - hostname: A host name or an IP address. If it is neither, the task fails with `badURL`.
    ///   - port: A port from 1 to 65,535. With any other number the task fails with `badURL`.
    /// - Returns: The task, suspended.
    open func streamTask(withHostName hostname: String, port: Int) -> URLSessionStreamTask {
        makeStreamTask(StreamOrder(host: hostname, port: port))
    }

    /// Makes a stream task for a service on the local network; the task resolves the service if it is not yet resolved.
    ///
    /// - Parameter service: The service. If it cannot be looked up, the task fails with `cannotFindHost`; if no host offers it,
    ///   with `timedOut` after the request timeout.
    /// - Returns: The task, suspended.
    open func streamTask(with service: NetService) -> URLSessionStreamTask { makeStreamTask(service.order) }

    // MARK: Making tasks with a completion handler

    /// Makes a task that loads a request and calls a completion handler on the delegate queue.
    ///
    /// - Returns: The task, suspended.
    open func dataTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        makeDataTask(request, .data(completionHandler))
    }

    /// Makes a task that loads a URL and calls a completion handler on the delegate queue.
    ///
    /// - Returns: The task, suspended.
    open func dataTask(
        with url: URL, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        makeDataTask(URLRequest(url: url), .data(completionHandler))
    }

    /// Makes a task that uploads a file and calls a completion handler on the delegate queue.
    ///
    /// - Returns: The task, suspended.
    open func uploadTask(
        with request: URLRequest, fromFile fileURL: URL,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        makeUploadTask(request, .file(fileURL), .data(completionHandler))
    }

    /// Makes a task that uploads data and calls a completion handler on the delegate queue.
    ///
    /// If the data is nil, the body is empty.
    ///
    /// - Returns: The task, suspended.
    open func uploadTask(
        with request: URLRequest, from bodyData: Data?,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        makeUploadTask(request, .data(bodyData ?? Data()), .data(completionHandler))
    }

    /// Makes a task that resumes an earlier upload and calls a completion handler on the delegate queue.
    ///
    /// - Returns: The task, suspended.
    open func uploadTask(
        withResumeData resumeData: Data, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        makeUploadTask(resuming: resumeData, .data(completionHandler))
    }

    /// Makes a task that downloads the response to a request into a file, which is deleted when the completion handler returns.
    ///
    /// - Returns: The task, suspended.
    open func downloadTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        makeDownloadTask(request, nil, .download(completionHandler))
    }

    /// Makes a task that downloads a URL to a file, which is deleted when the completion handler returns.
    ///
    /// - Returns: The task, suspended.
    open func downloadTask(
        with url: URL, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        makeDownloadTask(URLRequest(url: url), nil, .download(completionHandler))
    }

    /// Makes a task that resumes an earlier download, whose file is deleted when the completion handler returns.
    ///
    /// - Returns: The task, suspended.
    open func downloadTask(
        withResumeData resumeData: Data, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        makeDownloadTask(nil, resumeData, .download(completionHandler))
    }
}
