// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// What an app observes of a resumed upload, and what it may do meanwhile.
@Suite(.timeLimit(.minutes(2)))
struct ResumableUploadLifeTests {
    private typealias Fault = UploadServer.Fault

    private static let content = Data(ScriptedFile.pattern(3_000_000, seed: 12))

    private static func post(_ server: UploadServer) -> URLRequest { URLRequest(server.url(), method: "POST") }

    @Test(arguments: [0, 400_000]) func `the delegate sees a single load of the original request`(lost: Int) async throws {
        let server = try UploadServer(
            UploadServer.Plan(faults: [Fault("POST", cut: 1_000_000), Fault("PATCH", cut: 900_000, loses: lost)]))
        let recorder = EventRecorder()
        try await withSession(delegate: recorder) { session in
            let task = session.uploadTask(with: Self.post(server), from: Self.content)
            task.resume()
            let record = try await recorder.completion(of: task)
            try recorder.expectOrder(of: task, EventRecorder.dataGrammar)
            #expect(record.error == nil)
            #expect(record.letters.filter { $0 == "R" }.count == 1)
            #expect(record.informational.allSatisfy { $0.statusCode == 104 })
            #expect(record.body == Data("stored 3000000".utf8))
            let sent = record.events.compactMap { if case .sent(let total, let expected) = $0 { (total, expected) } else { nil } }
            #expect(sent.allSatisfy { $0.0 <= 3_000_000 && $0.1 == 3_000_000 })
            #expect(sent.last?.0 == 3_000_000)
            #expect(task.countOfBytesSent == 3_000_000)
            #expect(task.countOfBytesExpectedToSend == 3_000_000)
            #expect(task.originalRequest?.url == server.url())
            #expect(task.currentRequest?.url == server.url())
            #expect(task.currentRequest?.httpMethod == "POST")
            #expect(task.response?.url == server.url())
            let asked = record.metrics?.transactionMetrics.compactMap(\.request.httpMethod) ?? []
            #expect(asked == ["POST", "HEAD", "PATCH", "HEAD", "PATCH"])
            #expect(record.metrics?.redirectCount == 0)
        }
        #expect(try server.content() == Self.content)
    }

    @Test(arguments: [true, false]) func `a completion handler is called once with the response`(isFile: Bool) async throws {
        let directory = try TemporaryDirectory()
        let file = directory.file("body")
        try Self.content.write(to: file)
        let server = try UploadServer(UploadServer.Plan(faults: [Fault("POST", cut: 1_000_000), Fault("PATCH", cut: 1)]))
        let calls = Watched<[String]>([])
        let handler: @Sendable (Data?, URLResponse?, (any Error)?) -> Void = { data, response, error in
            let status = (response as? HTTPURLResponse)?.statusCode ?? 0
            calls.change { $0.append("\(status) \(String(decoding: data ?? Data(), as: UTF8.self)) \(error == nil)") }
        }
        let session = URLSession(configuration: .ephemeral)
        let request = Self.post(server)
        let task =
            isFile
            ? session.uploadTask(with: request, fromFile: file, completionHandler: handler)
            : session.uploadTask(with: request, from: Self.content, completionHandler: handler)
        task.resume()
        _ = try await calls.value { $0.first }
        session.finishTasksAndInvalidate()
        #expect(calls.read { $0 } == ["200 stored 3000000 true"])
        #expect(try server.content() == Self.content)
    }

