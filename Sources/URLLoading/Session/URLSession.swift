//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation
package import LoadingModel
internal import Synchronization

/// Loads resources over HTTP and from files, and through the app's own `URLProtocol` classes: makes tasks, tells a delegate of
/// them, and shares connections and settings among them.
///
/// The configuration is copied when the session is made. A session with a delegate holds it until the session is invalidated.
/// Copying a session returns the session itself.
open class URLSession: NSObject, NSCopying, @unchecked Sendable {
    /// What to do with a task whose earliest begin date has come.
    public enum DelayedRequestDisposition: Int, Sendable {
        /// Load the request the task was made with.
        case continueLoading = 0
        /// Load another request.
        case useNewRequest = 1
        /// Cancel the task.
        case cancel = 2
    }

    /// How to answer an authentication challenge.
    public enum AuthChallengeDisposition: Int, Sendable {
        /// Use the credential that comes with the answer, or go on without if there is none.
        case useCredential = 0
        /// Do as if the delegate did not implement the method.
        case performDefaultHandling = 1
        /// Cancel the task.
        case cancelAuthenticationChallenge = 2
        /// Try the next protection space that the server offers.
        case rejectProtectionSpace = 3
    }

    /// What becomes of a task whose response has come.
    public enum ResponseDisposition: Int, Sendable {
        /// Cancel it.
        case cancel = 0
        /// Go on, and deliver the body.
        case allow = 1
        /// Go on as a download task.
        case becomeDownload = 2
        /// Go on as a stream task. Stream tasks are not offered yet: the task is cancelled.
        case becomeStream = 3
    }

    struct State {
        /// The delegate, until the session became invalid.
        var roster: DelegateRoster?
        /// Made when it is first needed, unless the app gave one: sessions that are only used with `async` never need it.
        var queue: OperationQueue?
        var description: String?
    }

    /// A session with the default configuration and no delegate, for everybody.
    ///
    /// It cannot be invalidated.
    public class var shared: URLSession { SharedSession.session }

    let service: any LoadingService
    let registry = TaskRegistry()
    let customClasses: CustomClasses
    let memory: SessionMemory
    /// The configuration's header fields, for the requests that tasks show.
    let additionalFields: [(name: String, value: String)]
    /// Those of the configuration, in DER.
    let trustRoots: [Data]
    private let settings: URLSessionConfiguration
    private let isShared: Bool
    private let mutex: Mutex<State>

    /// Makes a session with the default configuration, for classes that put methods of their own in place of the session's.
    public override convenience init() { self.init(configuration: .default) }

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
    public init(configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, delegateQueue queue: OperationQueue?)
    {
        settings = URLSession.snapshot(of: configuration)
        memory = SessionMemory(settings.snapshot)
        let policy = settings.sessionPolicy()
        trustRoots = policy.trustRoots
        service = EngineDirectory.service(for: policy, memory, settings.snapshot.security)
        customClasses = CustomClasses(settings, isShared: false)
        additionalFields = settings.snapshot.additionalFields()
        isShared = false
        mutex = Mutex(State(roster: delegate.map { DelegateRoster($0) }, queue: queue))
        super.init()
    }

