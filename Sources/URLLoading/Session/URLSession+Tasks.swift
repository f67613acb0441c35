// SPDX-License-Identifier: Apache-2.0

package import Foundation
internal import HTTPRules
internal import HTTPWire
internal import LoadingEngine
package import LoadingModel
internal import Synchronization

/// Factories for tasks: each task gets a number, is registered, and is announced to the delegate before the factory method returns.
extension URLSession {
    /// Makes a session on an engine that the caller provides.
    package convenience init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, delegateQueue queue: OperationQueue?,
        service: any LoadingService, isShared: Bool = false
    ) {
        self.init()
        equip(SessionEquipment(configuration, service: service, isShared: isShared), delegate, queue)
    }

    enum UploadSource {
        case file(URL)
        case data(Data)
        /// The request's stream, or the stream that the delegate provides.
        case stream
    }

    func makeDataTask(_ request: URLRequest, _ audience: TaskAudience) -> URLSessionDataTask {
        announced(
            URLSessionDataTask(
                session: self, identifier: registry.nextIdentifier(), request: request, delivery: audience.bodyDelivery,
                audience: audience))
    }

    func makeUploadTask(_ request: URLRequest, _ source: UploadSource, _ audience: TaskAudience) -> URLSessionUploadTask {
        announced(uploadTask(request, source, audience))
    }

    func makeDownloadTask(_ request: URLRequest?, _ resumeData: Data?, _ audience: TaskAudience) -> URLSessionDownloadTask {
        announced(downloadTask(request, resumeData, audience))
    }

    func makeWebSocketTask(_ request: URLRequest, _ protocols: [String]) -> URLSessionWebSocketTask {
        var request = request
        if !protocols.isEmpty {
            request.setValue(protocols.joined(separator: ", "), forHTTPHeaderField: "Sec-WebSocket-Protocol")
        }
        return announced(
            URLSessionWebSocketTask(
                session: self, identifier: registry.nextIdentifier(), request: request, protocols: protocols))
    }

    func makeStreamTask(_ order: StreamOrder) -> URLSessionStreamTask {
        announced(URLSessionStreamTask(session: self, identifier: registry.nextIdentifier(), order: order))
    }

    func uploadTask(_ request: URLRequest, _ source: UploadSource, _ audience: TaskAudience) -> URLSessionUploadTask {
        let body: RequestBody? =
            switch source {
            case .file(let url): .file(path: url.path)
            case .data(let data): .data(data)
            case .stream: request.httpBodyStream.map { .stream(InputStreamBody($0)) } ?? .streamOnDemand
            }
        let task = URLSessionUploadTask(
            session: self, identifier: registry.nextIdentifier(), request: request, delivery: audience.bodyDelivery,
            audience: audience, uploadBody: body
        )
        task.mutex.withLock { $0.start.upload = UploadOrder() }
        return task
    }

    /// Makes a task that resumes an upload; if the data is not resume data of an upload, the task fails when it is resumed.
    func uploadTask(resuming resumeData: Data, _ audience: TaskAudience) -> URLSessionUploadTask {
        let earlier = try? UploadResumeData(decoding: resumeData)
        let body: RequestBody =
            switch earlier?.body {
            case .file(let path, _, _, _): .file(path: path)
            case .data(let data): .data(data)
            case .stream, nil: .streamOnDemand
            }
        let task = URLSessionUploadTask(
            session: self, identifier: registry.nextIdentifier(), request: earlier.map { Self.request($0) },
            delivery: audience.bodyDelivery, audience: audience, uploadBody: body
        )
        task.mutex.withLock { $0.start.upload = UploadOrder(resuming: resumeData) }
        return task
    }

    func makeUploadTask(resuming resumeData: Data, _ audience: TaskAudience) -> URLSessionUploadTask {
        announced(uploadTask(resuming: resumeData, audience))
    }

    func downloadTask(_ request: URLRequest?, _ resumeData: Data?, _ audience: TaskAudience) -> URLSessionDownloadTask {
        URLSessionDownloadTask(
            session: self, identifier: registry.nextIdentifier(), request: request ?? resumeData.flatMap(Self.request),
            delivery: .download(resuming: resumeData), audience: audience
        )
    }

    /// The request stored in resume data; nil if the data is not resume data.
    private static func request(resuming data: Data) -> URLRequest? {
        guard let point = try? ResumePoint(decoding: data) else { return nil }
        return request(point.originalURL, point.method, point.headers, point.settings)
    }

    private static func request(_ earlier: UploadResumeData) -> URLRequest {
        request(earlier.url, earlier.method, earlier.headers, earlier.settings)
    }

    private static func request(
        _ url: URL, _ method: String, _ headers: HeaderBlock, _ settings: ResumePoint.Settings
    ) -> URLRequest {
        var request = LoadRequest(url: url)
        request.method = method
        request.headers = headers
        request.handlesCookies = settings.handlesCookies
        request.timeout = settings.timeout
        request.mainDocumentURL = settings.mainDocumentURL
        request.cookiePartition = settings.cookiePartition
        return URLRequest(loadRequest: request, template: nil)
    }

    /// The tasks that have not completed.
    ///
    /// Reading this property makes the tasks report their byte counts, because the app may observe their progress.
    var tasksReportingCounts: [URLSessionTask] {
        let tasks = registry.tasks
        for task in tasks { task.mutex.withLock { task.startReportingCounts(&$0) } }
        return tasks
    }

    /// Registers a task with the session, and calls the delegate's `didCreateTask` on this thread.
    private func announced<Kind: URLSessionTask>(_ task: Kind) -> Kind {
        registry.add(task)
        if let conformances { DelegateCalls(session: self, own: nil, shared: conformances).created(task) }
        return task
    }

    /// Calls `didCreateTask` for a task that an async method resumes immediately; resuming registers the task.
    func announced<Kind: URLSessionTask>(_ task: Kind, _ delegate: (any URLSessionTaskDelegate)?) -> Kind {
        let conformances = conformances
        guard delegate != nil || conformances != nil else { return task }
        task.delegate = delegate
        DelegateCalls(session: self, own: task.mutex.withLock { $0.recipients.ownDelegate }, shared: conformances).created(task)
        return task
    }
}

