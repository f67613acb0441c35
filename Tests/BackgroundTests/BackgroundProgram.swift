// SPDX-License-Identifier: Apache-2.0

import BackgroundClient
import BackgroundProtocol
import Foundation
import LoadingModel
import LoadingTestKit
import Synchronization
import Testing
import URLLoading

#if canImport(Glibc)
import Glibc
#endif

/// A program with background sessions, in a process of its own, controlled by ``ProgramScript``.
@Suite(.enabled(if: SeparateProcess.isCurrentSuite("BackgroundProgram"), "it runs in a process of its own"))
struct BackgroundProgram {
    @Test(.timeLimit(.minutes(5))) func `follows its script`() async throws {
        let journal = try ProgramOutput()
        journal.say("started")
        let work = ProgramWork(journal)
        URLSession.handleEventsForBackgroundURLSession { identifier, completionHandler in
            journal.say("launched for \(identifier)")
            work.handlers.withLock { $0[identifier] = completionHandler }
        }
        for await line in ProgramScript.lines {
            do { try await work.carryOut(ProgramScript.words(line)) } catch { journal.say("trouble \(line): \(error)") }
        }
    }
}

/// Writes to the test's journal.
final class ProgramOutput: Sendable {
    private let descriptor: CInt
    private let label: String
    private let said = Watched<[String]>([])

    init() throws {
        label = ProgramScript.environment[ProgramScript.labelKey] ?? "?"
        descriptor = open(ProgramScript.environment[ProgramScript.journalKey] ?? "", O_WRONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw CocoaError(.fileNoSuchFile) }
    }

    func say(_ text: String) {
        let line = Array("\(label)\t\(text.replacingOccurrences(of: "\n", with: " ").prefix(3000))\n".utf8)
        _ = write(descriptor, line, line.count)
        said.change { $0.append(text) }
    }

    func awaitLine(_ start: String) async throws {
        try await said.value { $0.contains { $0.hasPrefix(start) } ? () : nil }
    }
}

/// The sessions and tasks of a program.
final class ProgramWork: Sendable {
    struct State {
        var sessions: [String: URLSession] = [:]
        var resumeData: Data?
        var challenges: [String: ChallengeHandler] = [:]
    }

    typealias ChallengeHandler = @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void

    let journal: ProgramOutput
    let handlers = Mutex<[String: @Sendable () -> Void]>([:])
    /// What the delegate does with a downloaded file.
    let taking = Mutex("move")
    private let state = Mutex(State())

    init(_ journal: ProgramOutput) { self.journal = journal }

    func carryOut(_ words: [String]) async throws {
        var plain = words.filter { !$0.contains("=") || $0.contains("://") || $0.hasPrefix("/") }
        guard !plain.isEmpty else { return }
        let verb = plain.removeFirst()
        let options = Dictionary(
            words.filter { $0.contains("=") && !$0.contains("://") && !$0.hasPrefix("/") }.map {
                let parts = $0.split(separator: "=", maxSplits: 1)
                return (String(parts[0]), parts.count > 1 ? String(parts[1]) : "")
            }, uniquingKeysWith: { first, _ in first })
        switch verb {
        case "session": makeSession(plain[0], options)
        case "take": taking.withLock { $0 = plain[0] }
        case "await": try await journal.awaitLine(plain.joined(separator: " "))
        case "sync":
            await sync()
            journal.say("synced")
        case "leave":
            await sync()
            journal.say("leaving")
            _exit(0)
        case "crash":
            // Only the first process that gets here.
            let mark = (ProgramScript.environment[ProgramScript.folderKey] ?? "") + "/crashed"
            guard mkdir(mark, 0o700) == 0 else { return }
            kill(getpid(), SIGKILL)
        case "watch": await watch()
        case "manage": await manage(plain)
        case "find": find()
        case "continue":
            let session = try session(plain[0])
            guard let data = state.withLock({ $0.resumeData }) else { return journal.say("no resume data") }
            begin(session.downloadTask(withResumeData: data), plain[0], plain.dropFirst().first, options)
        case "continueUpload":
            guard let data = state.withLock({ $0.resumeData }) else { return journal.say("no resume data") }
            begin(try session(plain[0]).uploadTask(withResumeData: data), plain[0], nil, options)
        case "download":
            let request = try request(plain[1], options)
            begin(try session(plain[0]).downloadTask(with: request), plain[0], plain.dropFirst(2).first, options)
        case "data":
            let request = try request(plain[1], options)
            begin(try session(plain[0]).dataTask(with: request), plain[0], plain.dropFirst(2).first, options)
        case "reset":
            try await session(plain[0]).reset()
            journal.say("reset \(plain[0])")
        case "upload":
            var request = try request(plain[1], options)
            request.httpMethod = options["method"] ?? "PUT"
            begin(
                try session(plain[0]).uploadTask(with: request, fromFile: URL(fileURLWithPath: plain[2])), plain[0],
                plain.dropFirst(3).first, options)
        case "cookies":
            let cookies = URL(string: plain[0]).flatMap { HTTPCookieStorage.shared.cookies(for: $0) } ?? []
            journal.say("cookies \(cookies.map { "\($0.name)=\($0.value)" }.sorted().joined(separator: " "))")
        case "wrong": try await wrong(plain)
        case "tasks": try await listTasks(plain[0])
        case "invalidate": try session(plain[0]).invalidateAndCancel()
        case "finish": try session(plain[0]).finishTasksAndInvalidate()
        case "children": try await tellChildren()
        case "answer": answer(plain[0], plain[1])
        case "handled": handlers.withLock { $0.removeValue(forKey: plain[0]) }?()
        case "cancel", "suspend", "resume", "produce", "describe": try await drive(verb, plain)
        default: journal.say("unknown \(verb)")
        }
    }

