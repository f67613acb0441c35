// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Where received files are stored, and when transfers begin.
@Suite(.timeLimit(.minutes(2)))
struct SpoolTests {
    @Test func `a spool on a different file system than the program's works`() async throws {
        let spool = "/dev/shm/bg-\(UUID().uuidString.prefix(8).lowercased())"
        let file = ScriptedFile(ScriptedFile.pattern(400_000))
        // The folder also contains files that do not belong to the daemon.
        let files = FileManager.default
        try files.createDirectory(atPath: spool + "/1", withIntermediateDirectories: true)
        try files.createDirectory(atPath: spool + "/photos", withIntermediateDirectories: true)
        try files.createSymbolicLink(atPath: spool + "/link", withDestinationPath: spool + "/photos")
        for name in ["1/a", "photos/b"] { try Data("mine".utf8).write(to: URL(fileURLWithPath: "\(spool)/\(name)")) }
        try await withScriptedServer(reply: { file.reply(to: $0) }) { (server) async throws in
            try await withBackgroundPlace(daemonVariables: ["URLSESSIOND_SPOOL": spool]) { (place) async throws in
                var program = try place.start("one")
                program.tell("take", "die")
                program.tell("session", "main")
                program.tell("download", "main", server.url().absoluteString, "a")
                #expect(try await program.line("finished main.1").contains(" \(spool)/"))
                try await program.ended()
                program = try place.start("two")
                program.tell("session", "main")
                try await program.line("completed main.1 ok gone")
                try await program.leave()
                #expect(try place.downloaded("a") == file.content)
                #expect(server.requests.count == 1)
                #expect(files.fileExists(atPath: spool + "/1/a") && files.fileExists(atPath: spool + "/photos/b"))
            }
        }
    }

    @Test func `files of others in the daemon's folder are kept`() async throws {
        try await withScriptedServer(reply: { _ in .ok("content") }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let spool = place.home.appendingPathComponent("state/urlloading/background/spool")
                let files = FileManager.default
                let folder = place.home.appendingPathComponent("own")
                try files.createDirectory(at: folder, withIntermediateDirectories: true)
                try Data("mine".utf8).write(to: folder.appendingPathComponent("done-1"))
                for (name, mode) in [("state/urlloading", 0o700), ("state/urlloading/background", 0o700)] {
                    try files.createDirectory(
                        at: place.home.appendingPathComponent(name), withIntermediateDirectories: true,
                        attributes: [.posixPermissions: mode])
                }
                try files.createDirectory(
                    at: spool, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
                // The link has the name that the folder of a session would have.
                try files.createSymbolicLink(at: spool.appendingPathComponent("7"), withDestinationURL: folder)
                let program = try place.start("one")
                program.tell("session", "main")
                program.tell("download", "main", server.url().absoluteString, "a")
                try await program.line("completed main.1 ok")
                try await program.leave()
                #expect(files.fileExists(atPath: folder.appendingPathComponent("done-1").path))
            }
        }
    }

    @Test func `a file with the highest possible number in its name does not prevent orders`() async throws {
        try await withScriptedServer(reply: { .ok($0.target) }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let folder = place.home.appendingPathComponent("state/urlloading/background/spool/1")
                for url in [folder.deletingLastPathComponent().deletingLastPathComponent(), folder] {
                    try FileManager.default.createDirectory(
                        at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
                }
                try Data("mine".utf8).write(to: folder.appendingPathComponent("done-\(Int64.max)"))
                let program = try place.start("one")
                program.tell("session", "main")
                program.tell("tasks", "main")
                try await program.line("tasks main")
                let daemons = place.daemons
                for name in ["a", "b"] {
                    program.tell("download", "main", server.url("/\(name)").absoluteString, name)
                    try await program.line("completed main.\(name == "a" ? 1 : 2) ok")
                }
                try await program.leave()
                #expect(try place.downloaded("b") == Array("/b".utf8))
                #expect(place.daemons == daemons && daemons.count == 1)
            }
        }
    }

    private func withDelayed(
        _ query: String, seconds: Double = 1, _ test: (BackgroundPlace, ProgramHandle, ScriptedServer) async throws -> Void
    ) async throws {
        let begin = Date(timeIntervalSinceNow: seconds)
        try await withScriptedServer(reply: { request in
            struct Early: Error {}
            if Date() < begin { throw Early() }
            return .ok(request.target)
        }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let program = try place.start("one")
                program.tell("session", "main")
                program.tell("download", "main", server.url("/file\(query)").absoluteString, "a", "begin=\(seconds)")
                try await program.line("ordered main.1")
                try await test(place, program, server)
            }
        }
    }

    @Test func `a task begins no earlier than its date, after its delegate was asked`() async throws {
        try await withDelayed("") { (place, program, server) async throws in
            try await program.line("completed main.1 ok")
            try await program.leave()
            #expect(program.lines.filter { $0.hasPrefix("delayed") } == ["delayed main.1 /file"])
            #expect(try place.downloaded("a") == Array("/file".utf8))
        }
    }

    @Test func `a delegate replaces the request`() async throws {
        try await withDelayed("?replace") { (place, program, server) async throws in
            #expect(try await program.line("completed main.1 ok").hasSuffix("url=/other"))
            try await program.leave()
            #expect(server.requests.map(\.target) == ["/other"])
        }
    }

    @Test func `a delegate cancels the task`() async throws {
        try await withDelayed("?cancel") { (_, program, server) async throws in
            #expect(try await program.line("completed main.1").hasPrefix("completed main.1 -999 {"))
            try await program.leave()
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `a task begins at its date while its program is away`() async throws {
        try await withDelayed("", seconds: 5) { (place, program, server) async throws in
            try await program.leave()
            try await server.waitForRequests(1)
            let again = try place.start("again")
            again.tell("session", "main")
            try await again.line("completed main.1 ok")
            try await again.leave()
            #expect(!again.lines.contains { $0.hasPrefix("delayed") })
            #expect(try place.downloaded("a") == Array("/file".utf8))
        }
    }
}
