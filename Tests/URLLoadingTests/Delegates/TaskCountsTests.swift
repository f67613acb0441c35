// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// The counts and progress of a task while an async call waits for it, and afterwards.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct TaskCountsTests {
    enum Call: CaseIterable {
        case data, upload, download
    }

    private static let sent = Data(count: 1000)

    /// Three thousand bytes, a third of them before the gate.
    private static func reply(_ request: RecordedRequest) -> ScriptedReply {
        [
            .head(200, [("Content-Length", "3000")]), .content([UInt8](repeating: 1, count: 1000)), .gate("third"),
            .content([UInt8](repeating: 2, count: 2000)), .end(trailers: []),
        ]
    }

    /// Polls, because Foundation does not notify of changes in these counts.
    private func wait(until condition: () -> Bool) async throws {
        while !condition() {
            try Task.checkCancellation()
            await Task.yield()
        }
    }

    private static func load(_ call: Call, _ server: ScriptedServer, _ session: URLSession, _ delegate: TaskKeeper?) async throws
    {
        let request = URLRequest(server.url(), method: call == .upload ? "POST" : "GET")
        switch call {
        case .data: _ = try await session.data(for: request, delegate: delegate)
        case .upload: _ = try await session.upload(for: request, from: sent, delegate: delegate)
        case .download:
            let (file, _) = try await session.download(for: request, delegate: delegate)
            try FileManager.default.removeItem(at: file)
        }
    }

    @Test(arguments: Call.allCases) func `a task observed midway reports its progress`(call: Call) async throws {
        try await withScenario(reply: Self.reply) { (server, session) async throws in
            let load = Task { try await Self.load(call, server, session, nil) }
            try await server.reached("third")
            let task = try #require(await session.allTasks.first)
            let progress = task.progress
            let sent: Int64 = call == .upload ? 1000 : 0
            try await wait { progress.completedUnitCount >= 1000 + sent }
            #expect(progress.totalUnitCount == 3000 + sent)
            #expect(task.countOfBytesReceived == 1000 && task.countOfBytesExpectedToReceive == 3000)
            #expect(task.countOfBytesSent == sent && task.countOfBytesExpectedToSend == sent)
            let response = try #require(task.response)
            #expect((response as? HTTPURLResponse)?.statusCode == 200)
            server.open("third")
            try await load.value
            #expect(task.response === response)
            #expect(task.countOfBytesReceived == 3000 && progress.isFinished && progress.completedUnitCount == 3000 + sent)
        }
    }

    @Test(arguments: Call.allCases) func `a task with a delegate reports its counts`(call: Call) async throws {
        let keeper = TaskKeeper()
        try await withScenario(reply: Self.reply) { (server, session) async throws in
            let load = Task { try await Self.load(call, server, session, keeper) }
            try await server.reached("third")
            let task = try await keeper.tasks.value
            try await wait { task.countOfBytesReceived >= 1000 }
            #expect(task.response != nil && task.countOfBytesReceived == 1000)
            server.open("third")
            try await load.value
            #expect(task.countOfBytesReceived == 3000 && task.countOfBytesSent == (call == .upload ? 1000 : 0))
        }
    }

    @Test(arguments: Call.allCases) func `an unobserved task has its counts at the end`(call: Call) async throws {
        let held = Watched<URLSessionTask?>(nil)
        try await withScenario(
            delegate: SessionKeeper { task in held.change { $0 = task } },
            reply: { _ in .ok([UInt8](repeating: 1, count: 3000)) }
        ) { (server, session) async throws in
            try await Self.load(call, server, session, nil)
            let task = try await held.value { $0 }
            #expect(task.countOfBytesReceived == 3000 && task.countOfBytesExpectedToReceive == 3000)
            #expect(task.countOfBytesSent == (call == .upload ? 1000 : 0))
        }
    }

    @Test func `a resumed download counts the whole file`() async throws {
        let file = ScriptedFile(ScriptedFile.pattern(3000))
        try await withScenario(reply: { $0.order == 0 ? file.reply(to: $0, cutAfter: 1000) : file.reply(to: $0) }) {
            (server, session) async throws in
            let error = await expectFailure(.networkConnectionLost) { try await session.download(from: server.url()) }
            let keeper = TaskKeeper()
            let data = try #require(error?.downloadTaskResumeData)
            let (location, _) = try await session.download(resumeFrom: data, delegate: keeper)
            try FileManager.default.removeItem(at: location)
            let task = try await keeper.tasks.value
            #expect(task.countOfBytesReceived == 3000 && task.countOfBytesExpectedToReceive == 3000)
        }
    }

    enum Sender: CaseIterable {
        case data, upload, download
    }

    /// A reply whose length overflows `Int64` when any number of sent bytes is added.
    private static func endless(_ request: RecordedRequest) -> ScriptedReply {
        [.head(200, [("Content-Length", "\(Int64.max)")]), .content("some"), .gate("end"), .close]
    }

    @Test(arguments: Sender.allCases)
    func `progress does not overflow for a request with a body and a response of any length`(sender: Sender) async throws {
        try await withScenario(reply: Self.endless) { (server, session) async throws in
            var request = URLRequest(server.url(), method: "POST")
            if sender != .upload { request.httpBody = Self.sent }
            let ended = Delivered<URLError.Code?>()
            let task =
                switch sender {
                case .data: session.dataTask(with: request) { _, _, error in ended((error as? URLError)?.code) }
                case .upload:
                    session.uploadTask(with: request, from: Self.sent) { _, _, error in ended((error as? URLError)?.code) }
                case .download: session.downloadTask(with: request) { _, _, error in ended((error as? URLError)?.code) }
                }
            let parent = Progress(totalUnitCount: 2)
            parent.addChild(task.progress, withPendingUnitCount: 1)
            task.resume()
            try await server.reached("end")
            try await wait { task.progress.totalUnitCount == .max }
            #expect(task.progress.completedUnitCount >= 1000 && parent.fractionCompleted < 1)
            server.open("end")
            let code = try await ended.value
            #expect(
                code == .networkConnectionLost || sender == .download && code == .cannotCreateFile, "\(String(describing: code))")
            #expect(task.progress.totalUnitCount == .max)
        }
    }

    @Test(arguments: [false, true]) func `the progress of a bytes task advances as bytes arrive`(hasDelegate: Bool) async throws {
        try await withScenario(reply: Self.reply) { (server, session) async throws in
            let (bytes, _) = try await session.bytes(from: server.url(), delegate: hasDelegate ? TaskKeeper() : nil)
            let progress = bytes.task.progress
            try await wait { progress.completedUnitCount >= 1000 }
            #expect(progress.totalUnitCount == 3000 && progress.completedUnitCount == 1000)
            server.open("third")
            try await wait { progress.completedUnitCount >= 3000 }
            var count = 0
            for try await _ in bytes { count += 1 }
            #expect(count == 3000)
        }
    }

    @Test func `the progress of a data task without a delegate advances`() async throws {
        try await withScenario(reply: Self.reply) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            let progress = task.progress
            task.resume()
            try await wait { progress.completedUnitCount >= 1000 }
            #expect(progress.totalUnitCount == 3000)
            server.open("third")
            try await wait { progress.isFinished }
            #expect(progress.completedUnitCount == 3000)
        }
    }
}

/// Keeps the tasks that it receives on creation.
private final class TaskKeeper: NSObject, URLSessionTaskDelegate, Sendable {
    let tasks = Delivered<URLSessionTask>()
    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) { tasks(task) }
}

private final class SessionKeeper: NSObject, URLSessionTaskDelegate, Sendable {
    private let keep: @Sendable (URLSessionTask) -> Void
    init(_ keep: @escaping @Sendable (URLSessionTask) -> Void) { self.keep = keep }
    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) { keep(task) }
}
