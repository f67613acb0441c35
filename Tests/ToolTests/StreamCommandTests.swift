// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// `urlsession stream`.
@Suite(.timeLimit(.minutes(3)))
struct StreamCommandTests {
    private func run(
        _ arguments: [String] = [], input: String, _ script: @escaping @Sendable (StreamPeer.Connection) throws -> Void
    ) async throws -> Tool.Result {
        let folder = try TemporaryDirectory()
        let file = try folder.write(input.utf8, to: "input")
        let peer = try StreamPeer(script)
        defer { peer.stop() }
        let result = try await Tool(["stream", "localhost", "\(peer.port)"] + arguments, in: folder, input: file).result()
        try await peer.waitForEnds()
        return result
    }

    @Test func `standard input is sent to its end, and received bytes are written to their end`() async throws {
        let result = try await run(input: "one\ntwo\u{0}") { connection in
            try connection.echo()
            try connection.write("after")
        }
        #expect(result.code == 0)
        #expect(result.output == Data("one\ntwo\u{0}after".utf8))
        #expect(result.errors.isEmpty)
    }

    @Test func `the command ends when the server closes`() async throws {
        let result = try await run(input: "") { try $0.write("bye") }
        #expect(result.code == 0)
        #expect(result.text == "bye")
    }

    @Test(arguments: ["smtp", "imap"]) func `TLS can be started with third-party mail servers`(
        dialogue: String
    ) async throws {
        let certificates = try TestCertificates.shared.get()
        let server = dialogue == "smtp" ? try SmallServer.smtp(certificates.valid) : try SmallServer.imap(certificates.valid)
        defer { server.stop() }
        let folder = try TemporaryDirectory()
        let root = try folder.write(certificates.rootPEM.utf8, to: "root.pem")
        let input = try folder.write("".utf8, to: "input")
        let arguments = ["stream", "localhost", "\(server.port)", "--starttls", dialogue]
        let result = try await Tool(arguments + ["--cacert", root.path], in: folder, input: input).result()
        #expect(result.code == 0, "\(result.code) \(result.errors)")
        let untrusted = try await Tool(arguments, in: folder, input: input).result()
        #expect(untrusted.code == 60 && untrusted.output.isEmpty, "\(untrusted.code) \(untrusted.errors)")
    }

    @Test(arguments: [
        ("smtp", ["220 here\r\n", "250-here\r\n250 STARTTLS\r\n", "454 not now\r\n"]),
        ("smtp", ["220 here\r\n", "250 here\r\n"]),
        ("smtp", ["554 no\r\n"]), ("imap", ["* OK here\r\n", "* CAPABILITY\r\na NO\r\n"]),
        ("pop3", ["+OK here\r\n", "-ERR\r\n"]),
        ("ftp", ["220 here\r\n", "502 what?\r\n"]),
    ])
    func `a server that refuses TLS is sent nothing in clear`(dialogue: String, replies: [String]) async throws {
        let heard = Watched<[UInt8]>([])
        let result = try await run(["--starttls", dialogue], input: "secret") { connection in
            for (index, reply) in replies.enumerated() {
                if index > 0 { _ = try connection.line() }
                try connection.write(reply)
            }
            let rest = connection.rest()
            heard.change { $0 = rest }
        }
        #expect(result.code == 64, "\(result.code) \(result.errors)")
        #expect(heard.read { $0 }.isEmpty)
        #expect(result.errors.contains("does not start TLS"))
    }

    @Test func `bytes injected before the TLS handshake fail it`() async throws {
        let result = try await run(["--starttls", "pop3"], input: "secret") { connection in
            try connection.write("+OK here\r\n")
            _ = try connection.line()
            try connection.write("+OK begin\r\n+OK injected\r\n")
            _ = connection.rest()
        }
        #expect(result.code == 35, "\(result.code) \(result.errors)")
        #expect(result.output.isEmpty)
    }

    @Test func `endless lines and unreachable servers have exit codes of their own`() async throws {
        let endless = try await run(["--starttls", "smtp"], input: "") { connection in
            let line = [UInt8](repeating: 0x61, count: 65_536)
            while true { do { try connection.write(line) } catch { return } }
        }
        #expect(endless.code == 64 && endless.errors.contains("longer than"))
        let folder = try TemporaryDirectory()
        for (arguments, code) in [
            (["stream", "127.0.0.1", "1"], 7), (["stream", "h", "0"], 2),
            (["stream", "h", "1", "--tls", "--starttls", "smtp"], 2),
            (["stream", "h", "1", "-X", "PUT"], 2),
        ] as [([String], Int32)] {
            let result = try await Tool(arguments, in: folder, input: try folder.write("".utf8, to: "none")).result()
            #expect(result.code == code, "\(arguments) \(result.code) \(result.errors)")
        }
    }
}