    private func request(_ url: String, _ options: [String: String]) throws -> URLRequest {
        guard let url = URL(string: url) else { throw URLError(.badURL) }
        var request = URLRequest(url: url)
        if let timeout = options["timeout"].flatMap(Double.init) { request.timeoutInterval = timeout }
        if let size = options["body"].flatMap(Int.init) {
            request.httpMethod = "POST"
            request.httpBody = Data(repeating: 0x78, count: size)
        }
        if let header = options["header"]?.split(separator: ":", maxSplits: 1), header.count == 2 {
            request.setValue(String(header[1]), forHTTPHeaderField: String(header[0]))
        }
        return request
    }

    func session(_ name: String) throws -> URLSession {
        guard let session = state.withLock({ $0.sessions[name] }) else { throw CocoaError(.keyValueValidation) }
        return session
    }

    /// Stores resume data for `continue`.
    func keep(_ resumeData: Data) { state.withLock { $0.resumeData = resumeData } }

    /// Stores the handler of a task's challenge for `answer`.
    func keep(_ handler: @escaping ChallengeHandler, of task: String) { state.withLock { $0.challenges[task] = handler } }

    private func answer(_ task: String, _ pair: String) {
        let parts = pair.split(separator: ":").map(String.init)
        guard parts.count == 2, let handler = state.withLock({ $0.challenges.removeValue(forKey: task) }) else {
            return journal.say("no challenge of \(task)")
        }
        handler(.useCredential, URLCredential(user: parts[0], password: parts[1], persistence: .none))
        journal.say("answered \(task)")
    }

    private func makeSession(_ name: String, _ options: [String: String]) {
        let configuration = URLSessionConfiguration.background(withIdentifier: options["identifier"] ?? name)
        if let value = options["timeout"].flatMap(Double.init) { configuration.timeoutIntervalForRequest = value }
        if let value = options["resource"].flatMap(Double.init) { configuration.timeoutIntervalForResource = value }
        if let value = options["connections"].flatMap(Int.init) { configuration.httpMaximumConnectionsPerHost = value }
        if let value = options["events"] { configuration.sessionSendsLaunchEvents = value == "1" }
        if let value = options["container"] { configuration.sharedContainerIdentifier = value }
        if options["discretionary"] != nil { configuration.isDiscretionary = true }
        if let header = options["header"]?.split(separator: ":", maxSplits: 1), header.count == 2 {
            configuration.httpAdditionalHeaders = [String(header[0]): String(header[1])]
        }
        if options["protocols"] != nil { configuration.protocolClasses = [IdleProtocol.self] }
        if let port = options["proxy"].flatMap(Int.init) {
            configuration.connectionProxyDictionary = [
                "HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": port,
            ]
        }
        switch options["tls"] {
        case "1.2": configuration.tlsMinimumSupportedProtocolVersion = .TLSv12
        case "1.3": configuration.tlsMinimumSupportedProtocolVersion = .TLSv13
        default: break
        }
        if let name = options["identity"], let port = options["port"].flatMap(Int.init) {
            configuration.urlCredentialStorage?.setIdentity(in: name, forPort: port)
        }
        if let pair = options["cookie"]?.split(separator: "@"), pair.count == 2,
            let cookie = HTTPCookie(properties: [
                .name: "taste", .value: String(pair[0]), .domain: String(pair[1]), .path: "/", .maximumAge: "1000", .version: "1",
            ])
        {
            configuration.httpCookieStorage?.setCookie(cookie)
        }
        if let name = options["bus"] { configuration.backgroundLaunch = .dBusName(name) }
        if let unit = options["unit"] { configuration.backgroundLaunch = .systemdUnit(unit) }
        if options["launch"] != nil, let file = ProgramScript.environment[ProgramScript.launchKey],
            let launch = try? String(contentsOfFile: file, encoding: .utf8)
        {
            configuration.backgroundLaunch = .arguments(
                launch.split(separator: "\u{1}").map(String.init), directory: ProgramScript.environment[ProgramScript.folderKey])
        }
        let delegate: (any URLSessionDelegate)? =
            switch options["delegate"] {
            case "none": nil
            case "credential":
                ProgramDelegate(
                    name, self, credential: URLCredential(user: "ada", password: "lovelace", persistence: .forSession))
            case "ask": ProgramDelegate(name, self, asks: true)
            default: ProgramDelegate(name, self)
            }
        let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
        state.withLock { $0.sessions[name] = session }
        journal.say("session \(name)")
    }

