// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

#if canImport(Glibc)
import Glibc
#endif

/// How one daemon is chosen, and how another replaces it.
@Suite(.timeLimit(.minutes(3)))
struct DaemonLifeTests {
    @Test func `programs that start daemons at the same time end up with one`() async throws {
        try await withScriptedServer(reply: { .ok($0.path) }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let programs = try (1...12).map { try place.start("racer\($0)", as: "racer\($0)") }
                for program in programs { try await program.line("started") }
                for program in programs { program.tell("session", "main") }
                for (number, program) in programs.enumerated() {
                    program.tell("download", "main", server.url("/\(number)").absoluteString, "f\(number)")
                }
                for (number, program) in programs.enumerated() {
                    try await program.line("completed main.1 ok")
                    #expect(try place.downloaded("f\(number)") == Array("/\(number)".utf8))
                }
                // The other daemons found that one was running, and exited.
                let log = try String(contentsOfFile: place.home.path + "/run/urlloading/urlsessiond.log", encoding: .utf8)
                #expect(log.components(separatedBy: " listens, ").count == 2, "\(log)")
                for program in programs { try await program.leave() }
            }
        }
    }

    @Test func `a daemon that replaces another takes over all transfers without loss`() async throws {
        let file = ScriptedFile(ScriptedFile.pattern(900_000))
        try await withScriptedServer(reply: { request in
            file.reply(to: request, cutAfter: request.header("Range") == nil ? 400_000 : nil, ending: .gate("never"))
        }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let program = try place.start("one")
                program.tell("session", "main")
                for number in 1...5 {
                    program.tell("download", "main", server.url("/\(number)").absoluteString, "f\(number)")
                    try await program.line("wrote main.\(number) 400000")
                }
                program.tell("download", "main", server.url("/later").absoluteString, "later", "begin=1000")
                try await program.line("ordered main.6")
                let old = place.daemons
                let said = Watched("")
                let daemon = try place.run([place.bin.path + "/urlsessiond", "--replace"]) { text in said.change { $0 += text } }
                try await said.value { $0.contains(" listens, with 6 transfers") ? () : nil }
                for number in 1...5 { try await program.line("completed main.\(number) ok") }
                for number in 1...5 { #expect(try place.downloaded("f\(number)") == file.content) }
                #expect(server.requests.count == 10)
                #expect(server.requests.suffix(5).allSatisfy { $0.header("Range") == "bytes=400000-" })
                #expect(old.count == 1 && !place.daemons.contains(old[0]))
                program.tell("tasks", "main")
                #expect(try await program.line("tasks main:").contains("[main.6 download later "))
                program.tell("cancel", "main.6")
                try await program.line("completed main.6 -999")
                try await program.leave()
                #expect(!program.lines.contains { $0.hasPrefix("invalid") })
                daemon.stop()
            }
        }
    }

    @Test func `a second daemon leaves the first one alone`() async throws {
        try await withScriptedServer(reply: { .ok($0.path).after(.gate("g")) }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let program = try place.start("one")
                program.tell("session", "main")
                program.tell("download", "main", server.url().absoluteString, "a")
                try await server.reached("g")
                let first = place.daemons
                #expect(try await place.startDaemon([]).end() == 0)
                #expect(place.daemons == first)
                server.open("g")
                try await program.line("completed main.1 ok")
                try await program.leave()
                #expect(server.requests.count == 1)
            }
        }
    }

    @Test func `a daemon that does not answer times out, and the session remains available`() async throws {
        try await withScriptedServer(reply: { .ok($0.path) }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let first = try place.start("first")
                first.tell("session", "main")
                try await first.line("session main")
                for process in place.daemons { kill(process, SIGSTOP) }
                first.tell("download", "main", server.url("/a").absoluteString, "a")
                let second = try place.start("second", as: "other")
                second.tell("session", "main")
                #expect(try await second.line("invalid main").hasPrefix("invalid main -997 {"))
                // An order that is not durable is not reported as accepted.
                #expect(!first.lines.contains { $0.hasPrefix("ordered") })
                for process in place.daemons { kill(process, SIGCONT) }
                try await first.line("completed main.1 ok")
                second.tell("session", "again", "identifier=main")
                second.tell("download", "again", server.url("/b").absoluteString, "b")
                try await second.line("completed again.1 ok")
                try await first.leave()
                try await second.leave()
                #expect(!first.lines.contains { $0.hasPrefix("invalid") })
            }
        }
    }

    @Test func `a terminated daemon is followed by another one`() async throws {
        let file = ScriptedFile(ScriptedFile.pattern(500_000))
        try await withScriptedServer(reply: { request in
            request.path == "/quick"
                ? .ok("quick")
                : file.reply(to: request, cutAfter: request.order == 0 ? 200_000 : nil, ending: .gate("never"))
        }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let program = try place.start("one")
                program.tell("session", "main")
                program.tell("download", "main", server.url("/long").absoluteString, "a")
                try await program.line("wrote main.1 200000")
                for number in 2...5 {
                    for process in place.daemons { kill(process, SIGTERM) }
                    program.tell("download", "main", server.url("/quick").absoluteString, "b")
                    try await program.line("completed main.\(number) ok")
                }
                try await program.line("completed main.1 ok")
                #expect(try place.downloaded("a") == file.content)
                // Nothing was received twice.
                #expect(server.requests.filter { $0.path == "/long" }.map { $0.header("Range") } == [nil, "bytes=200000-"])
                try await program.leave()
            }
        }
    }

    @Test func `a daemon whose folder was removed is found again, or replaced`() async throws {
        try await withScriptedServer(reply: { .ok($0.path) }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let program = try place.start("one")
                program.tell("session", "main")
                program.tell("download", "main", server.url("/a").absoluteString, "a", "begin=3")
                try await program.line("ordered main.1")
                try await program.leave()
                // The system removes the folder at the user's last logout.
                try FileManager.default.removeItem(at: place.home.appendingPathComponent("run/urlloading"))
                let again = try place.start("again")
                again.tell("session", "main")
                try await again.line("completed main.1 ok")
                #expect(place.daemons.count == 1)
                try await again.leave()
                #expect(server.requests.count == 1)
            }
        }
    }

    @Test func `a long log is started over`() async throws {
        try await withBackgroundPlace { (place) async throws in
            let folder = place.home.appendingPathComponent("run/urlloading")
            try FileManager.default.createDirectory(
                at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            let log = folder.appendingPathComponent("urlsessiond.log")
            try Data(count: 2 << 20).write(to: log)
            let program = try place.start("one")
            program.tell("session", "main")
            try await program.line("session main")
            let text = try String(contentsOf: log, encoding: .utf8)
            #expect(text.utf8.count < 4096 && text.contains("listens"))
            try await program.leave()
        }
    }

    @Test func `a daemon that exits leaves the socket of a service manager alone`() async throws {
        try await withScriptedServer(reply: { .ok($0.path) }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let program = try place.start("one")
                program.tell("session", "main")
                try await program.line("session main")
                let first = place.daemons
                let said = Watched("")
                let socket = place.home.path + "/run/urlloading/urlsessiond.socket"
                let daemon = try place.run(
                    ["/usr/bin/env", "python3", "-c", Self.activator, socket, place.bin.path + "/urlsessiond"]
                ) { text in said.change { $0 += text } }
                try await said.value { $0.contains("listening") ? () : nil }
                // Another program connects to the new socket, and the service manager starts the daemon that takes over.
                let other = try place.start("two", as: "other")
                other.tell("session", "main")
                other.tell("download", "main", server.url("/b").absoluteString, "b")
                try await other.line("completed main.1 ok")
                #expect(place.daemons.count == 1 && place.daemons != first)
                #expect(FileManager.default.fileExists(atPath: socket))
                program.tell("download", "main", server.url("/a").absoluteString, "a")
                try await program.line("completed main.1 ok")
                try await program.leave()
                try await other.leave()
                #expect(try await daemon.end() == 0)
            }
        }
    }

    /// A service manager that listens for the daemon and starts it on the first connection (sd_listen_fds(3)).
    static let activator = """
        import os, select, socket, sys
        path, program = sys.argv[1], sys.argv[2]
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        if os.path.exists(path): os.unlink(path)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        os.chmod(path, 0o600)
        listener.listen(16)
        if sys.argv[3:] == ["lost"]: os.unlink(path)
        if sys.argv[3:] == ["moved"]: os.rename(path, os.path.dirname(path) + "/first.socket")
        print("listening", flush=True)
        if sys.argv[3:] != ["lost"]: select.select([listener], [], [])
        if listener.fileno() != 3: os.dup2(listener.fileno(), 3)
        os.set_inheritable(3, True)
        os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
        os.execv(program, [program, "--idle-exit", "1" if sys.argv[3:] == [] else "3600"])
        """

    @Test func `a daemon whose socket lost its path to another one also listens at the path`() async throws {
        try await withScriptedServer(reply: { .ok($0.path) }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let socket = place.home.path + "/run/urlloading/urlsessiond.socket"
                let said = Watched("")
                let daemon = try place.run(
                    ["/usr/bin/env", "python3", "-c", Self.activator, socket, place.bin.path + "/urlsessiond", "lost"]
                ) { text in said.change { $0 += text } }
                try await said.value { $0.contains(" listens, ") ? () : nil }
                let running = place.daemons
                let program = try place.start("one")
                program.tell("session", "main")
                program.tell("download", "main", server.url("/a").absoluteString, "a")
                try await program.line("completed main.1 ok")
                #expect(place.daemons == running)
                try await program.leave()
                // The idle limit is long, because the program may take long to start.
                for process in running { kill(process, SIGTERM) }
                #expect(try await daemon.end() == 0)
                // The daemon removed its own socket.
                #expect(!FileManager.default.fileExists(atPath: socket))
            }
        }
    }

    @Test(arguments: [true, false])
    func `a daemon never replaces one of a newer version, not even if a service manager starts it`(isManaged: Bool) async throws {
        try await withBackgroundPlace { (place) async throws in
            let socket = place.home.path + "/run/urlloading/urlsessiond.socket"
            let said = Watched("")
            let hear: @Sendable (String) -> Void = { text in said.change { $0 += text } }
            let command = [place.bin.path + "/urlsessiond"]
            let manager = ["/usr/bin/env", "python3", "-c", Self.activator, socket] + command + ["moved"]
            let older = isManaged ? try place.run(manager, hear) : nil
            if isManaged { try await said.value { $0.contains("listening") ? () : nil } }
            let newer = try place.start("newer")
            newer.tell("session", "main")
            try await newer.line("session main")
            let running = place.daemons
            #expect(running.count == 1)
            // The lock files name the version of the daemon's protocol in their third line.
            for lock in ["run/urlloading", "state/urlloading/background"] {
                let file = place.home.appendingPathComponent(lock + "/urlsessiond.lock")
                var lines = try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n")
                try #require(lines.count == 4 && lines.last?.isEmpty == true)
                lines[2] = "1000"
                try Data(lines.joined(separator: "\n").utf8).write(to: file, options: [])
            }
            if let older {
                // A program that connects to the service manager's socket makes it start its daemon, which sends the program on.
                let client = try RawClient(place, socket: "first.socket")
                #expect(try await older.end() == 0)
                #expect(try await client.refusal() == "closed")
            } else {
                #expect(try await place.run(command + ["--replace"], hear).end() == 0)
            }
            #expect(place.daemons == running)
            newer.tell("tasks", "main")
            try await newer.line("tasks main:")
            try await newer.leave()
            #expect(!newer.lines.contains { $0.hasPrefix("invalid") })
        }
    }

    @Test func `a daemon started by a service manager uses its socket, and exits when idle`() async throws {
        try await withScriptedServer(reply: { .ok($0.path) }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let socket = place.home.path + "/run/urlloading/urlsessiond.socket"
                let said = Watched("")
                let daemon = try place.run(
                    ["/usr/bin/env", "python3", "-c", Self.activator, socket, place.bin.path + "/urlsessiond"]
                ) { text in said.change { $0 += text } }
                try await said.value { $0.contains("listening") ? () : nil }
                let program = try place.start("one")
                program.tell("session", "main")
                program.tell("download", "main", server.url("/a").absoluteString, "a")
                try await program.line("completed main.1 ok")
                #expect(place.daemons.count == 1)
                try await program.leave()
                #expect(try await daemon.end() == 0)
                // The output may arrive after the end.
                try await said.value { $0.contains("nobody needs it") ? () : nil }
                // The daemon leaves the socket in place, because it belongs to the service manager.
                #expect(FileManager.default.fileExists(atPath: socket))
                #expect(try place.downloaded("a") == Array("/a".utf8))
            }
        }
    }
}
