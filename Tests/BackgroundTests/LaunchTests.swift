// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

#if canImport(Glibc)
import Glibc
#endif

/// Programs that the daemon starts, and programs that the user force-quits.
@Suite(.timeLimit(.minutes(2)))
struct LaunchTests {
    private static let script = ["session main launch=1", "await told main", "handled main", "leave"]

    private func withPlace(
        reply: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply = { .ok($0.path).after(.gate("g")) },
        _ test: (BackgroundPlace, ScriptedServer) async throws -> Void
    ) async throws {
        try await withScriptedServer(reply: reply) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in try await test(place, server) }
        }
    }

    @Test func `a program is started once, when the last of its tasks has ended`() async throws {
        try await withPlace(reply: { .ok($0.path).after(.gate($0.path)) }) { (place, server) async throws in
            let program = try place.start("one", launch: Self.script)
            program.tell("session", "main", "launch=1")
            for name in ["a", "b"] { program.tell("download", "main", server.url("/\(name)").absoluteString, name) }
            try await server.reached("/b")
            try await server.reached("/a")
            try await program.leave()
            let manager = try place.manager()
            manager.tell("watch")
            server.open("/a")
            try await manager.line("transfer main.1 ended")
            #expect(place.launched.lines.isEmpty)
            server.open("/b")
            try await place.launched.line("told main")
            try await manager.line("transfer main.2 gone")
            try await place.launched.line("leaving")
            manager.tell("manage", "log")
            let log = try await manager.line("log")
            #expect(log.split(separator: "|").filter { $0.contains("starting ") }.count == 1, "\(log)")
            let lines = place.launched.lines
            #expect(lines.filter { $0 == "started" }.count == 1)
            #expect(lines.prefix(2) == ["started", "launched for main"])
            #expect(lines.filter { $0.hasPrefix("completed") }.count == 2)
            #expect(try place.downloaded("a") == Array("/a".utf8))
            #expect(try place.downloaded("b") == Array("/b".utf8))
        }
    }

    @Test func `a program that is running, or whose session sends no launch events, is not started`() async throws {
        try await withPlace { (place, server) async throws in
            let program = try place.start("one", launch: Self.script)
            program.tell("session", "main", "launch=1")
            program.tell("session", "quiet", "launch=1", "events=0")
            for name in ["main", "quiet"] { program.tell("download", name, server.url("/\(name)").absoluteString) }
            try await server.reached("g", times: 2)
            let manager = try place.manager()
            manager.tell("watch")
            server.open("g")
            try await program.line("completed main.1 ok")
            try await program.line("completed quiet.1 ok")
            program.tell("take", "block")
            program.tell("download", "quiet", server.url("/late").absoluteString)
            try await program.line("finished quiet.2")
            try await program.kill()
            manager.tell("manage", "log")
            #expect(try await !manager.line("log").contains("starting "))
            #expect(place.launched.lines.isEmpty)
            let again = try place.start("again")
            again.tell("session", "quiet")
            try await again.line("told quiet")
            #expect(!again.lines.contains { $0.hasPrefix("launched") })
            try await again.leave()
        }
    }

    @Test func `a challenge starts a program that is away`() async throws {
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = { request in
            request.header("Authorization") == "Basic YWRhOmxvdmVsYWNl"
                ? .ok("secret") : .status(401, [("WWW-Authenticate", "Basic realm=\"tower\"")], body: "who?").after(.gate("g"))
        }
        try await withPlace(reply: reply) { (place, server) async throws in
            let program = try place.start(
                "one", launch: ["session main launch=1 delegate=credential", "await completed main.1", "handled main", "leave"])
            program.tell("session", "main", "launch=1", "delegate=credential")
            program.tell("download", "main", server.url().absoluteString, "a")
            try await server.reached("g")
            try await program.leave()
            server.open("g")
            try await place.launched.line("completed main.1 ok gone status=200")
            let lines = place.launched.lines
            #expect(lines.contains("launched for main"))
            #expect(lines.contains("challenged main.1 NSURLAuthenticationMethodHTTPBasic"))
            #expect(try place.downloaded("a") == Array("secret".utf8))
            try await place.launched.line("leaving")
        }
    }

    @Test func `a program that dies when it is started is started again later`() async throws {
        try await withPlace { (place, server) async throws in
            let program = try place.start("one", launch: ["take dieOnce"] + Self.script)
            program.tell("session", "main", "launch=1")
            program.tell("download", "main", server.url("/a").absoluteString, "a")
            try await server.reached("g")
            try await program.leave()
            let manager = try place.manager()
            manager.tell("watch")
            try await manager.line("watching")
            server.open("g")
            try await place.launched.line("told main")
            manager.tell("manage", "log")
            #expect(try await manager.line("log").contains("is not started for main before"))
            try await manager.kill()
            let lines = place.launched.lines
            #expect(lines.filter { $0 == "started" }.count == 2)
            #expect(lines.filter { $0.hasPrefix("finished main.1") }.count == 2)
            #expect(lines.filter { $0.hasPrefix("completed main.1") }.count == 1)
            #expect(try place.downloaded("a") == Array("/a".utf8))
            #expect(server.requests.count == 1)
            try await place.launched.line("leaving")
        }
    }

    @Test func `a program that dies before it joins its session is started again ten seconds later`() async throws {
        try await withPlace { (place, server) async throws in
            let program = try place.start("one", launch: ["crash"] + Self.script)
            program.tell("session", "main", "launch=1")
            program.tell("download", "main", server.url("/a").absoluteString, "a")
            try await server.reached("g")
            try await program.leave()
            // No program is connected, so only the untold end keeps the daemon running.
            server.open("g")
            try await place.launched.line("told main")
            let lines = place.launched.lines
            #expect(lines.filter { $0 == "started" }.count == 2)
            #expect(lines.filter { $0.hasPrefix("completed main.1") }.count == 1)
            #expect(try place.downloaded("a") == Array("/a".utf8))
            try await place.launched.line("leaving")
        }
    }

    @Test func `a program that dies at each start is not started in a loop, whatever sessions it creates`() async throws {
        try await withPlace { (place, server) async throws in
            let program = try place.start("one", launch: ["session side launch=1", "take die"] + Self.script)
            program.tell("session", "main", "launch=1")
            program.tell("session", "side", "launch=1")
            program.tell("download", "main", server.url("/a").absoluteString, "a")
            program.tell("download", "side", server.url("/b").absoluteString, "b", "begin=1000")
            try await program.line("ordered side.1")
            try await server.reached("g")
            try await program.leave()
            let manager = try place.manager()
            server.open("g")
            try await place.launched.line("finished main.1")
            try await place.launched.line("finished main.1", number: 1)
            manager.tell("manage", "log")
            let log = try await manager.line("log")
            // By now it was started twice, and the daemon waited in between.
            #expect(log.contains("is not started for main before"), "\(log)")
            manager.tell("manage", "quit", place.bin.path + "/program")
            try await manager.line("quit ")
            try await manager.kill()
            let again = try place.start("again")
            again.tell("session", "main")
            again.tell("session", "side")
            try await again.line("completed main.1 ok")
            try await again.line("completed side.1 -999 reason=0")
            try await again.leave()
        }
    }

    @Test func `one start of a program serves all of its ended sessions`() async throws {
        try await withPlace { (place, server) async throws in
            let script = ["session main launch=1", "session side launch=1", "await told main", "await told side", "handled main"]
            let program = try place.start("one", launch: script + ["handled side", "leave"])
            program.tell("session", "main", "launch=1")
            program.tell("session", "side", "launch=1")
            program.tell("download", "main", server.url("/a").absoluteString, "a")
            program.tell("download", "side", server.url("/b").absoluteString, "b")
            try await server.reached("g", times: 2)
            try await program.kill()
            for process in place.daemons { kill(process, SIGSTOP) }
            server.open("g")
            for process in place.daemons { kill(process, SIGCONT) }
            try await place.launched.line("told main")
            try await place.launched.line("told side")
            try await place.launched.line("leaving")
            #expect(try place.downloaded("a") == Array("/a".utf8))
            #expect(try place.downloaded("b") == Array("/b".utf8))
        }
    }

    @Test func `an unanswered challenge gets the default answer after a while`() async throws {
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = { _ in
            .status(401, [("WWW-Authenticate", "Basic realm=\"tower\"")], body: "who?").after(.gate("g"))
        }
        try await withScriptedServer(reply: reply) { (server) async throws in
            try await withBackgroundPlace(daemonVariables: ["URLSESSIOND_PATIENCE": "1"]) { (place) async throws in
                // The started program does not answer.
                let program = try place.start("one", launch: ["await never"])
                program.tell("session", "main", "launch=1", "delegate=credential")
                program.tell("download", "main", server.url().absoluteString, "a")
                try await server.reached("g")
                try await program.leave()
                let manager = try place.manager()
                manager.tell("watch")
                server.open("g")
                try await place.launched.line("launched for main")
                try await manager.line("transfer main.1 ended")
                try await manager.kill()
                let again = try place.start("again")
                again.tell("session", "main")
                try await again.line("completed main.1 ok gone status=401")
                try await again.leave()
            }
        }
    }

    @Test func `a challenge of a program that cannot be started gets the default answer at once`() async throws {
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = { _ in
            .status(401, [("WWW-Authenticate", "Basic realm=\"tower\"")], body: "who?").after(.gate("g"))
        }
        try await withPlace(reply: reply) { (place, server) async throws in
            let program = try place.start("one")
            program.tell("session", "main", "delegate=credential")
            program.tell("download", "main", server.url().absoluteString, "a")
            try await server.reached("g")
            try await program.leave()
            let manager = try place.manager()
            manager.tell("watch")
            server.open("g")
            try await manager.line("transfer main.1 ended")
            try await manager.kill()
            let again = try place.start("again")
            again.tell("session", "main")
            try await again.line("completed main.1 ok gone status=401")
            #expect(!again.lines.contains { $0.hasPrefix("challenged") })
            try await again.leave()
        }
    }

    @Test func `a program that the user force-quits loses its transfers, and is not started`() async throws {
        let file = ScriptedFile(ScriptedFile.pattern(300_000))
        try await withPlace(reply: { request in
            request.path == "/done"
                ? .ok("done")
                : file.reply(to: request, cutAfter: request.header("Range") == nil ? 100_000 : nil, ending: .gate("never"))
        }) { (place, server) async throws in
            let program = try place.start("one", launch: Self.script)
            program.tell("take", "block")
            program.tell("session", "main", "launch=1")
            program.tell("download", "main", server.url("/done").absoluteString, "done")
            program.tell("download", "main", server.url("/slow").absoluteString, "slow")
            try await program.line("finished main.1")
            let manager = try place.manager()
            manager.tell("watch")
            try await manager.line("transfer main.2 running 100000")
            let other = try place.start("other", as: "other")
            other.tell("session", "main")
            other.tell("download", "main", server.url("/slow").absoluteString)
            try await other.line("wrote main.1 100000")
            manager.tell("manage", "quit", place.bin.path + "/program")
            try await manager.line("quit ")
            try await program.ended()
            try await manager.line("transfer main.2 ended")
            manager.tell("manage", "log")
            #expect(try await !manager.line("log").contains("starting "))
            // Other programs are not affected.
            #expect(!other.lines.contains { $0.hasPrefix("completed") })
            other.tell("cancel", "main.1")
            try await other.line("completed main.1 -999 {")
            try await other.leave()
            let again = try place.start("again")
            again.tell("session", "main")
            try await again.line("told main")
            #expect(again.lines.contains { $0.hasPrefix("completed main.1 ok gone status=200") })
            #expect(again.lines.contains { $0.hasPrefix("completed main.2 -999 reason=0") })
            #expect(try place.downloaded("done") == Array("done".utf8))
            // The partial download of the program can be resumed.
            server.open("never")
            again.tell("continue", "main", "rest")
            try await again.line("completed main.3 ok")
            try await again.leave()
            #expect(try place.downloaded("rest") == file.content)
            #expect(place.launched.lines.isEmpty)
        }
    }

    @Test func `a program that the user has started again may be started by this and the next daemon`() async throws {
        try await withPlace { (place, server) async throws in
            let first = try place.start("one", launch: Self.script)
            first.tell("session", "main", "launch=1")
            first.tell("download", "main", server.url("/never").absoluteString, "never", "begin=1000")
            try await first.line("ordered main.1")
            let manager = try place.manager()
            manager.tell("manage", "quit", place.bin.path + "/program")
            try await manager.line("quit ")
            try await manager.kill()
            try await first.ended()
            let program = try place.start("two")
            program.tell("session", "main", "launch=1")
            try await program.line("completed main.1 -999 reason=0")
            program.tell("download", "main", server.url("/a").absoluteString, "a")
            try await server.reached("g")
            try await program.leave()
            place.killDaemon()
            server.open("g")
            let daemon = try place.startDaemon([])
            try await place.launched.line("told main")
            try await place.launched.line("leaving")
            #expect(try place.downloaded("a") == Array("/a".utf8))
            daemon.stop()
        }
    }

    @Test func `a challenge to a session without a delegate gets the default answer`() async throws {
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = { _ in
            .status(401, [("WWW-Authenticate", "Basic realm=\"tower\"")], body: "who?").after(.gate("g"))
        }
        try await withPlace(reply: reply) { (place, server) async throws in
            let program = try place.start("one")
            program.tell("session", "main", "delegate=credential")
            program.tell("download", "main", server.url().absoluteString, "a")
            try await server.reached("g")
            try await program.leave()
            let deaf = try place.start("two")
            deaf.tell("session", "main", "delegate=none")
            try await deaf.line("session main")
            let manager = try place.manager()
            manager.tell("watch")
            server.open("g")
            try await manager.line("transfer main.1 ended")
            try await manager.kill()
            try await deaf.kill()
            let again = try place.start("again")
            again.tell("session", "main")
            try await again.line("completed main.1 ok gone status=401")
            try await again.leave()
        }
    }

    @Test func `a program that is not the user's tool cannot see other programs`() async throws {
        try await withPlace { (place, server) async throws in
            let program = try place.start("one")
            program.tell("session", "main")
            program.tell("download", "main", server.url().absoluteString)
            try await server.reached("g")
            let other = try place.start("other", as: "other")
            for request in [["list"], ["status"], ["quit", "/program"]] {
                other.tell(["manage"] + request)
                #expect(
                    try await other.line("refused \(request.joined(separator: " "))").contains("may not manage the transfers"),
                    "\(place.report)")
            }
            try await other.kill()
            server.open("g")
            try await program.line("completed main.1 ok")
            try await program.leave()
        }
    }
}
