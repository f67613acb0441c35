// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// The user's limits on when transfers run, and how fast.
@Suite(.timeLimit(.minutes(2)))
struct TermsTests {
    /// Runs a test that can set the daemon's clock ahead.
    private func withClock(
        reply: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply, interval: String = "0.2",
        _ test: (BackgroundPlace, ScriptedServer, DaemonFaults) async throws -> Void
    ) async throws {
        let faults = try DaemonFaults()
        var variables = faults.environment(disk: "/nonexistent")
        variables["URLSESSIOND_INTERVAL"] = interval
        variables["TZ"] = "UTC"
        try await withScriptedServer(reply: reply) { (server) async throws in
            try await withBackgroundPlace(daemonVariables: variables) { (place) async throws in
                try await test(place, server, faults)
            }
        }
    }

    /// Three hours of each day; they begin `hours` hours from now, or up to an hour earlier.
    private static func hours(in hours: Int) -> String {
        let hour = Int(Date().timeIntervalSince1970 / 3600) + hours
        return "\(hour % 24)-\((hour + 3) % 24)"
    }

    private func startInSlowMode(_ place: BackgroundPlace) async throws -> (program: ProgramHandle, manager: ProgramHandle) {
        let program = try place.start("one")
        program.tell("session", "main")
        try await program.line("session main")
        let manager = try place.manager()
        manager.tell("watch")
        try await manager.line("watching")
        manager.tell("manage", "terms", "1")
        try await manager.line("terms 1")
        return (program, manager)
    }

    @Test func `outside the hours no transfer begins, and a running one is paused and resumes later`() async throws {
        let file = ScriptedFile(ScriptedFile.pattern(500_000))
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = {
            guard $0.path != "/other" else { return .ok("other") }
            return file.reply(to: $0, cutAfter: $0.order == 0 ? 200_000 : nil, ending: .gate("never"))
        }
        try await withClock(reply: reply) { (place, server, faults) async throws in
            let program = try place.start("one")
            program.tell("session", "main")
            program.tell("download", "main", server.url().absoluteString, "a")
            try await program.line("wrote main.1 200000")
            let manager = try place.manager()
            manager.tell("watch")
            try await manager.line("transfer main.1 running")
            let hours = Self.hours(in: 12)
            manager.tell("manage", "terms", "0", hours)
            try await manager.line("terms 0 \(hours)")
            try await manager.line("transfer main.1 waiting 200000 (the hours ")
            try await server.waitForAllClosed()
            program.tell("download", "main", server.url("/other").absoluteString, "b")
            try await manager.line("transfer main.2 waiting 0 (the hours ")
            #expect(server.requests.count == 1)
            try faults.setClock(by: 13 * 3600)
            try await program.line("completed main.1 ok")
            try await program.line("completed main.2 ok")
            #expect(server.requests.compactMap { $0.header("Range") } == ["bytes=200000-"])
            #expect(try place.downloaded("a") == file.content)
            try await program.leave()
        }
    }

    @Test func `a date and the hours are checked at once when the clock is set`() async throws {
        try await withClock(reply: { .ok($0.path) }, interval: "1000") { (place, server, faults) async throws in
            let program = try place.start("one")
            program.tell("session", "main")
            program.tell("download", "main", server.url("/a").absoluteString, "a", "begin=36000")
            program.tell("download", "main", server.url("/b").absoluteString, "b")
            try await program.line("completed main.2 ok")
            let manager = try place.manager()
            let hours = Self.hours(in: 12)
            manager.tell("manage", "terms", "0", hours)
            try await manager.line("terms 0 \(hours)")
            program.tell("download", "main", server.url("/c").absoluteString, "c")
            manager.tell("watch")
            try await manager.line("transfer main.3 waiting 0 (the hours ")
            #expect(server.requests.count == 1)
            try faults.setClock(by: 13 * 3600)
            try await program.line("completed main.1 ok")
            try await program.line("completed main.3 ok")
            try await program.leave()
        }
    }

    @Test func `an upload that only waits for its response finishes outside the hours, and is sent once`() async throws {
        try await withClock(reply: { _ in .ok("taken").after(.gate("g")) }) { (place, server, _) async throws in
            let program = try place.start("one")
            program.tell("session", "main")
            let upload = try place.write("an upload".utf8, to: "upload")
            program.tell("upload", "main", server.url().absoluteString, upload.path)
            try await program.line("ordered main.1")
            let manager = try place.manager()
            manager.tell("watch")
            try await manager.line("sent main.1 9")
            let hours = Self.hours(in: 12)
            manager.tell("manage", "terms", "0", hours)
            try await manager.line("terms 0 \(hours)")
            server.open("g")
            try await program.line("completed main.1 ok")
            #expect(server.requests.count == 1)
            try await program.leave()
        }
    }

    @Test func `the hours apply to the next daemon, and end when they are removed`() async throws {
        try await withClock(reply: { .ok($0.path) }) { (place, server, _) async throws in
            let program = try place.start("one")
            program.tell("session", "main")
            try await program.line("session main")
            let manager = try place.manager()
            let hours = Self.hours(in: 12)
            manager.tell("manage", "terms", "5", hours)
            try await manager.line("terms 5 \(hours)")
            place.killDaemon()
            program.tell("download", "main", server.url().absoluteString, "a")
            try await program.line("ordered main.1")
            manager.tell("watch")
            try await manager.line("transfer main.1 waiting 0 (the hours ")
            manager.tell("manage", "status")
            #expect(try await manager.line("status").contains("rate: Optional(5)"))
            #expect(server.requests.isEmpty)
            manager.tell("manage", "terms", "0")
            try await program.line("completed main.1 ok")
            try await program.leave()
        }
    }

    @Test func `in slow mode transfers share the rate, and all continue when it ends`() async throws {
        let content = ScriptedFile.pattern(3_000_000)
        try await withClock(reply: { $0.path == "/b" ? .ok("b") : .ok(content) }) { (place, server, _) async throws in
            let (program, manager) = try await startInSlowMode(place)
            program.tell("download", "main", server.url("/a").absoluteString, "a")
            let line = try await manager.line("transfer main.1 running ", "(slow mode: continues in ")
            #expect(!line.contains(" 3000000 "))
            program.tell("download", "main", server.url("/b").absoluteString, "b")
            try await manager.line("transfer main.2 running 0 (slow mode: continues in ")
            #expect(server.requests.map(\.path) == ["/a"])
            manager.tell("manage", "terms", "0")
            try await program.line("completed main.1 ok")
            try await program.line("completed main.2 ok")
            #expect(try place.downloaded("a") == content)
            #expect(try place.downloaded("b") == Array("b".utf8))
            try await program.leave()
        }
    }

    @Test func `slow mode applies to uploads`() async throws {
        try await withClock(reply: { _ in .ok("taken") }) { (place, server, _) async throws in
            let (program, manager) = try await startInSlowMode(place)
            let upload = try place.write(ScriptedFile.pattern(3_000_000), to: "upload")
            program.tell("upload", "main", server.url().absoluteString, upload.path)
            try await manager.line("transfer main.1 running 0 (slow mode: continues in ")
            manager.tell("manage", "terms", "0")
            try await program.line("completed main.1 ok")
            #expect(server.requests.first?.body.count == 3_000_000)
            try await program.leave()
        }
    }
}
