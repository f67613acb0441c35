// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// What an interrupted download leaves for the next run.
@Suite(.timeLimit(.minutes(3)))
struct ResumeFileTests {
    private let source = ScriptedFile(ScriptedFile.pattern(1 << 20))
    private static let secrets = [
        "-H", "Authorization: Bearer sesame", "-H", "X-Key: sesame", "-b", "id=sesame", "-A", "sesame",
        "-e", "http://sesame/",
    ]

    /// Accepts requests in which all credentials are correct.
    private func reply(_ request: RecordedRequest) -> ScriptedReply {
        let known = [
            request.header("Authorization"), request.header("X-Key"), request.header("Cookie"),
        ]
        guard known == ["Bearer sesame", "sesame", "id=sesame"] else { return .status(403, body: "no") }
        return source.reply(to: request, cutAfter: request.order == 0 ? source.content.count / 2 : nil)
    }

    @Test func `resume data is private, holds no secrets, and works if the secrets are given again`()
        async throws
    {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { reply($0) }) { (server) async throws in
            let arguments =
                ["-s", "-o", "file.bin"] + Self.secrets + [server.url("/file").absoluteString]
            let first = try await Tool.run(["download"] + arguments, in: folder, preparation: "umask 0")
            #expect(first.code == 18, "\(first.errors)")
            #expect(try folder.names == ["file.bin.part", "file.bin.resume"])
            let left = folder.file("file.bin.resume")
            let permissions =
                try FileManager.default.attributesOfItem(atPath: left.path)[.posixPermissions] as? Int
            #expect(permissions == 0o600)
            #expect(try !String(contentsOf: left, encoding: .utf8).contains("sesame"))
            let second = try await Tool.run(["download", "--resume"] + arguments, in: folder)
            #expect(second.code == 0, "\(second.errors)")
            #expect(server.requests.last?.header("Range") != nil)
            #expect(try Array(Data(contentsOf: folder.file("file.bin"))) == source.content)
            #expect(try folder.names == ["file.bin"])
        }
    }

    @Test func `a request without the secrets is refused, and the resume data is kept`() async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { reply($0) }) { (server) async throws in
            let address = server.url("/file").absoluteString
            _ = try await Tool.run(
                ["download", "-s", "-o", "file.bin"] + Self.secrets + [address], in: folder)
            let bare = try await Tool.run(
                ["download", "--resume", "-o", "file.bin", address], in: folder)
            #expect(bare.code == 22, "\(bare.errors)")
            #expect(try folder.names == ["file.bin.part", "file.bin.resume"])
            let again = try await Tool.run(
                ["download", "--resume", "-o", "file.bin"] + Self.secrets + [address], in: folder)
            #expect(again.code == 0, "\(again.errors)")
            #expect(server.requests.last?.header("Range") != nil)
        }
    }

    @Test func `a resumed download needs the password on the command line again`() async throws {
        let folder = try TemporaryDirectory()
        let words = "Basic " + Data("ali:sesame".utf8).base64EncodedString()
        try await withScriptedServer(reply: { request in
            guard request.header("Authorization") == words else {
                return .status(401, [("WWW-Authenticate", #"Basic realm="r""#)], body: "closed")
            }
            return source.reply(to: request, cutAfter: request.order < 2 ? source.content.count / 2 : nil)
        }) { (server) async throws in
            let arguments = ["-s", "-o", "f", "-u", "ali:sesame", server.url("/f").absoluteString]
            // With the same home folder, the cache's key is available, with which the password is recognized.
            let home = try TemporaryDirectory()
            #expect(try await Tool.run(["download"] + arguments, in: folder, home: home).code == 18)
            let left = try String(contentsOf: folder.file("f.resume"), encoding: .utf8)
            #expect(!left.contains("sesame") && !left.contains(words) && !left.contains("ali"))
            let second = try await Tool.run(["download", "--resume"] + arguments, in: folder, home: home)
            #expect(second.code == 0, "\(second.errors)")
            #expect(server.requests.last?.header("Range") != nil)
        }
    }

    @Test(arguments: [["get", "-C", "-"], ["download", "--resume"]])
    func `a redirect without a Location appends nothing to the file`(_ words: [String]) async throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write(Array("begun".utf8), to: "f")
        try await withScriptedServer(reply: { _ in .status(302, body: "elsewhere") }) { (server) async throws in
            let result = try await Tool.run(words + ["-s", "-o", "f", server.url("/f").absoluteString], in: folder)
            #expect(result.code == 33, "\(result.errors)")
            #expect(try String(contentsOf: file, encoding: .utf8) == "begun")
        }
    }

    @Test func `with -C, a second URL for the same file is refused`() async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { _ in .ok("one") }) { (server) async throws in
            let address = server.url("/f").absoluteString
            let result = try await Tool.run(["-s", "-C", "-", "-o", "f", address, "-o", "f", address], in: folder)
            #expect(result.code == 2, "\(result.errors)")
            #expect(try String(contentsOf: folder.file("f"), encoding: .utf8) == "one")
            #expect(server.requests.count == 1)
        }
    }
}
