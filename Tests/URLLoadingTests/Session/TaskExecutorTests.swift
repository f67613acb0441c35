// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingEngine
import LoadingModel
import LoadingTestKit
import NIOCore
import Synchronization
import Testing
import URLLoading

/// Swift tasks that prefer the session's event loop as their executor.
@Suite(.timeLimit(.minutes(1)))
struct TaskExecutorTests {
    /// Runs a test with a session, and with a function that returns whether the caller runs on the session's event loop.
    private func withSessionOnLoop(
        delegate: (any URLSessionDelegate)? = nil, test: (URLSession, @escaping @Sendable () -> Bool) async throws -> Void
    ) async throws {
        let engine = SessionEngine.make(policy: SessionPolicy(), stores: SessionStores())
        let loop = try #require(engine as? SessionEngine).loop
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = 20
        let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil, service: engine)
        defer { session.invalidateAndCancel() }
        try await test(session) { loop.inEventLoop }
    }

    @Test func `a task that prefers the executor is on the loop before and after every call`() async throws {
        try await withScriptedServer(reply: { _ in .ok("body") }) { (server) async throws in
            try await withSessionOnLoop { (session, isOnLoop) async throws in
                #expect(!isOnLoop())
                let url = server.url()
                let nowhere = try #require(URL(string: "none:x"))
                try await Task(executorPreference: session.taskExecutor) {
                    #expect(isOnLoop())
                    #expect(try await session.data(from: url).0 == Data("body".utf8))
                    #expect(isOnLoop())
                    #expect(try await session.upload(for: URLRequest(url, method: "POST"), from: Data("x".utf8)).0.count == 4)
                    #expect(isOnLoop())
                    let (file, _) = try await session.download(from: url)
                    #expect(isOnLoop())
                    try FileManager.default.removeItem(at: file)
                    var count = 0
                    for try await _ in try await session.bytes(from: url).0 { count += 1 }
                    #expect(count == 4)
                    #expect(isOnLoop())
                    await expectFailure(.unsupportedURL) { try await session.data(from: nowhere) }
                    #expect(isOnLoop())
                }.value
                // Other tasks are not affected.
                _ = try await session.data(from: url)
                #expect(!isOnLoop())
            }
        }
    }

    @Test func `child tasks run on the loop, too, and each gets its own response`() async throws {
        try await withScriptedServer(reply: { .ok("\($0.path)") }) { (server) async throws in
            try await withSessionOnLoop { (session, isOnLoop) async throws in
                let answers = try await withTaskExecutorPreference(session.taskExecutor) {
                    try await withThrowingTaskGroup(of: (Int, String, Bool).self) { group in
                        for number in 0..<200 {
                            let url = server.url("/\(number)")
                            group.addTask {
                                let wasOnLoop = isOnLoop()
                                let data = try await session.data(from: url).0
                                return (number, String(decoding: data, as: UTF8.self), wasOnLoop && isOnLoop())
                            }
                        }
                        return try await group.reduce(into: []) { $0.append($1) }
                    }
                }
                #expect(answers.count == 200)
                #expect(answers.allSatisfy { number, text, _ in text == "/\(number)" })
                #expect(answers.allSatisfy { $0.2 })
            }
        }
    }

    @Test func `cancelling a Swift task on the loop cancels its load`() async throws {
        try await withScriptedServer(reply: { _ in [.stall] }) { (server) async throws in
            try await withSessionOnLoop { (session, isOnLoop) async throws in
                let url = server.url()
                let load = Task(executorPreference: session.taskExecutor) {
                    await expectFailure(.cancelled) { try await session.data(from: url) }
                    #expect(isOnLoop())
                }
                _ = try await server.request(0)
                load.cancel()
                await load.value
                try await server.waitForClose(0)
                // A cancellation on the loop's own thread has the same effect.
                try await Task(executorPreference: session.taskExecutor) {
                    async let failure = expectFailure(.cancelled) { try await session.data(from: url) }
                    _ = try await server.request(1)
                    for task in await session.allTasks { task.cancel() }
                    _ = await failure
                    #expect(isOnLoop())
                }.value
                try await server.waitForClose(1)
            }
        }
    }

    @Test func `delegates and completion handlers are called on their queue, not on the loop`() async throws {
        final class CallbackRecorder: NSObject, URLSessionDataDelegate, Sendable {
            let isOnLoop = Mutex<(@Sendable () -> Bool)?>(nil)
            let calls = Mutex<[Bool]>([])

            func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
                guard let isOnLoop = isOnLoop.withLock({ $0 }) else { return }
                let answer = isOnLoop() || OperationQueue.current !== session.delegateQueue
                calls.withLock { $0.append(answer) }
            }
        }
        let recorder = CallbackRecorder()
        try await withScriptedServer(reply: { _ in .ok("body") }) { (server) async throws in
            try await withSessionOnLoop(delegate: recorder) { (session, isOnLoop) async throws in
                recorder.isOnLoop.withLock { $0 = isOnLoop }
                let url = server.url()
                try await Task(executorPreference: session.taskExecutor) {
                    _ = try await session.data(from: url)
                    #expect(isOnLoop())
                    let wasOnQueue = await withCheckedContinuation { continuation in
                        session.dataTask(with: url) { _, _, _ in
                            continuation.resume(returning: !isOnLoop() && OperationQueue.current === session.delegateQueue)
                        }.resume()
                    }
                    #expect(wasOnQueue)
                    #expect(isOnLoop())
                }.value
                #expect(recorder.calls.withLock { $0.first } == false)
            }
        }
    }

    @Test func `a task on one session's loop may use another session, and returns to its own loop`() async throws {
        try await withScriptedServer(reply: { _ in .ok("body") }) { (server) async throws in
            try await withSessionOnLoop { (first, isOnFirst) async throws in
                try await withSessionOnLoop { (second, isOnSecond) async throws in
                    let url = server.url()
                    try await Task(executorPreference: first.taskExecutor) {
                        #expect(try await second.data(from: url).0.count == 4)
                        #expect(isOnFirst())
                        let answer = try await withTaskExecutorPreference(second.taskExecutor) {
                            #expect(isOnSecond())
                            let answer = try await first.data(from: url).0
                            #expect(isOnSecond())
                            return answer
                        }
                        #expect(answer.count == 4)
                        #expect(isOnFirst())
                    }.value
                }
            }
        }
    }

    @Test func `a session has one executor from the start, which outlives the session`() async throws {
        let plain = URLSession()
        #expect(plain.taskExecutor === plain.taskExecutor)
        #expect(URLSession.shared.taskExecutor === URLSession.shared.taskExecutor)
        #expect(await Task(executorPreference: URLSession.shared.taskExecutor) { SessionEngine.isOnLoop }.value)
        var session: URLSession? = URLSession(configuration: .ephemeral)
        let executor = try #require(session).taskExecutor
        session?.invalidateAndCancel()
        #expect(session?.taskExecutor === executor)
        let invalid = try #require(session)
        await Task(executorPreference: executor) {
            await expectFailure(.cancelled) { try await invalid.data(from: URL(fileURLWithPath: "/")) }
            #expect(SessionEngine.isOnLoop)
        }.value
        session = nil
        #expect(await Task(executorPreference: executor) { SessionEngine.isOnLoop }.value)
    }
}
