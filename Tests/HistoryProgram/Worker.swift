// SPDX-License-Identifier: Apache-2.0

import Foundation
import HistoryModel
import Synchronization
import URLLoading

/// A program whose sessions and loads are controlled through its standard input.
final class Worker: Sendable {
    struct State {
        var sessions: [Int: URLSession] = [:]
        var requests: [Int: LoadRequest] = [:]
        var cookiesBefore: [Int: [String]] = [:]
        var tasks: [Int: URLSessionTask] = [:]
        var jobs: [Int: Task<Void, Never>] = [:]
        var resumeData: [Int: Data] = [:]
        var ended: Set<Int> = []
        /// Loads for which the delegate has provided a password.
        var answered: Set<Int> = []
        var valid: Set<Int> = []
        /// Loads in which the app sends more than one request.
        var conversations: [Int: any Conversation] = [:]
        var whenInvalid: [CheckedContinuation<Void, Never>] = []
    }

    static let backgroundSession = -1
    let state = Mutex(State())
    private let output = Mutex(())

    static func run() async {
        let worker = Worker()
        let lines = AsyncStream<String> { continuation in
            Thread.detachNewThread {
                while let line = readLine() { continuation.yield(line) }
                continuation.finish()
            }
        }
        worker.say(WorkerReport(.ready))
        for await line in lines {
            guard let order = try? JSONDecoder().decode(WorkerOrder.self, from: Data(line.utf8)) else { exit(65) }
            await worker.carryOut(order)
        }
    }

    func say(_ report: WorkerReport) {
        guard var line = try? JSONEncoder().encode(report) else { exit(66) }
        line.append(0x0A)
        output.withLock { _ in
            var rest = line[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
                guard count > 0 else { exit(67) }
                rest = rest.dropFirst(count)
            }
        }
    }

    private func carryOut(_ order: WorkerOrder) async {
        switch order {
        case .makeSession(let number, let kind, let ports, let roots): makeSession(number, kind, ports, roots)
        case .makeBackgroundSession(let identifier): makeBackgroundSession(identifier)
        case .invalidate(let number, let finishes):
            let session = state.withLock { $0.sessions.removeValue(forKey: number) }
            if finishes { session?.finishTasksAndInvalidate() } else { session?.invalidateAndCancel() }
            say(WorkerReport(.did, session: number))
        case .load(let request): begin(request)
        case .resumeDownload(let load, let first, let session, let way): resumeDownload(load, of: first, in: session, way)
        case .cancelUpload(let load): await cancelUpload(load)
        case .resumeUpload(let load, let first, let session): resumeUpload(load, of: first, in: session)
        case .suspend(let load): await suspend(load)
        case .resume(let load): drive(load) { $0.resume() }
        case .cancel(let load):
            state.withLock { $0.jobs[load] }?.cancel()
            drive(load) { $0.cancel() }
        case .leave: await leave()
        }
    }

    /// Suspends a task; the task has left the queue when a later load of its session has ended.
    private func suspend(_ load: Int) async {
        let (task, session) = state.withLock { state in
            (state.tasks[load], state.requests[load].flatMap { state.sessions[$0.session] })
        }
        task?.suspend()
        if let session, let nothing = URL(string: "data:,") { _ = try? await session.data(from: nothing) }
        say(WorkerReport(.did, load: load))
    }

    private func drive(_ load: Int, _ act: (URLSessionTask) -> Void) {
        if let task = state.withLock({ $0.tasks[load] }) { act(task) }
        say(WorkerReport(.did, load: load))
    }