extension TaskAudience {
    /// How the engine delivers the body of a data or upload task: streamed, or collected.
    fileprivate var bodyDelivery: TaskOrder.Delivery {
        switch self {
        case .delegate, .bytes: .stream
        case .data, .download, .caller, .waitingForData, .waitingForFile: .collect
        }
    }
}

/// Tasks grouped by kind, in the order in which `URLSession` returns them.
struct TasksByKind: Sendable {
    var data: [URLSessionDataTask] = []
    var upload: [URLSessionUploadTask] = []
    var download: [URLSessionDownloadTask] = []

    init(_ tasks: [URLSessionTask]) {
        for task in tasks {
            switch task {
            case let task as URLSessionUploadTask: upload.append(task)
            case let task as URLSessionDataTask: data.append(task)
            case let task as URLSessionDownloadTask: download.append(task)
            default: break
            }
        }
    }
}

/// The session of `URLSession.shared`.
enum SharedSession {
    static let session = URLSession.makeShared(.shared)
}

extension URLSession {
    /// Makes a session like the shared one, but with its own event loop, so that its loads complete even if callers block every other
    /// thread.
    static func withDedicatedEventLoop() -> URLSession { makeShared(.apart) }

    fileprivate static func makeShared(_ loop: LoopChoice) -> URLSession {
        let configuration = URLSessionConfiguration.default
        return URLSession(
            configuration: configuration, delegate: nil, delegateQueue: nil,
            service: EngineDirectory.service(
                for: configuration.sessionPolicy(), SessionMemory(configuration.snapshot), configuration.snapshot, loop: loop),
            isShared: true
        )
    }
}
