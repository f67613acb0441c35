// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Synchronization
import Testing

/// Which loads of one command share a connection.
@Suite(.timeLimit(.minutes(2)))
struct SharedConnectionTests {
    private static func echo(_ request: RecordedRequest) -> ScriptedReply { .ok(request.path) }

    @Test func `the URLs of one command use one connection`() async throws {
        try await withScriptedServer(reply: Self.echo) { (server) async throws in
            let (a, b) = (server.url("/a").absoluteString, server.url("/b").absoluteString)
            let result = try await Tool.run(["-s", a, b, "-w", "[%{num_connects}]"])
            #expect(result.text == "/a[1]/b[0]", "\(result.errors)")
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `commands separated by --next share a connection if their connection options are equal`() async throws {
        try await withScriptedServer(reply: Self.echo) { (server) async throws in
            let (a, b, c) = (server.url("/a").absoluteString, server.url("/b").absoluteString, server.url("/c").absoluteString)
            let result = try await Tool.run(["-s", a, "--next", "-s", "-d", "x", b, "--next", "-s", "-I", "-o", "/dev/null", c])
            #expect(result.text == "/a/b", "\(result.errors)")
            #expect(server.requests.map(\.method) == ["GET", "POST", "HEAD"])
            // The HEAD request is for the uncompressed file, which needs a session of its own.
            #expect(server.connectionCount == 2)
            let other = try await Tool.run(["-s", a, "--next", "-s", "--http1.1", b])
            #expect(other.text == "/a/b" && server.connectionCount == 4)
        }
    }

    @Test func `a password of one URL is not sent for another URL`() async throws {
        try await withScriptedServer(reply: { request in
            request.header("Authorization") == nil
                ? .status(401, [("WWW-Authenticate", "Basic realm=\"r\"")], body: "who?") : .ok("hello")
        }) { (server) async throws in
            let address = server.url("/a").absoluteString
            let named = address.replacing("http://", with: "http://me:secret@")
            for words in [[named, address], ["-u", "me:secret", address, "--next", "-s", address]] {
                let result = try await Tool.run(["-s"] + words)
                #expect(result.text == "hellowho?", "\(result.errors)")
            }
        }
    }

    @Test func `only the last connections stay open after a hundred hosts with a login`() async throws {
        let counts = Mutex<[Int]>([])
        let open = Mutex<@Sendable () -> Int>({ 0 })
        try await withScriptedServer(reply: { request in
            counts.withLock { $0.append(open.withLock { $0 }()) }
            return .ok(".")
        }) { (server) async throws in
            open.withLock { $0 = { server.openConnectionCount } }
            let port = try #require(server.url().port)
            let result = try await Tool.run(["-s", "-u", "me:secret", "http://h[1-100].localhost:\(port)/"])
            #expect(result.text == String(repeating: ".", count: 100), "\(result.errors)")
            #expect(counts.withLock { $0.max() ?? 0 } < 50)
        }
    }

    @Test func `the URLs of one command share a connection over TLS if the roots vouch for the server`() async throws {
        let certificates = try TestCertificates.shared.get()
        let folder = try TemporaryDirectory()
        try folder.write(Array(certificates.rootPEM.utf8), to: "root.pem")
        try await withScriptedServer(identity: certificates.valid, reply: Self.echo) { (server) async throws in
            let urls = ["/a", "/b", "/c"].map { server.url($0, host: "localhost").absoluteString }
            for options in [["--cacert", "root.pem"], ["-k", "--cacert", "root.pem"]] {
                let before = server.connectionCount
                let result = try await Tool.run(options + ["-s"] + urls + ["-w", "[%{num_connects}]"], in: folder)
                #expect(result.text == "/a[1]/b[0]/c[0]", "\(options): \(result.errors)")
                #expect(server.connectionCount == before + 1)
            }
            // The key is not the pinned one: each URL fails by itself.
            let pin = "sha256//" + Data(count: 32).base64EncodedString()
            let result = try await Tool.run(["-s", "--cacert", "root.pem", "--pin", pin] + urls, in: folder)
            #expect(result.text.isEmpty && result.code == 90, "\(result.errors)")
        }
        // Only the answers to `-k` trust this server, each for its own URL.
        try await withScriptedServer(identity: certificates.selfSigned, reply: Self.echo) { (server) async throws in
            let urls = ["/a", "/b"].map { server.url($0).absoluteString }
            let result = try await Tool.run(["-sk"] + urls + ["-w", "[%{num_connects}]"], in: folder)
            #expect(result.text == "/a[1]/b[1]", "\(result.errors)")
        }
    }

    @Test func `--insecure for one URL does not apply to the next`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withScriptedServer(identity: certificates.valid, reply: Self.echo) { (server) async throws in
            let address = server.url("/a").absoluteString
            let result = try await Tool.run(["-sk", address, "--next", "-s", address])
            #expect(result.text == "/a" && result.code == 60, "\(result.errors)")
        }
    }
}
