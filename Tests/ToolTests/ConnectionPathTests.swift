// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// `--resolve`, `--connect-to`, `--unix-socket` and `--interface`.
@Suite(.timeLimit(.minutes(3))) struct ConnectionPathTests {
    private func withServer(_ test: (ScriptedServer) async throws -> Void) async throws {
        try await withScriptedServer(reply: { .ok($0.header("Host") ?? "none") }, test: test)
    }

    @Test func `--resolve and --connect-to change the destination, but not the Host field`() async throws {
        try await withServer { (server) async throws in
            let port = server.port
            for (options, address, host) in [
                (["--resolve", "a.example:\(port):127.0.0.1"], "http://a.example:\(port)/", "a.example:\(port)"),
                (["--resolve", "+a.example:\(port):[::1],127.0.0.1"], "http://A.example:\(port)/", "A.example:\(port)"),
                (["--resolve", "*:\(port):127.0.0.1"], "http://b.example:\(port)/", "b.example:\(port)"),
                (["--connect-to", "a.example:80:127.0.0.1:\(port)"], "http://a.example/", "a.example"),
                (["--connect-to", "::127.0.0.1:\(port)"], "http://c.example:81/", "c.example:81"),
                (
                    ["--connect-to", "[::1]::localhost:", "--resolve", "localhost:\(port):127.0.0.1"], "http://[::1]:\(port)",
                    "[::1]:\(port)"
                ),
            ] {
                let result = try await Tool.run(["get"] + options + [address])
                #expect(result.code == 0, "\(options): \(result.errors)")
                #expect(result.text.lowercased() == host.lowercased(), "\(options)")
            }
        }
    }

    @Test func `a stored response is not used if --connect-to leads to another server`() async throws {
        let home = try TemporaryDirectory()
        try await withScriptedServer(reply: { _ in .ok("own", [("Cache-Control", "max-age=600")]) }) { (own) async throws in
            try await withServer { (other) async throws in
                let address = own.url("/", host: "localhost").absoluteString
                #expect(try await Tool.run(["get", address], home: home).text == "own")
                let elsewhere = ["--connect-to", "::127.0.0.1:\(other.port)", address]
                #expect(try await Tool.run(["get"] + elsewhere, home: home).text == "localhost:\(own.port)")
                #expect(try await Tool.run(["get", "--cached", address], home: home).text == "own")
                #expect(own.connectionCount == 1)
            }
        }
    }

    @Test func `--dns-servers are queried`() async throws {
        let names = try await ScriptedNameServer.start { _, _ in .addresses("127.0.0.1") }
        try await withServer { (server) async throws in
            let address = server.url("/", host: "somewhere.test").absoluteString
            let result = try await Tool.run(["get", "--dns-servers", "127.0.0.1:\(names.port)", address])
            #expect(result.code == 0, "\(result.errors)")
            #expect(names.count("somewhere.test") == 1)
            #expect(try await Tool.run(["get", "--dns-servers", "nowhere", address]).code == 7)
        }
        await names.close()
    }

    @Test func `--unix-socket connects to the socket`() async throws {
        let folder = try TemporaryDirectory()
        let server = try await ScriptedServer.start(path: folder.path + "/s.sock") { .ok($0.header("Host") ?? "none") }
        let result = try await Tool.run(["get", "--unix-socket", "s.sock", "http://localhost/x"], in: folder)
        #expect(result.code == 0, "\(result.errors)")
        #expect(result.text == "localhost")
        try await server.close()
        let none = try await Tool.run(["get", "--unix-socket", "none.sock", "http://localhost/x"], in: folder)
        #expect(none.code == 7)
        #expect(none.errors.contains("none.sock: no such file or directory"), "\(none.errors)")
    }

    @Test func `--interface takes a name or an address, and a missing interface results in 45`() async throws {
        try await withServer { (server) async throws in
            let address = server.url("/").absoluteString
            for name in ["lo", "127.0.0.7", "if!lo", "host!127.0.0.7"] {
                let result = try await Tool.run(["get", "--interface", name, address])
                #expect(result.code == 0, "\(name): \(result.errors)")
            }
            for name in ["no-such-one", "192.0.2.1", "host!lo"] {
                let result = try await Tool.run(["get", "--interface", name, address])
                #expect(result.code == 45, "\(name): \(result.errors)")
            }
        }
    }

    @Test(
        arguments: [
            ("--resolve", "a.example"), ("--resolve", "a.example:80"), ("--resolve", "a.example:0:127.0.0.1"),
            ("--resolve", ":80:127.0.0.1"),
            ("--resolve", "a.example:80:b.example"), ("--resolve", "a.example:80:127.0.0.1,"), ("--connect-to", "a:1:b"),
            ("--connect-to", "a:x:b:1"), ("--connect-to", "a:1:b:70000"), ("--connect-to", "[::1:b:1"),
        ]
    )
    func `an invalid value is refused`(_ option: String, _ value: String) async throws {
        let result = try await Tool.run(["get", option, value, "http://127.0.0.1:9/"])
        #expect(result.code == 2, "\(result.code) \(result.errors)")
        #expect(result.errors.contains("'\(value)'"), "\(result.errors)")
    }
}