    private func begin(_ task: URLSessionTask, _ name: String, _ description: String?, _ options: [String: String]) {
        task.taskDescription = description
        if let delay = options["begin"].flatMap(Double.init) { task.earliestBeginDate = Date(timeIntervalSinceNow: delay) }
        if let expected = options["expects"].flatMap(Int64.init) { task.countOfBytesClientExpectsToReceive = expected }
        if options["hold"] == nil { task.resume() }
        journal.say("ordered \(name).\(task.taskIdentifier)")
    }

    private func listTasks(_ name: String) async throws {
        let tasks = try await session(name).allTasks.sorted { $0.taskIdentifier < $1.taskIdentifier }
        let texts = tasks.map { task in
            let kind = task is URLSessionDownloadTask ? "download" : task is URLSessionUploadTask ? "upload" : "data"
            return "[\(name).\(task.taskIdentifier) \(kind) \(task.taskDescription ?? "-") state=\(task.state.rawValue)"
                + " received=\(task.countOfBytesReceived)/\(task.countOfBytesExpectedToReceive)"
                + " progress=\(task.progress.completedUnitCount)/\(task.progress.totalUnitCount)"
                + " expects=\(task.countOfBytesClientExpectsToReceive)"
                + " url=\(task.originalRequest?.url?.path ?? "-")"
                + " status=\((task.response as? HTTPURLResponse)?.statusCode ?? 0)]"
        }
        journal.say("tasks \(name): \(texts.joined(separator: " "))")
    }

    private func drive(_ verb: String, _ words: [String]) async throws {
        let parts = words[0].split(separator: ".")
        let tasks = try await session(String(parts[0])).allTasks
        guard let task = tasks.first(where: { String($0.taskIdentifier) == parts[1] }) else {
            return journal.say("no task \(words[0])")
        }
        switch verb {
        case "cancel": task.cancel()
        case "suspend": task.suspend()
        case "resume": task.resume()
        case "describe": task.taskDescription = words[1]
        default:
            let handler: @Sendable (Data?) -> Void = { data in
                self.state.withLock { $0.resumeData = data }
                self.journal.say("produced \(words[0]) \(data == nil ? "nothing" : "data")")
            }
            (task as? URLSessionDownloadTask)?.cancel(byProducingResumeData: handler)
            (task as? URLSessionUploadTask)?.cancel(byProducingResumeData: handler)
        }
        journal.say("did \(verb) \(words[0])")
    }

    /// Waits until the daemon has processed all messages, and the delegates all events.
    private func sync() async {
        for session in state.withLock({ Array($0.sessions.values) }) {
            await withCheckedContinuation { continuation in
                session.delegateQueue.addOperation { continuation.resume() }
            }
            await session.flush()
        }
    }