    /// Invalidates all sessions, and reports the files that are open when all sessions are invalid.
    private func leave() async {
        let sessions = state.withLock { state in
            defer { state.sessions = [:] }
            return state.sessions
        }
        for (number, session) in sessions where number != Self.backgroundSession { session.invalidateAndCancel() }
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.valid.isEmpty { return true }
                state.whenInvalid.append(continuation)
                return false
            }
            if isOver { continuation.resume() }
        }
        var report = WorkerReport(.left)
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        let targets = names.compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)") }
        let temporary = FileManager.default.temporaryDirectory.path
        report.open = targets.filter { $0.hasPrefix(temporary) || $0.contains("CFNetworkDownload") }
        say(report)
    }

    func becameInvalid(_ number: Int) {
        let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>]? in
            guard state.valid.remove(number) != nil else { return nil }
            guard state.valid.isEmpty else { return [] }
            defer { state.whenInvalid = [] }
            return state.whenInvalid
        }
        say(WorkerReport(waiting == nil ? .stray : .invalid, session: number))
        for continuation in waiting ?? [] { continuation.resume() }
    }

    // MARK: Sessions

    private func makeSession(_ number: Int, _ kind: SessionKind, _ ports: [Int: Int], _ roots: String) {
        let configuration: URLSessionConfiguration = kind.stores == .ephemeral ? .ephemeral : .default
        if kind.stores == .withoutCache { configuration.urlCache = nil }
        if kind.trust == .ownRoots { configuration.tlsTrustRoots = [Data(roots.utf8)] }
        if kind.isSubstituted {
            configuration.connectionOptions.substitutions = ports.sorted { $0.key < $1.key }.map {
                .init(of: .init(port: $0.key), with: .init(port: $0.value))
            }
        }
        if kind.principal != .anonymous {
            configuration.httpAdditionalHeaders = ["Authorization": Self.basic(kind.principal.rawValue, kind.principal.password)]
        }
        if kind.hasProtocol { configuration.protocolClasses = [HistoryProtocol.self] }
        configuration.requiresSecureFTP = kind.requiresSecureFTP
        if kind.retries {
            var retries = URLSessionConfiguration.RetryPolicy()
            (retries.maximumRetryCount, retries.firstPause) = (2, 0.05)
            configuration.retryPolicy = retries
        }
        configuration.httpMaximumConnectionsPerHost = kind.connections
        let delegate = kind.hasDelegate ? HistoryDelegate(self, number, trusts: kind.trust == .delegate) : nil
        let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
        state.withLock { state in
            state.sessions[number] = session
            if delegate != nil { state.valid.insert(number) }
        }
        say(WorkerReport(.session, session: number))
    }

    private func makeBackgroundSession(_ identifier: String) {
        let number = Self.backgroundSession
        let session = URLSession(
            configuration: .background(withIdentifier: identifier), delegate: HistoryDelegate(self, number, trusts: false),
            delegateQueue: nil)
        state.withLock { $0.sessions[number] = session }
        say(WorkerReport(.session, session: number))
    }

    static func basic(_ user: String, _ password: String) -> String {
        "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
    }

    // MARK: Loads

    func urlRequest(_ order: LoadRequest) -> URLRequest? {
        guard let url = URL(string: order.url) else { return nil }
        var request = URLRequest(url: url, cachePolicy: order.policy.cachePolicy, timeoutInterval: 8)
        request.httpMethod = order.method
        for (name, value) in order.fields { request.setValue(value, forHTTPHeaderField: name) }
        request.setValue("\(order.load)", forHTTPHeaderField: "X-Load")
        if order.way == .becomesStream { request.setValue("history/1", forHTTPHeaderField: "Upgrade") }
        return request
    }

    private func begin(_ order: LoadRequest) {
        guard let session = state.withLock({ $0.sessions[order.session] }), let request = urlRequest(order) else {
            var report = WorkerReport(.end, load: order.load)
            report.error = 0
            report.message = "no such session"
            return say(report)
        }
        let before = cookies(of: session, order.url)
        state.withLock { state in
            state.requests[order.load] = order
            state.cookiesBefore[order.load] = before
        }
        if order.session == Self.backgroundSession { return beginInBackground(order, request, session) }
        if order.way == .data { return beginAsync(order, request, session) }
        if order.way == .webSocket { return beginSocket(order, request, session) }
        if order.way == .stream { return beginStream(order, request, session) }
        let load = order.load
        let task: URLSessionTask
        switch order.way {
        case .data, .delegate, .webSocket, .becomesStream, .stream:
            task = order.content.map { session.uploadTask(with: request, from: $0) } ?? session.dataTask(with: request)
        case .completion:
            let complete: @Sendable (Data?, URLResponse?, (any Error)?) -> Void = { self.end(load, $0, $1, $2) }
            task =
                order.content.map { session.uploadTask(with: request, from: $0, completionHandler: complete) }
                ?? session.dataTask(with: request, completionHandler: complete)
        case .download:
            task = session.downloadTask(with: request) { file, response, error in
                self.end(load, file.flatMap { try? Data(contentsOf: $0) }, response, error)
            }
        }
        start(task, load)
    }

    func start(_ task: URLSessionTask, _ load: Int) {
        task.taskDescription = "\(load)"
        state.withLock { $0.tasks[load] = task }
        task.resume()
        var report = WorkerReport(.begun, load: load)
        report.task = task.taskIdentifier
        say(report)
    }

    private func beginAsync(_ order: LoadRequest, _ request: URLRequest, _ session: URLSession) {
        let delegate = order.hasOwnTrust ? TrustingDelegate() : nil
        let job = Task {
            do {
                let (data, response) =
                    if let content = order.content {
                        try await session.upload(for: request, from: content, delegate: delegate)
                    } else if let delegate {
                        try await session.data(for: request, delegate: delegate)
                    } else {
                        try await session.data(for: request)
                    }
                end(order.load, data, response, nil)
            } catch {
                end(order.load, nil, nil, error)
            }
        }
        state.withLock { $0.jobs[order.load] = job }
        say(WorkerReport(.begun, load: order.load))
    }

    private func beginInBackground(_ order: LoadRequest, _ request: URLRequest, _ session: URLSession) {
        if order.way == .delegate {
            var request = request
            request.httpBody = order.content
            return start(session.dataTask(with: request), order.load)
        }
        guard let content = order.content else { return start(session.downloadTask(with: request), order.load) }
        let file = URL(fileURLWithPath: NSHomeDirectory()).appendingPathComponent("upload-\(order.load)")
        try? content.write(to: file)
        start(session.uploadTask(with: request, fromFile: file), order.load)
    }

    private func resumeDownload(_ load: Int, of first: Int, in number: Int, _ way: Way) {
        let (session, data, order) = state.withLock { ($0.sessions[number], $0.resumeData[first], $0.requests[first]) }
        guard let session, let data, let order else {
            var report = WorkerReport(.end, load: load)
            report.error = 0
            report.message = "nothing to go on with"
            return say(report)
        }
        let before = cookies(of: session, order.url)
        state.withLock { state in
            state.requests[load] = order
            state.cookiesBefore[load] = before
        }
        start(
            session.downloadTask(withResumeData: data) { file, response, error in
                self.end(load, file.flatMap { try? Data(contentsOf: $0) }, response, error)
            }, load)
    }

    // MARK: Ends

    func cookies(of session: URLSession, _ url: String) -> [String] {
        guard let url = URL(string: url), let storage = session.configuration.httpCookieStorage else { return [] }
        return (storage.cookies(for: url) ?? []).map { "\($0.name)=\($0.value)" }
    }

    /// The cookies that the store of the load's session has now.
    func cookies(for load: Int) -> [String] {
        let (session, order) = state.withLock { state in
            (state.requests[load].flatMap { state.sessions[$0.session] }, state.requests[load])
        }
        guard let session, let order else { return [] }
        return cookies(of: session, order.url)
    }

    func end(
        _ load: Int, _ data: Data?, _ response: URLResponse?, _ error: (any Error)?, calls: [String] = [],
        cookies: [String]? = nil
    ) {
        var report = WorkerReport(.end, load: load)
        report.status = (response as? HTTPURLResponse)?.statusCode
        report.body = data.map { String(decoding: $0, as: UTF8.self) }
        report.calls = calls
        report.cookies = cookies ?? self.cookies(for: load)
        if let error {
            report.error = (error as? URLError)?.code.rawValue ?? (error is CancellationError ? -999 : 1)
            report.message = "\(error)"
        }
        let resumeData = (error as? URLError)?.downloadTaskResumeData ?? (error as? URLError)?.uploadTaskResumeData
        report.hasResumeData = resumeData != nil
        let isFirst = state.withLock { state in
            if let resumeData { state.resumeData[load] = resumeData }
            report.cookiesBefore = state.cookiesBefore[load] ?? []
            state.tasks[load] = nil
            state.jobs[load] = nil
            return state.ended.insert(load).inserted
        }
        if !isFirst { report.kind = .stray }
        HistoryProtocol.describe(&report)
        if report.wasGiven != nil, let request = state.withLock({ $0.requests[load] }).flatMap(urlRequest) {
            let stored = URLCache.shared.cachedResponse(for: request)
            report.isCached = stored.map { String(decoding: $0.data, as: UTF8.self) == report.body }
        }
        say(report)
    }
}

extension Policy {
    fileprivate var cachePolicy: URLRequest.CachePolicy {
        switch self {
        case .usual: .useProtocolCachePolicy
        case .reload: .reloadIgnoringLocalCacheData
        case .reloadAll: .reloadIgnoringLocalAndRemoteCacheData
        case .elseLoad: .returnCacheDataElseLoad
        case .dontLoad: .returnCacheDataDontLoad
        case .revalidate: .reloadRevalidatingCacheData
        }
    }
}
