// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Command lines as users of curl write them.
@Suite(.timeLimit(.minutes(3)))
struct CommandLineTests {
    @Test func `a URL without a command is loaded, and options may come first`() async throws {
        try await withScriptedServer(reply: { .ok("\($0.method) \($0.header("X-A") ?? "") \($0.bodyText)") }) {
            (server) async throws in
            let address = server.url("/a").absoluteString
            for (words, text) in [
                ([address], "GET  "), (["--url", address], "GET  "), (["-sSfL", address], "GET  "),
                (["-XPUT", "-d", "x", address], "PUT  x"), (["-sXPUT", "-dx", address], "PUT  x"),
                (["-d", "-x", "-m5", address], "POST  -x"), (["--data", "--", address], "POST  --"),
                (["-H", "X-A: 1", "-N", "--compressed", address], "GET 1 "), ([address, "-HX-A: 1"], "GET 1 "),
            ] {
                let result = try await Tool.run(words)
                #expect(result.code == 0 && result.text == text, "\(words) \(result.text) \(result.errors)")
            }
        }
    }

    @Test func `other commands, --help and -V work without a URL, but other options alone do not`() async throws {
        #expect(try await Tool.run(["cookies", "list"]).code == 0)
        #expect(try await Tool.run(["--help"]).text.contains("SUBCOMMANDS:"))
        #expect(try await Tool.run(["-V"]).text.hasPrefix("urlsession "))
        #expect(try await Tool.run([]).text.contains("SUBCOMMANDS:"))
        let missing = try await Tool.run(["-s"])
        #expect(missing.code == 2 && missing.errors.contains("No URL"), "\(missing.errors)")
    }

    @Test func `several URLs are loaded in order, each into its own file`() async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { .ok($0.path + "\n") }) { (server) async throws in
            let (one, two, three) = (
                server.url("/one").absoluteString, server.url("/two").absoluteString, server.url("/three").absoluteString
            )
            #expect(try await Tool.run([one, "--url", two, three]).text == "/one\n/two\n/three\n")
            let filed = try await Tool.run(["-s", "-o", "a", one, "-o", "b", two, three], in: folder)
            #expect(filed.text == "/three\n", "\(filed.errors)")
            #expect(try String(contentsOf: folder.file("a"), encoding: .utf8) == "/one\n")
            #expect(try String(contentsOf: folder.file("b"), encoding: .utf8) == "/two\n")
            let named = try await Tool.run(["-sO", one, two], in: folder)
            #expect(named.text == "/two\n")
            #expect(try await Tool.run(["-s", "--remote-name-all", two, three], in: folder).text.isEmpty)
            #expect(try folder.names.sorted() == ["a", "b", "one", "three", "two"])
        }
    }

    @Test func `the last of several URLs decides the exit code, unless --fail-early is given`() async throws {
        try await withScriptedServer(reply: { $0.path == "/bad" ? .status(404, body: "no") : .ok("good") }) {
            (server) async throws in
            let (good, bad) = (server.url("/good").absoluteString, server.url("/bad").absoluteString)
            let last = try await Tool.run(["-sSf", bad, good])
            #expect(last.code == 0 && last.text == "good")
            #expect(last.errors == "urlsession: (22) the server answered 404\n")
            #expect(try await Tool.run(["-sSf", good, bad]).code == 22)
            let early = try await Tool.run(["-sSf", "--fail-early", bad, good])
            #expect(early.code == 22 && early.text.isEmpty)
        }
    }

    @Test func `standard input is sent to each URL`() async throws {
        let folder = try TemporaryDirectory()
        let input = try folder.write(Array("body".utf8), to: "input")
        try await withScriptedServer(reply: { .ok($0.bodyText + "\n") }) { (server) async throws in
            let address = server.url("/a").absoluteString
            #expect(try await Tool.run(["-d", "@-", address, address], input: input).text == "body\nbody\n")
        }
    }

    @Test func `a forbidden protocol is refused, even after a redirect`() async throws {
        let certificates = try TestCertificates.shared.get()
        let folder = try TemporaryDirectory()
        try folder.write(Array(certificates.rootPEM.utf8), to: "root.pem")
        try await withScriptedServer(reply: { _ in .ok("clear") }) { (clear) async throws in
            let target = clear.url("/").absoluteString
            try await withScriptedServer(
                identity: certificates.valid, reply: { $0.path == "/on" ? .redirect(302, to: target) : .ok("safe") }
            ) { (server) async throws in
                let secure = ["--tlsv1.2", "-sSf", "--cacert", "root.pem", server.url("/a", host: "localhost").absoluteString]
                let away = ["-sSf", "--cacert", "root.pem", server.url("/on", host: "localhost").absoluteString]
                let allowed = try await Tool.run(["--proto", "=https"] + secure, in: folder)
                #expect(allowed.code == 0 && allowed.text == "safe", "\(allowed.errors)")
                for words in [
                    ["--proto", "=https", target], ["--proto", "-all,https", target], ["--proto", "=https"] + away,
                    ["--proto-redir", "-http"] + away, ["get", "--proto", "-http", target],
                    ["download", "--proto", "=https", target],
                ] {
                    let refused = try await Tool.run(words, in: folder)
                    #expect(refused.code == 1 && refused.text.isEmpty, "\(words) \(refused.errors)")
                    #expect(refused.errors.contains("http is not among the protocols that --proto"), "\(refused.errors)")
                }
                #expect(clear.requests.isEmpty)
                #expect(try await Tool.run(["--proto", "+http"] + away, in: folder).text == "clear")
            }
        }
    }

    @Test func `the flags for TLS versions set the minimum`() async throws {
        let certificates = try TestCertificates.shared.get()
        let folder = try TemporaryDirectory()
        try folder.write(Array(certificates.rootPEM.utf8), to: "root.pem")
        try await withScriptedServer(identity: certificates.valid, reply: { _ in .ok("safe") }) { (server) async throws in
            let rest = ["--cacert", "root.pem", server.url("/a", host: "localhost").absoluteString]
            for version in ["--tlsv1.2", "--tlsv1.3", "--tlsv1"] {
                #expect(try await Tool.run([version] + rest, in: folder).text == "safe")
            }
            let none = try await Tool.run(["--tlsv1.3", "--tls-max", "1.2"] + rest, in: folder)
            #expect(none.code == 2, "\(none.errors)")
        }
    }

    @Test func `-4 and -6 choose the address family`() async throws {
        try await withScriptedServer(reply: { _ in .ok("here") }) { (server) async throws in
            let names = ["--resolve", "two.test:\(server.port):::1,127.0.0.1", "http://two.test:\(server.port)/"]
            let four = try await Tool.run(["-4"] + names)
            #expect(four.code == 0 && four.text == "here", "\(four.errors)")
            let six = try await Tool.run(["-6", "http://127.0.0.1:\(server.port)/"])
            #expect(six.code != 0, "\(six.text)")
            #expect(try await Tool.run(["-4", "-6"] + names).code == 2)
            #expect(server.requests.count == 1)
        }
    }
}
