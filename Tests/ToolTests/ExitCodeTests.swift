// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

@Suite(.timeLimit(.minutes(3)))
struct ExitCodeTests {
    struct Reply: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let code: Int32
        var arguments: [String] = []
        let reply: @Sendable (RecordedRequest) -> ScriptedReply
    }

    static let replies = [
        Reply(testDescription: "the server breaks the protocol: 8", code: 8) { _ in [.write("HELLO\r\n\r\n"), .close] },
        Reply(testDescription: "a truncated body: 18", code: 18) { _ in
            [.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"), .close]
        },
        Reply(testDescription: "an HTTP error with --fail: 22", code: 22, arguments: ["--fail"]) { _ in .status(404, body: "no")
        },
        Reply(testDescription: "an HTTP error without --fail: 0", code: 0) { _ in .status(404, body: "no") },
        Reply(testDescription: "a file that cannot be written: 23", code: 23, arguments: ["-o", "no/such/folder"]) { _ in .ok("a")
        },
        Reply(testDescription: "a silent server: 28", code: 28, arguments: ["--max-time", "0.3"]) { _ in [.stall] },
        Reply(testDescription: "an exceeded idle time: 28", code: 28, arguments: ["--idle-time", "0.3"]) { _ in [.stall] },
        Reply(testDescription: "a redirect to itself: 47", code: 47) { _ in .redirect(302, to: "/a") },
        Reply(testDescription: "more redirects than allowed: 47", code: 47, arguments: ["--max-redirs", "2"]) { request in
            request.order < 3 ? .redirect(302, to: "/\(request.order)") : .ok("far away")
        },
        Reply(testDescription: "as many redirects as allowed: 0", code: 0, arguments: ["--max-redirs", "3"]) { request in
            request.order < 3 ? .redirect(302, to: "/\(request.order)") : .ok("far away")
        },
        Reply(testDescription: "no response: 52", code: 52, arguments: ["-X", "POST"]) { _ in [.close] },
        Reply(testDescription: "a body that is not gzip: 61", code: 61) { _ in
            .ok("not gzip at all", [("Content-Encoding", "gzip")])
        },
    ]

    @Test(arguments: replies)
    func `each behavior of a server has the exit code of curl`(_ row: Reply) async throws {
        try await withScriptedServer(reply: row.reply) { server in
            let result = try await Tool.run(["get"] + row.arguments + [server.url("/a").absoluteString])
            #expect(result.code == row.code, "\(result.errors)")
            if row.code != 0 {
                #expect(result.errors.contains("urlsession: (\(row.code)) "))
            }
        }
    }

    @Test(
        arguments: [
            (["get", "gopher://127.0.0.1/"], 1),
            (["get"], 2),
            (["get", "--nonsense", "http://127.0.0.1/"], 2),
            (["get", "--idle-time", "0", "http://127.0.0.1/"], 2),
            (["get", "--max-time", "5", "--idle-time", "-1", "http://127.0.0.1/"], 2),
            (["get", "--max-time", "0", "--idle-time", "5", "http://127.0.0.1/"], 2),
            (["get", "--repeat", "2", "-o", "file", "http://127.0.0.1/"], 2),
            (["get", "--repeat", "2", "--include", "http://127.0.0.1/"], 2),
            (["get", "--repeat", "2", "--fail", "http://127.0.0.1/"], 2),
            (["get", "--repeat", "2", "--verbose", "http://127.0.0.1/"], 2),
            (["get", "--repeat", "2", "--metrics", "http://127.0.0.1/"], 2),
            (["get", "http://[/"], 3),
            (["get", "http://\(String(repeating: "a", count: 70)).example/"], 6),
            (["get", "--cacert", "/dev/null", "https://localhost/"], 77),
            (["upload", "/no/such/file", "http://127.0.0.1/"], 26),
            (["get", "-d", "@/no/such/file", "http://127.0.0.1/"], 26),
            (["get", "file:///no/such/file"], 37),
        ] as [([String], Int32)])
    func `errors that need no server have curl's exit code`(_ arguments: [String], _ code: Int32) async throws {
        let result = try await Tool.run(arguments)
        #expect(result.code == code, "\(result.errors)")
        #expect(!result.errors.isEmpty)
    }

    @Test func `a refused connection results in 7, and the message names the address`() async throws {
        let port = try RefusingPort()
        let result = try await Tool.run(["get", "http://127.0.0.1:\(port.number)/a"])
        #expect(result.code == 7)
        #expect(result.errors.contains("127.0.0.1"))
    }

    @Test func `with --silent only the exit code remains`() async throws {
        try await withScriptedServer(reply: { _ in .status(500, body: "no") }) { server in
            let result = try await Tool.run(["get", "-s", "-f", server.url("/a").absoluteString])
            #expect(result.code == 22)
            #expect(result.errors.isEmpty)
            #expect(result.output.isEmpty)
        }
    }

    @Test func `https to a server that speaks only http is a failed handshake`() async throws {
        let greeting: [SocketEffect] = [.write("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"), .close]
        try await withScriptedServer(greeting: { _ in greeting }, reply: { _ in .ok() }) { server in
            let result = try await Tool.run(["get", "https://127.0.0.1:\(server.port)/"])
            #expect(result.code == 35, "\(result.errors)")
        }
    }
}
