// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Checks the servers of the HTTP/2 tests with curl: if these tests fail, the servers are at fault, not our client.
@Suite(.timeLimit(.minutes(1)))
struct HTTP2ServersTests {
    /// curl, which uses nghttp2 for HTTP/2.
    struct Curl {
        let certificates: TestCertificates
        let directory: TemporaryDirectory
        private let program: String

        struct Answer: Equatable {
            var status: String
            /// The version of HTTP: 1.1 or 2.
            var version: String
            var page: String
        }

        init() throws {
            certificates = try TestCertificates.shared.get()
            directory = try TemporaryDirectory()
            try directory.write(certificates.rootPEM.utf8, to: "root.pem")
            program = try ServerProcess.program("curl", package: "curl")
        }

        func callAsFunction(_ url: URL, _ arguments: String...) async throws -> Answer {
            let page = directory.file("page-\(UUID().uuidString)")
            let way = url.scheme == "https" ? "--http2" : "--http2-prior-knowledge"
            let fixed = [
                program, "-q", "-sS", "-m", "20", way, "--cacert", directory.file("root.pem").path, "-o", page.path, "-w",
                "%{http_code}|%{http_version}",
            ]
            let text = try await ServerProcess.run(
                ServerProcess.Command(fixed + arguments + [url.absoluteString], output: directory.file(UUID().uuidString)))
            let fields = text.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
            let content = (try? String(contentsOf: page, encoding: .utf8)) ?? ""
            return Answer(status: fields.first ?? "", version: fields.last ?? "", page: content)
        }
    }

    @Test func `nginx, Apache, nghttpd and Caddy speak HTTP/2, over TLS and in cleartext`() async throws {
        let curl = try Curl()
        let identity = curl.certificates.valid
        let nginx = try NginxServer.start(identity)
        let apache = try ApacheServer.start(curl.certificates)
        let secure = try NGHTTPServer.start(identity)
        let clear = try NGHTTPServer.start()
        let caddy = try CaddyServer.start(identity)
        defer { for stop in [nginx.stop, apache.stop, secure.stop, clear.stop, caddy.stop] { stop() } }
        try nginx.put("page".utf8, at: "/page.txt")
        for server in [secure, clear] { try server.put("page".utf8, at: "/page.txt") }
        try caddy.put("page".utf8, at: "/page.txt")
        let good = Curl.Answer(status: "200", version: "2", page: "page")
        for access in [NginxServer.Access.http2, .http2InClear] {
            #expect(try await curl(nginx.url("/page.txt", access)) == good, "\(nginx.errorLog)")
        }
        #expect(try await curl(nginx.url("/page.txt", .secure)).version == "1.1")
        for access in [ApacheServer.Access.http2, .http2InClear] {
            let answer = try await curl(apache.url("/open/page.txt", access))
            #expect(answer == Curl.Answer(status: "200", version: "2", page: "page of open"))
        }
        #expect(try await curl(apache.url("/open/page.txt", .secure)).version == "1.1")
        for server in [secure, clear] { #expect(try await curl(server.url("/page.txt")) == good, "\(server.log)") }
        for isSecure in [true, false] { #expect(try await curl(caddy.url("/page.txt", secure: isSecure)) == good) }
    }

    @Test(arguments: HTTP2Start.allCases) func `the scripted server responds and records what it received`(
        _ way: HTTP2Start
    ) async throws {
        let curl = try Curl()
        try await withHTTP2Server(
            identity: way == .secure ? curl.certificates.valid : nil, reply: { .ok("\($0.method) \($0.path)") }
        ) { (server) async throws in
            let answer = try await curl(server.url("/a?b"), "-d", "some text")
            #expect(answer == Curl.Answer(status: "200", version: "2", page: "POST /a?b"))
            let request = try await server.request(0)
            #expect(request.authority == "localhost:\(server.port)" && request.bodyText == "some text")
            #expect(request.bodyHash == "b94f6f125c79e3a5ffaa826f584c10d52ada669e6762051b826b55776d05aed2")
            #expect(server.frames().first?.kind == .settings)
            #expect(server.protocols == [way == .secure ? "h2" : nil])
            try await server.waitForAllClosed()
        }
    }

    @Test func `the scripted server respects windows, however large a body is`() async throws {
        let curl = try Curl()
        try await withHTTP2Server(
            identity: curl.certificates.valid,
            reply: { _ in [.head(), .data([UInt8](repeating: 0x61, count: 50_000), times: 1000)] }
        ) { (server) async throws in
            let answer = try await curl(server.url("/"))
            #expect(answer.version == "2" && answer.page.utf8.count == 50_000_000)
            #expect(!server.frames(.windowUpdate).isEmpty)
        }
    }

    @Test func `the scripted server speaks HTTP/1.1 if ALPN selects it`() async throws {
        let curl = try Curl()
        try await withHTTP2Server(
            identity: curl.certificates.valid, protocols: ["http/1.1"], greeting: { _ in [] },
            reply: { request in [.write("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n\(request.isHTTP2 ? "two" : "one")")] }
        ) { (server) async throws in
            let answer = try await curl(server.url("/"))
            #expect(answer == Curl.Answer(status: "200", version: "1.1", page: "one"))
            #expect(server.protocols == ["http/1.1"] && server.requests.first?.path == "/")
        }
    }

    @Test func `the scripted server detects protocol violations`() async throws {
        let curl = try Curl()
        let server = try HTTP2ScriptedServer.start(reply: { _ in .ok() })
        // The body is shorter than the declared length.
        _ = try? await curl(server.url("/"), "-H", "Content-Length: 7", "-d", "more")
        await #expect(throws: ScriptedServer.ScriptError.self) { try await server.close() }
    }
}
