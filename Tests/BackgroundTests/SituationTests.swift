// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import Foundation
import LoadingModel
import LoadingTestKit
import Testing

/// Events that a program receives about its transfers, whether or not it was running when they happened.
@Suite(.timeLimit(.minutes(3)))
struct SituationTests {
    private static let first = ScriptedFile.pattern(300_000, seed: 1)
    private static let second = ScriptedFile.pattern(200_000, seed: 2)

    /// `/first` and `/second` are files; with `?gate=NAME` 100 000 bytes are sent, and the rest when the gate is open; `/upload`
    /// accepts any body.
    private static func reply(_ request: RecordedRequest) -> ScriptedReply {
        if request.path == "/upload" { return .ok("taken \(request.bodyLength)") }
        let file = ScriptedFile(request.path == "/first" ? first : second, entityTag: "\"\(request.path)\"")
        guard let gate = request.target.split(separator: "=").last.map(String.init), request.target.contains("?gate=") else {
            return file.reply(to: request)
        }
        let whole = file.reply(to: request)
        return ScriptedReply(
            whole.effects.flatMap { effect -> [SocketEffect] in
                guard case .content(let body, _) = effect else { return [effect] }
                return [.content(Array(body.prefix(100_000))), .gate(gate), .content(Array(body.dropFirst(100_000)))]
            })
    }

