//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import BackgroundClient
public import Foundation
internal import LoadingModel
internal import Synchronization

/// Loads resources over HTTP and from files, and through the app's own `URLProtocol` classes: makes tasks, tells a delegate of
/// them, and shares connections and settings among them.
///
/// The configuration is copied when the session is made. A session with a delegate holds it until the session is invalidated.
/// Copying a session returns the session itself.
open class URLSession: NSObject, NSCopying, @unchecked Sendable {
    struct State {
        /// The delegate, until the session became invalid.
        var conformances: DelegateConformances?
        /// Made when it is first needed, unless the app gave one: sessions that are only used with `async` never need it.
        var queue: OperationQueue?
        var description: String?
        /// Made when it is first needed, for a session that was given no configuration.
        var equipment: SessionEquipment?
    }

    /// A session with the default configuration and no delegate, for everybody.
    ///
    /// It cannot be invalidated.
    open class var shared: URLSession { SharedSession.session }

    let registry = TaskRegistry()
    /// Changes in the initializers alone, before anybody else has the session; that is why nothing guards it.
    @exclusivity(unchecked) private final var given: SessionEquipment?
    /// Whether there was a delegate; the same holds for it.
    @exclusivity(unchecked) private final var hadDelegate = false
    private let mutex = Mutex(State())

    /// Makes a session with the default configuration, for classes that put methods of their own in place of the session's.
    ///
    /// The only designated initializer, as on Apple's platforms: a class with stored properties of its own need not even call it.
    public override init() { super.init() }

    /// Makes a session without a delegate.
    public convenience init(configuration: URLSessionConfiguration) {
        self.init(configuration: configuration, delegate: nil, delegateQueue: nil)
    }

