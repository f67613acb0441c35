// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// The programs of Examples/ do what they demonstrate.
///
/// The mocked session has separate tests.
@Suite(.timeLimit(.minutes(3)))
struct ExampleTests {
    @Test func `a download resumes after a lost connection, and shows its progress`() async throws {
        let folder = try TemporaryDirectory()
        let file = ScriptedFile(ScriptedFile.pattern(1_000_000))
        try await withScriptedServer(reply: { file.reply(to: $0, cutAfter: $0.order == 0 ? 500_000 : nil) }) { server in
            let outcome = try await ExampleProgram.run(
                "ResumableDownload", [server.url("/file").absoluteString, "file.bin"], in: folder)
            #expect(outcome.code == 0, "\(outcome.output)")
            let lines = outcome.output.split(separator: "\n")
            #expect(lines.contains("50 %"))
            #expect(lines.contains("resumed at 500000"))
            #expect(lines.suffix(2) == ["100 %", "done"])
            #expect(try await server.request(1).header("Range") == "bytes=500000-")
            #expect(try Array(Data(contentsOf: folder.file("file.bin"))) == file.content)
            #expect(try !folder.names.contains("file.bin.resume"))
        }
    }

    @Test func `an interrupted download resumes when it is run again`() async throws {
        let folder = try TemporaryDirectory()
        let file = ScriptedFile(ScriptedFile.pattern(1_000_000))
        try await withScriptedServer(reply: { file.reply(to: $0, cutAfter: $0.order < 5 ? 100_000 : nil) }) { server in
            let arguments = [server.url("/file").absoluteString, "file.bin"]
            let first = try await ExampleProgram.run("ResumableDownload", arguments, in: folder)
            #expect(first.code == 1, "\(first.output)")
            #expect(first.output.hasSuffix("run it again to resume\n"))
            #expect(try folder.names.contains("file.bin.resume"))
            let second = try await ExampleProgram.run("ResumableDownload", arguments, in: folder)
            #expect(second.code == 0, "\(second.output)")
            #expect(second.output.hasPrefix("resumed at 500000\n"))
            #expect(try Array(Data(contentsOf: folder.file("file.bin"))) == file.content)
        }
    }

