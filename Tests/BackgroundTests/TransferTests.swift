// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Single transfers: which settings reach the daemon, and how it handles failing servers and files.
@Suite(.timeLimit(.minutes(2)))
struct TransferTests {
    /// A program with a session `main`.
    private func withProgram(
        _ options: [String] = [], early: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply? = { _ in nil },
        reply: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply,
        _ test: (BackgroundPlace, ProgramHandle, ScriptedServer) async throws -> Void
    ) async throws {
        try await withScriptedServer(early: early, reply: reply) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let program = try place.start("one")
                program.tell(["session", "main"] + options)
                try await test(place, program, server)
                try await program.leave()
            }
        }
    }

    // MARK: Settings

    @Test func `redirects are followed without asking the delegate`() async throws {
        try await withProgram(reply: { request in
            switch request.path {
            case "/one": .redirect(302, to: "/two")
            case "/two": .redirect(307, to: "/three")
            default: .ok("\(request.method) \(request.bodyLength)")
            }
        }) { (place, program, server) async throws in
            program.tell("download", "main", server.url("/one").absoluteString, "a")
            #expect(try await program.line("completed main.1").hasPrefix("completed main.1 ok gone status=200 "))
            let file = try place.write("an upload".utf8, to: "upload")
            program.tell("upload", "main", server.url("/two").absoluteString, file.path)
            #expect(try await program.line("completed main.2").hasSuffix("url=/three"))
            #expect(program.lines.contains("data main.2 PUT 9"))
            #expect(!program.lines.contains { $0.hasPrefix("redirected") })
            #expect(server.requests.map(\.path) == ["/one", "/two", "/three", "/two", "/three"])
            #expect(try place.downloaded("a") == Array("GET 0".utf8))
        }
    }

    @Test func `header fields and cookies of the session and of the request are sent`() async throws {
        try await withProgram(
            ["header=X-Session:s", "cookie=sweet@127.0.0.1"],
            reply: { _ in
                .ok("content", [("Set-Cookie", "fresh=1; Max-Age=1000")])
            }
        ) { (place, program, server) async throws in
            program.tell("download", "main", server.url().absoluteString, "a", "header=X-Request:r")
            try await program.line("completed main.1 ok")
            #expect(server.requests[0].header("X-Session") == "s")
            #expect(server.requests[0].header("X-Request") == "r")
            #expect(server.requests[0].header("Cookie") == "taste=sweet")
            program.tell("download", "main", server.url().absoluteString, "b")
            try await program.line("completed main.2 ok")
            #expect(server.requests[1].header("Cookie")?.split(separator: "; ").sorted() == ["fresh=1", "taste=sweet"])
            // Cookies set by a server also reach the program's storage.
            program.tell("sync")
            try await program.line("synced")
            let later = try place.start("later")
            later.tell("cookies", server.url().absoluteString)
            #expect(try await later.line("cookies") == "cookies fresh=1 taste=sweet")
            try await later.kill()
        }
    }

    @Test func `a cookie that is not UTF-8 is sent back unchanged`() async throws {
        let value = Array("a=caf".utf8) + [0xE9]
        let rest = "; Max-Age=1000\r\nContent-Length: 2\r\n\r\nok"
        let answer = Array("HTTP/1.1 200 OK\r\nSet-Cookie: ".utf8) + value + Array(rest.utf8)
        try await withProgram(reply: { _ in [.write(answer)] }) { (place, program, server) async throws in
            for number in 1...2 {
                program.tell("download", "main", server.url().absoluteString, "\(number)")
                try await program.line("completed main.\(number) ok")
            }
            #expect(server.requests[1].octets(of: "Cookie") == [value])
            program.tell("sync")
            try await program.line("synced")
            let later = try place.start("later")
            later.tell("cookies", server.url().absoluteString)
            #expect(try await later.line("cookies") == "cookies a=caf\u{E9}")
            try await later.kill()
        }
    }

    @Test func `a running program receives challenges`() async throws {
        try await withProgram(
            ["delegate=credential"],
            reply: { request in
                request.header("Authorization") == "Basic YWRhOmxvdmVsYWNl"
                    ? .ok("secret") : .status(401, [("WWW-Authenticate", "Basic realm=\"tower\"")], body: "who?")
            }
        ) { (place, program, server) async throws in
            program.tell("download", "main", server.url().absoluteString, "a")
            try await program.line("completed main.1 ok gone status=200")
            #expect(program.lines.contains("challenged main.1 NSURLAuthenticationMethodHTTPBasic"))
            #expect(try place.downloaded("a") == Array("secret".utf8))
        }
    }

    @Test func `a delegate that chooses default handling for a challenge gets the 401 response`() async throws {
        try await withProgram(reply: { _ in .status(401, [("WWW-Authenticate", "Basic realm=\"tower\"")], body: "who?") }) {
            (place, program, server) async throws in
            program.tell("download", "main", server.url().absoluteString, "a")
            try await program.line("completed main.1 ok gone status=401")
            #expect(try place.downloaded("a") == Array("who?".utf8))
        }
    }

    @Test func `the session's proxy is used`() async throws {
        try await withScriptedServer(reply: { _ in .ok("by proxy") }) { (proxy) async throws in
            try await withProgram(["proxy=\(proxy.port)"], reply: { _ in .ok("direct") }) {
                (place, program, server) async throws in
                program.tell("download", "main", "http://127.0.0.1:\(server.port)/x", "a")
                try await program.line("completed main.1 ok")
                #expect(proxy.requests.map(\.target) == ["http://127.0.0.1:\(server.port)/x"])
                #expect(server.requests.isEmpty)
                #expect(try place.downloaded("a") == Array("by proxy".utf8))
            }
        }
    }

    @Test func `the session's limit on connections per host is observed`() async throws {
        try await withProgram(["connections=1"], reply: { _ in .ok("content").then(.reach("sent")) }) {
            (place, program, server) async throws in
            // While one task waits for the head of its response, no other request reaches the host.
            try await withScriptedServer(reply: { request in .ok("content").after(.gate(request.path)) }) { (slow) async throws in
                for number in 1...3 { program.tell("download", "main", slow.url("/\(number)").absoluteString) }
                try await slow.reached("/1")
                try await program.line("ordered main.3")
                let manager = try place.manager()
                manager.tell("manage", "list")
                #expect(
                    try await manager.line("list:")
                        == "list: [\"main.1 running\", \"main.2 waiting\", \"main.3 waiting\"]")
                try await manager.kill()
                for number in 1...3 { slow.open("/\(number)") }
                for number in 1...3 { try await program.line("completed main.\(number) ok") }
                #expect(slow.requests.map(\.path) == ["/1", "/2", "/3"])
            }
        }
    }

    @Test func `later changes to a task's description are kept until it has ended`() async throws {
        try await withProgram(reply: { _ in .ok("content").after(.gate("g")) }) { (place, program, server) async throws in
            program.tell("download", "main", server.url().absoluteString, "first")
            try await server.reached("g")
            program.tell("describe", "main.1", "second")
            try await program.line("did describe")
            program.tell("sync")
            try await program.line("synced")
            try await program.kill()
            let after = try place.start("after")
            after.tell("session", "main")
            after.tell("tasks", "main")
            #expect(try await after.line("tasks").contains("[main.1 download second "))
            server.open("g")
            try await after.line("completed main.1 ok")
            #expect(try place.downloaded("second") == Array("content".utf8))
            try await after.leave()
        }
    }

    // MARK: Failing servers

    @Test func `a download whose connection is lost resumes`() async throws {
        let file = ScriptedFile(ScriptedFile.pattern(500_000))
        try await withProgram(reply: { file.reply(to: $0, cutAfter: $0.order == 0 ? 200_000 : nil, ending: .reset) }) {
            (place, program, server) async throws in
            program.tell("download", "main", server.url().absoluteString, "a")
            try await program.line("completed main.1 ok")
            #expect(try place.downloaded("a") == file.content)
            #expect(server.requests.count == 2)
            #expect(program.lines.filter { $0.hasPrefix("finished") }.count == 1)
        }
    }

    @Test func `a download that is challenged halfway resumes`() async throws {
        let file = ScriptedFile(ScriptedFile.pattern(500_000))
        try await withProgram(
            ["delegate=credential"],
            reply: { request in
                if request.order == 0 { return file.reply(to: request, cutAfter: 200_000, ending: .reset) }
                guard request.header("Authorization") == "Basic YWRhOmxvdmVsYWNl" else {
                    return .status(401, [("WWW-Authenticate", "Basic realm=\"tower\"")], body: "who?")
                }
                return file.reply(to: request)
            }
        ) { (place, program, server) async throws in
            program.tell("download", "main", server.url().absoluteString, "a")
            try await program.line("completed main.1 ok gone status=206")
            #expect(program.lines.contains("challenged main.1 NSURLAuthenticationMethodHTTPBasic"))
            #expect(try place.downloaded("a") == file.content)
            let ranges = server.requests.map { $0.header("Range") }
            #expect(ranges.count == 3 && ranges[1]?.hasPrefix("bytes=") == true && ranges[1] == ranges[2], "\(ranges)")
        }
    }

    @Test func `a download that is refused halfway ends with the refusal, and is never mixed with it`() async throws {
        let file = ScriptedFile(ScriptedFile.pattern(500_000))
        try await withProgram(reply: { request in
            request.order == 0
                ? file.reply(to: request, cutAfter: 200_000, ending: .reset)
                : .status(401, [("WWW-Authenticate", "Basic realm=\"tower\"")], body: "who?")
        }) { (place, program, server) async throws in
            program.tell("download", "main", server.url().absoluteString, "a")
            try await program.line("completed main.1 ok gone status=401")
            #expect(try place.downloaded("a") == Array("who?".utf8))
        }
    }

    @Test(arguments: ["the rest with 200", "412"])
    func `a rest that the server sends as the whole is never taken for it`(answer: String) async throws {
        let file = ScriptedFile(ScriptedFile.pattern(500_000))
        try await withProgram(reply: { request in
            guard request.order > 0 else { return file.reply(to: request, cutAfter: 200_000, ending: .reset) }
            guard let range = request.header("Range"), let start = Int(range.dropFirst(6).dropLast()) else {
                return file.reply(to: request)
            }
            guard answer != "412" else { return .status(412, body: "failed") }
            let place = ("Content-Range", "bytes \(start)-499999/500000")
            return .ok(Array(file.content[start...]), [("ETag", "\"v1\""), place])
        }) { (place, program, server) async throws in
            program.tell("download", "main", server.url().absoluteString, "a")
            try await program.line("completed main.1 ok gone status=200")
            #expect(try place.downloaded("a") == file.content)
            #expect(server.requests.map { $0.header("Range") == nil } == [true, false, true])
        }
    }

    @Test func `transfers are retried until an unreachable proxy is back`() async throws {
        try await withScriptedServer(reply: { $0.order < 2 ? [.reset] : .ok("by proxy") }) { (proxy) async throws in
            try await withProgram(["proxy=\(proxy.port)"], reply: { _ in .ok("direct") }) {
                (place, program, server) async throws in
                program.tell("download", "main", "http://127.0.0.1:\(server.port)/x", "a")
                try await program.line("completed main.1 ok")
                #expect(try place.downloaded("a") == Array("by proxy".utf8))
                // No request bypasses the proxy.
                #expect(server.requests.isEmpty)
            }
        }
    }

    @Test func `a transfer that made no progress is retried`() async throws {
        try await withProgram(reply: { $0.order < 2 ? [.reset] : .ok("content") }) { (place, program, server) async throws in
            program.tell("download", "main", server.url().absoluteString, "a")
            try await program.line("completed main.1 ok")
            #expect(try place.downloaded("a") == Array("content".utf8))
        }
    }

    @Test func `a request that times out is sent again`() async throws {
        try await withProgram(["timeout=1"], reply: { $0.order == 0 ? [.stall] : .ok("content") }) {
            (_, program, server) async throws in
            program.tell("download", "main", server.url().absoluteString, "a")
            try await program.line("completed main.1 ok")
            #expect(server.requests.count == 2)
        }
    }

    @Test func `a response with Retry-After is retried`() async throws {
        try await withProgram(reply: { request in
            request.order == 0 ? .status(503, [("Retry-After", "1")], body: "later") : .ok("content")
        }) { (place, program, server) async throws in
            program.tell("download", "main", server.url().absoluteString, "a")
            try await program.line("completed main.1 ok gone status=200")
            #expect(try place.downloaded("a") == Array("content".utf8))
            let file = try place.write("an upload".utf8, to: "upload")
            program.tell("upload", "main", server.url().absoluteString, file.path)
            try await program.line("completed main.2 ok status=200")
            #expect(program.lines.filter { $0.hasPrefix("finished") }.count == 1)
        }
    }

    @Test(arguments: [429, 502, 503])
    func `a download whose server is temporarily unavailable halfway resumes`(status: Int) async throws {
        let file = ScriptedFile(ScriptedFile.pattern(500_000))
        try await withProgram(reply: { request in
            switch request.order {
            case 0: file.reply(to: request, cutAfter: 200_000, ending: .reset)
            case 1: .status(status, [("Retry-After", "0")], body: "later")
            default: file.reply(to: request)
            }
        }) { (place, program, server) async throws in
            program.tell("download", "main", server.url().absoluteString, "a")
            try await program.line("completed main.1 ok gone status=206")
            #expect(try place.downloaded("a").elementsEqual(file.content))
            let ranges = server.requests.map { $0.header("Range") }
            #expect(ranges.count == 3 && ranges[1]?.hasPrefix("bytes=") == true && ranges[1] == ranges[2], "\(ranges)")
        }
    }

    @Test func `a download that is permanently refused halfway leaves no file behind`() async throws {
        let file = ScriptedFile(ScriptedFile.pattern(500_000))
        try await withProgram(reply: { request in
            if request.path == "/other" { return .ok("other") }
            return request.order == 0 ? file.reply(to: request, cutAfter: 200_000, ending: .reset) : .status(403, body: "no")
        }) { (place, program, server) async throws in
            program.tell("download", "main", server.url().absoluteString, "a")
            try await program.line("completed main.1 ok gone status=403")
            #expect(try place.downloaded("a") == Array("no".utf8))
            program.tell("download", "main", server.url("/other").absoluteString, "b")
            try await program.line("finished main.2")
            // Only the other download may still have a file.
            let spooled = place.spooled.filter { $0.hasSuffix(".tmp") }
            #expect(spooled.count < 2, "\(spooled)")
            try await program.line("completed main.2 ok")
        }
    }

    @Test func `a server that keeps failing is retried after pauses whose limit doubles`() async throws {
        try await withProgram(reply: { request in
            request.order < 4 ? .status(503, body: "later, and this is no progress") : .ok("content")
        }) { (place, program, server) async throws in
            let manager = try place.manager()
            try await program.line("session main")
            manager.tell("watch")
            try await manager.line("watching")
            program.tell("download", "main", server.url().absoluteString, "a")
            try await program.line("completed main.1 ok gone status=200")
            try await manager.kill()
            // Each pause is random; its limit doubles. A manager that reads slowly sees some of the four pauses.
            let pause = /\(retry in (\d+) s after (\d+) attempts: the server responded with status 503\)$/
            let pauses = manager.lines.compactMap { $0.firstMatch(of: pause) }.map { (seconds: Int($0.1), attempts: Int($0.2)) }
            let attempts = pauses.compactMap(\.attempts)
            #expect(attempts == attempts.sorted() && 2...4 ~= attempts.last ?? 0, "\(manager.lines)")
            #expect(pauses.allSatisfy { 1...(1 << ($0.attempts ?? 0)) ~= $0.seconds ?? 0 }, "\(manager.lines)")
        }
    }

    @Test func `only the resource timeout ends a transfer`() async throws {
        try await withProgram(["timeout=1", "resource=4"], reply: { _ in [.stall] }) { (_, program, server) async throws in
            program.tell("download", "main", server.url().absoluteString, "a")
            let line = try await program.line("completed main.1")
            #expect(line.hasPrefix("completed main.1 -1001 {"), "\(line)")
            #expect(server.requests.count > 1)
        }
    }

    @Test func `an error response is a result`() async throws {
        try await withProgram(reply: { _ in .status(404, body: "no such") }) { (place, program, server) async throws in
            program.tell("download", "main", server.url().absoluteString, "a")
            try await program.line("completed main.1 ok gone status=404")
            #expect(try place.downloaded("a") == Array("no such".utf8))
        }
    }

    // MARK: Files to upload

    @Test func `an upload whose file was changed or removed before it was sent fails`() async throws {
        try await withProgram(reply: { _ in [.gate("g"), .reset] }) { (place, program, server) async throws in
            for name in ["changed", "removed"] {
                let file = try place.write("an upload".utf8, to: name)
                program.tell("upload", "main", server.url("/\(name)").absoluteString, file.path)
            }
            try await server.reached("g", times: 2)
            try place.write("another one".utf8, to: "changed")
            try FileManager.default.removeItem(at: place.home.appendingPathComponent("removed"))
            server.open("g")
            let changed = try await program.line("completed main.1")
            #expect(changed.hasPrefix("completed main.1 -3001 {") && changed.contains("changed"), "\(changed)")
            let removed = try await program.line("completed main.2")
            #expect(removed.hasPrefix("completed main.2 -1100 {"), "\(removed)")
            #expect(server.requests.count == 2)
        }
    }

    @Test func `an upload whose file changes while it is sent fails, whatever the response`() async throws {
        let early: @Sendable (RecordedRequest) -> ScriptedReply? = { _ in
            [
                .awaitBody(100_000), .stopReading, .gate("middle"), .startReading, .awaitRequestEnd,
                .write(ScriptedReply.head(200, [("Content-Length", "0")])),
            ]
        }
        try await withScriptedServer(early: early, reply: { _ in .ok() }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let file = try place.write(ScriptedFile.pattern(24_000_000, seed: 5), to: "upload")
                let program = try place.start("one")
                program.tell("session", "main")
                program.tell("upload", "main", server.url("/up").absoluteString, file.path)
                try await server.reached("middle")
                let handle = try FileHandle(forWritingTo: file)
                try handle.write(contentsOf: Data("another".utf8))
                try handle.close()
                server.open("middle")
                let line = try await program.line("completed main.1")
                #expect(line.hasPrefix("completed main.1 -3001 {") && line.contains("changed"), "\(line)")
                #expect(server.requests.count == 1)
                try await program.leave()
            }
        }
    }

    @Test func `an upload of a missing file fails at once`() async throws {
        try await withProgram(reply: { _ in .ok() }) { (_, program, server) async throws in
            program.tell("upload", "main", server.url().absoluteString, "/nonexistent/file")
            #expect(try await program.line("completed main.1").hasPrefix("completed main.1 -1100 {"))
            program.tell("upload", "main", server.url().absoluteString, "/etc")
            #expect(try await program.line("completed main.2").hasPrefix("completed main.2 -1101 {"))
            #expect(server.requests.isEmpty)
        }
    }

    // MARK: Commands of the program

    private static let file = ScriptedFile(ScriptedFile.pattern(600_000))

    /// The first response stalls after 250 000 bytes.
    private static func slowReply(_ request: RecordedRequest) -> ScriptedReply {
        file.reply(to: request, cutAfter: request.order == 0 ? 250_000 : nil, ending: .gate("never"))
    }

    @Test func `a canceled task ends, and leaves no files`() async throws {
        try await withProgram(reply: Self.slowReply) { (_, program, server) async throws in
            program.tell("download", "main", server.url().absoluteString, "a")
            try await program.line("wrote main.1 250000")
            program.tell("cancel", "main.1")
            #expect(try await program.line("completed main.1").hasPrefix("completed main.1 -999 {"))
            try await server.waitForAllClosed()
            #expect(!program.lines.contains { $0.hasPrefix("finished") })
        }
    }

    @Test func `a suspended task has no connection, and resumes`() async throws {
        try await withProgram(reply: Self.slowReply) { (place, program, server) async throws in
            program.tell("download", "main", server.url().absoluteString, "a")
            try await program.line("wrote main.1 250000")
            program.tell("suspend", "main.1")
            try await server.waitForAllClosed()
            program.tell("resume", "main.1")
            try await program.line("completed main.1 ok")
            #expect(server.requests[1].header("Range")?.hasPrefix("bytes=") == true)
            #expect(try place.downloaded("a") == Self.file.content)
        }
    }

    @Test func `a task that was suspended when its program died is still suspended in the next one`() async throws {
        try await withProgram(reply: Self.slowReply) { (place, program, server) async throws in
            program.tell("download", "main", server.url().absoluteString, "a")
            try await program.line("wrote main.1 250000")
            program.tell("suspend", "main.1")
            try await server.waitForAllClosed()
            try await program.kill()
            let after = try place.start("after")
            after.tell("session", "main")
            after.tell("tasks", "main")
            #expect(try await after.line("tasks").contains("[main.1 download a state=1 received=250000/600000 "))
            after.tell("resume", "main.1")
            try await after.line("completed main.1 ok")
            #expect(try place.downloaded("a") == Self.file.content)
            try await after.leave()
        }
    }

    @Test func `a task continues with the resume data of a canceled one`() async throws {
        try await withProgram(reply: Self.slowReply) { (place, program, server) async throws in
            program.tell("download", "main", server.url().absoluteString, "a")
            try await program.line("wrote main.1 250000")
            program.tell("produce", "main.1")
            #expect(try await program.line("produced main.1") == "produced main.1 data")
            #expect(try await program.line("completed main.1").hasPrefix("completed main.1 -999 resumable {"))
            program.tell("continue", "main", "b")
            try await program.line("completed main.2 ok")
            #expect(program.lines.contains("resumed main.2 250000/600000"))
            #expect(server.requests[1].header("Range") == "bytes=250000-")
            #expect(try place.downloaded("b") == Self.file.content)
        }
    }
}
