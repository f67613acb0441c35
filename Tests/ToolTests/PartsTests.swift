// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Features of wget and aria2: segments, checksums, time stamps and lists.
@Suite(.timeLimit(.minutes(3)))
struct PartsTests {
    private static let content = ScriptedFile.pattern(500_000)
    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private func bytes(_ name: String) throws -> [UInt8] { try Array(Data(contentsOf: folder.file(name))) }

    /// A server that answers range requests, correctly or not.
    private struct Parts: Sendable {
        var content = PartsTests.content
        var tag: @Sendable (RecordedRequest) -> String? = { _ in "\"v1\"" }
        var total: @Sendable (Int) -> String = { "\($0)" }
        var shift = 0
        var headers: [(String, String)] = []
        var cuts: Int?
        /// Whether the server ignores `If-Range`.
        var ignoresIfRange = false
        /// The status of the parts of one version.
        var status = 206

        func reply(_ request: RecordedRequest) -> ScriptedReply {
            let tag = tag(request)
            let fields = (tag.map { [("ETag", $0)] } ?? []) + headers
            let range = request.header("Range")?.dropFirst("bytes=".count).split(separator: "-").compactMap { Int($0) }
            guard let range, range.count == 2, ignoresIfRange || request.header("If-Range") ?? tag == tag else {
                return .ok(content, fields)
            }
            let (first, last) = (range[0], min(range[1], content.count - 1))
            let body = Array(content[first...last])
            let head = fields + [("Content-Range", "bytes \(first + shift)-\(last + shift)/\(total(content.count))")]
            if let cuts, first > 0 {
                return [
                    .write(ScriptedReply.head(206, head + [("Content-Length", "\(body.count)")])),
                    .write(Array(body.prefix(cuts))), .close,
                ]
            }
            return .status(request.header("If-Range") == nil ? 206 : status, head, body: body)
        }
    }

    private func download(_ parts: Parts, _ words: [String] = []) async throws -> (Tool.Result, [RecordedRequest]) {
        var requests: [RecordedRequest] = []
        var result: Tool.Result?
        try await withScriptedServer(reply: parts.reply) { (server) async throws in
            result = try await Tool.run(
                ["download", "-o", "file", server.url("/file").absoluteString, "--segments", "4"] + words, in: folder)
            requests = server.requests
        }
        return (try #require(result), requests)
    }

    @Test func `a file is loaded in segments of one version, each over its own connection`() async throws {
        let (result, requests) = try await download(Parts())
        #expect(result.code == 0, "\(result.errors)")
        #expect(try bytes("file") == Self.content)
        #expect(try folder.names == ["file"])
        #expect(requests.count == 5)
        #expect(Set(requests.map(\.connection)).count == 5)
        #expect(
            Set(requests.compactMap { $0.header("Range") }) == [
                "bytes=0-0", "bytes=0-124999", "bytes=125000-249999", "bytes=250000-374999", "bytes=375000-499999",
            ])
        #expect(requests.dropFirst().allSatisfy { $0.header("If-Range") == "\"v1\"" })
        #expect(requests.allSatisfy { $0.header("Accept-Encoding") == nil })
    }

    @Test func `a server that does not keep to one version is asked over one connection`() async throws {
        let changing = Parts(tag: { $0.header("Range") == "bytes=0-0" ? "\"v1\"" : "\"v2\"" })
        let mixed = Parts(tag: { $0.header("Range")?.hasSuffix("-374999") == true ? "\"v2\"" : "\"v1\"" }, ignoresIfRange: true)
        let changesOnce = Parts(tag: { $0.header("Range")?.hasSuffix("-374999") == true ? "\"v2\"" : "\"v1\"" })
        for (name, parts) in [
            ("weak", Parts(tag: { _ in "W/\"v1\"" })), ("none", Parts(tag: { _ in nil })), ("changing", changing),
            ("once", changesOnce), ("mixed", mixed),
            ("another part", Parts(shift: 1)), ("no length", Parts(total: { _ in "*" })),
            ("encoded", Parts(headers: [("Content-Encoding", "x")])), ("200", Parts(status: 200)), ("412", Parts(status: 412)),
        ] {
            let (result, requests) = try await download(parts, ["-H", "X-A: 1"])
            #expect(result.code == 0, "\(name) \(result.errors)")
            #expect(result.errors.contains("using one connection:"), "\(name) \(result.errors)")
            #expect(try bytes("file") == Self.content, "\(name)")
            #expect(requests.last?.header("Range") == nil, "\(name)")
        }
    }

    @Test func `a file that changes its length is not assembled`() async throws {
        let (result, _) = try await download(Parts(total: { "\($0)" }, headers: [("X-A", "1")]), ["--max-filesize", "1000"])
        #expect(result.code == 63, "\(result.errors)")
        #expect(try folder.names.isEmpty)
    }

    @Test func `a truncated segment leaves nothing`() async throws {
        let (result, _) = try await download(Parts(cuts: 1000))
        #expect(result.code == 18, "\(result.errors)")
        #expect(try folder.names.isEmpty)
    }

