// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

#if canImport(Glibc)
import Glibc
#endif

extension BackgroundPlace {
    /// Writes a script, in another process, because a new child process may inherit a file that this process has open for
    /// writing.
    @discardableResult
    func script(_ text: String, as name: String) throws -> String {
        let path = home.path + "/" + name
        try ServerProcess.run(
            ServerProcess.Command(
                ["/bin/sh", "-c", "printf '%s\\n' \"$1\" > \"$2\" && chmod 755 \"$2\"", "sh", "#!/bin/sh\n\(text)", path],
                output: .nothing))
        return path
    }

    /// The daemons started by `counting`.
    fileprivate var counted: ProgramHandle { ProgramHandle(label: "counted", process: nil, orders: -1, journal: journal) }

    /// A script that programs start instead of the daemon; it writes a line, and then executes the daemon.
    fileprivate func counting() throws -> [String: String] {
        let text = "printf 'counted\\tstarted\\n' > '\(home.path)/journal'\nexec '\(bin.path)/urlsessiond' \"$@\""
        return ["URLSESSIOND": try script(text, as: "counting")]
    }

    /// Takes the lock that a daemon holds for its lifetime; closing the descriptor releases it.
    fileprivate func lock() throws -> CInt {
        let folder = home.path + "/run/urlloading"
        mkdir(folder, 0o700)
        let descriptor = open(folder + "/urlsessiond.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0, flock(descriptor, LOCK_EX) == 0 else { throw PlaceFailure("lock: errno \(errno)") }
        return descriptor
    }
}

/// Daemons that start late, or start again after programs have given up on them.
@Suite(.timeLimit(.minutes(2)))
struct ComebackTests {
    @Test func `a program retries while an old daemon is still exiting`() async throws {
        try await withScriptedServer(reply: { .ok($0.path) }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let lock = try place.lock()
                let program = try place.start("one", variables: try place.counting())
                program.tell("session", "main")
                // Each daemon exits after a while because the test holds the lock; the program then starts the next one.
                try await place.counted.line("started", number: 1)
                close(lock)
                program.tell("download", "main", server.url("/a").absoluteString, "a")
                try await program.line("completed main.1 ok")
                try await program.leave()
                #expect(!program.lines.contains { $0.hasPrefix("invalid") })
            }
        }
    }

    @Test(arguments: ["same", "next", "elsewhere"])
    func `a task that failed for lack of a daemon is also removed from the returning daemon`(life: String) async throws {
        try await withScriptedServer(reply: { $0.path == "/lost" ? .raw("").then(.gate("never")) : .ok($0.path) }) {
            (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let first = try place.start("one")
                first.tell("session", "main")
                first.tell("download", "main", server.url("/lost").absoluteString, "lost")
                // Until the order `take move`, a finished download would block the delegate.
                first.tell("take", "block")
                try await server.reached("never")
                try place.removeDaemon()
                place.killDaemon()
                #expect(try await first.line("completed main.1").hasPrefix("completed main.1 -997 {"))
                #expect(try await first.line("invalid main").hasPrefix("invalid main -997 {"))
                try place.bringDaemon()
                var program = first
                if life != "same" {
                    try await first.leave()
                    // The second program may have a different runtime folder.
                    program = try place.start("two", variables: life == "elsewhere" ? try place.otherRuntimeEnvironment() : [:])
                }
                program.tell("take", "move")
                program.tell("session", "again", "identifier=main")
                program.tell("tasks", "again")
                #expect(try await program.line("tasks again:") == "tasks again: ")
                program.tell("download", "again", server.url("/a").absoluteString, "a")
                try await program.line("completed again.2 ok")
                try await program.leave()
                #expect(!program.lines.contains { $0.hasPrefix("completed again.1") })
            }
        }
    }

    @Test func `a returning program learns the progress of a download of any length`() async throws {
        try await withScriptedServer(reply: { _ in
            [.write(ScriptedReply.head(200, [("Content-Length", "\(Int64.max)")])), .write("some"), .gate("end"), .close]
        }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                for label in ["one", "two"] {
                    let program = try place.start(label)
                    program.tell("session", "main")
                    if label == "one" {
                        program.tell("download", "main", server.url("/download").absoluteString, "a", "body=10")
                        try await server.reached("end")
                    }
                    // Counts are sent ten times a second.
                    for number in 0... {
                        program.tell("tasks", "main")
                        let line = try await program.line("tasks main:", number: number)
                        if line.contains("/\(Int64.max) expects=") { break }
                    }
                    try await program.leave()
                }
            }
        }
    }

    @Test func `the daemon's status is available as text and as JSON`() async throws {
        try await withScriptedServer(reply: { .ok($0.path).after(.gate("g")) }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                func status(_ arguments: String...) async throws -> (code: Int32, text: String) {
                    let said = Watched((text: "", isOver: false))
                    let process = try place.run([place.bin.path + "/urlsessiond", "status"] + arguments) { text in
                        said.change { $0 = ($0.text + text, text.isEmpty) }
                    }
                    let code = try await process.end()
                    return (code, try await said.value { $0.isOver ? $0.text : nil })
                }
                #expect(try await status().code == 1)
                let program = try place.start("one")
                program.tell("session", "main")
                program.tell("download", "main", server.url("/a").absoluteString, "a")
                program.tell("download", "main", server.url("/b").absoluteString, "b", "begin=1000")
                try await program.line("ordered main.2")
                try await server.reached("g")
                let words = try await status()
                #expect(words.code == 0 && words.text.contains("1 running, 1 waiting, 0 paused, 0 ended"), "\(words.text)")
                #expect(words.text.contains("listens at   \(place.home.path)/run/urlloading/urlsessiond.socket"))
                struct Status: Decodable {
                    var process: Int32
                    var running, waiting, sessions: Int
                    var trouble: [String]
                }
                let form = try JSONDecoder().decode(Status.self, from: Data(try await status("--json").text.utf8))
                #expect(form.running == 1 && form.waiting == 1 && form.sessions == 1 && form.trouble.isEmpty)
                #expect([form.process] == place.daemons)
                server.open("g")
                program.tell("cancel", "main.2")
                try await program.line("completed main.1 ok")
                try await program.line("completed main.2 -999")
                try await program.leave()
            }
        }
    }
}