    /// Makes a session.
    ///
    /// - Parameters:
    ///   - configuration: Copied; later changes have no effect on the session.
    ///   - delegate: Told of the session's tasks. Held until the session became invalid.
    ///   - queue: Where the delegate's methods and completion handlers are called. It should be serial. Nil makes one.
    public convenience init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, delegateQueue queue: OperationQueue?
    ) {
        self.init()
        equip(SessionEquipment(configuration, hasDelegate: delegate != nil), delegate, queue)
        joinDaemon()
    }

    final func equip(_ equipment: SessionEquipment, _ delegate: (any URLSessionDelegate)?, _ queue: OperationQueue?) {
        given = equipment
        hadDelegate = delegate != nil
        mutex.withLock { state in
            state.conformances = delegate.map { DelegateConformances($0) }
            state.queue = queue
        }
    }

    deinit {
        guard !registry.isClosed, let equipment = given ?? mutex.withLock({ $0.equipment }) else { return }
        if let background = equipment.background { background.detach() } else { equipment.service.invalidate() }
    }

    final var equipment: SessionEquipment {
        if let given { return given }
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

    // MARK: What it is

    /// The settings of the session: a copy each time, changes to which have no effect.
    open var configuration: URLSessionConfiguration { SessionEquipment.snapshot(of: equipment.settings) }

    /// The delegate, until the session became invalid.
    open var delegate: (any URLSessionDelegate)? { conformances?.object }

    /// Where the delegate's methods and completion handlers are called.
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

    /// A text of the app's; default nil.
    open var sessionDescription: String? {
        get { mutex.withLock { $0.description } }
        set { mutex.withLock { $0.description = newValue } }
    }

    final var service: any LoadingService { equipment.service }
    final var customClasses: CustomClasses { equipment.customClasses }
    final var memory: SessionMemory { equipment.memory }
    final var additionalFields: [(name: String, value: String)] { equipment.additionalFields }
    final var trustRoots: [Data] { equipment.trustRoots }

    var conformances: DelegateConformances? { hadDelegate ? mutex.withLock { $0.conformances } : nil }

    // MARK: Ending it

    /// Takes no more tasks, lets those there are finish, and tells the delegate when the session is invalid.
    ///
    /// Returns at once. Tasks that were never resumed are still to finish: resume or cancel them.
    ///
    /// Making a task after that is a mistake: such a task fails with `URLError.cancelled` when it is resumed (differs from Apple's,
    /// which throws an exception, because a server should not end over it). No effect on the shared session.
    open func finishTasksAndInvalidate() {
        guard !equipment.isShared else { return }
        registry.close { self.becomeInvalid() }
    }

    /// Takes no more tasks, cancels those there are, resumed or not, and tells the delegate when the session is invalid.
    ///
    /// Returns at once. From then on no task is listed, also before its delegate or handler was told of its end.
    ///
    /// No effect on the shared session.
    open func invalidateAndCancel() {
        guard !equipment.isShared else { return }
        let tasks = registry.abandon { self.becomeInvalid() }
        service.cancelAll()
        for task in tasks { task.cancel() }
    }

    /// The last message of a session; after it the delegate is released.
    ///
    /// Tasks that are made of a session which was never good for any fail unheard, and say why in their error.
    final func becomeInvalid(_ error: (any Error)? = nil, beforeAnyTask: Bool = false) {
        service.invalidate()
        guard let conformances else { return }
        if beforeAnyTask { mutex.withLock { $0.conformances = nil } }
        delegateQueue.addOperation {
            DelegateCall.tell(.becameInvalid, conformances.object) {
                conformances.object.urlSession(self, didBecomeInvalidWithError: error)
            }
            self.mutex.withLock { $0.conformances = nil }
        }
    }

    /// Empties the session's cookies, cache and credentials, forgets what servers asked for (RFC 6797), and lets the next requests go
    /// over new connections; then calls the handler on the delegate queue.
    ///
    /// Stores that are shared are empty for everybody.
    open func reset(completionHandler: @escaping @Sendable () -> Void) {
        renew(.reset) { self.delegateQueue.addOperation { completionHandler() } }
    }

    /// Writes what the session remembers to disk and lets the next requests go over new connections, then calls the handler on
    /// the delegate queue.
    ///
    /// What was stored before is durable then, unless the disk, or the keyring, takes more than fifteen seconds for one step:
    /// nobody waits for ever for what does not answer.
    open func flush(completionHandler: @escaping @Sendable () -> Void) {
        renew(.flush) { self.delegateQueue.addOperation { completionHandler() } }
    }

    func renew(_ renewal: Renewal, completion: @escaping @Sendable () -> Void) {
        guard memory.isPartlyOfTheApp else { return service.renew(renewal, completion: completion) }
        // The app's own stores run its code, which must not hold the caller up.
        memory.changes.async {
            let renewRest: @Sendable () -> Void = { self.service.renew(renewal, completion: completion) }
            switch renewal {
            case .reset:
                self.memory.reset()
                renewRest()
            case .flush: self.memory.flush(renewRest)
            }
        }
    }

    // MARK: Its tasks

    /// Calls the handler on the delegate queue with the tasks that have not completed, also those never resumed.
    open func getTasksWithCompletionHandler(
        _ completionHandler: @escaping @Sendable ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) -> Void
    ) {
        delegateQueue.addOperation {
            let sorted = TasksByKind(self.watchedTasks)
            completionHandler(sorted.data, sorted.upload, sorted.download)
        }
    }

    /// Calls the handler on the delegate queue with the tasks that have not completed, also those never resumed.
    open func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
        delegateQueue.addOperation { completionHandler(self.watchedTasks) }
    }

    // MARK: Making tasks

    /// Makes a task that loads a request and tells the delegate.
    ///
    /// - Returns: The task, suspended: call ``URLSessionTask/resume()``.
    open func dataTask(with request: URLRequest) -> URLSessionDataTask { makeDataTask(request, .delegate) }

    /// Makes a task that loads a URL and tells the delegate.
    ///
    /// - Returns: The task, suspended.
    open func dataTask(with url: URL) -> URLSessionDataTask { makeDataTask(URLRequest(url: url), .delegate) }

    /// Makes a task that sends a file as the request's body.
    ///
    /// - Returns: The task, suspended.
    open func uploadTask(with request: URLRequest, fromFile fileURL: URL) -> URLSessionUploadTask {
        makeUploadTask(request, .file(fileURL), .delegate)
    }

    /// Makes a task that sends data as the request's body.
    ///
    /// - Returns: The task, suspended.
    open func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
        makeUploadTask(request, .data(bodyData), .delegate)
    }

    /// Makes a task that continues an earlier upload, with its request and its body: a file must not have changed, and a stream is asked
    /// for by `needNewBodyStreamFrom`.
    ///
    /// - Parameter resumeData: As ``URLSessionUploadTask/cancel(byProducingResumeData:)`` gives it; with other data the task fails with
    ///   `URLError.cannotOpenFile`.
    /// - Returns: The task, suspended.
    open func uploadTask(withResumeData resumeData: Data) -> URLSessionUploadTask {
        makeUploadTask(resuming: resumeData, .delegate)
    }

    /// Makes a task that sends a stream: the request's own, or the one the delegate gives in `needNewBodyStream`.
    ///
    /// - Returns: The task, suspended.
    open func uploadTask(withStreamedRequest request: URLRequest) -> URLSessionUploadTask {
        makeUploadTask(request, .stream, .delegate)
    }

    /// Makes a task that loads a request into a file and tells the delegate.
    ///
    /// - Returns: The task, suspended.
    open func downloadTask(with request: URLRequest) -> URLSessionDownloadTask { makeDownloadTask(request, nil, .delegate) }

    /// Makes a task that loads a URL into a file and tells the delegate.
    ///
    /// - Returns: The task, suspended.
    open func downloadTask(with url: URL) -> URLSessionDownloadTask { makeDownloadTask(URLRequest(url: url), nil, .delegate) }

    /// Makes a task that resumes an earlier download.
    ///
    /// If the data is not resume data, the task fails once it is resumed.
    ///
    /// - Returns: The task, suspended.
    open func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask {
        makeDownloadTask(nil, resumeData, .delegate)
    }

    /// Makes a task that exchanges messages over WebSocket, with a `ws` or `wss` URL.
    ///
    /// - Returns: The task, suspended.
    open func webSocketTask(with url: URL) -> URLSessionWebSocketTask { webSocketTask(with: URLRequest(url: url)) }

    /// Makes such a task that offers subprotocols, of which the server may choose one.
    ///
    /// - Returns: The task, suspended.
    open func webSocketTask(with url: URL, protocols: [String]) -> URLSessionWebSocketTask {
        makeWebSocketTask(URLRequest(url: url), protocols)
    }

    /// Makes such a task whose handshake is a request with its own fields, `Sec-WebSocket-Protocol` among them.
    ///
    /// - Returns: The task, suspended.
    open func webSocketTask(with request: URLRequest) -> URLSessionWebSocketTask { makeWebSocketTask(request, []) }

    // MARK: Making stream tasks

    /// Makes a task that reads and writes bytes over a connection of its own.
    ///
    /// - Parameters:
    ///   - hostname: A name or an address. One that is neither fails the task with `badURL`.
    ///   - port: From 1 to 65,535; another one fails the task with `badURL`.
    /// - Returns: The task, suspended.
    open func streamTask(withHostName hostname: String, port: Int) -> URLSessionStreamTask {
        makeStreamTask(StreamOrder(host: hostname, port: port))
    }

    /// Makes such a task for a service of the local network, which is looked for when the task is resumed, unless it was found before.
    ///
    /// - Parameter service: Where it leads. If it cannot be looked up, the task fails with `cannotFindHost`; if no host has it, with
    ///   `timedOut`, by the request timeout.
    /// - Returns: The task, suspended.
    open func streamTask(with service: NetService) -> URLSessionStreamTask { makeStreamTask(service.order) }

    // MARK: Making tasks with a handler

    /// Makes a task that loads a request and hands the result to a handler, on the delegate queue.
    ///
    /// - Returns: The task, suspended.
    open func dataTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        makeDataTask(request, .data(completionHandler))
    }

    /// Makes a task that loads a URL and hands the result to a handler, on the delegate queue.
    ///
    /// - Returns: The task, suspended.
    open func dataTask(
        with url: URL, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        makeDataTask(URLRequest(url: url), .data(completionHandler))
    }

    /// Makes a task that sends a file, and hands the answer to a handler, on the delegate queue.
    ///
    /// - Returns: The task, suspended.
    open func uploadTask(
        with request: URLRequest, fromFile fileURL: URL,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        makeUploadTask(request, .file(fileURL), .data(completionHandler))
    }

    /// Makes a task that sends data, and hands the answer to a handler, on the delegate queue.
    ///
    /// Without data the body is empty.
    ///
    /// - Returns: The task, suspended.
    open func uploadTask(
        with request: URLRequest, from bodyData: Data?,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        makeUploadTask(request, .data(bodyData ?? Data()), .data(completionHandler))
    }

    /// Makes a task that continues an earlier upload, and hands the answer to a handler, on the delegate queue.
    ///
    /// - Returns: The task, suspended.
    open func uploadTask(
        withResumeData resumeData: Data, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        makeUploadTask(resuming: resumeData, .data(completionHandler))
    }

    /// Makes a task that loads a request into a file, which is the handler's while it runs.
    ///
    /// - Returns: The task, suspended.
    open func downloadTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        makeDownloadTask(request, nil, .download(completionHandler))
    }

    /// Makes a task that loads a URL into a file, which is the handler's while it runs.
    ///
    /// - Returns: The task, suspended.
    open func downloadTask(
        with url: URL, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        makeDownloadTask(URLRequest(url: url), nil, .download(completionHandler))
    }

    /// Makes a task that resumes an earlier download; the file is the handler's while it runs.
    ///
    /// - Returns: The task, suspended.
    open func downloadTask(
        withResumeData resumeData: Data, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        makeDownloadTask(nil, resumeData, .download(completionHandler))
    }
}
