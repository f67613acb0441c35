// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Full disks, missing folders, missing permissions, and decompression bombs.
@Suite(.timeLimit(.minutes(3)))
struct DiskFullTests {
    private static let block = ScriptedFile.pattern(65_536)
    /// 6 MiB, which are received with splice(2) if the length is known.
    private static let large = Array([[UInt8]](repeating: block, count: 96).joined())
    /// Limits files to 512 or 1,024 KiB, depending on the shell's unit; writing more results in an error instead of a signal.
    private static let smallDisk = "trap '' XFSZ; ulimit -f 1024"

    enum Sending: Sendable, CaseIterable { case whole, chunked, gzip }

    private static func reply(_ sending: Sending) -> ScriptedReply {
        switch sending {
        case .whole: .ok(large, [("ETag", "\"v1\""), ("Accept-Ranges", "bytes")])
        case .chunked:
            [
                .write(ScriptedReply.head(200, [("Transfer-Encoding", "chunked"), ("ETag", "\"v1\"")])),
                .repeat(Array("10000\r\n".utf8) + block + Array("\r\n".utf8), count: 96), .write("0\r\n\r\n"),
            ]
        case .gzip: .gzip(large, [("ETag", "\"v1\"")])
        }
    }

    @Test(arguments: Sending.allCases)
    func `a download that does not fit is a write error and leaves nothing`(sending: Sending) async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { _ in Self.reply(sending) }) { server in
            let result = try await Tool.run(
                ["download", "-o", "file.bin", server.url("/a").absoluteString], in: folder, preparation: Self.smallDisk
            )
            #expect(result.code == 23, "\(result.errors)")
            #expect(result.errors.contains("file too large"), "\(result.errors)")
            #expect(try folder.names == [])
        }
    }

    @Test func `a response that does not fit is a write error`() async throws {
        try await withScriptedServer(reply: { _ in Self.reply(.whole) }) { server in
            let result = try await Tool.run(
                ["get", "-o", "file.bin", server.url("/a").absoluteString], preparation: Self.smallDisk
            )
            #expect(result.code == 23, "\(result.errors)")
            #expect(result.errors.contains("cannot write to file.bin: File too large"), "\(result.errors)")
        }
    }

    @Test(arguments: ["no/such/folder/file.bin", "/proc/file.bin", "/dev/null/file.bin"])
    func `a folder that is missing or not writable is a write error`(path: String) async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { _ in Self.reply(.whole) }) { server in
            let result = try await Tool.run(["download", "-o", path, server.url("/a").absoluteString], in: folder)
            #expect(result.code == 23, "\(result.errors)")
            #expect(result.errors.contains("cannot create \(path).part: "), "\(result.errors)")
            #expect(try folder.names == [])
        }
    }

    @Test func `an existing file with the temporary name is left alone`() async throws {
        let folder = try TemporaryDirectory()
        try folder.write(Array("mine".utf8), to: "file.bin.part")
        try await withScriptedServer(reply: { _ in Self.reply(.whole) }) { server in
            let address = server.url("/a").absoluteString
            let result = try await Tool.run(["download", "-o", "file.bin", address], in: folder)
            #expect(result.code == 23, "\(result.errors)")
            #expect(try Data(contentsOf: folder.file("file.bin.part")) == Data("mine".utf8))
            #expect(try folder.names == ["file.bin.part"])
        }
    }

    enum Loss: Sendable, CaseIterable { case removed, replaced }

    @Test(arguments: Loss.allCases)
    func `a temporary folder that disappears before the response is a write error`(loss: Loss) async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { _ in
            ScriptedReply([.gate("answer")] + Self.reply(.whole).effects)
        }) { server in
            let tool = try Tool(["download", "-o", "file.bin", server.url("/a").absoluteString], in: folder)
            try await server.reached("answer")
            try FileManager.default.removeItem(at: folder.file("file.bin.part"))
            if loss == .replaced { try folder.write(Array("mine".utf8), to: "file.bin.part") }
            server.open("answer")
            let result = try await tool.result()
            #expect(result.code == 23, "\(result.errors)")
            #expect(result.errors.contains("creating a file in "), "\(result.errors)")
            #expect(try !folder.names.contains("file.bin"))
        }
    }

    @Test func `a temporary folder that disappears during the download is a write error`() async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { _ in
            [
                .write(ScriptedReply.head(200, [("Content-Length", "\(Self.large.count)")])),
                .write(Array(Self.large.prefix(1 << 20))), .gate("rest"), .write(Array(Self.large.dropFirst(1 << 20))),
            ]
        }) { server in
            let tool = try Tool(["download", "-o", "file.bin", server.url("/a").absoluteString], in: folder)
            try await server.reached("rest")
            try await tool.shown("%")
            try FileManager.default.removeItem(at: folder.file("file.bin.part"))
            server.open("rest")
            let result = try await tool.result()
            #expect(result.code == 23, "\(result.errors)")
            #expect(try folder.names == [])
        }
    }

    @Test func `a decompression bomb ends at the limit and leaves nothing`() async throws {
        let folder = try TemporaryDirectory()
        let zeros = [UInt8](repeating: 0, count: 65_536)
        let headers = [("Content-Encoding", "gzip"), ("Content-Length", "\(GzipBytes.bombStart.count + 16 * zeros.count)")]
        try await withScriptedServer(reply: { _ in
            [.write(Array(ScriptedReply.head(200, headers).utf8) + GzipBytes.bombStart), .repeat(zeros, count: 16)]
        }) { server in
            let result = try await Tool.run(["download", "-o", "file.bin", server.url("/a").absoluteString], in: folder)
            #expect(result.code == 63, "\(result.errors)")
            #expect(result.errors.contains("exceeds the limit"), "\(result.errors)")
            #expect(try folder.names == [])
        }
    }
}
