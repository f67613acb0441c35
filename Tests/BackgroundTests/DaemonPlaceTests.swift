// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import Foundation
import LoadingTestKit
import Testing

#if canImport(Glibc)
import Glibc
#endif

/// Programs of a user with different runtime folders, as under a login, cron and a service, share one daemon.
@Suite(.timeLimit(.minutes(2)))
struct DaemonPlaceTests {
    @Test func `programs with different runtime folders share the daemon of their home`() async throws {
        try await withScriptedServer(reply: { .ok($0.path).after(.gate($0.path)) }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let first = try place.start("first")
                first.tell("session", "main")
                first.tell("download", "main", server.url("/a").absoluteString, "a")
                try await server.reached("/a")
                let daemons = place.daemons
                let otherRuntimeEnvironment = try place.otherRuntimeEnvironment()
                let second = try place.start("second", as: "other", variables: otherRuntimeEnvironment)
                second.tell("session", "main")
                second.tell("download", "main", server.url("/b").absoluteString, "b")
                try await server.reached("/b")
                // The tool sees all transfers.
                let manager = try place.start("manager", as: "urlsession", variables: otherRuntimeEnvironment)
                manager.tell("manage", "list")
                #expect(try await manager.line("list: ") == #"list: ["main.1 running", "main.1 running"]"#)
                manager.tell("find")
                try await manager.line("found a daemon")
                server.open("/a")
                server.open("/b")
                try await first.line("completed main.1 ok")
                try await second.line("completed main.1 ok")
                #expect(place.daemons == daemons && daemons.count == 1)
                // After the daemon was killed, its note names a socket on which nothing listens.
                place.killDaemon()
                second.tell("download", "main", server.url("/b").absoluteString, "c")
                try await second.line("completed main.2 ok")
                first.tell("download", "main", server.url("/a").absoluteString, "d")
                try await first.line("completed main.2 ok")
                #expect(place.daemons.count == 1)
                for program in [first, second, manager] { try await program.leave() }
                #expect(!place.lines.contains { $0.contains(": invalid") })
            }
        }
    }

    @Test func `of daemons that begin at the same time in different runtime folders, one remains`() async throws {
        try await withScriptedServer(reply: { .ok($0.path) }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let otherRuntimeEnvironment = try place.otherRuntimeEnvironment()
                let programs = try (1...8).map { number in
                    try place.start(
                        "racer\(number)", as: "racer\(number)", variables: number % 2 == 0 ? otherRuntimeEnvironment : [:])
                }
                for program in programs { try await program.line("started") }
                for program in programs { program.tell("session", "main") }
                for (number, program) in programs.enumerated() {
                    program.tell("download", "main", server.url("/\(number)").absoluteString, "f\(number)")
                }
                for program in programs { try await program.line("completed main.1 ok") }
                #expect(place.daemons.count == 1)
                let logs = ["run", "run2"].map { place.home.path + "/\($0)/urlloading/urlsessiond.log" }
                let text = try logs.map { try String(contentsOfFile: $0, encoding: .utf8) }.joined()
                #expect(text.components(separatedBy: " listens, ").count == 2 && !text.contains("is to end"), "\(text)")
                for program in programs { try await program.leave() }
                #expect(server.requests.count == 8)
            }
        }
    }

    // MARK: Untrusted notes

    private func noted(_ make: (String) throws -> Void) throws -> String? {
        let folder = try TemporaryDirectory()
        try make(DaemonPlace.note(in: folder.path))
        return DaemonPlace.notedSocket(in: folder.path)
    }

    private func write(_ text: String, _ mode: mode_t = 0o600) -> (String) throws -> Void {
        { path in
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
            chmod(path, mode)
        }
    }

    @Test func `the note of the daemon's socket is ignored unless the daemon can have written it`() throws {
        #expect(try noted(write("/run/user/7/urlloading/urlsessiond.socket")) == "/run/user/7/urlloading/urlsessiond.socket")
        #expect(try noted { _ in } == nil)
        for text in ["", "relative/path", "/a\0b", "/a\nb", "/" + String(repeating: "x", count: 107)] {
            #expect(try noted(write(text)) == nil, "\(text)")
        }
        for mode: mode_t in [0o620, 0o602] { #expect(try noted(write("/a", mode)) == nil) }
        #expect(
            try noted { path in
                try write("/a")(path + ".other")
                symlink(path + ".other", path)
            } == nil)
        // Reading a pipe instead of the note must not block.
        #expect(try noted { mkfifo($0, 0o600) } == nil)
        #expect(try noted { mkdir($0, 0o700) } == nil)
        guard geteuid() == 0 else { return }
        #expect(
            try noted { path in
                try write("/a")(path)
                chown(path, 65534, 65534)
            } == nil)
    }

    // MARK: Leftovers

    @Test func `files that killed processes left next to the socket and the state are removed`() async throws {
        try await withBackgroundPlace { (place) async throws in
            let folders = ["run/urlloading", "state/urlloading/background"].map { place.home.path + "/" + $0 }
            for folder in folders {
                try FileManager.default.createDirectory(
                    atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            }
            // No process can have this number (PID_MAX_LIMIT).
            let (dead, living) = (4_194_305, getpid())
            let left = ["urlsessiond.socket.\(dead)", "lost-1a.\(dead)", "events-1a.\(dead)", "urlsessiond.place.\(dead)"]
            let kept = [
                "urlsessiond.socket.\(living)", "lost-1a.\(living)", "events-2b", "lost-2b", "note.\(dead)", "lost-2b.txt",
            ]
            let old = [".dat.nosync1A.x", "events-3c"]
            for folder in folders {
                for name in left + kept + old { try Data().write(to: URL(fileURLWithPath: folder + "/" + name)) }
                for name in old {
                    try FileManager.default.setAttributes(
                        [.modificationDate: Date(timeIntervalSinceNow: -7200)], ofItemAtPath: folder + "/" + name)
                }
            }
            let program = try place.start("one")
            program.tell("session", "main")
            try await program.line("session main")
            let manager = try place.manager()
            manager.tell("manage", "status")
            try await manager.line("status")
            for folder in folders {
                let names = try Set(FileManager.default.contentsOfDirectory(atPath: folder))
                #expect(names.isDisjoint(with: left + old) && names.isSuperset(of: kept), "\(names.sorted())")
            }
            try await program.leave()
        }
    }
}
