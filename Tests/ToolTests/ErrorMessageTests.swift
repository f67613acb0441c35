// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Each error message is one line in plain words that names the place of the failure once.
@Suite(.timeLimit(.minutes(3)))
struct ErrorMessageTests {
    /// The behavior of a server, and the expected error message, in which PLACE stands for the server's address.
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let code: Int
        let text: String
        var scheme = "http"
        var arguments: [String] = []
        var greeting: [SocketEffect] = []
        var reply: ScriptedReply = .ok()
    }

    private static let alert: [UInt8] = [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x50]
    private static let nonsense: [UInt8] = [0x16, 0x03, 0x03, 0x00, 0x04, 0x02, 0x00, 0x00, 0x00]

    static let rows = [
        Row(
            testDescription: "closed in the body", code: 18,
            text: "receiving the response from PLACE: "
                + "the connection was closed before the content announced by Content-Length was complete",
            reply: [.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"), .close]),
        Row(
            testDescription: "closed in a chunked body", code: 18,
            text: "receiving the response from PLACE: the connection was closed before the last chunk",
            reply: [.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"), .close]),
        Row(
            testDescription: "closed before the head", code: 52,
            text: "receiving the response from PLACE: the connection was closed before a response", reply: [.close]),
        Row(
            testDescription: "reset in the body", code: 56,
            text: "receiving the response from PLACE: "
                + "the connection was closed before the content announced by Content-Length was complete "
                + "(connection reset by peer)",
            reply: [.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"), .reset]),
        Row(
            testDescription: "no HTTP head", code: 8,
            text: "receiving the response from PLACE: the response does not begin with an HTTP/1 status line",
            reply: [.write("HELLO\r\n\r\n"), .close]),
        Row(
            testDescription: "a broken head", code: 8,
            text: "receiving the response from PLACE: there is whitespace between a field name and its colon",
            reply: [.write("HTTP/1.1 200 OK\r\nA : b\r\n\r\n"), .close]),
        Row(
            testDescription: "a broken body", code: 61,
            text: "the body does not match its content coding: incorrect header check",
            reply: .ok("not gzip at all", [("Content-Encoding", "gzip")])),
        Row(
            testDescription: "a timeout", code: 28, text: "the load took longer than 0.3 s (--max-time)",
            arguments: ["--max-time", "0.3"], reply: [.stall]),
        Row(
            testDescription: "an idle time", code: 28, text: "nothing arrived for 0.3 s (--idle-time)",
            arguments: ["--idle-time", "0.3"], reply: [.stall]),
        Row(
            testDescription: "too many redirects", code: 47, text: "more than 2 redirects", arguments: ["--max-redirs", "2"],
            reply: .redirect(302, to: "/a?b")),
        Row(
            testDescription: "an HTTP error", code: 22, text: "the server answered 404", arguments: ["-f"],
            reply: .status(404, body: "no")),
        Row(
            testDescription: "TLS to a server without it", code: 35,
            text: "securing the connection to 127.0.0.1: "
                + "the server does not speak TLS on this port (perhaps the URL should begin with http:)",
            scheme: "https", greeting: [.awaitBytes(1), .write("HTTP/1.1 400 Bad Request\r\n\r\n"), .close]),
        Row(
            testDescription: "closed in the handshake", code: 35,
            text: "securing the connection to 127.0.0.1: the server closed the connection during the TLS handshake",
            scheme: "https", greeting: [.awaitBytes(1), .close]),
        Row(
            testDescription: "an alert", code: 35,
            text: "securing the connection to 127.0.0.1: the TLS handshake failed: tlsv1 alert internal error",
            scheme: "https", greeting: [.awaitBytes(1), .write(alert), .close]),
        Row(
            testDescription: "an invalid handshake", code: 35,
            text: "securing the connection to 127.0.0.1: the TLS handshake failed: decode error",
            scheme: "https", greeting: [.awaitBytes(1), .write(nonsense), .close]),
    ]

    @Test(arguments: rows)
    func `a failure is one sentence, and --verbose adds its cause`(_ row: Row) async throws {
        try await withScriptedServer(greeting: { _ in row.greeting }, reply: { _ in row.reply }) { server in
            let address = "\(row.scheme)://127.0.0.1:\(server.port)/a"
            let result = try await Tool.run(["get"] + row.arguments + [address])
            let text = row.text.replacingOccurrences(of: "PLACE", with: "127.0.0.1:\(server.port)")
            #expect(result.errors == "urlsession: (\(row.code)) \(text)\n")
            let verbose = try await Tool.run(["get", "-v"] + row.arguments + [address])
            #expect(verbose.errors.contains("urlsession: (\(row.code)) \(text)\n"))
        }
    }

    @Test(
        arguments: [
            ("http:///a", 3, "http:///a is not a URL that can be loaded: it has no host"),
            (
                "http://127.0.0.1:99999/", 3,
                "http://127.0.0.1:99999/ is not a URL that can be loaded: its port is not a number from 1 to 65535"
            ),
            ("http://a b/", 3, "'http://a b/' is not a URL"),
            ("gopher://127.0.0.1/", 1, "the scheme of gopher://127.0.0.1/ is not supported"),
            ("http://nowhere.invalid/", 6, "looking up nowhere.invalid: there is no such host"),
            ("file:///no/such/file", 37, "opening /no/such/file: no such file or directory"),
        ])
    func `an invalid address is explained in one sentence`(_ address: String, _ code: Int, _ text: String) async throws {
        let result = try await Tool.run(["get", address])
        #expect(result.errors == "urlsession: (\(code)) \(text)\n")
    }

    @Test func `a request that cannot be sent is explained in one sentence`() async throws {
        try await withScriptedServer(reply: { _ in .ok() }) { server in
            let address = server.url("/").absoluteString
            let method = try await Tool.run(["get", "-X", "A B", address])
            #expect(method.errors == "urlsession: (3) the request cannot be sent: the method is not a token\n")
            let field = try await Tool.run(["get", "-H", "A B: c", address])
            #expect(field.errors == "urlsession: (3) the request cannot be sent: the field name \"A B\" is not a token\n")
        }
    }

    @Test func `the refusing address is named once`() async throws {
        let port = try RefusingPort()
        let place = "127.0.0.1:\(port.number)"
        let result = try await Tool.run(["get", "http://\(place)/a"])
        #expect(result.errors == "urlsession: (7) connecting to \(place): connection refused\n")
        let verbose = try await Tool.run(["get", "-v", "http://\(place)/a"])
        #expect(verbose.errors.hasPrefix("urlsession: (7) connecting to \(place): connection refused\n* the cause: "))
    }

    @Test func `an untrusted server is explained in one sentence`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withScriptedServer(identity: certificates.valid, reply: { _ in .ok() }) { server in
            let result = try await Tool.run(["get", server.url("/a", host: "localhost").absoluteString])
            #expect(result.code == 60)
            #expect(result.errors.hasPrefix("urlsession: (60) "))
            #expect(result.errors.components(separatedBy: "localhost").count == 2, "\(result.errors)")
            #expect(result.errors.split(separator: "\n").count == 1)
            #expect(!result.errors.contains(".cc:"))
        }
    }
}
