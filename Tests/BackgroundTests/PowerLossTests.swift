// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import SeededNumbers
import Testing

/// Loss of power while, and after, programs receive their downloads.
@Suite(.timeLimit(.minutes(4)))
struct PowerLossTests {
    private func withDisk(
        _ test: (BackgroundPlace, ScriptedServer, ForgetfulDisk, [String: String]) async throws -> Void
    ) async throws {
        let disk = try ForgetfulDisk()
        let folder = "/tmp/bg-power-\(UUID().uuidString.prefix(8).lowercased())"
        try FileManager.default.createDirectory(atPath: folder + "/out", withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var variables = disk.environment(disk: folder)
        // The spool is on the disk that programs move their files to.
        variables["URLSESSIOND_SPOOL"] = folder
        let daemons = variables
        variables[ProgramScript.folderKey] = folder + "/out"
        let programs = variables
        try await withScriptedServer(reply: { .ok($0.path) }) { server in
            try await withBackgroundPlace(daemonVariables: daemons, leaves: nil) { place in
                try await test(place, server, disk, programs)
            }
        }
    }

    private func file(_ name: String, _ variables: [String: String]) throws -> String {
        let folder = try #require(variables[ProgramScript.folderKey])
        return try String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8)
    }

    @Test func `a file survives a loss of power once the daemon no longer reports the end of its transfer`() async throws {
        try await withDisk { (place, server, disk, variables) async throws in
            let program = try place.start("one", variables: variables)
            program.tell("session", "main")
            program.tell("download", "main", server.url("/a").absoluteString, "a")
            try await program.line("completed main.1 ok")
            // When the program has left, the daemon has processed all messages of the program.
            try await program.leave()
            place.killAll()
            try #expect(disk.losePower() > 0)
            let again = try place.start("again", variables: variables)
            again.tell("session", "main")
            again.tell("tasks", "main")
            #expect(try await again.line("tasks main") == "tasks main: ")
            #expect(try file("a", variables) == "/a")
            #expect(server.requests.count == 1)
            try await again.leave()
        }
    }

    @Test func `after a loss of power at any moment, a file is in place or the end of its transfer is told again`() async throws {
        let seed = UInt64.random(in: 0...(.max))
        var numbers = SeededNumbers(seed: seed)
        let losses = Int(ProcessInfo.processInfo.environment["POWER_LOSSES"] ?? "") ?? 6
        let names = 3
        try await withDisk { (place, server, disk, variables) async throws in
            for life in 0..<losses {
                let program = try place.start("life\(life)", variables: variables)
                program.tell("session", "main")
                try await program.line("session main")
                for name in 0..<names {
                    program.tell("download", "main", server.url("/\(life).\(name)").absoluteString, "\(life).\(name)")
                }
                for name in 0..<names { try await program.line("ordered main.\(life * names + name + 1)") }
                let count = Int.random(in: 0...names, using: &numbers)
                _ = try await place.journal.lines.value { lines in
                    lines.count { $0.label == "life\(life)" && $0.text.hasPrefix("completed") } >= count ? () : nil
                }
                place.killAll()
                try disk.losePower()
            }
            let last = try place.start("last", variables: variables)
            last.tell("session", "main")
            try await last.line("session main")
            last.tell("download", "main", server.url("/last").absoluteString, "last")
            for number in 1...(losses * names) {
                let name = "\((number - 1) / names).\((number - 1) % names)"
                // Either the end is told now, or it was told before the loss of power and the file is in its place.
                if (try? file(name, variables)) == nil { try await last.line("completed main.\(number) ok") }
                #expect(try file(name, variables) == "/\(name)", "seed \(seed)")
            }
            try await last.line("completed main.\(losses * names + 1) ok")
            try await last.leave()
        }
    }
}