    /// Starts tasks that background sessions do not support.
    private func wrong(_ words: [String]) async throws {
        let session = try session(words[1])
        guard let url = URL(string: words[2]) else { throw URLError(.badURL) }
        var post = URLRequest(url: url)
        post.httpMethod = "POST"
        let report: @Sendable ((any Error)?) -> Void = { [journal] in
            journal.say("failed \(words[0]) \(ProgramDelegate.text($0))")
        }
        switch words[0] {
        case "handler": session.downloadTask(with: url) { report($2) }.resume()
        case "dataHandler": session.dataTask(with: url) { report($2) }.resume()
        case "async":
            Task {
                do { report(try await session.data(from: url).1.url == nil ? nil : nil) } catch { report(error) }
            }
        case "asyncDownload":
            Task {
                do { report(try await session.download(from: url).1.url == nil ? nil : nil) } catch { report(error) }
            }
        case "uploadData": session.uploadTask(with: post, from: Data("x".utf8)).resume()
        case "uploadStream": session.uploadTask(withStreamedRequest: post).resume()
        case "uploadHandler":
            let file = URL(fileURLWithPath: "/etc/hostname")
            session.uploadTask(with: post, fromFile: file) { report($2) }.resume()
        case "stream":
            let task = session.streamTask(withHostName: "127.0.0.1", port: url.port ?? 0)
            task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) { report($2) }
            task.resume()
        case "silent", "silentData":
            // The task reports to no delegate and no handler, so that only its `error` property has the error.
            let task: URLSessionTask = words[0] == "silent" ? session.downloadTask(with: url) : session.dataTask(with: url)
            task.resume()
            while task.state != .completed { await Task.yield() }
            report(task.error)
        case "taskDelegate", "dataDelegate":
            let task: URLSessionTask = words[0] == "taskDelegate" ? session.downloadTask(with: url) : session.dataTask(with: url)
            task.delegate = ProgramDelegate("own", self)
            task.resume()
        case "download": session.downloadTask(with: url).resume()
        default: journal.say("unknown \(words[0])")
        }
    }

    /// Reports the value of the daemon's variable that a child process inherits and would mistake for its own.
    private func tellChildren() async throws {
        let said = Watched((text: "", isOver: false))
        let process = try ServerProcess.start(
            ServerProcess.Command(
                ["/bin/sh", "-c", "echo ${URLSESSION_BACKGROUND_EVENTS:-none}"],
                environment: ProcessInfo.processInfo.environment,
                output: .pipe { data in said.change { $0 = ($0.text + String(decoding: data, as: UTF8.self), data.isEmpty) } }))
        _ = try await process.end()
        let text = try await said.value { $0.isOver ? $0.text : nil }
        journal.say("children \(text.trimmingCharacters(in: .whitespacesAndNewlines))")
    }

    // MARK: The user's tool

    private func watch() async {
        guard let manager = ManagerConnection.open() else { return journal.say("no daemon") }
        let reports = manager.reports(.watch)
        // This task runs for the lifetime of the program.
        Task { [journal] in
            for await page in reports {
                for report in page.reports {
                    journal.say(
                        "transfer \(report.session).\(report.task) \(report.state.rawValue) \(report.counts.received) (\(report.reason))"
                    )
                    if report.counts.sent > 0 { journal.say("sent \(report.session).\(report.task) \(report.counts.sent)") }
                }
            }
        }
        journal.say("watching")
    }

    /// Finds the daemon in the same way as the commands of the tool, and reports the result.
    private func find() {
        do throws(LoadError) {
            let manager = try ManagerConnection.find()
            journal.say(manager == nil ? "found nothing" : "found a daemon")
            manager?.close()
        } catch {
            journal.say("found none: \(error.message)")
        }
    }

    private func manage(_ words: [String]) async {
        guard let manager = ManagerConnection.open() else { return journal.say("no daemon") }
        do throws(LoadError) {
            switch words[0] {
            case "list":
                let reports = try await manager.list()
                journal.say("list: \(reports.map { "\($0.session).\($0.task) \($0.state.rawValue)" })")
            case "quit":
                _ = try await manager.ask(.quit(program: words[1]))
                journal.say("quit \(words[1])")
            case "pause":
                _ = try await manager.ask(.pause(Int64(words[1]) ?? 0))
                journal.say("paused \(words[1])")
            case "log":
                if case .log(let lines, _) = try await manager.ask(.log) { journal.say("log \(lines.joined(separator: "|"))") }
            case "terms":
                let rate = Int64(words[1]).flatMap { $0 > 0 ? $0 : nil }
                let hours = words.dropFirst(2).compactMap { DayHours($0) }
                _ = try await manager.ask(.setTerms(TransferTerms(hours: hours, rate: rate)))
                journal.say("terms \(words.dropFirst().joined(separator: " "))")
            case "status":
                if case .status(let status, _) = try await manager.ask(.status) { journal.say("status \(status)") }
            default: journal.say("unknown \(words)")
            }
        } catch {
            journal.say("refused \(words.joined(separator: " ")): \(error.message)")
        }
        manager.close()
    }
}

extension URLCredentialStorage {
    /// Sets the identity in a file of the home folder as the credential for a server on loopback.
    fileprivate func setIdentity(in name: String, forPort port: Int) {
        let file = URL(fileURLWithPath: (ProgramScript.environment["HOME"] ?? "") + "/" + name)
        guard let identity = try? SecIdentity(pem: Data(contentsOf: file)) else { return }
        let space = URLProtectionSpace(
            host: "127.0.0.1", port: port, protocol: NSURLProtectionSpaceHTTPS, realm: nil,
            authenticationMethod: NSURLAuthenticationMethodClientCertificate)
        setDefaultCredential(URLCredential(identity: identity, certificates: nil, persistence: .forSession), for: space)
    }
}

/// Accepts no request.
final class IdleProtocol: URLProtocol, @unchecked Sendable {
    override class func canInit(with request: URLRequest) -> Bool { false }
}
