// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// `download --resume` after the tool was killed, and with files left by other programs.
@Suite(.timeLimit(.minutes(3)))
struct PartialDownloadTests {
    private static let content = ScriptedFile.pattern(1 << 20)
    private let source = ScriptedFile(content, lastModified: "Sun, 06 Nov 1994 08:49:37 GMT")

    private func resume(_ server: ScriptedServer, in folder: TemporaryDirectory) async throws -> Tool.Result {
        try await Tool.run(["download", "--resume", "-o", "file.bin", server.url("/file").absoluteString], in: folder)
    }

    /// Waits until the unfinished file has `count` bytes, and its resume data is next to it.
    private func hasWritten(_ count: Int, to part: URL, in folder: TemporaryDirectory) async throws {
        try await FileChanges.waitBelow(folder.url) {
            let files = try? FileManager.default.contentsOfDirectory(at: part, includingPropertiesForKeys: nil)
            let isWhole = (files ?? [part]).contains { (try? Data(contentsOf: $0))?.count == count }
            return isWhole && FileManager.default.fileExists(atPath: folder.file("file.bin.resume").path)
        }
    }

    private func saved(_ folder: TemporaryDirectory) throws -> [UInt8] { Array(try Data(contentsOf: folder.file("file.bin"))) }

    @Test func `a download is resumed after the tool was killed`() async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { request in
            source.reply(to: request, cutAfter: request.order == 0 ? source.content.count / 2 : nil, ending: .stall)
        }) { server in
            let tool = try Tool(["download", "-o", "file.bin", server.url("/file").absoluteString], in: folder)
            try await tool.shown(" 50 %")
            // The bytes that are shown have arrived, but are written to the file a moment later.
            let part = folder.file("file.bin.part")
            try await hasWritten(source.content.count / 2, to: part, in: folder)
            tool.kill()
            _ = try await tool.result()
            #expect(try folder.names == ["file.bin.part", "file.bin.resume"])
            let second = try await resume(server, in: folder)
            #expect(second.code == 0 && second.errors.contains("resumed at"), "\(second.errors)")
            let range = try #require(server.requests.last?.header("Range"))
            let offset = Int(range.dropFirst(6).dropLast()) ?? 0
            #expect((1...source.content.count / 2).contains(offset), "\(range)")
            #expect(server.requests.last?.header("If-Range") == #""v1""#)
            #expect(try saved(folder) == source.content)
            #expect(try folder.names == ["file.bin"])
        }
    }

    @Test(arguments: ["416 of this version", "416 of none", "206 of none"])
    func `a download that was complete when the tool was killed is saved`(answer: String) async throws {
        let folder = try TemporaryDirectory()
        let content = source.content
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = { request in
            guard request.header("Range") != nil else {
                let length = String(content.count, radix: 16)
                guard request.order == 0 else { return source.reply(to: request) }
                return [
                    .write(ScriptedReply.head(200, [("ETag", "\"v1\""), ("Transfer-Encoding", "chunked")]) + "\(length)\r\n"),
                    .write(content), .write("\r\n"), .stall,
                ]
            }
            let tag = answer.hasSuffix("this version") ? [("ETag", "\"v1\"")] : []
            return .status(Int(answer.prefix(3)) ?? 0, [("Content-Range", "bytes */\(content.count)")] + tag, body: "range")
        }
        try await withScriptedServer(reply: reply) { server in
            let tool = try Tool(["download", "-o", "file.bin", server.url("/file").absoluteString], in: folder)
            let part = folder.file("file.bin.part")
            try await hasWritten(content.count, to: part, in: folder)
            tool.kill()
            _ = try await tool.result()
            #expect(try folder.names == ["file.bin.part", "file.bin.resume"])
            let second = try await resume(server, in: folder)
            #expect(second.code == 0, "\(second.errors)")
            #expect(try saved(folder) == content)
            #expect(try folder.names == ["file.bin"])
            #expect(server.requests.count == (answer == "416 of this version" ? 2 : 3))
        }
    }

    @Test(arguments: [["curl", "-s", "-o", "file.bin"], ["wget", "-q", "--tries=1", "-O", "file.bin"]])
    func `a partial file of curl or wget is resumed`(_ command: [String]) async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { request in
            source.reply(to: request, cutAfter: request.order == 0 ? 300_000 : nil)
        }) { server in
            let script = command.joined(separator: " ") + " " + server.url("/file").absoluteString
            _ = try await Tool.run([], in: folder, preparation: "exec env -u http_proxy \(script)")
            #expect(try saved(folder).count == 300_000)
            let result = try await resume(server, in: folder)
            #expect(result.code == 0 && result.errors.contains("resumed at"), "\(result.errors)")
            #expect(server.requests.last?.header("Range") == "bytes=300000-")
            #expect(try saved(folder) == source.content)
            #expect(try folder.names == ["file.bin"])
            let again = try await resume(server, in: folder)
            #expect(again.code == 0 && again.errors.contains("complete"), "\(again.errors)")
            #expect(try saved(folder) == source.content)
        }
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let lastModified: String?
        var date: String?
        var servesRanges = true
    }

    @Test(arguments: [
        Row(testDescription: "changed since", lastModified: "Wed, 01 Jan 2098 00:00:00 GMT"),
        Row(
            testDescription: "changed since, by the server's clock", lastModified: "Tue, 02 Jan 1990 00:00:00 GMT",
            date: "Mon, 01 Jan 1990 00:00:00 GMT"),
        Row(testDescription: "without Last-Modified", lastModified: nil),
        Row(testDescription: "without ranges", lastModified: "Sun, 06 Nov 1994 08:49:37 GMT", servesRanges: false),
    ])
    func `a partial file that may be of another version is downloaded again`(_ row: Row) async throws {
        let folder = try TemporaryDirectory()
        try folder.write(ScriptedFile.pattern(300_000, seed: 2), to: "file.bin")
        let newer = ScriptedFile(
            Self.content, lastModified: row.lastModified, servesRanges: row.servesRanges,
            headers: row.date.map { [("Date", $0)] } ?? [])
        try await withScriptedServer(reply: { newer.reply(to: $0) }) { server in
            let result = try await resume(server, in: folder)
            #expect(result.code == 0 && result.errors.contains("starting over"), "\(result.errors)")
            #expect(try saved(folder) == newer.content)
            #expect(try folder.names == ["file.bin"])
        }
    }

    @Test func `a temporary server error keeps another program's partial file`() async throws {
        let folder = try TemporaryDirectory()
        let part = Array(source.content.prefix(300_000))
        try folder.write(part, to: "file.bin")
        try await withScriptedServer(reply: { _ in .status(503, body: "later") }) { server in
            let result = try await resume(server, in: folder)
            #expect(result.code == 22, "\(result.errors)")
            #expect(try saved(folder) == part)
        }
    }
}
