// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Conditions of the machine: power, metered networks, disk and clock.
@Suite(.timeLimit(.minutes(2)))
struct ConditionTests {
    // MARK: Discretionary transfers

    /// A machine's power supplies, as in sysfs.
    private struct Power {
        let root = URL(fileURLWithPath: "/tmp/sys-\(UUID().uuidString.prefix(8).lowercased())")

        init(isOnline: Bool) throws {
            try write("Battery", "BAT0/type")
            // A mouse's battery does not count.
            try write("Battery", "hid0/type")
            try write("Device", "hid0/scope")
            try write("Mains", "AC/type")
            try setOnline(isOnline)
        }

        func setOnline(_ isOnline: Bool) throws { try write(isOnline ? "1" : "0", "AC/online") }
        func remove() { try? FileManager.default.removeItem(at: root) }

        private func write(_ text: String, _ path: String) throws {
            let file = root.appendingPathComponent("class/power_supply/" + path)
            try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data((text + "\n").utf8).write(to: file, options: .atomic)
        }
    }

    private static let waits = "(an unmetered network and external power)"

    private func withMachine(
        isOnline: Bool, isMetered: Bool, reply: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply = { .ok($0.path) },
        _ test: (BackgroundPlace, ScriptedServer, Power) async throws -> Void
    ) async throws {
        let power = try Power(isOnline: isOnline)
        defer { power.remove() }
        let variables = [
            "URLSESSIOND_SYSFS": power.root.path, "URLSESSIOND_INTERVAL": "0.2",
            "URLSESSIOND_METERED": isMetered ? "1" : "0",
        ]
        try await withScriptedServer(reply: reply) { (server) async throws in
            try await withBackgroundPlace(daemonVariables: variables) { (place) async throws in
                try await test(place, server, power)
            }
        }
    }

    @Test func `discretionary transfers wait on battery, and begin on external power`() async throws {
        try await withMachine(isOnline: false, isMetered: false) { (place, server, power) async throws in
            let program = try place.start("one")
            program.tell("session", "later", "discretionary=1")
            program.tell("session", "now")
            program.tell("download", "later", server.url("/later").absoluteString, "later")
            try await program.line("ordered later.1")
            let manager = try place.manager()
            manager.tell("watch")
            try await manager.line("transfer later.1 waiting 0 \(Self.waits)")
            program.tell("download", "now", server.url("/now").absoluteString, "now")
            try await program.line("completed now.1 ok")
            #expect(server.requests.map(\.path) == ["/now"])
            try power.setOnline(true)
            try await program.line("completed later.1 ok")
            #expect(try place.downloaded("later") == Array("/later".utf8))
            try await program.leave()
        }
    }

    @Test func `a discretionary transfer stops when external power is lost, and resumes later`() async throws {
        let file = ScriptedFile(ScriptedFile.pattern(500_000))
        try await withMachine(
            isOnline: true, isMetered: false,
            reply: { file.reply(to: $0, cutAfter: $0.order == 0 ? 200_000 : nil, ending: .gate("never")) }
        ) { (place, server, power) async throws in
            let program = try place.start("one")
            program.tell("session", "main", "discretionary=1")
            program.tell("download", "main", server.url().absoluteString, "a")
            try await program.line("wrote main.1 200000")
            let manager = try place.manager()
            manager.tell("watch")
            try await manager.line("transfer main.1 running")
            try power.setOnline(false)
            try await manager.line("transfer main.1 waiting 200000 \(Self.waits)")
            try await server.waitForAllClosed()
            try power.setOnline(true)
            try await program.line("completed main.1 ok")
            #expect(server.requests.map { $0.header("Range") } == [nil, "bytes=200000-"])
            #expect(try place.downloaded("a") == file.content)
            try await program.leave()
        }
    }

