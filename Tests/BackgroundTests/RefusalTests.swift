// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// What background sessions do not support fails at once with a reason.
@Suite(.timeLimit(.minutes(2)))
struct RefusalTests {
    private func withProgram(
        _ options: String..., variables: [String: String] = [:], requests: Int = 0,
        _ test: (ProgramHandle, ScriptedServer) async throws -> Void
    ) async throws {
        try await withScriptedServer(reply: { _ in .ok("content") }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let program = try place.start("one", variables: variables)
                program.tell(["session", "main"] + options)
                try await test(program, server)
                #expect(server.requests.count == requests)
            }
        }
    }

    // MARK: Tasks

    @Test(arguments: [
        ("uploadData", "background sessions can only upload files"),
        ("uploadStream", "background sessions can only upload files"), ("taskDelegate", "task-specific delegates"),
        ("dataDelegate", "task-specific delegates"),
    ])
    func `an unsupported task with a delegate fails with a reason`(kind: String, reason: String) async throws {
        try await withProgram { (program, server) async throws in
            program.tell("wrong", kind, "main", server.url().absoluteString)
            let line = try await program.line("completed ")
            #expect(line.contains(".1 -1 {") && line.contains(reason), "\(line)")
            try await program.leave()
        }
    }

    @Test(arguments: ["dataHandler", "handler", "uploadHandler", "async", "asyncDownload"])
    func `an unsupported task with a completion handler or an async method fails with a reason`(kind: String) async throws {
        try await withProgram { (program, server) async throws in
            program.tell("wrong", kind, "main", server.url().absoluteString)
            let line = try await program.line("failed ")
            #expect(line.hasPrefix("failed \(kind) -1 {") && line.contains("completion handlers or async methods"), "\(line)")
            try await program.leave()
        }
    }

    @Test func `a stream task fails, and so do its reads`() async throws {
        try await withProgram { (program, server) async throws in
            program.tell("wrong", "stream", "main", server.url().absoluteString)
            let read = try await program.line("failed stream ")
            #expect(read.hasPrefix("failed stream -1002 {"), "\(read)")
            let line = try await program.line("completed ")
            #expect(line.contains(".1 -1002 {"), "\(line)")
            #expect(server.connectionCount == 0)
            try await program.leave()
        }
    }

    @Test(arguments: ["file:///etc/hostname", "ftp://127.0.0.1/", "data:,text"])
    func `only http and https are loaded`(url: String) async throws {
        try await withProgram { (program, _) async throws in
            program.tell("wrong", "download", "main", url)
            #expect(try await program.line("completed ").hasPrefix("completed main.1 -1002 {"))
            try await program.leave()
        }
    }

    @Test func `the tasks of a session with classes of URLProtocol fail`() async throws {
        try await withProgram("protocols=1") { (program, server) async throws in
            program.tell("download", "main", server.url().absoluteString)
            let line = try await program.line("completed ")
            #expect(line.hasPrefix("completed main.1 -1 {") && line.contains("URLProtocol"), "\(line)")
            try await program.leave()
        }
    }

    @Test func `the tasks of a session without a delegate fail`() async throws {
        try await withProgram("delegate=none") { (program, server) async throws in
            program.tell("wrong", "silent", "main", server.url().absoluteString)
            let line = try await program.line("failed ")
            #expect(line.hasPrefix("failed silent -1 {") && line.contains("needs a delegate"), "\(line)")
            try await program.leave()
        }
    }

    // MARK: Sessions

    @Test(arguments: ["empty", "long", "zero"])
    func `an invalid identifier is refused`(kind: String) async throws {
        let identifier = ["empty": "", "long": String(repeating: "x", count: 1025)][kind] ?? "nul\u{0}"
        try await withProgram("identifier=\(identifier)") { (program, server) async throws in
            let line = try await program.line("invalid main")
            #expect(line.hasPrefix("invalid main -1 {") && line.contains("identifier"), "\(line)")
            program.tell("wrong", "silent", "main", server.url().absoluteString)
            let failure = try await program.line("failed silent")
            #expect(failure.hasPrefix("failed silent -1 {") && failure.contains("identifier"), "\(failure)")
            try await program.leave()
        }
    }

    @Test func `a shared container without a name is refused`() async throws {
        try await withProgram("container=") { (program, _) async throws in
            #expect(try await program.line("invalid main").hasPrefix("invalid main -995 {"))
            try await program.leave()
        }
        try await withProgram("container=group.org.example", requests: 1) { (program, server) async throws in
            program.tell("download", "main", server.url().absoluteString)
            try await program.line("completed main.1 ok")
            try await program.leave()
        }
    }

    @Test func `a second session with the same identifier in a process is refused, and the first continues`() async throws {
        try await withProgram(requests: 1) { (program, server) async throws in
            program.tell("session", "second", "identifier=main")
            #expect(try await program.line("invalid second").hasPrefix("invalid second -996 {"))
            program.tell("wrong", "silent", "second", server.url().absoluteString)
            let line = try await program.line("failed silent")
            #expect(line.hasPrefix("failed silent -996 {"), "\(line)")
            program.tell("download", "main", server.url().absoluteString)
            try await program.line("completed main.1 ok")
            try await program.leave()
            #expect(!program.lines.contains { $0.hasPrefix("invalid main") })
        }
    }

    @Test func `an identifier is in use by one process at a time, and is free when that process is gone`() async throws {
        try await withScriptedServer(reply: { _ in .ok("content") }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let first = try place.start("first")
                first.tell("session", "main")
                try await first.line("session main")
                let second = try place.start("second")
                second.tell("session", "main")
                #expect(try await second.line("invalid main").hasPrefix("invalid main -996 {"))
                second.tell("session", "other")
                second.tell("download", "other", server.url().absoluteString)
                try await second.line("completed other.1 ok")
                try await first.kill()
                second.tell("session", "again", "identifier=main")
                second.tell("download", "again", server.url().absoluteString)
                try await second.line("completed again.1 ok")
                try await second.leave()
            }
        }
    }

    @Test func `an invalidated session makes its identifier available`() async throws {
        try await withProgram(requests: 1) { (program, server) async throws in
            program.tell("invalidate", "main")
            #expect(try await program.line("invalid main") == "invalid main ok")
            program.tell("session", "again", "identifier=main")
            program.tell("download", "again", server.url().absoluteString)
            try await program.line("completed again.1 ok")
            program.tell("finish", "again")
            #expect(try await program.line("invalid again") == "invalid again ok")
            try await program.leave()
        }
    }

    @Test func `without a daemon a session is disconnected with the reason`() async throws {
        try await withProgram(variables: ["URLSESSIOND": "/nonexistent/urlsessiond"]) { (program, server) async throws in
            let line = try await program.line("invalid main")
            #expect(line.hasPrefix("invalid main -997 {") && line.contains("/nonexistent/urlsessiond"), "\(line)")
            program.tell("wrong", "silent", "main", server.url().absoluteString)
            let failure = try await program.line("failed silent")
            #expect(failure.hasPrefix("failed silent -997 {"), "\(failure)")
            program.tell("wrong", "silentData", "main", server.url().absoluteString)
            #expect(try await program.line("failed silentData").hasPrefix("failed silentData -997 {"))
            try await program.leave()
        }
    }

    @Test func `losing the daemon for good disconnects the session and its tasks`() async throws {
        try await withScriptedServer(reply: { _ in .raw("").then(.gate("never")) }) { (server) async throws in
            try await withBackgroundPlace(leaves: nil) { (place) async throws in
                let program = try place.start("one")
                program.tell("session", "main")
                program.tell("download", "main", server.url().absoluteString)
                try await server.reached("never")
                try place.removeDaemon()
                place.killDaemon()
                #expect(try await program.line("completed main.1").hasPrefix("completed main.1 -997 {"))
                #expect(try await program.line("invalid main").hasPrefix("invalid main -997 {"))
                try await program.leave()
            }
        }
    }
}
