// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

private let block = [UInt8](repeating: 0x61, count: 65_536)

/// Sharing one connection: limits of streams, flow control, priorities, cancelling, and other hosts of its certificate.
@Suite(.timeLimit(.minutes(2)))
struct HTTP3ConnectionTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    /// Loads resources at the same time; the paths are `/0`, `/1` and so on.
    private func load(_ numbers: Range<Int>, from server: HTTP3ScriptedServer, _ session: URLSession) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in numbers {
                let url = server.url("/\(number)")
                group.addTask {
                    let text = try await session.text(url)
                    #expect(text == "/\(number)")
                }
            }
            try await group.waitForAll()
        }
    }

    // MARK: Streams

    @Test func `loads at the same time share one connection`() async throws {
        try await withHTTP3Scenario(
            reply: { [.awaitRequests(20)] + .ok($0.path) }
        ) { (server, session) async throws in
            try await load(0..<20, from: server, session)
            #expect(server.connectionCount == 1)
            #expect(Set(server.requests.map(\.stream)) == Set((0..<20).map { 4 * $0 }))
        }
    }

    @Test func `more loads than the server allows at once wait for their turn`() async throws {
        try await withHTTP3Scenario(
            opening: { _ in HTTP3Opening { $0.streams = 10 } }, reply: { .ok($0.path) }
        ) { (server, session) async throws in
            try await load(0..<100, from: server, session)
            #expect(server.connectionCount == 1 && server.requests.count == 100)
        }
    }

    @Test func `a connection carries more requests than its first limit`() async throws {
        try await withHTTP3Scenario(
            opening: { _ in HTTP3Opening { $0.streams = 50 } }, reply: { .ok($0.path) }
        ) { (server, session) async throws in
            for turn in 0..<15 { try await load(20 * turn..<20 * (turn + 1), from: server, session) }
            #expect(server.connectionCount == 1 && server.requests.count == 300)
        }
    }

    @Test func `loads that wait for a stream start in order of priority`() async throws {
        let recorder = EventRecorder()
        try await withHTTP3Scenario(
            delegate: recorder, opening: { _ in HTTP3Opening { $0.streams = 1 } },
            reply: { request in (request.path == "/held" ? [.gate("held")] : []) + .ok(request.path) }
        ) { (server, session) async throws in
            let held = session.dataTask(with: server.url("/held"))
            held.resume()
            _ = try await server.head(0)
            let priorities: [Float] = [0.1, 0.5, 0.9, 0.5, 1]
            let tasks = priorities.enumerated().map { number, priority in
                let task = session.dataTask(with: server.url("/\(number)"))
                task.priority = priority
                task.resume()
                return task
            }
            // When this load has finished, the tasks that were resumed before it are queued.
            while await session.allTasks.count < 6 { await Task.yield() }
            if let url = URL(string: "data:,there") { _ = try await session.data(from: url) }
            server.open("held")
            for task in tasks { try await recorder.completion(of: task) }
            #expect(server.connectionCount == 1)
            #expect(server.requests.dropFirst().first?.path == "/4")
            #expect(server.requests.last?.path == "/0")
        }
    }

    // MARK: Priorities

    /// RFC 9218, section 4.1: urgency from 0, the highest, to 7; the default is 3.
    @Test func `a task's priority is sent in the priority field`() async throws {
        let recorder = EventRecorder()
        try await withHTTP3Scenario(delegate: recorder, reply: { .ok($0.path) }) { (server, session) async throws in
            var urgencies: [Int] = []
            for priority in [
                URLSessionTask.highPriority, 0.6, URLSessionTask.defaultPriority, 0.4, URLSessionTask.lowPriority, 0,
            ] {
                let task = session.dataTask(with: server.url("/\(priority)"))
                task.priority = priority
                task.resume()
                try await recorder.completion(of: task)
                let field = server.requests.last?.header("priority") ?? ""
                let members = field.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
                urgencies.append(members.first { $0.hasPrefix("u=") }.flatMap { Int($0.dropFirst(2)) } ?? 3)
            }
            #expect(urgencies == urgencies.sorted() && urgencies.allSatisfy { (0...7).contains($0) }, "\(urgencies)")
            #expect(urgencies[2] == 3 && urgencies[0] < 3 && urgencies[4] > 3, "\(urgencies)")
            _ = try await session.text(URLRequest(server.url("/own"), headers: ["Priority": "u=6, i"]))
            #expect(server.requests.last?.values(of: "priority") == ["u=6, i"])
        }
    }

    /// RFC 9218, section 7.2: the frame's type is 0xF0700, and its content the stream and the new priority.
    @Test func `a change of a task's priority is announced on the control stream`() async throws {
        let recorder = EventRecorder()
        try await withHTTP3Scenario(
            delegate: recorder, reply: { [.gate($0.path)] + .ok($0.path) }
        ) { (server, session) async throws in
            let tasks = (0..<2).map { session.dataTask(with: server.url("/\($0)")) }
            for task in tasks {
                task.resume()
                try await server.reached("/\(task == tasks[0] ? 0 : 1)")
            }
            let stream = try #require(server.requests.first { $0.path == "/1" }).stream
            tasks[1].priority = 1
            _ = try await server.uni { streams in
                let control = streams.values.first { $0.first == 0 } ?? []
                let start: [UInt8] = [0x80, 0x0F, 0x07, 0x00]
                guard let place = control.indices.first(where: { control[$0...].starts(with: start) }) else { return false }
                let content = control[(place + 4)...].dropFirst()
                let value = String(decoding: content.dropFirst(), as: UTF8.self)
                return content.first == UInt8(stream) && ["u=0", "u=1", "u=2"].contains { value.contains($0) }
            }
            for path in ["/0", "/1"] { server.open(path) }
            for task in tasks { #expect(try await recorder.completion(of: task).error == nil) }
        }
    }

    // MARK: Cancelling

    @Test func `cancelling a load stops its stream, and other streams continue`() async throws {
        let recorder = EventRecorder()
        try await withHTTP3Scenario(
            delegate: recorder,
            reply: { request in
                switch request.path {
                case "/waiting": [.stall]
                case "/flowing": [.head(), .data(block, times: 100_000)]
                default: .ok(request.path)
                }
            }
        ) { (server, session) async throws in
            for (number, path) in ["/waiting", "/flowing"].enumerated() {
                let task = session.dataTask(with: server.url(path))
                task.resume()
                let stream = try await server.head(2 * number).stream
                if path == "/flowing" { try await recorder.wait(for: task) { !$0.body.isEmpty } }
                task.cancel()
                #expect((try await recorder.completion(of: task).error as? URLError)?.code == .cancelled)
                #expect(try await server.waitForReset(of: stream) == HTTP3Code.requestCancelled.rawValue)
                #expect(try await session.text(server.url("/next")) == "/next")
            }
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `a load that times out stops its stream, and the connection is used on`() async throws {
        try await withHTTP3Scenario(
            reply: {
                $0.path == "/silent" ? [.stall] : [.awaitRequestEnd, .head(), .data("x", ends: false), .gate("end"), .finish]
            }
        ) { (server, session) async throws in
            let url = server.url("/flowing")
            async let flowing = session.text(url)
            try await server.reached("end")
            var request = URLRequest(server.url("/silent"))
            request.timeoutInterval = 0.5
            await expectFailure(.timedOut) { try await session.text(request) }
            server.open("end")
            #expect(try await flowing == "x")
        }
    }

    @Test func `the invalidation of the session closes the connection`() async throws {
        try await withHTTP3Scenario(reply: { _ in .ok() }) { (server, _) async throws in
            let configuration = URLSessionConfiguration.ephemeral
            configuration.tlsTrustRoots = [certificates.root]
            configuration.connectionOptions.httpVersions = .http3Only
            let session = URLSession(configuration: configuration)
            _ = try await session.text(server.url())
            session.finishTasksAndInvalidate()
            let end = try await server.waitForEnd()
            #expect(end?.errorCode == .noError, "\(String(describing: end))")
        }
    }

    // MARK: Flow control

    /// Expects that the server's data stops, while other streams continue.
    private func expectStop(
        of task: URLSessionTask, _ server: HTTP3ScriptedServer, _ session: URLSession, _ recorder: EventRecorder
    ) async throws {
        let stream = try #require(server.requests.first { $0.path == "/large" }).stream
        var last = -1
        var hasStopped = false
        for _ in 0..<60 where !hasStopped {
            for number in 0..<10 { #expect(try await session.text(server.url("/\(number)")) == "/\(number)") }
            let now = server.delivered(on: stream)
            hasStopped = now == last
            last = now
        }
        #expect(hasStopped, "\(last) bytes arrived")
        #expect(last - recorder.record(of: task).body.count <= 32 << 20)
        #expect(server.connectionCount == 1)
    }

    private static func reply(_ request: HTTP3Request) -> [HTTP3Step] {
        request.path == "/large" ? [.head(), .data(block, times: 16_384)] : .ok(request.path)
    }

    @Test func `a suspended task gives no more credit, and does not block other streams`() async throws {
        var answers = EventRecorder.Answers()
        answers.data = { task, _ in if task.state == .running { task.suspend() } }
        let recorder = EventRecorder(answers)
        try await withHTTP3Scenario(delegate: recorder, reply: Self.reply) { (server, session) async throws in
            let task = session.dataTask(with: server.url("/large"))
            task.resume()
            try await recorder.wait(for: task) { !$0.body.isEmpty }
            try await expectStop(of: task, server, session, recorder)
            task.cancel()
            try await recorder.completion(of: task)
        }
    }

    @Test func `a response that awaits its disposition gives no more credit, and does not block other streams`() async throws {
        let isAllowed = Watched(false)
        var answers = EventRecorder.Answers()
        answers.response = { _, response in
            guard response.url?.path == "/large" else { return .allow }
            _ = try? await isAllowed.value { $0 ? true : nil }
            return .cancel
        }
        let recorder = EventRecorder(answers)
        try await withHTTP3Scenario(delegate: recorder, reply: Self.reply) { (server, session) async throws in
            let task = session.dataTask(with: server.url("/large"))
            task.resume()
            try await recorder.wait(for: task) { $0.letters.contains("R") }
            try await expectStop(of: task, server, session, recorder)
            isAllowed.change { $0 = true }
            try await recorder.completion(of: task)
        }
    }

    @Test func `a suspended task continues when it is resumed`() async throws {
        let isSuspended = Watched(false)
        var answers = EventRecorder.Answers()
        answers.wrote = { task, _ in
            guard !isSuspended.read({ $0 }) else { return }
            task.suspend()
            isSuspended.change { $0 = true }
        }
        let recorder = EventRecorder(answers)
        try await withHTTP3Scenario(
            delegate: recorder, reply: { $0.path == "/large" ? [.head(), .data(block, times: 192)] : .ok($0.path) }
        ) { (server, session) async throws in
            let task = session.downloadTask(with: server.url("/large"))
            task.resume()
            try await isSuspended.value { $0 ? () : nil }
            for _ in 0..<20 { _ = try await session.text(server.url("/small")) }
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil && record.file?.count == 192 * block.count)
        }
    }

    // MARK: Other hosts

    /// RFC 9114, section 3.3: a connection serves every host of its certificate.
    @Test func `two hosts of one certificate share a connection`() async throws {
        let names = ["www.shop.localhost", "img.shop.localhost"]
        try await withHTTP3Scenario(
            identities: [certificates.shop],
            configure: { configuration in
                for name in names { configuration.connectionOptions.addresses[.init(host: name)] = ["127.0.0.1"] }
            }, reply: { .ok($0.authority) }
        ) { (server, session) async throws in
            for _ in 0..<2 {
                for name in names { #expect(try await session.text(server.url(host: name)) == "\(name):\(server.port)") }
            }
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `a host that the certificate does not name has its own connection`() async throws {
        try await withHTTP3Scenario(
            identities: [certificates.shop, certificates.valid],
            configure: { $0.connectionOptions.addresses[.init(host: "www.shop.localhost")] = ["127.0.0.1"] },
            opening: { number in HTTP3Opening { $0.identity = min(number, 1) } }, reply: { .ok("\($0.connection)") }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url(host: "www.shop.localhost")) == "0")
            #expect(try await session.text(server.url(host: "localhost")) == "1")
            #expect(server.serverName(of: 1) == "localhost")
        }
    }

    @Test func `a host that is misdirected on a shared connection gets its own`() async throws {
        let names = ["www.shop.localhost", "img.shop.localhost"]
        try await withHTTP3Origin(
            over: .http2, tcpIdentity: certificates.shop, identities: [certificates.shop],
            configure: { configuration in
                for name in names { configuration.connectionOptions.addresses[.init(host: name)] = ["127.0.0.1"] }
            }, tcp: { _ in .ok("tcp") },
            quic: { $0.connection == 0 && $0.authority.hasPrefix("img") ? .status(421) : .ok("quic") }
        ) { (origin, session) async throws in
            _ = try await session.text(.assuming(origin.url(host: names[0])))
            let text = try await session.text(.assuming(origin.url(host: names[1]), method: "POST", body: Data("body".utf8))).text
            #expect(["tcp", "quic"].contains(text))
        }
    }
}
