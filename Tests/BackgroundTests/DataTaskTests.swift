// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Data tasks of background sessions: the program's own process performs them, and they end with it.
@Suite(.timeLimit(.minutes(3)))
struct DataTaskTests {
    /// `/held?NAME` is answered when the gate is open, `/cookie` sets a cookie, `/old` redirects to `/create`; any other path is
    /// answered with itself.
    private static func reply(_ request: RecordedRequest) -> ScriptedReply {
        let parts = request.target.split(separator: "?").map(String.init)
        switch parts[0] {
        case "/held": return .ok("held").after(.gate(parts[1]))
        case "/old": return .redirect(307, to: "/create")
        case "/cookie": return .ok("cookie", [("Set-Cookie", "taste=sweet")])
        default: return .ok(parts[0])
        }
    }

    private func withProgram(
        _ options: String..., test: (BackgroundPlace, ProgramHandle, ScriptedServer) async throws -> Void
    ) async throws {
        try await withScriptedServer(reply: Self.reply) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let program = try place.start("one")
                program.tell(["session", "main"] + options)
                try await test(place, program, server)
            }
        }
    }

    private func expect(_ lines: [String], in program: ProgramHandle, sourceLocation: SourceLocation = #_sourceLocation) {
        let places = lines.map { line in program.lines.firstIndex { $0.hasPrefix(line) } }
        #expect(
            places.allSatisfy { $0 != nil } && places.compactMap { $0 } == places.compactMap { $0 }.sorted(),
            "\(program.lines)", sourceLocation: sourceLocation)
    }

    @Test func `a data task creates what a file is uploaded to, with the session's settings and delegate`() async throws {
        try await withProgram("header=X-Team:blue") { (place, program, server) async throws in
            let file = try place.write("content".utf8, to: "upload")
            program.tell("data", "main", server.url("/old").absoluteString, "creation", "body=3")
            try await program.line("completed main.1 ok")
            expect(["response main.1 200", "data main.1 /create", "completed main.1 ok status=200 sent=3"], in: program)
            program.tell("upload", "main", server.url("/files/1").absoluteString, file.path)
            try await program.line("completed main.2 ok")
            #expect(server.requests.map(\.method) == ["POST", "POST", "PUT"])
            #expect(server.requests.map { $0.header("X-Team") } == ["blue", "blue", "blue"])
            try await program.leave()
        }
    }

    @Test func `a data task is listed with the daemon's, ends with its program, and leaves its number unused`() async throws {
        try await withProgram { (place, program, server) async throws in
            for (verb, gate) in [("data", "a"), ("download", "b"), ("data", "c")] {
                program.tell(verb, "main", server.url("/held?\(gate)").absoluteString)
                try await server.reached(gate)
            }
            program.tell("tasks", "main")
            let listed = try await program.line("tasks main: ")
            for task in ["[main.1 data ", "[main.2 download ", "[main.3 data "] { #expect(listed.contains(task), "\(listed)") }
            let manager = try place.manager()
            manager.tell("manage", "list")
            #expect(try await manager.line("list: ") == "list: [\"main.2 running\"]")
            try await program.kill()

            let second = try place.start("two")
            second.tell("session", "main")
            second.tell("tasks", "main")
            let left = try await second.line("tasks main: ")
            #expect(left.contains("[main.2 download ") && !left.contains(" data "), "\(left)")
            second.tell("data", "main", server.url("/later").absoluteString)
            let number = try await second.line("ordered main.").split(separator: ".").last.flatMap { Int($0) }
            #expect(try #require(number) > 3)
            server.open("b")
            try await second.line("completed main.2 ok")
            try await second.line("data main.\(number ?? 0) /later")
            try await second.leave()
        }
    }

    @Test func `a data task may become a download of the same process`() async throws {
        try await withProgram { (place, program, server) async throws in
            program.tell("data", "main", server.url("/file?become").absoluteString, "kept")
            try await program.line("completed main.1 ok gone")
            expect(["response main.1 200", "became main.1", "finished main.1 5 ", "completed main.1 ok gone"], in: program)
            #expect(try place.downloaded("kept") == Array("/file".utf8))
            program.tell("download", "main", server.url("/next").absoluteString, "next")
            try await program.line("completed main.2 ok")
            try await program.leave()
        }
    }

    @Test func `a session that is finished waits for its data tasks`() async throws {
        try await withProgram { (_, program, server) async throws in
            program.tell("data", "main", server.url("/held?a").absoluteString)
            program.tell("download", "main", server.url("/held?b").absoluteString)
            try await server.reached("a")
            program.tell("finish", "main")
            server.open("b")
            try await program.line("completed main.2 ok")
            server.open("a")
            try await program.line("invalid main ok")
            expect(["completed main.2 ok", "completed main.1 ok", "invalid main ok"], in: program)
            try await program.leave()
        }
    }

    @Test func `invalidating a session cancels its data tasks`() async throws {
        try await withProgram { (_, program, server) async throws in
            program.tell("data", "main", server.url("/held?a").absoluteString)
            try await server.reached("a")
            program.tell("invalidate", "main")
            try await program.line("invalid main ok")
            expect(["completed main.1 -999", "invalid main ok"], in: program)
            try await program.leave()
        }
    }

    @Test func `a session that has lost the daemon becomes invalid after its data tasks`() async throws {
        try await withScriptedServer(reply: Self.reply) { (server) async throws in
            try await withBackgroundPlace(leaves: nil) { (place) async throws in
                let program = try place.start("one")
                program.tell("session", "main")
                program.tell("data", "main", server.url("/held?a").absoluteString)
                program.tell("download", "main", server.url("/held?b").absoluteString)
                try await server.reached("a")
                try await server.reached("b")
                try place.removeDaemon()
                place.killDaemon()
                #expect(try await program.line("completed main.2").hasPrefix("completed main.2 -997 {"))
                program.tell("data", "main", server.url("/later").absoluteString)
                #expect(try await program.line("completed main.3").hasPrefix("completed main.3 -997 {"))
                server.open("a")
                try await program.line("invalid main -997 {")
                expect(["completed main.1 ok", "invalid main -997 {"], in: program)
                try await program.leave()
            }
        }
    }

    @Test func `the events of an earlier run are told while a data task runs`() async throws {
        try await withProgram { (place, program, server) async throws in
            program.tell("download", "main", server.url("/held?a").absoluteString)
            try await server.reached("a")
            try await program.kill()
            let manager = try place.manager()
            manager.tell("watch")
            try await manager.line("watching")
            server.open("a")
            try await manager.line("transfer main.1 ended")
            let second = try place.start("two")
            second.tell("session", "main")
            second.tell("data", "main", server.url("/held?b").absoluteString)
            try await second.line("told main")
            server.open("b")
            try await second.line("completed main.2 ok")
            try await second.leave()
        }
    }

    @Test func `resetting the session empties the stores of its data tasks`() async throws {
        try await withProgram { (_, program, server) async throws in
            program.tell("data", "main", server.url("/cookie").absoluteString)
            try await program.line("completed main.1 ok")
            program.tell("data", "main", server.url("/before").absoluteString)
            try await program.line("completed main.2 ok")
            program.tell("reset", "main")
            try await program.line("reset main")
            program.tell("data", "main", server.url("/after").absoluteString)
            try await program.line("completed main.3 ok")
            #expect(server.requests.map { $0.header("Cookie") } == [nil, "taste=sweet", nil])
            try await program.leave()
        }
    }
}
