// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// A daemon that is killed between the user's order to quit a program and its effects.
@Suite(.timeLimit(.minutes(2)))
struct QuitTests {
    private func withPlace(
        as file: String = "program",
        _ test: (BackgroundPlace, ScriptedServer, DaemonFaults, ProgramHandle) async throws -> Void
    ) async throws {
        let faults = try DaemonFaults()
        try await withScriptedServer(reply: { .ok($0.path).after(.gate("g")) }) { (server) async throws in
            try await withBackgroundPlace(daemonVariables: faults.environment(disk: "/nonexistent")) { (place) async throws in
                let program = try place.start("one", as: file)
                program.tell("session", "main")
                program.tell("session", "side")
                program.tell("download", "main", server.url("/a").absoluteString, "a")
                program.tell("download", "side", server.url("/b").absoluteString, "b", "begin=1000")
                try await program.line("ordered side.1")
                try await server.reached("g")
                try await test(place, server, faults, program)
                // Neither transfer continues, even if a program waits for it.
                server.open("g")
                let again = try place.start("again", as: file)
                again.tell("session", "main")
                again.tell("session", "side")
                try await again.line("completed main.1 -999 reason=0")
                try await again.line("completed side.1 -999 reason=0")
                #expect(server.requests.count == 1)
                #expect(!program.lines.contains { $0.hasPrefix("completed") })
                // Once the user has started the program again, the quit no longer applies.
                again.tell("download", "main", server.url("/c").absoluteString, "c")
                try await again.line("completed main.2 ok")
                try await again.leave()
            }
        }
    }

    @Test func `a confirmed quit is still one after a kill`() async throws {
        try await withPlace { (place, _, _, program) async throws in
            let manager = try place.manager()
            manager.tell("manage", "quit", place.bin.path + "/program")
            try await manager.line("quit ")
            place.killDaemon()
            try await program.ended()
            try await manager.kill()
        }
    }

    @Test func `a daemon that is killed before it has ended the program leaves that to the next one`() async throws {
        try await withPlace { (place, _, faults, program) async throws in
            try faults.dieAtKill()
            let manager = try place.manager()
            manager.tell("manage", "quit", place.bin.path + "/program")
            try await manager.line("refused quit ")
            // The program itself starts the next daemon, to get its sessions back.
            try await program.ended()
            try await manager.kill()
        }
    }

    /// The kernel truncates the name of the process in the middle of a character.
    @Test func `a process whose truncated name is not UTF-8 is ended`() async throws {
        let name = String(repeating: "a", count: 14) + "\u{e9}"
        try await withPlace(as: name) { (place, _, _, program) async throws in
            let manager = try place.manager()
            manager.tell("manage", "quit", place.bin.path + "/" + name)
            try await manager.line("quit ")
            try await program.ended()
            try await manager.kill()
        }
    }

    @Test func `a program is ended only after its quit is durable, and cannot order anything meanwhile`() async throws {
        let faults = try DaemonFaults()
        let state = "/tmp/bg-state-\(UUID().uuidString.prefix(8).lowercased())"
        defer { try? FileManager.default.removeItem(atPath: state) }
        var variables = faults.environment(disk: state)
        variables["XDG_STATE_HOME"] = state
        try await withScriptedServer(reply: { .ok($0.path).after(.gate("g")) }) { (server) async throws in
            try await withBackgroundPlace(daemonVariables: variables) { (place) async throws in
                let program = try place.start("one")
                program.tell("session", "main")
                program.tell("download", "main", server.url("/a").absoluteString, "a")
                try await server.reached("g")
                let watcher = try place.start("watcher", as: "urlsession")
                watcher.tell("watch")
                try await watcher.line("transfer main.1 running")
                try faults.fillDisk()
                let manager = try place.manager()
                manager.tell("manage", "quit", place.bin.path + "/program")
                var count = 0
                repeat {
                    watcher.tell("manage", "status")
                    count += 1
                } while try await !watcher.line("status", number: count - 1).contains("The disk ")
                #expect(try await manager.line("refused quit ").contains("The disk "))
                program.tell("tasks", "main")
                try await program.line("tasks main")
                program.tell("download", "main", server.url("/b").absoluteString, "b")
                try faults.emptyDisk()
                try await program.ended()
                place.killDaemon()
                server.open("g")
                let again = try place.start("again")
                again.tell("session", "main")
                try await again.line("completed main.1 -999 reason=0")
                again.tell("download", "main", server.url("/c").absoluteString, "c")
                try await again.line("completed main.2 ok")
                try await again.leave()
                #expect(server.requests.map(\.path) == ["/a", "/c"])
                try await manager.kill()
                try await watcher.kill()
            }
        }
    }
}
