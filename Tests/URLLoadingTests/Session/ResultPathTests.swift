// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPWire
import LoadingModel
import Synchronization
import Testing
import URLLoading

@Suite struct ResultPathTests {
    // MARK: Completion handlers

    @Test func `a completion handler gets the result on the delegate queue, and the delegate gets the other events`()
        async
    {
        let recorder = Recorder()
        let (session, _) = makeSession(recorder) { load in
            guard case .collect = load.order.delivery else { return load.fail(LoadError(.unknown, "not collected")) }
            load.finish(.collected(Data("abc".utf8)))
        }
        let result = await withCheckedContinuation { continuation in
            session.dataTask(with: someURL) { data, response, error in
                continuation.resume(
                    returning: (data, (response as? HTTPURLResponse)?.statusCode, error == nil, OperationQueue.current))
            }.resume()
        }
        #expect(result.0 == Data("abc".utf8))
        #expect(result.1 == 200)
        #expect(result.2)
        #expect(result.3 === session.delegateQueue)
        #expect(recorder.journal.lines == ["created", "metrics 1"])
    }

    @Test func `a download's file exists while its handler runs, and is removed afterwards`() async {
        let path = temporaryFile("content")
        let (session, _) = makeSession { load in load.finish(.file(path: path)) }
        let content = await withCheckedContinuation { continuation in
            session.downloadTask(with: someURL) { url, _, _ in
                continuation.resume(returning: url.flatMap { try? String(contentsOf: $0, encoding: .utf8) })
            }.resume()
        }
        #expect(content == "content")
        await session.delegateQueue.idle()
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    // MARK: Async

    @Test func `an async load without a delegate has no interests`() async throws {
        let (session, _) = makeSession { load in
            load.finish(.collected(Data("\(load.order.interests.rawValue)".utf8)))
        }
        let (data, response) = try await session.data(from: someURL)
        #expect(data == Data("0".utf8))
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        #expect(await session.allTasks.isEmpty)
    }

    @Test func `cancelling the Swift task cancels the load`() async {
        let started = Journal()
        let (session, _) = makeSession { load in
            started.note("started")
            await load.endWhenCancelled()
        }
        let load = Task { try await session.data(from: someURL) }
        await started.wait(for: "started")
        load.cancel()
        await #expect { _ = try await load.value } throws: { ($0 as? URLError)?.code == .cancelled }
    }

    @Test func `a load whose Swift task is already cancelled never starts`() async {
        let (session, service) = makeSession { load in load.finish() }
        let gate = Journal()
        let load = Task {
            await gate.wait(for: "go")
            return try await session.data(from: someURL)
        }
        load.cancel()
        gate.note("go")
        await #expect { _ = try await load.value } throws: { ($0 as? URLError)?.code == .cancelled }
        #expect(service.state.withLock { $0.loads.isEmpty })
    }

    @Test func `an async load reports events other than the result to the task's delegate`() async throws {
        let recorder = Recorder()
        let (session, _) = makeSession { load in load.finish(.collected(Data())) }
        _ = try await session.data(from: someURL, delegate: recorder)
        #expect(recorder.journal.lines == ["created", "metrics 1"])
    }

    @Test func `the file of an async download is kept`() async throws {
        let path = temporaryFile("content")
        let (session, _) = makeSession { load in load.finish(.file(path: path)) }
        let (url, _) = try await session.download(from: someURL)
        #expect(try String(contentsOf: url, encoding: .utf8) == "content")
        try FileManager.default.removeItem(at: url)
    }

    @Test func `errors keep their code, URL, message, cause and resume data`() async {
        let (session, _) = makeSession { load in
            var error = LoadError(.connectionLost, "reading: reset", cause: LoadError(.unknown, "inner"), url: load.url)
            error.resumeData = Data("r".utf8)
            load.fail(error)
        }
        await #expect { _ = try await session.download(from: someURL) } throws: { error in
            guard let error = error as? URLError else { return false }
            return error.code == .networkConnectionLost && error.failingURL == someURL
                && error.userInfo["NSErrorFailingURLStringKey"] as? String == someURL.absoluteString
                && error.localizedDescription == "reading: reset"
                && (error.userInfo[NSUnderlyingErrorKey] as? NSError)?.localizedDescription == "inner"
                && error.downloadTaskResumeData == Data("r".utf8)
        }
    }

