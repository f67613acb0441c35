// SPDX-License-Identifier: Apache-2.0

import Foundation
import GRDB
import LoadingTestKit
import Testing

/// The daemon's list of transfers becomes malformed, or files that the daemon uses are removed.
@Suite(.timeLimit(.minutes(2)))
struct DamagedListTests {
    private func list(_ place: BackgroundPlace) -> URL {
        place.home.appendingPathComponent("state/urlloading/background/transfers.sqlite")
    }

    /// Overwrites bytes of a file in place, as a failing disk does.
    private func overwrite(_ file: URL, from start: Int, count: Int? = nil) throws {
        let handle = try FileHandle(forUpdating: file)
        let length = Int(try handle.seekToEnd())
        guard length > start else { return }
        try handle.seek(toOffset: UInt64(start))
        try handle.write(contentsOf: Data(repeating: 0x55, count: min(count ?? .max, length - start)))
        try handle.close()
    }

    /// Orders two downloads each for two programs, of which the other one leaves.
    private func orderAll(_ place: BackgroundPlace, _ server: ScriptedServer) async throws -> ProgramHandle {
        let other = try place.start("other", as: "other")
        other.tell("session", "other")
        let program = try place.start("one")
        program.tell("session", "main")
        for name in ["a", "b"] {
            other.tell("download", "other", server.url("/\(name)").absoluteString, name)
            program.tell("download", "main", server.url("/\(name)").absoluteString, name)
        }
        try await program.line("ordered main.2")
        try await other.line("ordered other.2")
        try await other.leave()
        try await server.reached("g", times: 4)
        return program
    }

    private func expectFailures(_ name: String, of program: ProgramHandle) async throws {
        for task in 1...2 {
            let line = try await program.line("completed \(name).\(task)")
            #expect(line.hasPrefix("completed \(name).\(task) -3001 {") && line.contains("was damaged"), "\(line)")
        }
    }

    private static func reply(_ request: RecordedRequest) -> ScriptedReply {
        switch request.path {
        case "/later": .ok(request.path).after(.gate("later"))
        case "/new": .ok(request.path)
        default: .ok(request.path).after(.gate("g"))
        }
    }

    @Test func `a list that is found malformed while it is open is set aside, and its tasks fail`() async throws {
        try await withScriptedServer(reply: { Self.reply($0) }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let program = try await orderAll(place, server)
                for name in ["", "-wal"] { try overwrite(URL(fileURLWithPath: list(place).path + name), from: 0) }
                program.tell("download", "main", server.url("/new").absoluteString, "c")
                try await expectFailures("main", of: program)
                // The order that met the damage either failed with the others, or was repeated.
                try await program.line("completed main.3 ")
                program.tell("download", "main", server.url("/new").absoluteString, "d")
                try await program.line("completed main.4 ok")
                // New orders are durable.
                program.tell("download", "main", server.url("/later").absoluteString, "e")
                try await program.line("ordered main.5")
                try await program.leave()
                place.killAll()
                server.open("later")
                let again = try place.start("again")
                again.tell("session", "main")
                try await again.line("completed main.5 ok")
                // A program that comes later is told, too.
                let other = try place.start("other again", as: "other")
                other.tell("session", "other")
                try await expectFailures("other", of: other)
                other.tell("tasks", "other")
                #expect(try await other.line("tasks other") == "tasks other: ")
                #expect(FileManager.default.fileExists(atPath: list(place).path + ".damaged"))
                try await again.leave()
                try await other.leave()
            }
        }
    }

    @Test func `a daemon that is told to end while it begins anew ends`() async throws {
        try await withScriptedServer(reply: { Self.reply($0) }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let said = Watched("")
                let daemon = try place.run([place.bin.path + "/urlsessiond"]) { text in said.change { $0 += text } }
                try await said.value { $0.contains(" listens, ") ? () : nil }
                let running = place.daemons
                let program = try await orderAll(place, server)
                let list = list(place).path
                for name in ["", "-wal"] { try overwrite(URL(fileURLWithPath: list + name), from: 0) }
                program.tell("download", "main", server.url("/new").absoluteString, "c")
                try await FileChanges.waitBelow(place.home) {
                    [".suspect", ".damaged"].contains { FileManager.default.fileExists(atPath: list + $0) }
                }
                for process in running { kill(process, SIGTERM) }
                #expect(try await daemon.end() == 0)
                try await program.leave()
            }
        }
    }

    @Test func `the tasks of a list that is malformed at the start fail`() async throws {
        try await withScriptedServer(reply: { Self.reply($0) }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                try await orderAll(place, server).leave()
                place.killAll()
                let queue = try DatabaseQueue(path: list(place).path)
                let root = try await queue.writeWithoutTransaction { database in
                    _ = try database.checkpoint(.truncate)
                    return try Int.fetchOne(database, sql: "SELECT rootpage FROM sqlite_master WHERE name = 'transfers'")
                }
                try queue.close()
                try overwrite(list(place), from: 4096 * (try #require(root) - 1), count: 4096)
                let program = try place.start("again")
                program.tell("session", "main")
                try await expectFailures("main", of: program)
                program.tell("download", "main", server.url("/new").absoluteString, "c")
                try await program.line("completed main.3 ok")
                let other = try place.start("other again", as: "other")
                other.tell("session", "other")
                try await expectFailures("other", of: other)
                try await program.leave()
                try await other.leave()
            }
        }
    }
}
