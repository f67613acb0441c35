// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct GetTests {
    @Test func `only the body is written to standard output`() async throws {
        try await withScriptedServer(reply: { _ in .ok("hello\n") }) { server in
            let result = try await Tool.run(["get", server.url("/a").absoluteString])
            #expect(result.code == 0)
            #expect(result.text == "hello\n")
            #expect(result.errors.isEmpty)
        }
    }

    @Test func `a method, header fields and a body are sent as given`() async throws {
        try await withScriptedServer(reply: { _ in .ok("done") }) { server in
            let result = try await Tool.run([
                "get", "-X", "PATCH", "-H", "X-One: 1", "-H", "X-Two:  two words ", "-d", "a=b", server.url("/a").absoluteString,
            ])
            #expect(result.code == 0)
            let request = try #require(server.requests.first)
            #expect(request.method == "PATCH")
            #expect(request.header("X-One") == "1")
            #expect(request.header("X-Two") == "two words")
            #expect(request.bodyText == "a=b")
        }
    }

    @Test func `data is posted literally, from a file and from standard input`() async throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write(Array("from a file".utf8), to: "body.txt")
        try await withScriptedServer(reply: { .ok("\($0.method) \($0.bodyText)") }) { server in
            let address = server.url("/a").absoluteString
            let plain = try await Tool.run(["get", "-d", "plain", address])
            #expect(plain.text == "POST plain")
            let fromFile = try await Tool.run(["get", "-d", "@body.txt", address], in: folder)
            #expect(fromFile.text == "POST from a file")
            let fromInput = try await Tool.run(["get", "-d", "-", address], input: file)
            #expect(fromInput.text == "POST from a file")
        }
    }

    @Test func `json is posted with its media type`() async throws {
        try await withScriptedServer(reply: { _ in .json("{}") }) { server in
            let result = try await Tool.run(["get", "--json", #"{"a":1}"#, server.url("/a").absoluteString])
            #expect(result.code == 0)
            let request = try #require(server.requests.first)
            #expect(request.method == "POST")
            #expect(request.header("Content-Type") == "application/json")
            #expect(request.header("Accept") == "application/json")
            #expect(request.bodyText == #"{"a":1}"#)
        }
    }

    @Test func `include shows the status and header fields before the body`() async throws {
        try await withScriptedServer(reply: { _ in .ok("body", [("X-Mark", "yes")]) }) { server in
            let result = try await Tool.run(["get", "-i", server.url("/a").absoluteString])
            #expect(result.text.hasPrefix("HTTP/1.1 200 Scripted\n"))
            #expect(result.text.contains("X-Mark: yes\n"))
            #expect(result.text.hasSuffix("\n\nbody"))
        }
    }

    @Test func `head requests only the header fields`() async throws {
        try await withScriptedServer(reply: { _ in .raw("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Mark: yes\r\n\r\n") }) {
            server in
            let result = try await Tool.run(["get", "-I", server.url("/a").absoluteString])
            #expect(result.code == 0)
            #expect(result.text.contains("X-Mark: yes\n"))
            #expect(server.requests.first?.method == "HEAD")
        }
    }

    @Test func `output writes the body to a file`() async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { _ in .ok("filed") }) { server in
            let result = try await Tool.run(["get", "-o", "answer.txt", server.url("/a").absoluteString], in: folder)
            #expect(result.code == 0)
            #expect(result.text.isEmpty)
            #expect(try String(contentsOf: folder.file("answer.txt"), encoding: .utf8) == "filed")
        }
    }

    @Test func `redirects are followed unless the user declines`() async throws {
        try await withScriptedServer(reply: { $0.path == "/old" ? .redirect(302, to: "/new") : .ok("new place") }) { server in
            let address = server.url("/old").absoluteString
            let followed = try await Tool.run(["get", address])
            #expect(followed.text == "new place")
            let stayed = try await Tool.run(["get", "--no-location", address])
            #expect(stayed.text == "moved")
        }
    }

    @Test func `verbose and metrics write to standard error`() async throws {
        try await withScriptedServer(reply: { _ in .ok("body") }) { server in
            let result = try await Tool.run(["get", "-v", "--metrics", "-H", "X-One: 1", server.url("/a").absoluteString])
            #expect(result.text == "body")
            #expect(result.errors.contains("> GET /a HTTP/1.1\n"))
            #expect(result.errors.contains("> X-One: 1\n"))
            #expect(result.errors.contains("< HTTP/1.1 200 Scripted\n"))
            #expect(result.errors.contains("127.0.0.1:\(server.port)"))
            for phase in ["connect", "send", "wait", "receive", "total", "new connection", "http/1.1"] {
                #expect(result.errors.contains(phase), "\(phase) is missing")
            }
        }
    }

    @Test func `a body larger than the buffers in memory arrives whole`() async throws {
        let chunk = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 16)
        try await withScriptedServer(reply: { _ in .large(chunk: chunk, count: 256) }) { server in
            let result = try await Tool.run(["get", server.url("/a").absoluteString])
            #expect(result.code == 0)
            #expect(result.output.count == 256 << 16)
        }
    }

    @Test func `repeated requests are counted`() async throws {
        try await withScriptedServer(reply: { _ in .ok("body") }) { server in
            let result = try await Tool.run(["get", "--repeat", "40", "--parallel-max", "8", server.url("/a").absoluteString])
            #expect(result.code == 0)
            #expect(result.text.hasPrefix("40 requests, 8 at once: 40 ok, 0 failed"))
            #expect(server.requests.count == 40)
        }
    }

    @Test func `repeated requests follow redirects like a single request`() async throws {
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = {
            switch $0.path {
            case "/a": .redirect(302, to: "/b")
            case "/b": .redirect(302, to: "/c")
            default: .ok("end")
            }
        }
        try await withScriptedServer(reply: reply) { server in
            func run(_ options: String...) async throws -> (result: Tool.Result, paths: [String]) {
                let before = server.requests.count
                let result = try await Tool.run(["get", "--repeat", "2"] + options + [server.url("/a").absoluteString])
                return (result, server.requests.dropFirst(before).map(\.path))
            }
            let followed = try await run()
            #expect(followed.result.text.hasPrefix("2 requests, 1 at once: 2 ok, 0 failed"))
            #expect(followed.paths == ["/a", "/b", "/c", "/a", "/b", "/c"])
            let stayed = try await run("--no-location")
            #expect(stayed.result.text.hasPrefix("2 requests, 1 at once: 2 ok, 0 failed"))
            #expect(stayed.paths == ["/a", "/a"])
            // Each request has its own count of redirects.
            let enough = try await run("--max-redirs", "2")
            #expect(enough.result.code == 0, "\(enough.result.errors)")
            let stopped = try await run("--max-redirs", "1")
            #expect(stopped.result.text.hasPrefix("2 requests, 1 at once: 0 ok, 2 failed"))
            #expect(stopped.result.code == 56)
            #expect(stopped.result.errors.contains("2 times: more than 1 redirects\n"))
            #expect(stopped.paths == ["/a", "/b", "/a", "/b"])
        }
    }

    @Test func `with --silent the summary of repeated requests is still printed`() async throws {
        try await withScriptedServer(reply: { _ in .status(500, body: "no") }) { server in
            let result = try await Tool.run(["get", "-s", "--repeat", "2", server.url("/a").absoluteString])
            #expect(result.code == 56)
            #expect(result.text.hasPrefix("2 requests, 1 at once: 0 ok, 2 failed"))
            #expect(result.errors.isEmpty)
        }
    }

    @Test func `a private authority is trusted when it is named`() async throws {
        let certificates = try TestCertificates.shared.get()
        let folder = try TemporaryDirectory()
        try folder.write(Array(certificates.rootPEM.utf8), to: "root.pem")
        try await withScriptedServer(identity: certificates.valid, reply: { _ in .ok("secret") }) { server in
            let address = server.url("/a", host: "localhost").absoluteString
            let trusted = try await Tool.run(["get", "--cacert", "root.pem", "--metrics", address], in: folder)
            #expect(trusted.code == 0, "\(trusted.errors)")
            #expect(trusted.text == "secret")
            #expect(trusted.errors.contains("TLS 1.3"))
            let refused = try await Tool.run(["get", address], in: folder)
            #expect(refused.code == 60, "\(refused.errors)")
        }
    }
}