    @Test func `a timeout during the upload leaves resume data that completes it`() async throws {
        let server = try UploadServer(UploadServer.Plan(faults: [Fault("POST", holds: 1_000_000)]))
        let data = Watched<Data?>(nil)
        try await withSession {
            $0.timeoutIntervalForRequest = 1
        } test: { session in
            let error = await #expect(throws: URLError.self) {
                try await session.upload(for: Self.post(server), from: Self.content)
            }
            #expect(error?.code == .timedOut)
            data.change { $0 = error?.uploadTaskResumeData }
        }
        let resumeData = try #require(data.read { $0 })
        try await withSession { session in _ = try await session.upload(resumeFrom: resumeData) }
        #expect(try server.content() == Self.content)
        let requests = try await server.requests(3)
        #expect(requests.map(\.method) == ["POST", "HEAD", "PATCH"])
        #expect(requests.map(\.received).reduce(0, +) == 3_000_000)
    }

    @Test(arguments: [true, false]) func `an upload suspended halfway completes once it is resumed`(
        losesConnection: Bool
    ) async throws {
        let content = Data(ScriptedFile.pattern(24_000_000, seed: 13))
        let fault = losesConnection ? Fault("POST", cut: 1) : Fault("POST", holds: 1_000_000)
        let server = try UploadServer(UploadServer.Plan(faults: [fault]))
        let watcher = UploadWatcher { $0.suspend() }
        try await withSession(delegate: watcher) { session in
            let task = session.uploadTask(with: Self.post(server), from: content)
            task.resume()
            try await watcher.announcement()
            #expect(task.state == .suspended)
            server.release()
            task.resume()
            #expect(try await watcher.end() == nil)
            #expect(watcher.status.read { $0 } == 200)
        }
        #expect(watcher.endCount == 1)
        #expect(try server.content() == content)
        #expect(server.requests.map(\.received).reduce(0, +) == content.count)
    }

    @Test(arguments: [true, false]) func `cancelling a task while it asks the server for the offset ends it at once`(
        wantsData: Bool
    ) async throws {
        let server = try UploadServer(UploadServer.Plan(faults: [Fault("POST", cut: 1_000_000), Fault("HEAD", holds: 0)]))
        let watcher = UploadWatcher()
        try await withSession(delegate: watcher) { session in
            let task = session.uploadTask(with: Self.post(server), from: Self.content)
            task.resume()
            _ = try await server.requests(2)
            let data = Watched<Data?>(nil)
            if wantsData {
                let produced = await task.cancelByProducingResumeData()
                data.change { $0 = produced }
            } else {
                task.cancel()
            }
            #expect(try await watcher.end()?.code == .cancelled)
            guard wantsData else {
                let requests = try await server.requests { $0.contains { $0.method == "DELETE" } }
                #expect(requests.map(\.method) == ["POST", "HEAD", "DELETE"])
                return
            }
            _ = try await session.upload(resumeFrom: try #require(data.read { $0 }))
            #expect(try server.content() == Self.content)
            #expect(server.requests.map(\.method).filter { $0 == "DELETE" }.isEmpty)
        }
        #expect(watcher.endCount == 1)
    }

    @Test(arguments: [true, false]) func `the server forgets an upload that is cancelled while it is suspended or pauses`(
        isSuspended: Bool
    ) async throws {
        let pausing = [Fault("POST", cut: 1_000_000), Fault("HEAD", status: 503, fields: [["Retry-After", "30"]])]
        let server = try UploadServer(UploadServer.Plan(faults: isSuspended ? [Fault("POST", holds: 1_000_000)] : pausing))
        let watcher = UploadWatcher { if isSuspended { $0.suspend() } }
        try await withSession(delegate: watcher) { session in
            let task = session.uploadTask(with: Self.post(server), from: Self.content)
            task.resume()
            if isSuspended { try await watcher.announcement() } else { _ = try await server.requests(2) }
            #expect(task.state == (isSuspended ? .suspended : .running))
            task.cancel()
            #expect(try await watcher.end()?.code == .cancelled)
            let requests = try await server.requests { $0.contains { $0.method == "DELETE" } }
            #expect(requests.map(\.method) == (isSuspended ? ["POST", "DELETE"] : ["POST", "HEAD", "DELETE"]))
        }
        #expect(watcher.endCount == 1)
    }

    @Test func `several interrupted uploads share one connection`() async throws {
        let later = [Fault("PATCH", cut: 300_000), Fault("HEAD", silent: true)]
        let faults = Array(repeating: Fault("POST", cut: 300_000), count: 4) + later
        let server = try UploadServer(UploadServer.Plan(faults: faults))
        let contents: [Data] = (0..<4).map { Data(ScriptedFile.pattern(1_000_000 + $0, seed: UInt8($0))) }
        try await withSession {
            $0.httpMaximumConnectionsPerHost = 1
        } test: { session in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for content in contents {
                    group.addTask {
                        let (data, _) = try await session.upload(for: Self.post(server), from: content)
                        #expect(String(decoding: data, as: UTF8.self) == "stored \(content.count)")
                    }
                }
                try await group.waitForAll()
            }
        }
        let stored: [Data] = try (1...4).map { try server.content(of: $0) }
        #expect(Set(stored) == Set(contents))
        let sent = server.requests.reduce(0) { $0 + $1.received }
        let size = contents.reduce(0) { $0 + $1.count }
        #expect(sent == size)
    }

    @Test func `a proxy sees every request of an upload`() async throws {
        let proxy = try UploadServer(UploadServer.Plan(faults: [Fault("POST", cut: 1_000_000)]))
        try await withSession {
            $0.connectionProxyDictionary = ["HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": proxy.port]
        } test: { session in
            let url = try #require(URL(string: "http://127.0.0.1:9/files"))
            let (data, response) = try await session.upload(for: URLRequest(url, method: "POST"), from: Self.content)
            #expect(String(decoding: data, as: UTF8.self) == "stored 3000000")
            #expect(response.url == url)
        }
        let requests = try await proxy.requests(3)
        #expect(
            requests.map { "\($0.method) \($0.target)" } == [
                "POST http://127.0.0.1:9/files", "HEAD http://127.0.0.1:9/uploads/1", "PATCH http://127.0.0.1:9/uploads/1",
            ])
        #expect(try proxy.content() == Self.content)
    }

    @Test func `repeated 104 responses have the effect of one`() async throws {
        var plan = UploadServer.Plan(faults: [Fault("POST", cut: 1_000_000)])
        plan.announcements = 5
        plan.progressStep = 100_000
        let server = try UploadServer(plan)
        try await withSession { session in _ = try await session.upload(for: Self.post(server), from: Self.content) }
        #expect(try server.content() == Self.content)
        #expect(try await server.requests(3).map(\.received).reduce(0, +) == 3_000_000)
    }

    /// The server responds 409 to a request with a mismatching offset, and the client asks for the server's offset again.
    @Test func `a server that reports a mismatching offset is asked for its offset`() async throws {
        let type = "https://iana.org/assignments/http-problem-types#mismatching-upload-offset"
        let problem = "{\"type\":\"\(type)\",\"expected-offset\":1000000,\"provided-offset\":2}"
        let server = try UploadServer(
            UploadServer.Plan(faults: [
                Fault("POST", cut: 1_000_000),
                Fault(
                    "PATCH", status: 409, fields: [["Content-Type", "application/problem+json"]], body: problem, refuses: true),
            ]))
        try await withSession { session in
            let (data, _) = try await session.upload(for: Self.post(server), from: Self.content)
            #expect(String(decoding: data, as: UTF8.self) == "stored 3000000")
        }
        #expect(try server.content() == Self.content)
        #expect(try await server.requests(5).map(\.method) == ["POST", "HEAD", "PATCH", "HEAD", "PATCH"])
    }

    @Test(arguments: [404, 410]) func `an upload that the server has forgotten fails, and sends no more bytes`(
        status: Int
    ) async throws {
        let server = try UploadServer(
            UploadServer.Plan(faults: [Fault("POST", cut: 1_000_000), Fault("HEAD", status: status, fields: [])]))
        let watcher = UploadWatcher()
        try await withSession(delegate: watcher) { session in
            session.uploadTask(with: Self.post(server), from: Self.content).resume()
            let error = try await watcher.end()
            #expect(error != nil || watcher.status.read { $0 } == status)
            #expect(error?.uploadTaskResumeData == nil)
        }
        #expect(server.requests.map(\.method).filter { $0 == "PATCH" || $0 == "POST" } == ["POST"])
    }
}
