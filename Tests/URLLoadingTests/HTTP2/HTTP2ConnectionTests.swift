// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Sharing one connection, its preface and settings, and the limit of concurrent streams (RFC 9113, sections 3.4, 5.1.2 and 6.5).
@Suite(.timeLimit(.minutes(1)))
struct HTTP2ConnectionTests {
    /// Loads `count` resources concurrently; the paths are `/0`, `/1` and so on.
    private func load(_ count: Int, from server: HTTP2ScriptedServer, _ session: URLSession) async throws -> [String] {
        try await withThrowingTaskGroup(of: (Int, String).self) { group in
            for number in 0..<count {
                let url = server.url("/\(number)")
                group.addTask { (number, try await session.text(url)) }
            }
            var texts = [String](repeating: "", count: count)
            for try await (number, text) in group { texts[number] = text }
            return texts
        }
    }

    @Test(arguments: HTTP2Start.allCases) func `a connection begins with SETTINGS that disable push`(way: HTTP2Start) async throws
    {
        try await withHTTP2Scenario(way, reply: { _ in .ok("good") }) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "good")
            // The client's SETTINGS precede its first request, and the client acknowledges the server's SETTINGS.
            let acknowledgement = try await server.frame(.settings) { $0.flags.contains(.ack) }
            #expect(acknowledgement.length == 0)
            let frames = server.frames()
            #expect(frames.first?.kind == .settings && frames.first?.flags.contains(.ack) == false)
            #expect(server.setting(.enablePush) == 0)
            #expect(frames.filter { $0.kind == .goAway || $0.kind == .resetStream }.isEmpty)
            #expect((server.setting(.initialWindowSize) ?? 65_535) >= 65_535)
            #expect(server.protocols == [way == .secure ? "h2" : nil])
        }
    }

    @Test func `every SETTINGS and every PING is acknowledged, in order`() async throws {
        try await withHTTP2Scenario(
            greeting: { _ in [.settings(), .ping(Array("one     ".utf8)), .settings([.headerTableSize: 0])] },
            reply: { _ in
                [.ping(Array("two     ".utf8)), .settings([.maxFrameSize: 32_768]), .awaitFrame(.settings, .ack, count: 3)]
                    + .ok("good")
            }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "good")
            try await server.frame(.ping) { $0.data == Array("two     ".utf8) }
            let pings = server.frames(.ping)
            #expect(pings.map { String(decoding: $0.data, as: UTF8.self) } == ["one     ", "two     "])
            #expect(pings.allSatisfy { $0.flags == .ack })
            #expect(server.frames(.settings).filter { $0.flags.contains(.ack) }.count == 3)
        }
    }

    /// RFC 7541, section 4.2: the server fails to decode an entry or a table size that exceeds its SETTINGS.
    @Test func `field blocks respect SETTINGS_HEADER_TABLE_SIZE whenever it changes`() async throws {
        try await withHTTP2Scenario(reply: { .ok($0.header("x-number") ?? "none") }) { (server, session) async throws in
            for (number, size) in [4096, 0, 4096, 100, 65_536, 50, 0].enumerated() {
                for repetition in 0..<3 {
                    let headers = ["X-Number": "\(number)", "X-Same": "always the same", "X-\(repetition)": "\(size)"]
                    #expect(try await session.text(URLRequest(server.url(), headers: headers)).text == "\(number)")
                }
                server.run(.settings([.headerTableSize: UInt32(size)]), on: 0)
                try await server.settle()
            }
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `a PING acknowledgement is not acknowledged`() async throws {
        try await withHTTP2Scenario(
            reply: { _ in [.ping(Array("nobody's".utf8), ack: true), .ping(Array("question".utf8)), .awaitFrame(.ping)] + .ok() }
        ) { (server, session) async throws in
            _ = try await session.text(server.url())
            #expect(server.frames(.ping).map { String(decoding: $0.data, as: UTF8.self) } == ["question"])
        }
    }

    @Test(arguments: HTTP2Start.allCases) func `a hundred concurrent loads share one connection`(way: HTTP2Start) async throws {
        try await withHTTP2Scenario(
            way, reply: { [.awaitRequests(100)] + .ok($0.path) }
        ) { (server, session) async throws in
            #expect(try await load(100, from: server, session) == (0..<100).map { "/\($0)" })
            #expect(server.connectionCount == 1)
            #expect(Set(server.requests.map(\.stream)).count == 100)
        }
    }

    @Test func `a thousand concurrent loads succeed within the limit of streams`() async throws {
        try await withHTTP2Scenario(
            greeting: { _ in [.settings([.maxConcurrentStreams: 100])] }, reply: { .ok($0.path) }
        ) { (server, session) async throws in
            #expect(try await load(1000, from: server, session) == (0..<1000).map { "/\($0)" })
            #expect(server.connectionCount == 1)
            #expect(server.requests.count == 1000)
            #expect((server.requests.map(\.openCount).max() ?? 0) <= 100)
        }
    }

    /// The server holds its responses until the limit is reached; one more stream would be a protocol violation by the client.
    @Test(arguments: [1, 3, 100]) func `the client opens no more streams than SETTINGS_MAX_CONCURRENT_STREAMS`(
        limit: Int
    ) async throws {
        try await withHTTP2Scenario(
            greeting: { _ in [.settings([.maxConcurrentStreams: UInt32(limit)])] },
            reply: { request in ((1...limit).contains(request.order) ? [.awaitRequests(limit + 1)] : []) + .ok(request.path) }
        ) { (server, session) async throws in
            // The client knows the limit after the first response.
            _ = try await session.text(server.url("/first"))
            #expect(try await load(limit * 2 + 1, from: server, session).count == limit * 2 + 1)
            #expect(server.requests.map(\.openCount).max() == limit)
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `the limit of streams may be raised and lowered while loads wait`() async throws {
        try await withHTTP2Scenario(
            greeting: { _ in [.settings([.maxConcurrentStreams: 1])] },
            reply: { request in
                switch request.path {
                case "/known": .ok("known")
                case "/0": [.gate("first")] + .ok("0")
                default: [.gate("rest")] + .ok(String(request.path.dropFirst()))
                }
            }
        ) { (server, session) async throws in
            _ = try await session.text(server.url("/known"))
            async let first = session.text(server.url("/0"))
            _ = try await server.head(1)
            let urls = (1..<8).map { server.url("/\($0)") }
            async let rest = withThrowingTaskGroup(of: String.self) { group in
                for url in urls { group.addTask { try await session.text(url) } }
                return try await group.reduce(into: Set<String>()) { $0.insert($1) }
            }
            try await server.settle()
            #expect(server.requests.count == 2)
            server.run(.settings([.maxConcurrentStreams: 4]), on: 0)
            // The client opens three more streams, and no fourth.
            _ = try await server.head(4)
            try await server.settle()
            #expect(server.requests.count == 5)
            // The new limit is below the number of open streams, so the client opens no stream before enough have ended.
            server.run(.settings([.maxConcurrentStreams: 2]), on: 0)
            try await server.settle()
            server.open("first")
            #expect(try await first == "0")
            try await server.settle()
            #expect(server.requests.count == 5)
            server.open("rest")
            #expect(try await rest == Set((1..<8).map { "\($0)" }))
            #expect(server.connectionCount == 1)
        }
    }

    /// RFC 9113, section 6.5.2: a limit of 0 prevents new streams while it is in effect.
    @Test func `a limit of zero streams holds loads until it is raised`() async throws {
        try await withHTTP2Scenario(
            greeting: { _ in [.settings([.maxConcurrentStreams: 0]), .gate("closed"), .settings([.maxConcurrentStreams: 10])] },
            reply: { .ok($0.path) }
        ) { (server, session) async throws in
            async let text = session.text(server.url("/later"))
            try await server.frame(.settings) { $0.flags.contains(.ack) }
            try await server.settle()
            // One request may have been sent before the client knew the limit.
            #expect(server.requests.count <= 1)
            server.open("closed")
            #expect(try await text == "/later")
        }
    }

    /// One write ends the only stream, whose place goes to the waiting load, and lowers the limit before that load begins.
    @Test func `no stream is opened once a limit of zero streams was acknowledged`() async throws {
        // 0x88 is `:status: 200` in HPACK's static table, and the setting 3 is the limit.
        let end = HTTP2Step.bytes(of: .headers, flags: [.endHeaders, .endStream], stream: 3, [0x88])
        let limit = HTTP2Step.bytes(of: .settings, [0, 3, 0, 0, 0, 0])
        try await withHTTP2Scenario(
            greeting: { _ in [.settings([.maxConcurrentStreams: 1])] },
            reply: { request in
                guard request.path == "/held" else { return .ok(request.path) }
                return [.gate("held"), .write(end + limit), .awaitFrame(.settings, .ack, count: 2), .reach("acknowledged")]
            }
        ) { (server, session) async throws in
            _ = try await session.text(server.url("/known"))
            async let held = session.text(server.url("/held"))
            _ = try await server.head(1)
            let later = session.dataTask(with: server.url("/later")) { _, _, _ in }
            later.resume()
            try await server.settle()
            server.open("held")
            #expect(try await held == "")
            try await server.reached("acknowledged")
            try await server.settle()
            // Another connection may serve the load.
            #expect(server.requests.filter { $0.connection == 0 }.map(\.path) == ["/known", "/held"])
            later.cancel()
        }
    }

    @Test func `loads that wait for a stream start in order of priority`() async throws {
        let recorder = EventRecorder()
        let other = try await ScriptedServer.start { _ in .ok() }
        try await withHTTP2Scenario(
            delegate: recorder, greeting: { _ in [.settings([.maxConcurrentStreams: 1])] },
            reply: { request in (request.path == "/held" ? [.gate("held")] : []) + .ok(request.path) }
        ) { (server, session) async throws in
            _ = try await session.text(server.url("/known"))
            let held = session.dataTask(with: server.url("/held"))
            held.resume()
            _ = try await server.head(1)
            let priorities: [Float] = [0.1, 0.5, 0.9, 0.5, 1]
            let tasks = priorities.enumerated().map { number, priority in
                let task = session.dataTask(with: server.url("/\(number)"))
                task.priority = priority
                task.resume()
                return task
            }
            // When this load has finished, the tasks that were resumed before it are queued.
            _ = try await session.text(other.url())
            server.open("held")
            for task in tasks { try await recorder.completion(of: task) }
            #expect(server.requests.dropFirst(2).map(\.path) == ["/4", "/2", "/1", "/3", "/0"])
        }
        try await other.close()
    }

    /// RFC 9218, section 4.1: urgency from 0, the highest, to 7; the default is 3.
    @Test func `a task's priority is sent in the Priority field`() async throws {
        let recorder = EventRecorder()
        try await withHTTP2Scenario(delegate: recorder, reply: { .ok($0.path) }) { (server, session) async throws in
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
            var request = URLRequest(server.url("/own"))
            request.setValue("u=6, i", forHTTPHeaderField: "Priority")
            _ = try await session.text(request)
            #expect(server.requests.last?.values(of: "priority") == ["u=6, i"])
        }
    }

    @Test func `cancelling a load resets its stream with CANCEL, and other streams continue`() async throws {
        let recorder = EventRecorder()
        try await withHTTP2Scenario(
            delegate: recorder,
            reply: { request in
                switch request.path {
                case "/waiting": [.stall]
                case "/flowing": [.head(), .data([UInt8](repeating: 0, count: 10_000), times: 1_000_000)]
                default: [.gate("beside")] + .ok("beside")
                }
            }
        ) { (server, session) async throws in
            async let beside = session.text(server.url("/beside"))
            try await server.reached("beside")
            for path in ["/waiting", "/flowing"] {
                let task = session.dataTask(with: server.url(path))
                task.resume()
                if path == "/flowing" { try await recorder.wait(for: task) { $0.body.count > 100_000 } }
                _ = try await server.head(path == "/waiting" ? 1 : 2)
                task.cancel()
                #expect((try await recorder.completion(of: task).error as? URLError)?.code == .cancelled)
                let stream = try #require(server.requests.last { $0.path == path }).stream
                let reset = try await server.frame(.resetStream) { $0.stream == stream }
                #expect(reset.errorCode == .cancel)
            }
            server.open("beside")
            #expect(try await beside == "beside")
            #expect(server.connectionCount == 1 && server.frames(.resetStream).count == 2)
        }
    }

    @Test func `a load that is cancelled while it waits for a stream sends nothing`() async throws {
        let recorder = EventRecorder()
        try await withHTTP2Scenario(
            delegate: recorder, greeting: { _ in [.settings([.maxConcurrentStreams: 1])] },
            reply: { request in (request.path == "/held" ? [.gate("held")] : []) + .ok(request.path) }
        ) { (server, session) async throws in
            _ = try await session.text(server.url("/known"))
            async let held = session.text(server.url("/held"))
            _ = try await server.head(1)
            let task = session.dataTask(with: server.url("/never"))
            task.resume()
            task.cancel()
            #expect((try await recorder.completion(of: task).error as? URLError)?.code == .cancelled)
            server.open("held")
            #expect(try await held == "/held")
            #expect(try await session.text(server.url("/last")) == "/last")
            #expect(server.requests.map(\.path) == ["/known", "/held", "/last"] && server.frames(.resetStream).isEmpty)
        }
    }

    @Test func `an invalidated session closes its connection without an error`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withHTTP2Server(identity: certificates.valid, reply: { .ok($0.path) }) { (server) async throws in
            try await withSession({ $0.speakHTTP2(.secure, certificates) }) { (session) async throws in
                #expect(try await session.text(server.url("/a")) == "/a")
                session.finishTasksAndInvalidate()
                try await server.waitForEnd(of: 0)
            }
            // RFC 9113, sections 5.4.1 and 6.8: an orderly shutdown sends GOAWAY with NO_ERROR.
            #expect(server.frames(.goAway).map(\.errorCode) == [.noError])
        }
    }

    @Test func `sessions do not share connections`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withHTTP2Server(identity: certificates.valid, reply: { .ok($0.path) }) { (server) async throws in
            for number in 0..<2 {
                try await withSession({ $0.speakHTTP2(.secure, certificates) }) { (session) async throws in
                    #expect(try await session.text(server.url("/\(number)")) == "/\(number)")
                }
            }
            #expect(server.requests.map(\.connection) == [0, 1])
        }
    }
}
