// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Servers that contradict themselves, files whose size is not the length of their content, and octets in a login.
@Suite(.timeLimit(.minutes(3)))
struct ContradictionTests {
    private static let content = ScriptedFile.pattern(20_000)
    private let file = ScriptedFile(content, lastModified: "Sun, 06 Nov 1994 08:49:37 GMT")
    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private func saved() throws -> [UInt8] { Array(try Data(contentsOf: folder.file("file"))) }

    /// A 200 that contains only the rest of the file.
    private static let rest = ScriptedReply.ok(
        Array(content[8_000...]), [("ETag", "\"v1\""), ("Content-Range", "bytes 8000-19999/20000")])

    private func reply(_ request: RecordedRequest, to range: ScriptedReply, whole: ScriptedReply? = nil) -> ScriptedReply {
        if request.order == 0 { return file.reply(to: request, cutAfter: 8_000) }
        return request.header("Range") == nil ? whole ?? file.reply(to: request) : range
    }

    @Test(arguments: [true, false])
    func `a rest with status 200 is never saved as the whole file`(retries: Bool) async throws {
        try await withScriptedServer(reply: { reply($0, to: Self.rest) }) { (server) async throws in
            let address = server.url("/file").absoluteString
            var result: Tool.Result
            if retries {
                result = try await Tool.run(
                    ["download", "-o", "file", "--retry", "1", "--retry-delay", "0", "--retry-all-errors", address], in: folder)
            } else {
                result = try await Tool.run(["download", "-o", "file", address], in: folder)
                #expect(result.code == 18, "\(result.errors)")
                result = try await Tool.run(["download", "-o", "file", "--resume", address], in: folder)
            }
            #expect(result.code == 0, "\(result.errors)")
            #expect(try saved() == Self.content)
            #expect(server.requests.map { $0.header("Range") } == [nil, "bytes=8000-", nil])
            #expect(try folder.names == ["file"])
        }
    }

    @Test func `a server that always contradicts itself fails the download, which can be resumed later`() async throws {
        let isMended = Watched(false)
        try await withScriptedServer(reply: { request in
            isMended.read { $0 } ? file.reply(to: request) : reply(request, to: Self.rest, whole: Self.rest)
        }) { (server) async throws in
            let address = server.url("/file").absoluteString
            let failed = try await Tool.run(
                ["download", "-o", "file", "--retry", "1", "--retry-delay", "0", "--retry-all-errors", address], in: folder)
            #expect(failed.code != 0 && failed.errors.contains("resume with:"), "\(failed.errors)")
            #expect(try folder.names == ["file.part", "file.resume"])
            isMended.change { $0 = true }
            let resumed = try await Tool.run(["download", "-o", "file", "--resume", address], in: folder)
            #expect(resumed.code == 0 && resumed.errors.contains("resumed at"), "\(resumed.errors)")
            #expect(try saved() == Self.content)
        }
    }

    @Test func `the beginning that curl left is not continued by a part with a hole after it`() async throws {
        try folder.write(Array(Self.content[..<8_000]), to: "file")
        try await withScriptedServer(reply: { request in
            guard request.header("Range") != nil else { return file.reply(to: request) }
            return .status(
                206, [("Last-Modified", file.lastModified ?? ""), ("Content-Range", "bytes 8000-9999/20000")],
                body: Array(Self.content[8_000..<10_000]))
        }) { (server) async throws in
            let result = try await Tool.run(
                ["download", "-o", "file", "--resume", server.url("/file").absoluteString], in: folder)
            #expect(result.code == 0 && result.errors.contains("starting over"), "\(result.errors)")
            #expect(try saved() == Self.content)
        }
    }

    @Test func `a rest that ends early is not called saved`() async throws {
        try folder.write(Array(Self.content[..<8_000]), to: "file")
        let head = ScriptedReply.head(
            206,
            [
                ("Last-Modified", file.lastModified ?? ""), ("Content-Range", "bytes 8000-19999/20000"),
                ("Transfer-Encoding", "chunked"),
            ])
        let short = Array("\(head)3e8\r\n".utf8) + Self.content[8_000..<9_000] + Array("\r\n0\r\n\r\n".utf8)
        try await withScriptedServer(reply: { $0.order == 0 ? [.write(short)] : file.reply(to: $0) }) { (server) async throws in
            let words = ["download", "-o", "file", "--resume", server.url("/file").absoluteString]
            let first = try await Tool.run(words, in: folder)
            #expect(first.code == 18, "\(first.errors)")
            #expect(try saved().count == 9_000)
            #expect(try await Tool.run(words, in: folder).code == 0)
            #expect(try saved() == Self.content)
        }
    }

    // MARK: Sizes

    @Test(arguments: [
        ["upload", "/proc/version"], ["upload", "/proc/version", "--limit-rate", "1M"], ["get", "-F", "a=@/proc/version"],
    ])
    func `a file without a size is sent completely`(words: [String]) async throws {
        let content = try String(contentsOfFile: "/proc/version", encoding: .utf8)
        try await withScriptedServer(reply: { .ok($0.body) }) { (server) async throws in
            let result = try await Tool.run(words + [server.url("/a").absoluteString], in: folder)
            #expect(result.code == 0 && result.text.contains(content), "\(result.errors)")
        }
        let shown = try await Tool.run(["get", "file:///proc/version"], in: folder)
        #expect(shown.code == 0 && shown.text == content, "\(shown.errors)")
    }

    // MARK: Octets

    @Test func `a login in a URL is sent octet for octet`() async throws {
        let expected = "Basic " + Data([0x75, 0x3A, 0x70, 0xE4]).base64EncodedString()
        try await withScriptedServer(reply: { request in
            request.header("Authorization") == expected
                ? .ok("in") : .status(401, [("WWW-Authenticate", "Basic realm=\"r\"")], body: "who?")
        }) { (server) async throws in
            let address = "http://u:p%E4@127.0.0.1:\(server.port)/"
            let result = try await Tool.run(["get", address], in: folder)
            #expect(result.code == 0 && result.text == "in", "\(result.errors)")
        }
        try await withScriptedServer(reply: { request in
            request.header("Proxy-Authorization") == expected
                ? .ok("in") : .status(407, [("Proxy-Authenticate", "Basic realm=\"r\"")], body: "who?")
        }) { (proxy) async throws in
            let address = "http://u:p%E4@127.0.0.1:\(proxy.port)"
            let result = try await Tool.run(["get", "-x", address, "http://far.example/"], in: folder)
            #expect(result.code == 0 && result.text == "in", "\(result.errors)")
            let variable = try await Tool.run(["get", "http://far.example/"], in: folder, environment: ["http_proxy": address])
            #expect(variable.code == 0 && variable.text == "in", "\(variable.errors)")
        }
    }

    @Test func `redirect_url has the octets of the Location`() async throws {
        let reply = Array("HTTP/1.1 302 Found\r\nLocation: /jos".utf8) + [0xE9] + Array("\r\nContent-Length: 0\r\n\r\n".utf8)
        try await withScriptedServer(reply: { _ in [.write(reply)] }) { (server) async throws in
            let result = try await Tool.run([
                "get", "-s", "--no-location", "-w", "%{redirect_url}", server.url("/a").absoluteString,
            ])
            #expect(result.text == "http://127.0.0.1:\(server.port)/jos%E9", "\(result.errors)")
        }
    }
}
