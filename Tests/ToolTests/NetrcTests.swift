// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// `--netrc`, `--netrc-file` and `--netrc-optional`.
@Suite(.timeLimit(.minutes(3)))
struct NetrcTests {
    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private func write(_ text: String, mode: Int = 0o600) throws {
        let file = try folder.write(Array(text.utf8), to: ".netrc")
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file.path)
    }

    /// Returns the credentials in each request that the server received.
    private func logins(_ server: ScriptedServer) -> [String?] {
        server.requests.map { request in
            request.header("Authorization").flatMap { $0.split(separator: " ").last }
                .flatMap { Data(base64Encoded: String($0)) }.map { String(decoding: $0, as: UTF8.self) }
        }
    }

    private static func asking(_ request: RecordedRequest) -> ScriptedReply {
        request.header("Authorization") == nil
            ? .status(401, [("WWW-Authenticate", "Basic realm=\"r\"")]) : .ok("in")
    }

    @Test(arguments: [
        ("machine 127.0.0.1 login ali password open", "ali:open"),
        ("machine other login eve password no\nmachine 127.0.0.1\n\tlogin ali\n\tpassword open\n", "ali:open"),
        ("machine 127.0.0.1 login \"al i\" password \"op\\\"en # x\" # more", "al i:op\"en # x"),
        ("macdef init machine 127.0.0.1 login eve\nx\n\nmachine 127.0.0.1 login ali password open", "ali:open"),
        (
            "# one\r\nmacdef init\r\nmachine 127.0.0.1 login eve\r\n\r\nmachine 127.0.0.1 login ali\r\npassword open\r\n",
            "ali:open"
        ),
        (
            "# machine 127.0.0.1 login eve password no\nmacdef init\nmachine 127.0.0.1 login eve\n\ndefault login ali password open",
            "ali:open"
        ),
        ("MACHINE 127.0.0.1 login ali account some password open machine 127.0.0.1 login eve password no", "ali:open"),
        ("machine 127.0.0.1 login ali password öffne\r\n", "ali:öffne"),
    ])
    func `the host's entry answers the server`(_ text: String, _ login: String) async throws {
        try write(text)
        try await withScriptedServer(reply: Self.asking) { (server) async throws in
            let address = server.url("/a").absoluteString
            for words in [["-n"], ["--netrc-file", folder.file(".netrc").path], ["--netrc-optional"]] {
                let result = try await Tool.run(["-sS"] + words + [address], environment: ["HOME": folder.path])
                #expect(result.code == 0 && result.text == "in", "\(words) \(result.errors)")
                #expect(logins(server).last == login)
            }
        }
    }

    @Test func `-u overrides netrc, and only --netrc overrides the URL`() async throws {
        try write("machine 127.0.0.1 login ali password open\nmachine 127.0.0.1 login bob password closed")
        try await withScriptedServer(reply: Self.asking) { (server) async throws in
            let plain = server.url("/a").absoluteString
            let named = plain.replacingOccurrences(of: "//", with: "//bob@")
            let whole = plain.replacingOccurrences(of: "//", with: "//cid:own@")
            for (words, login) in [
                (["-n", "-u", "eve:said", plain], "eve:said"), (["-n", whole], "ali:open"),
                (["--netrc-optional", whole], "cid:own"),
                (["--netrc-optional", named], "bob:closed"),
            ] {
                let result = try await Tool.run(["-sS"] + words, environment: ["HOME": folder.path])
                #expect(result.code == 0, "\(result.errors)")
                #expect(logins(server).last == login, "\(words)")
            }
        }
    }

    @Test(arguments: [0o644, 0o640, 0o620, 0o604])
    func `a file that others can read is refused`(_ mode: Int) async throws {
        try write("machine 127.0.0.1 login ali password open", mode: mode)
        try await withScriptedServer(reply: Self.asking) { (server) async throws in
            let result = try await Tool.run(["-n", server.url("/a").absoluteString], environment: ["HOME": folder.path])
            #expect(result.code == 26)
            #expect(result.errors.contains("other users may") && result.errors.contains("chmod 600"), "\(result.errors)")
            #expect(!result.errors.contains("open"))
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `a redirect to another host uses that host's entry, and never the default`() async throws {
        try await withScriptedServer(reply: { request in
            guard request.header("Authorization") != nil || request.path == "/in" else { return Self.asking(request) }
            if request.path == "/out" { return .redirect(302, to: "http://localhost:\(request.header("X-Port") ?? "")/in") }
            return Self.asking(request)
        }) { (server) async throws in
            let address = server.url("/out").absoluteString
            let port = try #require(server.url("/").port)
            func run(_ text: String) async throws -> (Tool.Result, [String?]) {
                try write(text)
                let before = server.requests.count
                let result = try await Tool.run(
                    ["-sS", "-n", "-H", "X-Port: \(port)", address, "-w", "%{http_code}", "-4"],
                    environment: ["HOME": folder.path])
                return (result, Array(logins(server)[before...]))
            }
            let (own, sent) = try await run("machine 127.0.0.1 login ali password one\nmachine localhost login bob password two")
            #expect(own.text == "in200", "\(own.errors)")
            #expect(sent == [nil, "ali:one", nil, "bob:two"])
            for text in [
                "machine 127.0.0.1 login ali password one\ndefault login eve password all", "default login ali password one",
            ] {
                let (none, sent) = try await run(text)
                #expect(none.text.hasSuffix("401"), "\(none.text)")
                #expect(sent == [nil, "ali:one", nil])
            }
        }
    }

    @Test func `a redirect from TLS to plain http gets no password`() async throws {
        let certificates = try TestCertificates.shared.get()
        try folder.write(Array(certificates.rootPEM.utf8), to: "root.pem")
        try write("machine localhost login ali password open")
        try await withScriptedServer(reply: Self.asking) { (clear) async throws in
            let target = clear.url("/in", host: "localhost").absoluteString
            try await withScriptedServer(identity: certificates.valid, reply: { _ in .redirect(302, to: target) }) {
                (server) async throws in
                let result = try await Tool.run(
                    [
                        "-s", "-n", "-4", "--cacert", "root.pem", server.url("/", host: "localhost").absoluteString, "-w",
                        "%{http_code}",
                    ],
                    in: folder, environment: ["HOME": folder.path])
                #expect(result.text.hasSuffix("401"), "\(result.text) \(result.errors)")
            }
            #expect(logins(clear) == [nil])
            let own = try await Tool.run(["-s", "-n", "-4", target], environment: ["HOME": folder.path])
            #expect(own.text == "in", "\(own.errors)")
        }
    }

    @Test func `the file in the home folder is optional, but a file that is named must exist`() async throws {
        try await withScriptedServer(reply: Self.asking) { (server) async throws in
            let address = server.url("/a").absoluteString
            let result = try await Tool.run(["-s", "-n", address, "-w", "%{http_code}"], environment: ["HOME": folder.path])
            #expect(result.text == "401")
            let missing = try await Tool.run(["--netrc-file", folder.file("none").path, address])
            #expect(missing.code == 26, "\(missing.errors)")
        }
    }

    @Test func `any file content is accepted or refused, without a crash`() async throws {
        let texts = [
            "machine", "machine 127.0.0.1 login", "password login machine default macdef", "login a password b", "\"",
            "machine \"127.0.0.1",
            "macdef", "macdef x", "default default default", "\u{0}\u{1}\u{FFFD}", String(repeating: "machine a ", count: 50_000),
            "machine 127.0.0.1 login \"\\", "machine 127.0.0.1 login \"a\\\"", "\\\"\\", "machine 127.0.0.1 password x",
            String(repeating: "#", count: 2 << 20),
        ]
        try await withScriptedServer(reply: { _ in .ok("out") }) { (server) async throws in
            for text in texts {
                try write(text)
                let result = try await Tool.run(
                    ["-s", "-n", server.url("/a").absoluteString], environment: ["HOME": folder.path])
                #expect(result.code == 0 || result.code == 26, "\(text.prefix(40))")
            }
        }
    }

    @Test func `an empty file names no user`() async throws {
        try write("")
        try await withScriptedServer(reply: { _ in .ok("in") }) { (server) async throws in
            for file in ["/dev/null", folder.file(".netrc").path] {
                let result = try await Tool.run(["-sS", "--netrc-file", file, server.url("/a").absoluteString])
                #expect(result.code == 0 && result.text == "in", "\(result.errors)")
            }
        }
    }
}