    @Test func `orders of a program that the daemon started are discretionary`() async throws {
        try await withMachine(isOnline: true, isMetered: true, reply: { .ok($0.path).after(.gate($0.path)) }) {
            (place, server, _) async throws in
            let url = server.url("/second").absoluteString
            let program = try place.start(
                "one",
                launch: [
                    "session main launch=1", "await told main", ProgramScript.line(["download", "main", url, "b"]),
                    "handled main",
                ])
            program.tell("session", "main", "launch=1")
            program.tell("download", "main", server.url("/first").absoluteString, "a")
            try await server.reached("/first")
            try await program.leave()
            server.open("/first")
            try await place.launched.line("ordered main.2")
            let manager = try place.manager()
            manager.tell("watch")
            try await manager.line("transfer main.2 waiting 0 \(Self.waits)")
            #expect(server.requests.map(\.path) == ["/first"])
            #expect(place.launched.lines.contains("launched for main"))
            manager.tell("manage", "quit", place.bin.path + "/program")
            try await manager.line("transfer main.2 ended")
            try await manager.kill()
            let again = try place.start("again")
            again.tell("session", "main")
            try await again.line("completed main.2 -999 reason=0")
            try await again.leave()
        }
    }

    // MARK: The disk

    private static let file = ScriptedFile(ScriptedFile.pattern(400_000))

    /// A disk that is full on demand, for a part of the daemon's folder.
    private func withFullDisk(
        _ part: String, reply: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply,
        _ test: (BackgroundPlace, ScriptedServer, DaemonFaults) async throws -> Void
    ) async throws {
        let faults = try DaemonFaults()
        let state = "/tmp/bg-state-\(UUID().uuidString.prefix(8).lowercased())"
        defer { try? FileManager.default.removeItem(atPath: state) }
        var variables = faults.environment(disk: state + "/urlloading/background" + part)
        variables["XDG_STATE_HOME"] = state
        variables["URLSESSIOND_PAUSE"] = "0.2"
        variables["URLSESSIOND_INTERVAL"] = "0.2"
        try await withScriptedServer(reply: reply) { (server) async throws in
            try await withBackgroundPlace(daemonVariables: variables) { (place) async throws in
                try await test(place, server, faults)
            }
        }
    }

    @Test func `with a full disk downloads wait with a reason, and nothing is lost`() async throws {
        try await withFullDisk("/spool", reply: { Self.file.reply(to: $0) }) { (place, server, faults) async throws in
            try faults.fillDisk()
            let program = try place.start("one")
            program.tell("session", "main")
            program.tell("download", "main", server.url().absoluteString, "a")
            try await program.line("ordered main.1")
            let manager = try place.manager()
            manager.tell("watch")
            let line = try await manager.line("transfer main.1 waiting ")
            #expect(line.contains("(disk space: ") && line.contains("no space left on device"), "\(line)")
            // Uploads need no disk space.
            let upload = try place.write("an upload".utf8, to: "upload")
            program.tell("upload", "main", server.url().absoluteString, upload.path)
            try await program.line("completed main.2 ok")
            #expect(!program.lines.contains { $0.hasPrefix("completed main.1") })
            try faults.emptyDisk()
            try await program.line("completed main.1 ok")
            #expect(try place.downloaded("a") == Self.file.content)
            try await program.leave()
        }
    }

    @Test func `a pause fails while the disk is full, and succeeds when it has space`() async throws {
        try await withFullDisk("", reply: { _ in .ok("taken").after(.gate("g")) }) { (place, server, faults) async throws in
            let program = try place.start("one")
            program.tell("session", "main")
            program.tell("download", "main", server.url().absoluteString, "a")
            try await server.reached("g")
            let manager = try place.manager()
            try faults.fillDisk()
            manager.tell("manage", "pause", "1")
            let line = try await manager.line("refused pause 1")
            #expect(line.contains("no space"), "\(line)")
            try faults.emptyDisk()
            manager.tell("manage", "pause", "1")
            try await manager.line("paused 1")
            try await program.leave()
        }
    }

