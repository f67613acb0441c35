// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingEngine
import LoadingModel
import LoadingTestKit
import Testing
import URLLoading

/// An invalidated session is released: no reference cycle keeps a task, an engine or a connection alive.
@Suite(.timeLimit(.minutes(1)))
struct SessionReleaseTests {
    /// How a task runs and ends.
    enum Ending: String, CaseIterable, Sendable {
        case data, delegate, handler, download, upload, bytes, redirect, failure, timeout, cancelled, neverResumed
    }

    @Test(arguments: Ending.allCases, [false, true])
    func `an invalidated session releases its tasks, engine and connections`(ending: Ending, isSecure: Bool) async throws {
        let certificates = try TestCertificates.shared.get()
        try await withScriptedServer(identity: isSecure ? certificates.valid : nil, reply: Self.reply) { (server) async throws in
            let held = try await Self.run(ending, against: server, trusting: certificates.root, isInvalidated: true)
            try await server.waitForAllClosed()
            try await held.waitUntilReleased()
        }
    }

    /// Tasks that were never resumed are excluded: an app that drops a session must cancel them, or invalidate the session.
    @Test(arguments: Ending.allCases.filter { $0 != .neverResumed })
    func `a session that is dropped without invalidation is released, too`(ending: Ending) async throws {
        let certificates = try TestCertificates.shared.get()
        try await withScriptedServer(reply: Self.reply) { (server) async throws in
            let held = try await Self.run(ending, against: server, trusting: certificates.root, isInvalidated: false)
            try await server.waitForAllClosed()
            try await held.waitUntilReleased()
        }
    }

    private static func reply(to request: RecordedRequest) -> ScriptedReply {
        switch request.target {
        case "/redirect": .redirect(302, to: "/")
        case "/failure": [.write("nonsense\r\n\r\n"), .close]
        case "/timeout", "/cancelled": [.stall]
        default: .ok("body")
        }
    }

    /// Runs a session and a task; afterwards, only the library can still retain them.
    private static func run(
        _ ending: Ending, against server: ScriptedServer, trusting root: Data, isInvalidated: Bool
    ) async throws -> WeakReferences {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = 20
        configuration.tlsTrustRoots = [root]
        let service = SessionEngine.make(policy: configuration.sessionPolicy(), stores: SessionStores())
        let recorder = EventRecorder()
        let session = URLSession(
            configuration: configuration, delegate: ending == .delegate || ending == .cancelled ? recorder : nil,
            delegateQueue: nil,
            service: service
        )
        let task = try await load(ending, from: server, in: session, recorder: recorder)
        if isInvalidated, ending == .neverResumed {
            session.invalidateAndCancel()
        } else if isInvalidated {
            session.finishTasksAndInvalidate()
        }
        return WeakReferences(session: session, task: task, delegate: recorder, engine: try #require(service as? SessionEngine))
    }

    private static func load(
        _ ending: Ending, from server: ScriptedServer, in session: URLSession, recorder: EventRecorder
    ) async throws -> URLSessionTask? {
        let url = server.url("/\(ending.rawValue)")
        switch ending {
        case .data, .redirect:
            #expect(try await session.text(url) == "body")
        case .upload:
            _ = try await session.upload(for: URLRequest(url, method: "POST"), from: Data(count: 100_000))
        case .download:
            let (file, _) = try await session.download(from: url)
            try FileManager.default.removeItem(at: file)
        case .bytes:
            let (bytes, _) = try await session.bytes(from: url)
            for try await _ in bytes {}
        case .failure:
            await expectFailure(.badServerResponse, .cannotParseResponse) { try await session.data(from: url) }
        case .timeout:
            var request = URLRequest(url: url)
            request.timeoutInterval = 0.3
            await expectFailure(.timedOut) { try await session.data(for: request) }
        case .handler:
            let done = Delivered<Bool>()
            let task = session.dataTask(with: url) { _, _, error in done(error == nil) }
            task.resume()
            #expect(try await done.value)
            return task
        case .delegate, .cancelled:
            let task = session.dataTask(with: url)
            task.resume()
            if ending == .cancelled {
                try await server.waitForRequests(1)
                task.cancel()
            }
            try await recorder.completion(of: task)
            return task
        case .neverResumed:
            return session.dataTask(with: url)
        }
        return nil
    }
}

/// Weak references to objects that should be released.
private final class WeakReferences: @unchecked Sendable {
    // Weak references, set once: reading them is safe from any thread.
    private weak let session: URLSession?
    private weak let task: URLSessionTask?
    private weak let delegate: EventRecorder?
    private weak let engine: SessionEngine?
    private let turn: @Sendable () async throws -> Void

    init(session: URLSession, task: URLSessionTask?, delegate: EventRecorder, engine: SessionEngine) {
        self.session = session
        self.task = task
        self.delegate = delegate
        self.engine = engine
        let loop = engine.loop
        turn = { try await loop.submit {}.get() }
    }

    private var names: [String] {
        [
            session == nil ? nil : "the session", task == nil ? nil : "the task", delegate == nil ? nil : "the delegate",
            engine == nil ? nil : "the engine",
        ].compactMap { $0 }
    }

    /// Runs the session's loop until everything is released, or the time limit expires.
    func waitUntilReleased() async throws {
        while !names.isEmpty {
            guard !Task.isCancelled else {
                Issue.record("still held: \(names.joined(separator: ", "))")
                return
            }
            try await turn()
        }
    }
}
