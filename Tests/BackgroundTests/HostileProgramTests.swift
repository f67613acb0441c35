// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import Foundation
import HTTPRules
import HTTPWire
import LoadingModel
import LoadingTestKit
import Testing

/// A program that floods, stalls or lies does not harm others.
@Suite(.timeLimit(.minutes(3)))
struct HostileProgramTests {
    private static let flood = 1000

    private func withVictim(
        wrapper: [String] = [],
        reply: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply = { .ok($0.path).after(.gate("g")) },
        _ test: (BackgroundPlace, ProgramHandle, ScriptedServer) async throws -> Void
    ) async throws {
        try await withScriptedServer(reply: reply) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let program = try place.start("victim", wrapper: wrapper)
                program.tell("session", "main", "delegate=credential")
                program.tell("download", "main", server.url("/a").absoluteString, "a")
                try await program.line("ordered main.1")
                try await test(place, program, server)
                try await program.line("completed main.1 ok")
                try await program.leave()
            }
        }
    }

    static func order(_ url: URL, task: TaskID = 1, resuming: Data? = nil) -> BackgroundOrder {
        BackgroundOrder(
            TaskOrder(
                id: task, request: LoadRequest(url: url), delivery: .download(resuming: resuming), interests: [], priority: 0.5),
            created: Date.timeIntervalSinceReferenceDate)
    }

    @Test func `incomplete messages share one limit of memory`() async throws {
        try await withVictim { (place, program, server) async throws in
            let watcher = try place.start("watcher", as: "urlsession")
            var count = 0
            func resident() async throws -> Int {
                watcher.tell("manage", "status")
                count += 1
                let line = try await watcher.line("status", number: count - 1)
                return try Int(#require(line.firstMatch(of: /residentBytes: (\d+)/)?.1)) ?? 0
            }
            let before = try await resident()
            let begun = Array(FrameReader.frame([UInt8](repeating: 0x20, count: 8 << 20)).prefix(7 << 20))
            let clients = try (0..<24).map { _ in try RawClient(place) }
            var most = 0
            for client in clients {
                try client.hello()
                client.send(begun)
                most = max(most, try await resident())
            }
            // Nine of the incomplete messages fit into the limit of 64 MiB.
            repeat { most = max(most, try await resident()) } while clients.count(where: \.isOver) < 15
            #expect(most - before < 72 << 20, "\(before) \(most)")
            // Other programs are served.
            program.tell("download", "main", server.url("/b").absoluteString, "b")
            try await program.line("ordered main.2")
            #expect(clients.count(where: \.isOver) == 15)
            server.open("g")
            try await program.line("completed main.2 ok")
            for client in clients { client.end() }
            try await watcher.kill()
        }
    }

    @Test func `an answer counts even if the task is suspended at the same time`() async throws {
        try await withVictim { (place, _, server) async throws in
            let client = try RawClient(place)
            try client.attach("own")
            var order = Self.order(server.url("/before"))
            order.task.earliestBegin = Date.timeIntervalSinceReferenceDate
            order.task.interests.insert(.delayedRequests)
            try client.say(.submit(order))
            let isQuestion: @Sendable (DaemonMessage) -> Int? = { message in
                if case .question(.delayedRequest, 1, let number) = message { number } else { nil }
            }
            let number = try await client.waitForMessage(isQuestion)
            let answer = ClientMessage.answer(.delayed(.replace(LoadRequest(url: server.url("/after")))), 1, question: number)
            // The daemon reads both messages at once.
            client.send(
                try [answer, .command(.suspend, 1)].flatMap { FrameReader.frame(try MessageCoding.encode($0)) })
            try await client.waitForMessage { if case .event(.requestChanged, 1) = $0 { true } else { nil } }
            try client.say(.command(.resume, 1))
            server.open("g")
            let file = try await client.waitForMessage { message -> String? in
                guard case .event(.finished(let outcome), 1) = message, case .success(.file(let path)) = outcome.result else {
                    return nil
                }
                return path
            }
            try FileManager.default.removeItem(atPath: file)
            try client.say(.told(1))
            try await client.waitForMessage { if case .forgotten(1) = $0 { true } else { nil } }
            #expect(client.all(isQuestion) == [number])
            // A request that was in flight when the task was suspended is sent again.
            #expect(Set(server.requests.map(\.path).filter { $0 != "/a" }) == ["/after"])
            client.end()
        }
    }

    @Test func `a malformed message ends its connection with the reason`() async throws {
        try await withVictim { (place, _, server) async throws in
            let order = Self.order(server.url("/never"))
            let lies: [(String, (RawClient) throws -> Void)] = [
                ("malformed: empty", { $0.send(FrameReader.frame([])) }),
                ("malformed", { $0.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8) }),
                ("malformed", { $0.send([0x7F, 0xFF, 0xFF, 0xFF]) }),
                ("malformed", { $0.send(FrameReader.frame(Array("{\"hello\":".utf8))) }),
                ("malformed", { try $0.say(.submit(order)) }),
                ("version", { try $0.say(.hello(version: MessageCoding.version + 1, role: .session)) }),
                ("malformed", { try $0.hello(.manager) }),
                (
                    "malformed",
                    {
                        try $0.hello()
                        try $0.say(.manage(.quit(program: "/program"), request: 1))
                    }
                ),
                (
                    "malformed",
                    {
                        try $0.hello()
                        try $0.say(.submit(order))
                    }
                ),
                (
                    "malformed",
                    {
                        try $0.attach("own")
                        try $0.attach("main")
                    }
                ),
            ]
            for (number, (expected, lie)) in lies.enumerated() {
                let liar = try RawClient(place)
                try lie(liar)
                let refusal = try await liar.refusal()
                #expect(refusal.hasPrefix(expected), "\(number): \(refusal)")
            }
            server.open("g")
        }
    }

    @Test func `programs that stall and flood do not delay others`() async throws {
        try await withVictim { (place, program, server) async throws in
            // One client has a thousand tasks and does not read its events; another client never stops sending.
            let deaf = try RawClient(place, reads: false)
            try deaf.attach("deaf")
            let talker = try RawClient(place)
            try talker.attach("talker")
            // Some connections send nothing, others half a message; there are more of them than one program may have.
            let silent = try (0..<280).map { number in
                let client = try RawClient(place)
                if number % 2 == 0 { client.send([0, 0, 1, 0, 0x7B]) }
                return client
            }
            let deafOrders = try (1...Self.flood).flatMap { task in
                var order = Self.order(server.url("/flood"), task: task)
                order.task.earliestBegin = Date.timeIntervalSinceReferenceDate + 1000
                return FrameReader.frame(try MessageCoding.encode(.submit(order)))
            }
            let words = try (1...2000).flatMap { FrameReader.frame(try MessageCoding.encode(.command(.resume, $0))) }
            let isOver = Watched(false)
            Thread.detachNewThread { deaf.send(deafOrders) }
            Thread.detachNewThread { while !isOver.read({ $0 }), talker.send(words) {} }
            server.open("g")
            for number in 2...20 {
                program.tell("download", "main", server.url("/\(number)").absoluteString, "f\(number)")
                try await program.line("completed main.\(number) ok")
                #expect(try place.downloaded("f\(number)") == Array("/\(number)".utf8))
            }
            // Connections without a hello are closed.
            for client in silent { #expect(try await client.refusal().hasPrefix("closed")) }
            isOver.change { $0 = true }
            talker.end()
            deaf.end()
            // The orders of the client that did not read are there for the next connection.
            let heir = try RawClient(place)
            try heir.attach("deaf")
            #expect(try await heir.waitForMessage { if case .attached(let last) = $0 { last } else { nil } } == Self.flood)
            for task in 1...Self.flood { try heir.say(.command(.cancel, task)) }
            for task in 1...Self.flood {
                try await heir.waitForMessage { if case .event(.finished, task) = $0 { true } else { nil } }
                try heir.say(.told(task))
            }
            try await heir.waitForMessage { if case .forgotten(Self.flood) = $0 { true } else { nil } }
            try heir.say(.invalidate)
        }
    }

    @Test func `endless connections leave descriptors for transfers`() async throws {
        // The daemon inherits the limit and cannot raise it.
        try await withVictim(wrapper: ["/bin/sh", "-c", "ulimit -n 128; exec \"$@\"", "sh"]) {
            (place, program, server) async throws in
            let clients = try (0..<200).map { number in
                let client = try RawClient(place)
                try client.attach("session\(number)")
                return client
            }
            // The last connection is refused, or the daemon had no descriptor for it.
            let last = try #require(clients.last)
            #expect(try await last.refusal() == "closed")
            server.open("g")
            for number in 2...20 {
                program.tell("download", "main", server.url("/\(number)").absoluteString, "f\(number)")
                try await program.line("completed main.\(number) ok")
            }
            for client in clients { client.end() }
        }
    }

    @Test func `connections with incomplete messages beyond the limit are refused`() async throws {
        try await withVictim { (place, program, server) async throws in
            let clients = try (0..<10).map { _ in try RawClient(place) }
            let half = [0, 0x7A, 0x12, 0] + [UInt8](repeating: 0x20, count: 7_500_000)
            for client in clients {
                try client.hello()
                client.send(half)
            }
            var refused = 0
            for client in clients where try await client.refusal().hasPrefix("tooMany") { refused += 1 }
            #expect(refused > 0)
            server.open("g")
        }
    }

    @Test func `a program that lies about tasks and questions affects only its own`() async throws {
        try await withVictim(reply: { request in
            if request.path == "/own" { return .ok("own") }
            return request.header("Authorization") == "Basic YWRhOmxvdmVsYWNl"
                ? .ok("secret") : .status(401, [("WWW-Authenticate", "Basic realm=\"tower\"")], body: "who?").after(.gate("g"))
        }) { (place, program, server) async throws in
            try await server.reached("g")
            let liar = try RawClient(place)
            // The liar is another program that uses the same session identifier.
            try liar.attach("main")
            #expect(try await liar.waitForMessage { if case .attached(let last) = $0 { last } else { nil } } == 0)
            for task in 1...3 {
                try liar.say(.command(.cancel, task))
                try liar.say(.told(task))
                try liar.say(.note(BackgroundOrder.Notes(), task))
            }
            for question in 0...3 { try liar.say(.answer(.credential(.cancel), question: question)) }
            server.open("g")
            try await program.line("challenged main.1")
            for question in 0...3 { try liar.say(.answer(.credential(.cancel), question: question)) }
            try liar.say(.submit(Self.order(server.url("/own"))))
            try await liar.waitForMessage { if case .event(.finished, 1) = $0 { true } else { nil } }
            try liar.say(.told(1))
            try await liar.waitForMessage { if case .forgotten(1) = $0 { true } else { nil } }
            try liar.say(.invalidate)
            try await program.line("completed main.1 ok gone status=200")
            #expect(try place.downloaded("a") == Array("secret".utf8))
        }
    }

    @Test func `resume data can only name files of its own session`() async throws {
        let file = ScriptedFile(ScriptedFile.pattern(300_000))
        let own = ScriptedFile(ScriptedFile.pattern(300_000, seed: 9))
        try await withVictim(reply: { request in
            if request.path == "/own" { return own.reply(to: request) }
            return file.reply(
                to: request, cutAfter: request.header("Range") == nil ? 100_000 : nil, ending: .gate("never"))
        }) { (place, program, server) async throws in
            try await program.line("wrote main.1 100000")
            let victim = try #require(place.spooled.first)
            let liar = try RawClient(place)
            try liar.attach("liar")
            try await liar.waitForMessage { if case .attached = $0 { true } else { nil } }
            for (index, name) in ["../\(victim)", victim, "..", "/etc/hostname"].enumerated() {
                let point = ResumePoint(
                    url: server.url("/own"), originalURL: server.url("/own"), headers: HeaderBlock(), receivedByteCount: 100_000,
                    totalByteCount: 300_000, entityTag: "\"v1\"", lastModified: nil, serverDate: nil, temporaryFileName: name)
                guard let data = point.encodedIfPossible() else { continue }
                let task = index + 1
                try liar.say(.submit(Self.order(server.url("/own"), task: task, resuming: data)))
                let path = try await liar.waitForMessage {
                    if case .event(.finished(let outcome), task) = $0 {
                        if case .success(.file(let path)) = outcome.result { path } else { "\(outcome.result)" }
                    } else {
                        nil
                    }
                }
                #expect(try Array(Data(contentsOf: URL(fileURLWithPath: path))) == own.content, "\(name): \(path)")
                try liar.say(.told(task))
                try await liar.waitForMessage { if case .forgotten(task) = $0 { true } else { nil } }
            }
            try liar.say(.invalidate)
            program.tell("suspend", "main.1")
            try await server.waitForAllClosed()
            program.tell("resume", "main.1")
            try await program.line("completed main.1 ok")
            #expect(try place.downloaded("a") == file.content)
        }
    }
}