    private func withPlace(_ test: (BackgroundPlace, ScriptedServer) async throws -> Void) async throws {
        try await withScriptedServer(reply: Self.reply) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in try await test(place, server) }
        }
    }

    // MARK: The four situations

    @Test func `a program that keeps running gets the delegate calls of an ordinary session`() async throws {
        try await withPlace { (place, server) async throws in
            let file = try place.write("an upload".utf8, to: "upload")
            let program = try place.start("one")
            program.tell("session", "main")
            program.tell("download", "main", server.url("/first").absoluteString, "a")
            try await program.line("completed main.1")
            program.tell("upload", "main", server.url("/upload").absoluteString, file.path, "b")
            try await program.line("completed main.2")
            try await program.leave()
            let lines = program.lines.filter { !$0.hasPrefix("wrote") }
            #expect(lines.prefix(2) == ["started", "session main"])
            #expect(lines.contains { $0.hasPrefix("finished main.1 300000 ") })
            #expect(lines.contains("completed main.1 ok gone status=200 sent=0 received=300000 url=/first"))
            #expect(lines.contains("data main.2 taken 9"))
            #expect(lines.contains("completed main.2 ok status=200 sent=9 received=7 url=/upload"))
            #expect(!lines.contains { $0.hasPrefix("told") || $0.hasPrefix("response") })
            #expect(try place.downloaded("a") == Self.first)
            #expect(server.requests.map(\.method) == ["GET", "PUT"])
            #expect(server.requests[1].bodyText == "an upload")
        }
    }

    @Test func `a program that was away until all transfers ended is told of everything, then gets the farewell`() async throws {
        try await withPlace { (place, server) async throws in
            let before = try place.start("before")
            before.tell("session", "main")
            before.tell("download", "main", server.url("/first?gate=g").absoluteString, "a")
            before.tell("download", "main", server.url("/missing?gate=g").absoluteString, "b")
            try await before.line("ordered main.2")
            try await before.leave()
            let manager = try place.manager()
            manager.tell("watch")
            server.open("g")
            try await manager.line("transfer main.1 ended")
            try await manager.line("transfer main.2 ended")
            try await manager.kill()
            let after = try place.start("after")
            after.tell("session", "main")
            try await after.line("told main")
            try await after.leave()
            let lines = after.lines.filter { $0.hasPrefix("finished") || $0.hasPrefix("completed") || $0.hasPrefix("told") }
            #expect(lines.count == 5)
            #expect(lines.last == "told main")
            for number in 1...2 {
                let finished = lines.firstIndex { $0.hasPrefix("finished main.\(number)") }
                let completed = lines.firstIndex { $0.hasPrefix("completed main.\(number) ok gone") }
                #expect(try #require(finished) < #require(completed))
            }
            #expect(try place.downloaded("a") == Self.first)
            #expect(try place.downloaded("b") == Self.second)
            #expect(server.requests.count == 2)
        }
    }

    @Test func `a program that returns early is told what ended, and the rest continues`() async throws {
        try await withPlace { (place, server) async throws in
            let before = try place.start("before")
            before.tell("session", "main")
            before.tell("download", "main", server.url("/first?gate=first").absoluteString, "a")
            before.tell("download", "main", server.url("/second?gate=second").absoluteString, "b", "expects=200000")
            try await before.line("wrote main.2 ")
            try await before.leave()
            try await proceed(place, server)
        }
    }

    @Test func `a program that was killed and started again gets the same events`() async throws {
        try await withPlace { (place, server) async throws in
            let before = try place.start("before")
            before.tell("session", "main")
            before.tell("download", "main", server.url("/first?gate=first").absoluteString, "a")
            before.tell("download", "main", server.url("/second?gate=second").absoluteString, "b", "expects=200000")
            try await before.line("wrote main.2 100000")
            try await before.kill()
            try await proceed(place, server)
        }
    }

    /// One transfer ends while the program is away, the other one after the program has returned.
    private func proceed(_ place: BackgroundPlace, _ server: ScriptedServer) async throws {
        let manager = try place.manager()
        manager.tell("watch")
        try await manager.line("transfer main.2 running 100000")
        server.open("first")
        try await manager.line("transfer main.1 ended")
        try await manager.kill()
        let after = try place.start("after")
        after.tell("session", "main")
        after.tell("tasks", "main")
        let tasks = try await after.line("tasks main:")
        #expect(
            tasks.contains(
                "[main.2 download b state=0 received=100000/200000 progress=100000/200000 expects=200000 url=/second status=200]")
        )
        try await after.line("told main")
        #expect(after.lines.contains { $0.hasPrefix("completed main.1 ok gone") })
        #expect(!after.lines.contains { $0.hasPrefix("completed main.2") })
        server.open("second")
        try await after.line("completed main.2 ok gone")
        // The new task has the next number.
        after.tell("download", "main", server.url("/first").absoluteString, "c")
        try await after.line("completed main.3 ok")
        try await after.leave()
        #expect(after.lines.filter { $0.hasPrefix("finished") }.count == 3)
        #expect(after.lines.filter { $0.hasPrefix("told") }.count == 1)
        #expect(try place.downloaded("a") == Self.first)
        #expect(try place.downloaded("b") == Self.second)
        #expect(server.requests.count == 3)
    }

    @Test func `a returning program finds its tasks, however large they are together`() async throws {
        try await withPlace { (place, server) async throws in
            let count = 52
            let starter = try place.start("starter")
            starter.tell("session", "other")
            try await starter.line("session other")
            let before = try RawClient(place)
            try before.attach("large")
            var request = LoadRequest(url: server.url("/first"))
            request.method = "POST"
            request.body = .data(Data(repeating: 0x78, count: 1_000_000))
            for task in 1...count {
                let order = TaskOrder(
                    id: task, request: request, delivery: .download(resuming: nil),
                    earliestBegin: Date.timeIntervalSinceReferenceDate + 1000)
                try before.say(.submit(BackgroundOrder(order, created: Date.timeIntervalSinceReferenceDate)))
            }
            try await before.waitForMessage { if case .accepted(let tasks) = $0, tasks.contains(count) { true } else { nil } }
            before.end()
            let after = try RawClient(place)
            try after.attach("large")
            try await after.waitForMessage { if case .attached(count) = $0 { true } else { nil } }
            let known = after.all { if case .known(let task) = $0 { task.order.task.id } else { nil } }
            #expect(known == Array(1...count))
            for task in 1...count { try after.say(.command(.cancel, task)) }
            for task in 1...count {
                try await after.waitForMessage { if case .event(.finished, task) = $0 { true } else { nil } }
                try after.say(.told(task))
            }
            try await after.waitForMessage { if case .forgotten(count) = $0 { true } else { nil } }
            try after.say(.invalidate)
            try await starter.leave()
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `a program that is told of many ends and then dies is not told of them again`() async throws {
        try await withPlace { (place, server) async throws in
            let count = 256
            let starter = try place.start("starter")
            starter.tell("session", "other")
            try await starter.line("session other")
            let before = try RawClient(place)
            try before.attach("many")
            for task in 1...count {
                let order = TaskOrder(
                    id: task, request: LoadRequest(url: server.url("/first")), delivery: .download(resuming: nil),
                    earliestBegin: Date.timeIntervalSinceReferenceDate + 1000)
                try before.say(.submit(BackgroundOrder(order, created: Date.timeIntervalSinceReferenceDate)))
            }
            try await before.waitForMessage { if case .accepted(let tasks) = $0, tasks.contains(count) { true } else { nil } }
            for task in 1...count { try before.say(.command(.cancel, task)) }
            for task in 1...count {
                try await before.waitForMessage { if case .event(.finished, task) = $0 { true } else { nil } }
            }
            let bytes = try (1...count).map { FrameReader.frame(try MessageCoding.encode(.told($0))) }
            // The daemon's confirmations arrive nowhere.
            before.send(Array(bytes.joined()))
            before.end()
            let after = try RawClient(place)
            try after.attach("many")
            try await after.waitForMessage { if case .attached = $0 { true } else { nil } }
            let known = after.all { if case .known(let task) = $0 { task.order.task.id } else { nil } }
            #expect(known.isEmpty)
            try after.say(.invalidate)
            try await starter.leave()
        }
    }

    // MARK: Ownership

    @Test func `another identifier and another program have no access to the tasks`() async throws {
        try await withPlace { (place, server) async throws in
            let owner = try place.start("owner")
            owner.tell("take", "block")
            owner.tell("session", "main")
            owner.tell("download", "main", server.url("/first").absoluteString, "a")
            owner.tell("download", "main", server.url("/second?gate=never").absoluteString, "b")
            try await owner.line("ordered main.2")
            try await server.reached("never")
            try await owner.line("finished main.1")
            try await owner.kill()
            for (label, name, file) in [("namesake", "main", "other"), ("sibling", "side", "program")] {
                let stranger = try place.start(label, as: file)
                stranger.tell("session", name)
                stranger.tell("tasks", name)
                #expect(try await stranger.line("tasks") == "tasks \(name): ")
                // In each of these sessions, the numbers of tasks begin with 1.
                stranger.tell("download", name, server.url("/second").absoluteString, label)
                try await stranger.line("completed \(name).1 ok")
                try await stranger.leave()
                #expect(stranger.lines.filter { $0.hasPrefix("finished") || $0.hasPrefix("told") }.count == 1)
            }
            let again = try place.start("again")
            again.tell("session", "main")
            try await again.line("completed main.1 ok")
            again.tell("cancel", "main.2")
            try await again.line("completed main.2 -999")
            try await again.leave()
        }
    }

    // MARK: Handing over files

    @Test func `a program that dies while it handles a file gets it again`() async throws {
        try await withPlace { (place, server) async throws in
            var program = try place.start("first")
            program.tell("take", "die")
            program.tell("session", "main")
            program.tell("download", "main", server.url("/first").absoluteString, "a")
            try await program.line("finished main.1 300000")
            try await program.ended()
            program = try place.start("second")
            program.tell("take", "die")
            program.tell("session", "main")
            try await program.line("finished main.1 300000")
            try await program.ended()
            #expect(!program.lines.contains { $0.hasPrefix("completed") || $0.hasPrefix("told") })
            program = try place.start("third")
            program.tell("session", "main")
            try await program.line("told main")
            #expect(program.lines.contains { $0.hasPrefix("completed main.1 ok gone") })
            try await program.leave()
            #expect(try place.downloaded("a") == Self.first)
            #expect(server.requests.count == 1)
        }
    }

    @Test func `a program that dies after it moved the file gets it again, complete`() async throws {
        try await withPlace { (place, server) async throws in
            var program = try place.start("first")
            program.tell("take", "moveAndDie")
            program.tell("session", "main")
            program.tell("download", "main", server.url("/first").absoluteString, "a")
            try await program.ended()
            #expect(try place.downloaded("a") == Self.first)
            program = try place.start("second")
            program.tell("session", "main")
            try await program.line("told main")
            try await program.leave()
            #expect(program.lines.contains { $0.hasPrefix("finished main.1 300000") })
            #expect(try place.downloaded("a") == Self.first)
            #expect(server.requests.count == 1)
        }
    }

    @Test func `a file that is not moved is removed when the callback returns`() async throws {
        try await withPlace { (place, server) async throws in
            let program = try place.start("one")
            program.tell("take", "leave")
            program.tell("session", "main")
            program.tell("download", "main", server.url("/first").absoluteString)
            #expect(try await program.line("completed main.1").hasPrefix("completed main.1 ok gone"))
            try await program.leave()
        }
    }

    @Test func `a file that its program modified in place is downloaded again`() async throws {
        try await withPlace { (place, server) async throws in
            var program = try place.start("first")
            program.tell("take", "scribbleAndDie")
            program.tell("session", "main")
            program.tell("download", "main", server.url("/first").absoluteString, "a")
            try await program.ended()
            program = try place.start("second")
            program.tell("session", "main")
            try await program.line("completed main.1 ok")
            try await program.leave()
            #expect(try place.downloaded("a") == Self.first)
            #expect(server.requests.count == 2)
        }
    }
}