    @Test func `resume data is returned to the caller that cancelled`() async {
        let recorder = Recorder()
        let (session, _) = makeSession(recorder) { load in
            load.tell(.wrote(bytes: 1, total: 1, expected: 2))
            await load.endWhenCancelled(resumeData: Data("r".utf8))
        }
        let task = session.downloadTask(with: someURL)
        task.resume()
        await recorder.journal.wait(for: "wrote")
        #expect(await task.cancelByProducingResumeData() == Data("r".utf8))
        #expect((task.error as? URLError)?.downloadTaskResumeData == Data("r".utf8))
        #expect(await task.cancelByProducingResumeData() == nil)
    }

    @Test(arguments: [false, true]) func `a download that is already complete stays complete if it is cancelled for resume data`(
        isForHandler: Bool
    ) async {
        let path = temporaryFile("content")
        let recorder = Recorder()
        let ended = Journal()
        let (session, _) = makeSession(recorder) { load in
            load.finish(.file(path: path))
            ended.note("ended")
        }
        session.delegateQueue.isSuspended = true
        let handed = Journal()
        let task =
            isForHandler
            ? session.downloadTask(with: someURL) { url, _, error in
                handed.note("file \(url.flatMap { try? String(contentsOf: $0, encoding: .utf8) } ?? "none"), \(error == nil)")
            } : session.downloadTask(with: someURL)
        task.resume()
        await ended.wait(for: "ended")
        task.cancel(byProducingResumeData: { handed.note($0 == nil ? "nothing to resume" : "resume data") })
        session.delegateQueue.isSuspended = false
        await handed.wait(for: "nothing to resume")
        await session.delegateQueue.idle()
        #expect(task.error == nil && task.state == .completed)
        if isForHandler {
            #expect(handed.lines == ["file content, true", "nothing to resume"])
        } else {
            #expect(recorder.journal.lines == ["created", "file content", "metrics 1", "complete ok state 3"])
        }
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func `a download is cancelled by a plain cancel, even if it is already complete`() async {
        let path = temporaryFile("content")
        let recorder = Recorder()
        let ended = Journal()
        let (session, _) = makeSession(recorder) { load in
            load.finish(.file(path: path))
            ended.note("ended")
        }
        session.delegateQueue.isSuspended = true
        let task = session.downloadTask(with: someURL)
        task.resume()
        await ended.wait(for: "ended")
        task.cancel(byProducingResumeData: { _ in ended.note("no resume data") })
        task.cancel()
        session.delegateQueue.isSuspended = false
        await ended.wait(for: "no resume data")
        #expect((task.error as? URLError)?.code == .cancelled)
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    // MARK: Bytes

    @Test func `bytes arrive in order, credit is returned, and the sequence ends`() async throws {
        let chunk = Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0) })
        let (session, service) = makeSession { load in
            _ = await load.ask(.response(load.response()))
            for _ in 0..<3 { load.tell(.data(chunk)) }
            load.finish()
        }
        let (bytes, response) = try await session.bytes(from: someURL)
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        var received = Data()
        for try await byte in bytes { received.append(byte) }
        #expect(received == chunk + chunk + chunk)
        let load = service.state.withLock { $0.loads.values.first }
        // The iterator need not return credit after the load has ended.
        #expect((load?.consumed ?? 0) <= 300_000)
    }

    @Test func `lines are delivered as they arrive`() async throws {
        let (session, _) = makeSession { load in
            _ = await load.ask(.response(load.response()))
            load.tell(.data(Data("one\ntw".utf8)))
            load.tell(.data(Data("o\r\nthree".utf8)))
            load.finish()
        }
        var lines: [String] = []
        for try await line in try await session.bytes(from: someURL).0.lines { lines.append(line) }
        #expect(lines == ["one", "two", "three"])
    }

    @Test func `leaving the loop cancels the load`() async throws {
        let ended = Journal()
        let (session, _) = makeSession { load in
            _ = await load.ask(.response(load.response()))
            load.tell(.data(Data("abc".utf8)))
            await load.endWhenCancelled()
            ended.note("ended")
        }
        let (bytes, _) = try await session.bytes(from: someURL)
        for try await _ in bytes { break }
        await ended.wait(for: "ended")
        #expect(bytes.task.state != .running)
    }

    @Test func `a failure in the middle is thrown after the bytes before it`() async throws {
        let (session, _) = makeSession { load in
            _ = await load.ask(.response(load.response()))
            load.tell(.data(Data("abc".utf8)))
            load.fail(LoadError(.connectionLost, "reset"))
        }
        let (bytes, _) = try await session.bytes(from: someURL)
        var count = 0
        await #expect { for try await _ in bytes { count += 1 } } throws: { ($0 as? URLError)?.code == .networkConnectionLost }
        #expect(count == 3)
    }

    // MARK: Tasks

    @Test func `suspend and resume reach the engine once per change, in order`() async {
        let recorder = Recorder()
        let (session, service) = makeSession(recorder) { load in await load.endWhenCancelled() }
        let task = session.dataTask(with: someURL)
        task.suspend()
        task.resume()
        #expect(task.state == .suspended)
        task.resume()
        #expect(task.state == .running)
        task.suspend()
        task.suspend()
        task.resume()
        task.resume()
        task.resume()
        task.priority = URLSessionTask.highPriority
        task.cancel()
        await recorder.journal.wait(for: "complete")
        #expect(
            service.state.withLock { $0.loads[task.taskIdentifier]?.commands } == [
                "suspend", "resume", "priority 0.75", "cancel",
            ]
        )
    }

    @Test func `progress follows the counters, and cancelling it cancels the task`() async {
        let recorder = Recorder()
        let (session, _) = makeSession(recorder) { load in
            _ = await load.ask(.response(load.response(length: 10)))
            load.tell(.data(Data("abcde".utf8)))
            await load.endWhenCancelled()
        }
        let task = session.dataTask(with: someURL)
        let progress = task.progress
        #expect(progress.isIndeterminate)
        task.resume()
        await recorder.journal.wait(for: "data")
        #expect(progress.fractionCompleted == 0.5)
        progress.cancel()
        await recorder.journal.wait(for: "complete")
        #expect(recorder.journal.lines.last == "complete -999 state 3")
    }

    @Test func `tasks are listed from creation to completion, even if the app has released them`() async {
        let (session, _) = makeSession { load in await load.endWhenCancelled() }
        let kept: URLSessionTask = session.uploadTask(with: URLRequest(url: someURL), from: Data())
        do { _ = session.dataTask(with: someURL) }
        let (data, upload, download) = await session.tasks
        #expect(data.count == 1 && upload.count == 1 && download.isEmpty)
        for task in data + [kept] { task.cancel() }
        await session.delegateQueue.idle()
        #expect(await session.allTasks.isEmpty)
    }

    @Test func `a task created after invalidation fails as cancelled`() async {
        let (session, _) = makeSession { load in load.finish() }
        session.finishTasksAndInvalidate()
        await #expect { _ = try await session.data(from: someURL) } throws: { ($0 as? URLError)?.code == .cancelled }
    }
}