    @Test func `with a full disk an end is told later, and an order fails after a while`()
        async throws
    {
        try await withFullDisk("", reply: { _ in .ok("taken").after(.gate("g")) }) { (place, server, faults) async throws in
            let program = try place.start("one")
            program.tell("session", "main")
            let upload = try place.write("an upload".utf8, to: "upload")
            program.tell("upload", "main", server.url().absoluteString, upload.path)
            try await server.reached("g")
            try faults.fillDisk()
            program.tell("download", "main", server.url().absoluteString, "a")
            let refused = try await program.line("completed main.2")
            #expect(refused.hasPrefix("completed main.2 -3003 {") && refused.contains("no space"), "\(refused)")
            server.open("g")
            let manager = try place.manager()
            manager.tell("manage", "status")
            #expect(try await manager.line("status").contains("no space"))
            #expect(!program.lines.contains { $0.hasPrefix("completed main.1") })
            try faults.emptyDisk()
            try await program.line("completed main.1 ok status=200")
            #expect(server.requests.count == 1)
            try await program.leave()
        }
    }

    // MARK: Origins

    @Test func `transfers that wait for an origin begin together once it answers one of them`() async throws {
        let file = ScriptedFile([UInt8](repeating: 7, count: 100_000))
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = {
            $0.order == 0 ? [.reset] : file.reply(to: $0, cutAfter: 1000, ending: .gate("g"))
        }
        try await withScriptedServer(reply: reply) { (server) async throws in
            let variables = ["URLSESSIOND_PAUSE": "0.5"]
            try await withBackgroundPlace(daemonVariables: variables, leaves: nil) { (place) async throws in
                let program = try place.start("one")
                program.tell("session", "main")
                for name in ["a", "b", "c"] { program.tell("download", "main", server.url("/\(name)").absoluteString, name) }
                // All three transfers run at the same time.
                try await server.reached("g", times: 3)
                place.killAll()
            }
        }
    }

    // MARK: The clock

    private func withClock(
        reply: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply,
        _ test: (BackgroundPlace, ScriptedServer, DaemonFaults) async throws -> Void
    ) async throws {
        let faults = try DaemonFaults()
        var variables = faults.environment(disk: "/nonexistent")
        variables["URLSESSIOND_PAUSE"] = "3"
        try await withScriptedServer(reply: reply) { (server) async throws in
            try await withBackgroundPlace(daemonVariables: variables) { (place) async throws in
                try await test(place, server, faults)
            }
        }
    }

    @Test func `a clock that is set forward does not expire transfers`() async throws {
        try await withClock(reply: { .ok($0.path).after(.gate($0.path)) }) { (place, server, faults) async throws in
            let program = try place.start("one")
            program.tell("session", "main", "resource=1000")
            for name in ["a", "b"] { program.tell("download", "main", server.url("/\(name)").absoluteString, name) }
            try await server.reached("/a")
            try await server.reached("/b")
            try faults.setClock(by: 100_000)
            server.open("/a")
            try await program.line("completed main.1 ok")
            server.open("/b")
            try await program.line("completed main.2 ok")
            try await program.leave()
        }
    }

    @Test func `a clock that is set back does not extend a pause`() async throws {
        let isSet = Watched(false)
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = { _ in isSet.read { $0 } ? .ok("content") : [.reset] }
        try await withClock(reply: reply) { (place, server, faults) async throws in
            let program = try place.start("one")
            let manager = try place.manager()
            program.tell("session", "main")
            try await program.line("session main")
            manager.tell("watch")
            try await manager.line("watching")
            program.tell("download", "main", server.url().absoluteString, "a")
            // One pause may be too short to be observed, but another one follows.
            try await manager.line("transfer main.1 waiting 0 (retry in")
            try faults.setClock(by: -100_000)
            isSet.change { $0 = true }
            try await program.line("completed main.1 ok")
            #expect(try place.downloaded("a") == Array("content".utf8))
            try await program.leave()
        }
    }
}
