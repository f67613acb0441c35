// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// `--upload-file`, `--limit-rate`, and the options for retries.
@Suite(.timeLimit(.minutes(3)))
struct UploadFileTests {
    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private func sent(_ words: [String], to paths: [String], input: URL? = nil) async throws -> [RecordedRequest] {
        var requests: [RecordedRequest] = []
        try await withScriptedServer(reply: { _ in .ok("done") }) { (server) async throws in
            let addresses = paths.map { server.url("/").absoluteString + $0.dropFirst() }
            let result = try await Tool.run(["-sS"] + words + addresses, in: folder, input: input)
            #expect(result.code == 0, "\(result.errors)")
            requests = server.requests
        }
        return requests
    }

    @Test func `-T sends a file, and appends the name of the file to a URL with a trailing slash`() async throws {
        try folder.write(Array("content".utf8), to: "a b.txt")
        for (path, target) in [
            ("/in/", "/in/a%20b.txt"), ("/", "/a%20b.txt"), ("/in", "/in"), ("/in/?q=1", "/in/a%20b.txt?q=1"), ("/in/x", "/in/x"),
        ] {
            let request = try #require(try await sent(["-T", "a b.txt"], to: [path]).first)
            #expect(request.method == "PUT" && request.target == target && request.bodyText == "content")
            #expect(request.header("Content-Length") == "7" && request.header("Content-Type") == nil)
        }
        #expect(try await sent(["-T", "a b.txt", "-X", "POST"], to: ["/in"]).first?.method == "POST")
    }

    @Test func `several -T options are paired with several URLs, and a glob sends several files`() async throws {
        for name in ["one", "two"] { try folder.write(Array(name.utf8), to: name) }
        let paired = try await sent(["-T", "one", "-T", "two"], to: ["/a/", "/b/", "/c/"])
        #expect(paired.map { "\($0.method) \($0.target) \($0.bodyText)" } == ["PUT /a/one one", "PUT /b/two two", "GET /c/ "])
        let globbed = try await sent(["-T", "{one,two}"], to: ["/in/"])
        #expect(globbed.map { "\($0.target) \($0.bodyText)" } == ["/in/one one", "/in/two two"])
    }

    @Test(arguments: ["-", "."])
    func `standard input is streamed`(_ name: String) async throws {
        let input = try folder.write(Array("streamed".utf8), to: "input")
        let request = try #require(try await sent(["-T", name], to: ["/in/"], input: input).first)
        #expect(request.method == "PUT" && request.target == "/in/" && request.bodyText == "streamed" && request.isChunked)
        let twice = try await Tool.run(["-T", name, "--retry", "1", "http://127.0.0.1:9/"])
        #expect(twice.code == 2 && twice.errors.contains("twice"))
    }

    @Test func `a missing file, and -T together with another body, are refused`() async throws {
        #expect(try await Tool.run(["-T", "none", "http://127.0.0.1:9/"], in: folder).code == 26)
        #expect(try await Tool.run(["-T", "none", "-d", "a", "http://127.0.0.1:9/"], in: folder).code == 2)
    }

    // MARK: Speed

    /// A slow machine makes the rates smaller, never larger.
    @Test func `--limit-rate limits uploads and downloads`() async throws {
        let content = ScriptedFile.pattern(300_000)
        let large = ScriptedFile.pattern(3_000_000)
        try folder.write(content, to: "file")
        try await withScriptedServer(reply: { $0.method == "GET" ? .ok(large) : .ok("\($0.bodyLength)") }) {
            (server) async throws in
            let address = server.url("/a").absoluteString
            let words = ["-sS", "--limit-rate", "400k", "-w", "%{speed_download} %{speed_upload}", "-o", "out", address]
            // Up to 1 MiB that is in transit before the limit applies arrives at once.
            let got = try await Tool.run(words + ["--limit-rate", "1M"], in: folder)
            #expect(try #require(Int(got.text.split(separator: " ")[0])) < 2_500_000, "\(got.text) \(got.errors)")
            #expect(try Array(Data(contentsOf: folder.file("out"))) == large)
            for body in [["-T", "file"], ["--data-binary", "@file"], ["-F", "a=@file"]] {
                let put = try await Tool.run(words + body, in: folder)
                #expect(try #require(Int(put.text.split(separator: " ")[1])) < 500_000, "\(body) \(put.text) \(put.errors)")
                #expect(server.requests.last?.isComplete == true && server.requests.last?.isChunked == false)
            }
            #expect(server.requests[1].body == content && server.requests[2].body == content)
            let sent = try await Tool.run(
                ["upload", "file", address, "-s", "--limit-rate", "400k", "-w", " %{speed_upload}"], in: folder)
            #expect(try #require(Int(sent.text.split(separator: " ")[1])) < 500_000, "\(sent.text)")
        }
    }

    @Test func `a load with a limited rate ends at --max-time, or if it is slower than --speed-limit`() async throws {
        try await withScriptedServer(reply: { _ in .large(chunk: [UInt8](repeating: 1, count: 65_536), count: 100) }) {
            (server) async throws in
            let address = server.url("/a").absoluteString
            let late = try await Tool.run(["-sS", "--limit-rate", "1k", "-m", "0.5", "-o", "out", address], in: folder)
            #expect(late.code == 28, "\(late.errors)")
            let slow = try await Tool.run(
                ["-sS", "--limit-rate", "1k", "-Y", "100k", "-y", "0.5", "-o", "out", address], in: folder)
            #expect(slow.code == 28 && slow.errors.contains("--speed-limit"), "\(slow.errors)")
        }
    }

    // MARK: Retries

    @Test func `--retry-all-errors retries every error`() async throws {
        try await withScriptedServer(reply: { request in
            switch request.order % 3 {
            case 0: .status(404, body: "no")
            case 1: [.close]
            default: .ok("here")
            }
        }) { (server) async throws in
            let words = ["-sSf", "--retry", "3", "--retry-delay", "0", server.url("/a").absoluteString]
            let result = try await Tool.run(words + ["--retry-all-errors"])
            #expect(result.code == 0 && result.text == "here", "\(result.errors)")
            #expect(server.requests.count == 3)
            #expect(try await Tool.run(words).code == 22)
        }
    }

    @Test func `--retry-connrefused retries a refused connection`() async throws {
        let port = try RefusingPort()
        let words = ["--retry", "2", "--retry-delay", "0", "http://127.0.0.1:\(port.number)/"]
        let result = try await Tool.run(words + ["--retry-connrefused"])
        #expect(result.code == 7)
        #expect(result.errors.components(separatedBy: "retrying").count == 3, "\(result.errors)")
        let once = try await Tool.run(words)
        #expect(once.code == 7 && !once.errors.contains("retrying"))
    }

    @Test func `a named pipe is streamed under its name`() async throws {
        try await withScriptedServer(reply: { .ok("\($0.method) \($0.target) \($0.bodyText)") }) { (server) async throws in
            let address = server.url("/in/").absoluteString
            let result = try await Tool.run(
                ["-s", "-T", "pipe", address], in: folder, preparation: "mkfifo pipe; { printf 'some text' >pipe & true; }")
            #expect(result.text == "PUT /in/pipe some text", "\(result.errors)")
            let twice = try await Tool.run(["-s", "-S", "--retry", "1", "-T", "pipe", address], in: folder)
            #expect(twice.code == 2 && twice.errors.contains("a pipe"), "\(twice.errors)")
        }
    }
}