/// A subclass of a task, as apps use it in their tests.
private final class MockTask: URLSessionDataTask, @unchecked Sendable {
    private let whenResumed: @Sendable () -> Void
    init(_ whenResumed: @escaping @Sendable () -> Void) {
        self.whenResumed = whenResumed
        super.init()
    }
    override func resume() { whenResumed() }
}

private final class MockSession: URLSession, @unchecked Sendable {
    let answer: Data
    init(answer: Data) { self.answer = answer }
    override init() { answer = Data() }
    override class var shared: URLSession { MockSession(answer: Data("shared".utf8)) }
    override func dataTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        let answer = answer
        return MockTask { completionHandler(answer, nil, nil) }
    }
}

@Suite struct MockTests {
    @Test func `a URLSession subclass loads with the methods that it does not override`() async throws {
        let session = MockSession(answer: Data())
        let url = try #require(URL(string: "data:,text"))
        #expect(try await session.data(from: url).0 == Data("text".utf8))
    }

    @Test func `a URLSession subclass can override loading`() {
        let journal = Journal()
        for session in [MockSession(answer: Data("own".utf8)), MockSession(), MockSession.shared] {
            session.dataTask(with: URLRequest(url: someURL)) { data, _, _ in
                journal.note(String(decoding: data ?? Data(), as: UTF8.self))
            }.resume()
        }
        #expect(journal.lines == ["own", "", "shared"])
    }

    @Test func `a URLSessionTask subclass needs no session`() {
        let journal = Journal()
        let task = MockTask { journal.note("resumed") }
        task.resume()
        task.suspend()
        task.cancel()
        #expect(journal.lines == ["resumed"])
        #expect(task.originalRequest == nil && task.response == nil)
    }
}