    @Test func `a small or empty file and a server without ranges need one connection`() async throws {
        let (small, requests) = try await download(Parts(content: Array("small".utf8)))
        #expect(small.code == 0 && requests.count == 2, "\(small.errors)")
        #expect(try bytes("file") == Array("small".utf8))
        try await withScriptedServer(reply: { request in
            request.header("Range") == nil ? .ok("") : .status(416, [("Content-Range", "bytes */0")])
        }) { (server) async throws in
            let empty = try await Tool.run(
                ["download", "-o", "empty", server.url("/").absoluteString, "--segments", "2"], in: folder)
            #expect(empty.code == 0, "\(empty.errors)")
            #expect(try bytes("empty").isEmpty)
            #expect(try await Tool.run(["download", server.url("/").absoluteString, "--segments", "7"], in: folder).code == 2)
        }
    }

    // MARK: Checksums

    @Test(arguments: [[], ["--segments", "3"]])
    func `a file that does not match --checksum is not saved`(_ words: [String]) async throws {
        let wrong = String(repeating: "0", count: 64)
        let right = Self.content.withUnsafeBytes { TestCertificates.sha256(Data($0)) }.map { String(format: "%02x", $0) }.joined()
        try await withScriptedServer(reply: Parts().reply) { (server) async throws in
            let order = ["download", "-o", "file", server.url("/file").absoluteString] + words
            let bad = try await Tool.run(order + ["--checksum", "sha-256=" + wrong], in: folder)
            #expect(bad.code == 32 && bad.errors.contains("--checksum"), "\(bad.errors)")
            #expect(try folder.names.isEmpty)
            let good = try await Tool.run(order + ["--checksum=sha-256=" + right.uppercased()], in: folder)
            #expect(good.code == 0, "\(good.errors)")
            #expect(try bytes("file") == Self.content)
            let kept = try await Tool.run(order + ["--checksum", "sha-256=" + wrong], in: folder)
            #expect(kept.code == 32)
            #expect(try bytes("file") == Self.content)
            for text in ["md5=0", "sha-256=", "sha-256=" + String(wrong.dropLast()), "sha-256=" + String(wrong.dropLast()) + "g"]
            {
                #expect(try await Tool.run(order + ["--checksum", text], in: folder).code == 2, "\(text)")
            }
        }
    }

    @Test(arguments: [0, 1, 55, 56, 63, 64, 65, 119, 128, 300_000])
    func `a checksum of any length is verified`(_ count: Int) async throws {
        let content = ScriptedFile.pattern(count)
        let digest = TestCertificates.sha256(Data(content)).map { String(format: "%02x", $0) }.joined()
        try await withScriptedServer(reply: { _ in .ok(content) }) { (server) async throws in
            let result = try await Tool.run(
                ["download", "-o", "file", server.url("/").absoluteString, "--checksum", "sha-256=" + digest], in: folder)
            #expect(result.code == 0, "\(result.errors)")
        }
    }

    // MARK: Time stamps and lists

    @Test func `with --timestamping, a file is loaded only if the server has a newer file`() async throws {
        let changed = Watched("Tue, 02 Apr 2024 10:00:00 GMT")
        try await withScriptedServer(reply: { request in
            let date = changed.read(\.self)
            if request.path == "/heedless" { return .ok("new", [("Last-Modified", date)]) }
            return request.header("If-Modified-Since") == date
                ? .status(304, [("Last-Modified", date)]) : .ok("as of \(date)", [("Last-Modified", date)])
        }) { (server) async throws in
            func run(_ path: String) async throws -> Tool.Result {
                try await Tool.run(["download", "--timestamping", "-o", "file", server.url(path).absoluteString], in: folder)
            }
            #expect(try await run("/file").code == 0)
            #expect(server.requests.last?.header("If-Modified-Since") == nil)
            try folder.write([], to: "mark")
            for path in ["/file", "/heedless"] {
                let again = try await run(path)
                #expect(again.code == 0 && again.errors.contains("is unchanged on the server"), "\(again.errors)")
                #expect(try String(contentsOf: folder.file("file"), encoding: .utf8).hasPrefix("as of Tue, 02"))
            }
            changed.change { $0 = "Wed, 03 Apr 2024 10:00:00 GMT" }
            #expect(try await run("/file").code == 0)
            #expect(try String(contentsOf: folder.file("file"), encoding: .utf8).hasPrefix("as of Wed, 03"))
            #expect(try folder.names == ["file", "mark"])
        }
    }

    @Test func `a list is downloaded into a folder with wget's short options`() async throws {
        try await withScriptedServer(reply: { $0.path == "/none" ? .status(404) : .ok($0.path) }) { (server) async throws in
            let list = ["one", "none", "two"].map { server.url("/\($0)").absoluteString }.joined(separator: "\n")
            let file = try folder.write(Array(list.utf8), to: "list")
            let result = try await Tool.run(["download", "-s", "-i", "list", "-P", "in/side"], in: folder)
            #expect(result.code == 22, "\(result.errors)")
            #expect(try bytes("in/side/one") == Array("/one".utf8) && bytes("in/side/two") == Array("/two".utf8))
            let piped = try await Tool.run(["download", "-i", "-", server.url("/three").absoluteString], in: folder, input: file)
            #expect(piped.code == 22 && piped.errors.contains("404"))
            #expect(try folder.names == ["in", "list", "one", "three", "two"])
        }
    }
}