    @Test func `a fan-out sends eight requests at a time, and returns results and failures in order`() async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { request in
            request.path == "/13" ? .status(500) : .ok(String(repeating: "a", count: Int(request.path.dropFirst()) ?? 0))
        }) { server in
            let urls = (0..<40).map { server.url("/\($0)").absoluteString }
            let outcome = try await ExampleProgram.run("FanOut", urls, in: folder)
            #expect(outcome.code == 0)
            let lines = outcome.output.split(separator: "\n")
            try #require(lines.count == 40, "\(outcome.output)")
            for (index, line) in lines.enumerated() {
                #expect(index == 13 ? line.hasPrefix("failed: ") : line == "\(index) bytes")
            }
            // Each request in flight has a connection, and connections are reused.
            #expect((1...8).contains(server.connectionCount))
        }
    }

    @Test func `a response is printed as its events arrive, and a refusal is an error`() async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { request in
            guard request.header("Authorization") == "Bearer key" else { return .status(401) }
            let events = ["Hel", "lo"].map { #"data: {"choices":[{"delta":{"content":"\#($0)"}}]}"# + "\n\n" }.joined()
            return .ok(": waiting\n\n" + events + "data: [DONE]\n\n", [("Content-Type", "text/event-stream")])
        }) { server in
            let arguments = [server.url("/v1/chat").absoluteString, "small", "Who?"]
            let answered = try await ExampleProgram.run("EventStream", arguments, in: folder, environment: ["API_KEY": "key"])
            #expect(answered.output == "Hello\n")
            #expect(answered.code == 0)
            let body = try #require(server.requests.first).body
            #expect(String(decoding: body, as: UTF8.self).contains(#""content":"Who?""#))
            let refused = try await ExampleProgram.run("EventStream", arguments, in: folder)
            #expect(refused.code == 1)
            #expect(refused.output.hasPrefix("failed: "))
        }
    }

    @Test func `the pinned key is accepted, and a server with another key gets no request`() async throws {
        let folder = try TemporaryDirectory()
        let certificates = try TestCertificates.shared.get()
        let trusted = try folder.write(Array(certificates.rootPEM.utf8), to: "root.pem")
        let pinned = try folder.write(try #require(certificates.valid.chain.first), to: "server.der")
        let other = try folder.write(Array(certificates.root), to: "other.der")
        try await withScriptedServer(identity: certificates.valid, reply: { _ in .ok("hello") }) { server in
            let environment = ["SSL_CERT_FILE": trusted.path]
            let address = server.url("/").absoluteString
            let refused = try await ExampleProgram.run("Pinning", [address, other.path], in: folder, environment: environment)
            #expect(refused.code == 1)
            #expect(refused.output == "the server has another key\n")
            #expect(server.requests.isEmpty)
            let accepted = try await ExampleProgram.run("Pinning", [address, pinned.path], in: folder, environment: environment)
            #expect(accepted.code == 0, "\(accepted.output)")
            #expect(accepted.output == "hello\n")
        }
    }

    // MARK: Background downloads

    /// A user with a home and a daemon that exist for one test.
    private func withUser(_ test: (TemporaryDirectory, [String: String]) async throws -> Void) async throws {
        // The path is short because paths of sockets are limited.
        let home = try TemporaryDirectory(in: URL(fileURLWithPath: "/tmp"))
        var environment = ["DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent"]
        for name in ["RUNTIME_DIR", "STATE_HOME", "DATA_HOME", "CACHE_HOME"] { environment["XDG_" + name] = home.path }
        defer {
            let mark = Data("=\(home.path)\0".utf8)
            for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? [] {
                guard let process = pid_t(name), process != getpid(),
                    FileManager.default.contents(atPath: "/proc/\(name)/environ")?.range(of: mark) != nil
                else { continue }
                kill(process, SIGKILL)
            }
        }
        try await test(home, environment)
    }

    @Test func `a background download continues in the next run of the program`() async throws {
        try await withUser { (home, environment) async throws in
            let replies: @Sendable (RecordedRequest) -> ScriptedReply = { request in
                request.path == "/quick.bin"
                    ? .ok("quick") : ScriptedReply([.gate(request.path)] + ScriptedReply.ok("slow").effects)
            }
            try await withScriptedServer(reply: replies) { (server) async throws in
                func run(_ arguments: String...) async throws -> ExampleProgram.Outcome {
                    try await ExampleProgram.run(
                        "BackgroundDownload", ["--to", home.path] + arguments, in: home, environment: environment)
                }
                let first = try await run(server.url("/quick.bin").absoluteString)
                #expect(first.code == 0)
                #expect(first.output == "started quick.bin\nsaved quick.bin, 5 bytes\nnothing is left to do\n")
                #expect(try String(contentsOf: home.file("quick.bin"), encoding: .utf8) == "quick")
                let second = try await run("--leave", server.url("/slow.bin").absoluteString)
                #expect(second.code == 0 && second.output == "started slow.bin\n", "\(second.output)")
                try await server.reached("/slow.bin")
                async let third = run(server.url("/next.bin").absoluteString)
                // When the server has this request, the program has its session.
                try await server.reached("/next.bin")
                server.open("/slow.bin")
                server.open("/next.bin")
                let outcome = try await third
                #expect(outcome.code == 0)
                let lines = outcome.output.split(separator: "\n").map(String.init)
                #expect(lines.prefix(2) == ["continuing slow.bin", "started next.bin"], "\(lines)")
                #expect(lines.contains("saved slow.bin, 4 bytes") && lines.contains("saved next.bin, 4 bytes"), "\(lines)")
                #expect(lines.last == "nothing is left to do")
                #expect(try String(contentsOf: home.file("slow.bin"), encoding: .utf8) == "slow")
            }
        }
    }

    @Test func `a background download is saved to a new folder, and an error page is not saved`()
        async throws
    {
        try await withUser { (home, environment) async throws in
            try await withScriptedServer(reply: { $0.path == "/a.bin" ? .ok("a") : .status(404, body: "not here") }) { server in
                let folder = home.path + "/new/deeper"
                let outcome = try await ExampleProgram.run(
                    "BackgroundDownload", ["--to", folder] + ["/a.bin", "/b.bin"].map { server.url($0).absoluteString }, in: home,
                    environment: environment)
                let lines = outcome.output.split(separator: "\n").map(String.init)
                #expect(lines.contains("saved a.bin, 1 bytes"), "\(lines)")
                #expect(lines.contains("failed b.bin: the server answered 404"), "\(lines)")
                #expect(!lines.contains { $0.hasPrefix("saved b.bin") }, "\(lines)")
                #expect(outcome.code == 1)
                #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["a.bin"])
            }
        }
    }

    @Test func `a file that cannot be saved stays with the daemon, and the next run saves it`() async throws {
        try await withUser { (home, environment) async throws in
            try await withScriptedServer(reply: { _ in .ok("content") }) { server in
                func run(_ arguments: String...) async throws -> ExampleProgram.Outcome {
                    try await ExampleProgram.run(
                        "BackgroundDownload", ["--to", home.path + "/to"] + arguments, in: home, environment: environment)
                }
                let obstacle = home.file("to/a.bin/full")
                try FileManager.default.createDirectory(at: obstacle, withIntermediateDirectories: true)
                let first = try await run(server.url("/a.bin").absoluteString)
                #expect(first.code == 1)
                #expect(first.output.contains("cannot save a.bin: ") && !first.output.contains("\nsaved"), "\(first.output)")
                // The obstacle belongs to the user, and must not be removed.
                #expect(FileManager.default.fileExists(atPath: obstacle.path))
                try FileManager.default.removeItem(at: home.file("to/a.bin"))
                // The daemon may have started the program before this run.
                let second = try await run()
                #expect(second.code == 0 && !second.output.contains("cannot save"), "\(second.output)")
                #expect(try String(contentsOf: home.file("to/a.bin"), encoding: .utf8) == "content")
                #expect(server.requests.count == 1)
            }
        }
    }

    @Test func `a folder that cannot be created is reported before anything is ordered`() async throws {
        try await withUser { (home, environment) async throws in
            try home.write([1], to: "file")
            try await withScriptedServer(reply: { _ in .ok("a") }) { server in
                let outcome = try await ExampleProgram.run(
                    "BackgroundDownload", ["--to", home.path + "/file/to", server.url("/a").absoluteString], in: home,
                    environment: environment)
                #expect(outcome.code == 1 && outcome.output.hasPrefix("cannot save into "), "\(outcome.output)")
                #expect(server.requests.isEmpty)
            }
        }
    }

    @Test(arguments: ["", "a/..", "a/%2E%2E", "..%2Fa"])
    func `a URL without a file name is still saved`(_ path: String) async throws {
        try await withUser { (home, environment) async throws in
            try await withScriptedServer(reply: { _ in .ok("a") }) { server in
                let folder = home.file("up/to")
                let outcome = try await ExampleProgram.run(
                    "BackgroundDownload", ["--to", folder.path, server.url().absoluteString + path], in: home,
                    environment: environment)
                #expect(outcome.code == 0, "\(outcome.output)")
                #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).count == 1, "\(outcome.output)")
                #expect(try FileManager.default.contentsOfDirectory(atPath: home.file("up").path) == ["to"])
            }
        }
    }

    @Test func `a background download fails with a message if there is no daemon`() async throws {
        try await withUser { (home, environment) async throws in
            let outcome = try await ExampleProgram.run(
                "BackgroundDownload", ["--to", home.path, "http://127.0.0.1:1/a"], in: home,
                environment: environment.merging(["URLSESSIOND": "/nonexistent/urlsessiond"]) { $1 })
            #expect(outcome.code == 1 && outcome.output.contains("failed a: "), "\(outcome.output)")
        }
    }
}
