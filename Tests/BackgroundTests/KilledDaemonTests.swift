// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Transfers continue in the next daemon when their daemon is killed.
@Suite(.timeLimit(.minutes(3)))
struct KilledDaemonTests {
    private static let content = ScriptedFile.pattern(3_000_000, seed: 3)

    /// The first response stops after 2 000 000 bytes until the gate `never` opens; later ones are complete.
    private func reply(_ file: ScriptedFile, _ later: ScriptedFile, _ request: RecordedRequest) -> ScriptedReply {
        request.order == 0 ? file.reply(to: request, cutAfter: 2_000_000, ending: .gate("never")) : later.reply(to: request)
    }

    private func withDownload(
        _ file: ScriptedFile, later: ScriptedFile, programStays: Bool,
        _ test: (BackgroundPlace, ScriptedServer) async throws -> Void
    ) async throws {
        try await withScriptedServer(reply: { request in reply(file, later, request) }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                var program = try place.start("before")
                program.tell("session", "main")
                program.tell("download", "main", server.url("/file").absoluteString, "a")
                try await program.line("wrote main.1 2000000/3000000")
                if !programStays { try await program.leave() }
                place.killDaemon()
                if !programStays {
                    program = try place.start("after")
                    program.tell("session", "main")
                }
                try await program.line("completed main.1 ok gone")
                try await program.leave()
                #expect(program.lines.filter { $0.hasPrefix("finished") }.count == 1)
                #expect(!program.lines.contains { $0.hasPrefix("invalid") })
                #expect(try place.downloaded("a") == later.content)
                try await test(place, server)
            }
        }
    }

    @Test(arguments: [true, false])
    func `a download with a strong validator resumes`(programStays: Bool) async throws {
        let file = ScriptedFile(Self.content, entityTag: "\"v1\"")
        try await withDownload(file, later: file, programStays: programStays) { _, server in
            #expect(server.requests.count == 2)
            // The last bytes that were received may be missing from the disk.
            let start = try #require(server.requests[1].header("Range")?.firstMatch(of: /^bytes=(\d+)-$/)?.1)
            #expect(Int(start).map { 1...2_000_000 ~= $0 } == true)
            #expect(server.requests[1].header("If-Range") == "\"v1\"")
        }
    }

    @Test(arguments: [true, false]) func `a download that was complete is reported with its original response`(
        hasValidator: Bool
    ) async throws {
        let fields = [("ETag", "\"v1\""), ("Content-Disposition", "attachment; filename=named")]
        let length = String(Self.content.count, radix: 16)
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = { request in
            switch request.order {
            case 0:
                [
                    .write(ScriptedReply.head(200, fields + [("Transfer-Encoding", "chunked")]) + "\(length)\r\n"),
                    .write(Self.content), .write("\r\n"), .gate("never"),
                ]
            case 1:
                .status(
                    416, [("Content-Range", "bytes */\(Self.content.count)")] + (hasValidator ? fields : []), body: "no more")
            default: .ok(Self.content)
            }
        }
        try await withScriptedServer(reply: reply) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let program = try place.start("one")
                program.tell("session", "main")
                program.tell("download", "main", server.url("/file").absoluteString, "a")
                try await program.line("wrote main.1 \(Self.content.count)/")
                // Received bytes are on disk a moment later.
                try await FileChanges.waitBelow(place.home) { place.spooledBytes == Self.content.count }
                place.killDaemon()
                try await program.line("completed main.1 ok gone status=200")
                try await program.leave()
                #expect(try place.downloaded("a") == Self.content)
                #expect(
                    server.requests.map { $0.header("Range") == nil } == (hasValidator ? [true, false] : [true, false, true]))
            }
        }
    }

    @Test(arguments: [206, 416]) func `a server that cannot handle ranges is asked for the whole file`(status: Int) async throws {
        let file = ScriptedFile(Self.content, entityTag: "\"v1\"")
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = { request in
            switch request.order {
            case 0: file.reply(to: request, cutAfter: 2_000_000, ending: .gate("never"))
            default:
                request.header("Range") == nil ? file.reply(to: request) : .status(status, [("ETag", "\"v1\"")], body: "part")
            }
        }
        try await withScriptedServer(reply: reply) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let program = try place.start("one")
                program.tell("session", "main")
                program.tell("download", "main", server.url("/file").absoluteString, "a")
                try await program.line("wrote main.1 2000000/3000000")
                place.killDaemon()
                try await program.line("completed main.1 ok gone status=200")
                try await program.leave()
                #expect(try place.downloaded("a") == Self.content)
                #expect(server.requests.map { $0.header("Range") == nil } == [true, false, true])
            }
        }
    }

    @Test func `a download of a changed file restarts`() async throws {
        let later = ScriptedFile(ScriptedFile.pattern(2_500_000, seed: 4), entityTag: "\"v2\"")
        try await withDownload(ScriptedFile(Self.content, entityTag: "\"v1\""), later: later, programStays: true) { _, server in
            #expect(server.requests.count == 2)
            #expect(server.requests[1].header("If-Range") == "\"v1\"")
        }
    }

    @Test(arguments: ["W/\"weak\"", nil])
    func `a download without a strong validator restarts`(entityTag: String?) async throws {
        let file = ScriptedFile(Self.content, entityTag: entityTag)
        try await withDownload(file, later: file, programStays: true) { _, server in
            #expect(server.requests.count == 2)
            #expect(server.requests[1].header("Range") == nil)
        }
    }

    @Test func `an upload is sent again`() async throws {
        let early: @Sendable (RecordedRequest) -> ScriptedReply? = { request in
            request.order == 0 ? [.awaitBody(500_000), .reach("middle"), .stopReading, .stall] : nil
        }
        try await withScriptedServer(early: early, reply: { .ok("taken \($0.bodyLength)") }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let content = ScriptedFile.pattern(20_000_000, seed: 5)
                let file = try place.write(content, to: "upload")
                let program = try place.start("one")
                program.tell("session", "main")
                program.tell("upload", "main", server.url("/up").absoluteString, file.path)
                try await server.reached("middle")
                place.killDaemon()
                try await program.line("completed main.1 ok status=200 sent=20000000 received=14")
                try await program.leave()
                #expect(program.lines.contains("data main.1 taken 20000000"))
                #expect(server.requests.count == 2)
                #expect(server.requests[1].body == content)
            }
        }
    }

    @Test func `orders exist after a kill, whatever their state was`() async throws {
        try await withScriptedServer(reply: { ScriptedFile(Array($0.path.utf8)).reply(to: $0) }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let program = try place.start("one")
                program.tell("session", "main")
                for number in 1...40 {
                    program.tell("download", "main", server.url("/\(number)").absoluteString, "f\(number)")
                    if number % 10 == 0 {
                        try await program.line("ordered main.\(number)")
                        place.killDaemon()
                    }
                }
                for number in 1...40 { try await program.line("completed main.\(number) ok") }
                try await program.leave()
                #expect(program.lines.filter { $0.hasPrefix("finished") }.count == 40)
                #expect(program.lines.filter { $0.hasPrefix("completed") }.count == 40)
                for number in 1...40 { #expect(try place.downloaded("f\(number)") == Array("/\(number)".utf8)) }
            }
        }
    }

    @Test func `an answer that arrives after a kill is not given to another task`() async throws {
        @Sendable func asks(_ request: RecordedRequest, _ user: String) -> ScriptedReply {
            let given = request.header("Authorization")
            if given == "Basic " + Data("\(user):word".utf8).base64EncodedString() { return .ok(user) }
            return .status(401, [("WWW-Authenticate", "Basic realm=\"\(user)\"")])
        }
        // The first task is challenged again only after the second one was challenged.
        try await withScriptedServer(reply: { $0.order == 1 ? asks($0, "ada").after(.gate("again")) : asks($0, "ada") }) {
            (first) async throws in
            try await withScriptedServer(reply: { asks($0, "eve") }) { (second) async throws in
                try await withBackgroundPlace { (place) async throws in
                    let program = try place.start("one")
                    program.tell("session", "main", "delegate=ask")
                    program.tell("download", "main", first.url().absoluteString, "a")
                    try await program.line("challenged main.1")
                    place.killDaemon()
                    try await first.reached("again")
                    program.tell("download", "main", second.url().absoluteString, "b")
                    try await program.line("challenged main.2")
                    program.tell("answer", "main.1", "ada:word")
                    try await program.line("answered main.1")
                    program.tell("answer", "main.2", "eve:word")
                    try await program.line("completed main.2 ok gone status=200")
                    #expect(second.requests.count == 2)
                    first.open("again")
                    try await program.line("challenged main.1", number: 1)
                    program.tell("answer", "main.1", "ada:word")
                    try await program.line("completed main.1 ok gone status=200")
                    try await program.leave()
                }
            }
        }
    }

    @Test func `ends from while the program was away are told after a kill`() async throws {
        try await withScriptedServer(reply: { _ in .ok("content") }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let before = try place.start("before")
                before.tell("take", "die")
                before.tell("session", "main")
                before.tell("download", "main", server.url().absoluteString, "a")
                try await before.ended()
                place.killDaemon()
                let after = try place.start("after")
                after.tell("session", "main")
                try await after.line("told main")
                try await after.leave()
                #expect(after.lines.contains { $0.hasPrefix("completed main.1 ok gone status=200") })
                #expect(try place.downloaded("a") == Array("content".utf8))
                #expect(server.requests.count == 1)
            }
        }
    }
}
