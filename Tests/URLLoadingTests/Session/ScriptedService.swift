// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPWire
import LoadingModel
import Synchronization
import URLLoading

/// Stands in for the engine: runs a script for each order, and records commands.
final class ScriptedService: LoadingService {
    struct State {
        var loads: [TaskID: ScriptedLoad] = [:]
        var invalidations = 0
    }

    private let script: @Sendable (ScriptedLoad) async -> Void
    let state = Mutex(State())

    init(_ script: @escaping @Sendable (ScriptedLoad) async -> Void) { self.script = script }

    func submit(_ order: TaskOrder, client: any LoadClient) -> Bool {
        let load = ScriptedLoad(order: order, client: client)
        state.withLock { $0.loads[order.id] = load }
        let script = script
        Task { await script(load) }
        return false
    }

    func wake() {}

    func command(_ command: TaskCommand, for task: TaskID) -> Bool {
        state.withLock { $0.loads[task] }?.note(command)
        return false
    }

    func proxies(for url: URL) async throws(LoadError) -> [URL?] { [nil] }

    func invalidate() { state.withLock { $0.invalidations += 1 } }

    func renew(_ renewal: Renewal, completion: @escaping @Sendable () -> Void) { completion() }
}

/// One load of a `ScriptedService`.
final class ScriptedLoad: Sendable {
    private struct State {
        var isCancelled = false
        var consumed = 0
        var commands: [String] = []
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    let order: TaskOrder
    let client: any LoadClient
    private let state = Mutex(State())

    init(order: TaskOrder, client: any LoadClient) {
        self.order = order
        self.client = client
    }

    var url: URL { order.request.url ?? URL(fileURLWithPath: "/") }
    var commands: [String] { state.withLock { $0.commands } }
    var consumed: Int { state.withLock { $0.consumed } }

    func note(_ command: TaskCommand) {
        let waiters: [CheckedContinuation<Void, Never>] = state.withLock { state in
            switch command {
            case .suspend: state.commands.append("suspend")
            case .resume: state.commands.append("resume")
            case .setPriority(let priority): state.commands.append("priority \(priority)")
            case .consumed(let bytes): state.consumed += bytes
            case .reportCounts: state.commands.append("tell counts")
            case .webSocket: state.commands.append("webSocket")
            case .stream: state.commands.append("stream")
            case .cancel, .cancelProducingResumeData:
                state.commands.append("cancel")
                state.isCancelled = true
                defer { state.waiters = [] }
                return state.waiters
            }
            return []
        }
        for waiter in waiters { waiter.resume() }
    }

    func tell(_ event: TaskEvent) { client.tell(event) }

    func ask(_ question: TaskQuestion) async -> TaskAnswer {
        await withCheckedContinuation { continuation in
            client.ask(question) { continuation.resume(returning: $0) }
        }
    }

    func response(_ status: Int = 200, _ fields: [(name: String, value: String)] = [], length: Int64 = -1) -> LoadResponse {
        LoadResponse(
            url: url, kind: .http(ResponseHead(status: status, headers: HeaderBlock(fields))), expectedLength: length
        )
    }

    func finish(_ body: TaskOutcome.Body = .none, response: LoadResponse? = nil) {
        tell(
            .finished(
                TaskOutcome(
                    result: .success(body), response: response ?? self.response(),
                    timelines: [TransactionTimeline(request: order.request)], redirectCount: 0
                )
            )
        )
    }

    func fail(_ error: LoadError) {
        tell(.finished(TaskOutcome(result: .failure(error), response: nil, timelines: [], redirectCount: 0)))
    }

    /// Waits until the task is cancelled, and then ends the load as an engine would.
    func endWhenCancelled(resumeData: Data? = nil) async {
        await withCheckedContinuation { continuation in
            let isCancelled = state.withLock { state in
                if !state.isCancelled { state.waiters.append(continuation) }
                return state.isCancelled
            }
            if isCancelled { continuation.resume() }
        }
        var error = LoadError.cancelled
        error.resumeData = resumeData
        fail(error)
    }
}

/// Creates a file in the temporary directory with some content, and returns its path.
func temporaryFile(_ content: String) -> String {
    let path = NSTemporaryDirectory() + "URLLoadingTests-" + UUID().uuidString
    _ = FileManager.default.createFile(atPath: path, contents: Data(content.utf8))
    return path
}

func makeSession(
    _ delegate: (any URLSessionDelegate)? = nil, protocolClasses: [AnyClass] = [],
    script: @escaping @Sendable (ScriptedLoad) async -> Void
) -> (URLSession, ScriptedService) {
    let service = ScriptedService(script)
    let configuration = URLSessionConfiguration.ephemeral
    configuration.protocolClasses = protocolClasses
    let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil, service: service)
    return (session, service)
}

let someURL = URL(string: "http://example.test/path") ?? URL(fileURLWithPath: "/")