    /// Makes a session on an engine of the caller's.
    package init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, delegateQueue queue: OperationQueue?,
        service: any LoadingService, isShared: Bool = false
    ) {
        settings = URLSession.snapshot(of: configuration)
        memory = SessionMemory(settings.snapshot)
        self.service = service
        trustRoots = []
        customClasses = CustomClasses(settings, isShared: isShared)
        additionalFields = settings.snapshot.additionalFields()
        self.isShared = isShared
        mutex = Mutex(State(roster: delegate.map { DelegateRoster($0) }, queue: queue))
        super.init()
    }

    deinit { if !registry.isClosed { service.invalidate() } }

    private static func snapshot(of configuration: URLSessionConfiguration) -> URLSessionConfiguration {
        let copy = configuration.copy() as? URLSessionConfiguration ?? configuration
        copy.settleStores()
        return copy
    }

    /// Returns the session itself.
    open override func copy() -> Any { self }

    /// Returns the session itself.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    // MARK: What it is

    /// The settings of the session: a copy each time, changes to which have no effect.
    open var configuration: URLSessionConfiguration { URLSession.snapshot(of: settings) }

    /// The delegate, until the session became invalid.
    open var delegate: (any URLSessionDelegate)? { roster?.object }

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

    /// A text of the app's.
    open var sessionDescription: String? {
        get { mutex.withLock { $0.description } }
        set { mutex.withLock { $0.description = newValue } }
    }

    var roster: DelegateRoster? { mutex.withLock { $0.roster } }

    // MARK: Ending it

    /// Takes no more tasks, lets those there are finish, and tells the delegate when the session is invalid.
    ///
    /// Returns at once.
    ///
    /// Making a task after that is a mistake: such a task fails with `URLError.cancelled` when it is resumed (differs from Apple's,
    /// which throws an exception, because a server should not end over it). No effect on the shared session.
    open func finishTasksAndInvalidate() {
        guard !isShared else { return }
        registry.close { self.becomeInvalid() }
    }

    /// Takes no more tasks, cancels those there are, and tells the delegate when the session is invalid.
    ///
    /// Returns at once.
    ///
    /// No effect on the shared session.
    open func invalidateAndCancel() {
        guard !isShared else { return }
        registry.close { self.becomeInvalid() }
        for task in registry.tasks { task.cancel() }
    }

    /// The last message of a session; after it the delegate is released.
    private func becomeInvalid() {
        service.invalidate()
        guard let roster else { return }
        delegateQueue.addOperation {
            DelegateCall.tell(.becameInvalid, roster.object) {
                roster.object.urlSession(self, didBecomeInvalidWithError: nil)
            }
            self.mutex.withLock { $0.roster = nil }
        }
    }

    /// Empties the session's cookies and cache, forgets what servers asked for (RFC 6797), and lets the next requests go over new
    /// connections; then calls the handler on the delegate queue.
    ///
    /// Stores that are shared are empty for everybody.
    open func reset(completionHandler: @escaping @Sendable () -> Void) {
        renew(.reset) { self.delegateQueue.addOperation { completionHandler() } }
    }

    /// Writes what the session remembers to disk and lets the next requests go over new connections, then calls the handler on the
    /// delegate queue. What was stored before is durable then.
    open func flush(completionHandler: @escaping @Sendable () -> Void) {
        renew(.flush) { self.delegateQueue.addOperation { completionHandler() } }
    }

    func renew(_ renewal: Renewal, completion: @escaping @Sendable () -> Void) {
        guard renewal == .reset, memory.isPartlyOfTheApp else { return service.renew(renewal, completion: completion) }
        // The app's own stores run its code, which must not hold the caller up.
        DispatchQueue.global().async {
            self.memory.reset()
            self.service.renew(renewal, completion: completion)
        }
    }

    // MARK: Its tasks

    /// Calls the handler on the delegate queue with the tasks that have not completed, also those never resumed.
    open func getTasksWithCompletionHandler(
        _ completionHandler: @escaping @Sendable ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) -> Void
    ) {
        delegateQueue.addOperation {
            let sorted = TasksByKind(self.registry.tasks)
            completionHandler(sorted.data, sorted.upload, sorted.download)
        }
    }

    /// Calls the handler on the delegate queue with the tasks that have not completed, also those never resumed.
    open func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
        delegateQueue.addOperation { completionHandler(self.registry.tasks) }
    }

    // MARK: Making tasks

    /// Makes a task that loads a request and tells the delegate.
    open func dataTask(with request: URLRequest) -> URLSessionDataTask { makeDataTask(request, .delegate) }

    /// Makes a task that loads a URL and tells the delegate.
    open func dataTask(with url: URL) -> URLSessionDataTask { makeDataTask(URLRequest(url: url), .delegate) }

    /// Makes a task that sends a file as the request's body.
    open func uploadTask(with request: URLRequest, fromFile fileURL: URL) -> URLSessionUploadTask {
        makeUploadTask(request, .file(fileURL), .delegate)
    }

    /// Makes a task that sends data as the request's body.
    open func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
        makeUploadTask(request, .data(bodyData), .delegate)
    }

    /// Makes a task that sends a stream: the request's own, or the one the delegate gives in `needNewBodyStream`.
    open func uploadTask(withStreamedRequest request: URLRequest) -> URLSessionUploadTask {
        makeUploadTask(request, .stream, .delegate)
    }

    /// Makes a task that loads a request into a file and tells the delegate.
    open func downloadTask(with request: URLRequest) -> URLSessionDownloadTask { makeDownloadTask(request, nil, .delegate) }

    /// Makes a task that loads a URL into a file and tells the delegate.
    open func downloadTask(with url: URL) -> URLSessionDownloadTask { makeDownloadTask(URLRequest(url: url), nil, .delegate) }

    /// Makes a task that goes on with an earlier download.
    ///
    /// If the data is not resume data, the task fails once it is resumed.
    open func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask {
        makeDownloadTask(nil, resumeData, .delegate)
    }

    // MARK: Making tasks with a handler

    /// Makes a task that loads a request and hands the result to a handler, on the delegate queue.
    open func dataTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        makeDataTask(request, .data(completionHandler))
    }

    /// Makes a task that loads a URL and hands the result to a handler, on the delegate queue.
    open func dataTask(
        with url: URL, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        makeDataTask(URLRequest(url: url), .data(completionHandler))
    }

    /// Makes a task that sends a file, and hands the answer to a handler, on the delegate queue.
    open func uploadTask(
        with request: URLRequest, fromFile fileURL: URL,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        makeUploadTask(request, .file(fileURL), .data(completionHandler))
    }

    /// Makes a task that sends data, and hands the answer to a handler, on the delegate queue.
    ///
    /// Without data the body is empty.
    open func uploadTask(
        with request: URLRequest, from bodyData: Data?,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        makeUploadTask(request, .data(bodyData ?? Data()), .data(completionHandler))
    }

    /// Makes a task that loads a request into a file, which is the handler's while it runs.
    open func downloadTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        makeDownloadTask(request, nil, .download(completionHandler))
    }

    /// Makes a task that loads a URL into a file, which is the handler's while it runs.
    open func downloadTask(
        with url: URL, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        makeDownloadTask(URLRequest(url: url), nil, .download(completionHandler))
    }

    /// Makes a task that goes on with an earlier download; the file is the handler's while it runs.
    open func downloadTask(
        withResumeData resumeData: Data, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        makeDownloadTask(nil, resumeData, .download(completionHandler))
    }
}
