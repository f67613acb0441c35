// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// `urlsession doctor`: its report on a load, and its exit code.
@Suite(.timeLimit(.minutes(3)))
struct DoctorCommandTests {
    private struct Report: Decodable {
        struct Step: Decodable {
            let step: String
            let result: String
            let lines: [String]
            let facts: [String: [String]]
        }
        let steps: [Step]
        let verdict: String
        let exitCode: Int32

        subscript(_ name: String) -> Step? { steps.first { $0.step == name } }
        var failing: [String] { steps.filter { $0.result == "fails" }.map(\.step) }
    }

    private let folder: TemporaryDirectory
    private let home: TemporaryDirectory

    init() throws {
        folder = try TemporaryDirectory()
        home = try TemporaryDirectory()
        try folder.write(try TestCertificates.shared.get().rootPEM.utf8, to: "root.pem")
    }

    private func examine(_ arguments: String..., environment: [String: String] = [:]) async throws -> Report {
        let result = try await Tool.run(
            ["doctor", "--json", "-m", "20"] + arguments, in: folder, home: home, environment: environment)
        let report = try JSONDecoder().decode(Report.self, from: result.output)
        #expect(report.exitCode == result.code)
        #expect(result.errors.isEmpty)
        return report
    }

    @Test func `a load that succeeds is described step by step`() async throws {
        try await withScriptedServer(reply: { _ in .ok("body", [("Cache-Control", "max-age=60"), ("Alt-Svc", "h3=\":443\"")]) }) {
            (server) async throws in
            let result = try await Tool.run(
                ["doctor", server.url("/", host: "localhost").absoluteString], in: folder, home: home)
            #expect(result.code == 0)
            let names = [
                "URL", "name", "route", "proxy", "connection", "TLS", "ATS", "HSTS", "cache", "cookies", "protocol", "answer",
            ]
            let titles = result.text.split(separator: "\n").filter { !$0.hasPrefix(" ") }.dropLast()
            #expect(titles.map { String($0.dropFirst(6).prefix { $0 != " " }) } == names)
            #expect(result.text.hasSuffix("\nThe load succeeds: localhost answers 200.\n"))
            #expect(result.text.contains("fresh for 60 s"))
            #expect(result.text.contains("h3=\":443\""))
            let request = try #require(server.requests.first)
            #expect(server.requests.count == 1)
            #expect(request.header("Cookie") == nil && request.header("Authorization") == nil)
        }
    }

    @Test func `a certificate that the server did not send, and that was fetched, is shown`() async throws {
        let location = "http://ca.example.test/issuer"
        let chain = try IncompleteChain([[location], []])
        try folder.write(chain.rootPEM.utf8, to: "roots.pem")
        try await withScriptedServer(reply: { _ in .ok(chain.issuers[0]) }) { (authority) async throws in
            try await withScriptedServer(identity: chain.identity, reply: { _ in .ok("body") }) { (server) async throws in
                let report = try await examine(
                    "--connect-to", "ca.example.test:80:127.0.0.1:\(authority.port)", server.url().absoluteString,
                    environment: ["SSL_CERT_FILE": folder.file("roots.pem").path])
                #expect(report.exitCode == 0)
                #expect(report["TLS"]?.result == "note")
                #expect(report["TLS"]?.facts["fetched"] == [location])
                #expect(report["TLS"]?.lines.contains { $0.contains("does not send all of its issuers' certificates") } == true)
                #expect(authority.requests.count == 1)
            }
        }
    }

    @Test func `an unknown host name results in exit code 6`() async throws {
        let report = try await examine("http://no-such-host.invalid/")
        #expect(report.exitCode == 6)
        #expect(report.failing == ["name", "answer"])
        #expect(report["connection"]?.result == "-")
        #expect(report.verdict.hasPrefix("The load fails (6): "))
    }

    @Test func `a refused connection results in exit code 7`() async throws {
        let port = try RefusingPort()
        let report = try await examine("http://127.0.0.1:\(port.number)/")
        #expect(report.exitCode == 7)
        #expect(report.failing == ["connection", "answer"])
        #expect(report["connection"]?.lines == ["127.0.0.1 port \(port.number): connection refused"])
        #expect(report["connection"]?.facts["failed"] == ["127.0.0.1"])
    }

    @Test(arguments: [false, true])
    func `a silent server results in exit code 28`(isSecure: Bool) async throws {
        try await withScriptedServer(greeting: { _ in [.stall] }, reply: { _ in [] }) { (server) async throws in
            let report = try await examine("-m", "1", "\(isSecure ? "https" : "http")://127.0.0.1:\(server.port)/")
            #expect(report.exitCode == 28)
            #expect(report.failing == ["answer"])
            #expect(report["connection"]?.result == "ok")
            #expect(report.verdict.contains("accepts the connection, but sends nothing"))
            #expect(report.verdict.contains("TLS") == isSecure)
        }
    }

    @Test(
        arguments: [
            ("wrongHost", "the certificate is not for 127.0.0.1", "Use one of the certificate's names"),
            ("expired", "the certificate expired on ", "has to renew"),
            ("notYetValid", "the certificate is not valid before ", "Check this machine's clock"),
            ("selfSigned", "the certificate is self-signed", "--cacert FILE"),
            ("unknownAuthority", "its root is not trusted here: CN=Strange Root", "give it with --cacert"),
            (
                "missingIntermediate", "no trusted certificate of its issuer is known: CN=Test Intermediate",
                "should also send its issuer's"
            ),
        ])
    func `an untrusted certificate results in exit code 60 and the reason`(
        _ kind: String, _ reason: String, _ advice: String
    ) async throws {
        let all = try TestCertificates.shared.get()
        let identities = [
            "wrongHost": all.wrongHost, "expired": all.expired, "notYetValid": all.notYetValid, "selfSigned": all.selfSigned,
            "unknownAuthority": all.unknownAuthority, "missingIntermediate": all.missingIntermediate,
        ]
        let identity = try #require(identities[kind])
        try await withScriptedServer(identity: identity, reply: { _ in .ok() }) { (server) async throws in
            let report = try await examine("--cacert", "root.pem", server.url().absoluteString)
            #expect(report.exitCode == 60)
            #expect(report.failing == ["TLS", "answer"])
            #expect(
                report["TLS"]?.facts["objections"]?.contains { $0.hasPrefix(reason) } == true, "\(report["TLS"]?.lines ?? [])")
            #expect(report.verdict.contains(advice), "\(report.verdict)")
        }
    }

    @Test func `the certificates of a trusted server are shown`() async throws {
        let all = try TestCertificates.shared.get()
        try await withScriptedServer(identity: all.valid, reply: { _ in .ok("", [("Strict-Transport-Security", "max-age=600")]) })
        {
            (server) async throws in
            let report = try await examine("--cacert", "root.pem", server.url().absoluteString)
            #expect(report.exitCode == 0, "\(report)")
            let facts = try #require(report["TLS"]?.facts)
            #expect(facts["version"] == ["TLS 1.3"])
            #expect(facts["names"] == ["localhost", "127.0.0.1", "::1"])
            #expect(facts["subjects"]?.first?.contains("CN=Test Server") == true)
            #expect(facts["issuers"]?.first == "CN=Test Intermediate")
            #expect(report["ATS"]?.result == "ok")
            let insecure = try await examine("--insecure", server.url().absoluteString)
            #expect(insecure["TLS"]?.result == "note")
        }
    }

    @Test func `a load that App Transport Security forbids is reported, and fails with --ats`() async throws {
        let refused = try await examine("--ats", "http://host.example/")
        #expect(refused.exitCode == 1)
        #expect(refused["ATS"]?.result == "fails")
        #expect(refused.verdict.contains("Use https"))
        try await withScriptedServer(reply: { _ in .ok() }) { (server) async throws in
            let report = try await examine("-x", server.url().absoluteString, "http://host.example/")
            #expect(report.exitCode == 0)
            #expect(report["ATS"]?.result == "note")
            #expect(report["ATS"]?.lines.first?.contains("NSExceptionDomains") == true)
        }
    }

    @Test func `a refusing proxy is reported with the setting that names it`() async throws {
        try await withScriptedServer(reply: { _ in .status(403, body: "no") }) { (server) async throws in
            let proxy = server.url("").absoluteString
            let tunnel = try await examine("https://host.example/", environment: ["https_proxy": proxy])
            #expect(tunnel["proxy"]?.lines.first == proxy)
            #expect(tunnel["proxy"]?.lines.contains("set by https_proxy in the environment") == true)
            #expect(tunnel.exitCode == 7)
            #expect(tunnel.failing == ["proxy", "answer"])
            #expect(tunnel.verdict.contains("refuses the connection"))
            #expect(tunnel.verdict.contains("403"), "\(tunnel.verdict)")
            #expect(server.requests.first?.method == "CONNECT")
            let excluded = try await examine(
                "http://127.0.0.1:\(server.port)/", environment: ["http_proxy": "http://proxy.invalid", "no_proxy": "127.0.0.1"])
            #expect(excluded["proxy"]?.result == "-")
            #expect(excluded["proxy"]?.lines.first?.contains("no_proxy") == true)
        }
        let port = try RefusingPort()
        let refused = try await examine("-x", "http://127.0.0.1:\(port.number)", "http://host.example/")
        #expect(refused.exitCode == 7)
        #expect(refused["proxy"]?.lines.contains("set by --proxy") == true)
        #expect(refused["connection"]?.result == "fails")
    }

    @Test func `a request to a host known for HSTS is sent over https`() async throws {
        try await withScriptedServer(reply: { _ in .status(502, body: "no") }) { (server) async throws in
            // The whole top-level domain is in the preload list.
            let report = try await examine("-x", server.url("").absoluteString, "http://host.dev/")
            #expect(report["HSTS"]?.facts["known"] == ["true"])
            #expect(report["HSTS"]?.lines.first?.hasPrefix("http becomes https") == true)
            #expect(server.requests.map(\.target) == ["host.dev:443"])
        }
    }

    @Test func `an HTTP 2 server is described`() async throws {
        let server = try NGHTTPServer.start(try TestCertificates.shared.get().valid)
        defer { server.stop() }
        try server.put("body".utf8, at: "/file")
        let report = try await examine("--cacert", "root.pem", server.url("/file").absoluteString)
        #expect(report.exitCode == 0)
        #expect(report["protocol"]?.lines.first == "HTTP/2")
        #expect(report["TLS"]?.lines.first?.contains("h2") == true)
    }

    @Test func `the reason why HTTP 3 was not used is shown`() async throws {
        try await withScriptedServer(reply: { _ in .ok("body") }) { (server) async throws in
            let report = try await examine(server.url("/", host: "localhost").absoluteString)
            #expect(report["protocol"]?.facts["http3"] == ["not HTTP/3: HTTP/3 needs an https URL"])
            let demanded = try await examine("--http3-only", server.url("/", host: "localhost").absoluteString)
            #expect(demanded.exitCode == 7 && demanded.verdict.contains("HTTP/3 needs an https URL"), "\(demanded.verdict)")
        }
        try await withScriptedServer(identity: try TestCertificates.shared.get().valid, reply: { _ in .ok("body") }) {
            (server) async throws in
            let url = server.url("/", host: "localhost").absoluteString
            let excluded = try await examine("--cacert", "root.pem", "--http2", url)
            #expect(
                excluded["protocol"]?.facts["http3"] == ["not HTTP/3: the session's setting of HTTP versions excludes HTTP/3"])
            let report = try await examine("--cacert", "root.pem", url)
            let reason = try #require(report["protocol"]?.facts["http3"]?.first)
            #expect(reason.contains("does not announce HTTP/3") || reason.contains("cannot be used: install"), "\(reason)")
        }
    }

    @Test func `redirects are shown, and those to another host are marked`() async throws {
        try await withScriptedServer(reply: { _ in .status(404, body: "none") }) { (other) async throws in
            try await withScriptedServer(reply: {
                $0.path == "/a" ? .redirect(302, to: "/b") : .redirect(301, to: other.url("/c", host: "localhost").absoluteString)
            }) {
                (server) async throws in
                let report = try await examine(server.url("/a").absoluteString)
                #expect(report.exitCode == 0)
                #expect(report["answer"]?.facts["status"] == ["404"])
                #expect(report["answer"]?.lines.first == "302 to \(server.url("/b"))")
                #expect(report["answer"]?.lines.dropFirst().first?.hasSuffix(", another host") == true)
                #expect(report.verdict == "The server is reachable; localhost itself answers 404, after 2 redirects.")
            }
        }
    }

    @Test func `a redirect to a forbidden protocol has the same exit code as with get`() async throws {
        try await withScriptedServer(reply: { _ in .redirect(302, to: "https://a.invalid/") }) { (server) async throws in
            let report = try await examine("--proto", "=http", server.url().absoluteString)
            #expect(report.exitCode == 1)
            #expect(report.verdict.contains("--proto"))
        }
    }

    @Test func `credentials are sent only if given, and never shown`() async throws {
        try await withScriptedServer(reply: {
            $0.header("Authorization") == nil ? .status(401, [("WWW-Authenticate", "Basic realm=\"r\"")]) : .ok()
        }) { (server) async throws in
            let without = try await examine(server.url().absoluteString)
            #expect(without.verdict.contains("--user"))
            #expect(server.requests.allSatisfy { $0.header("Authorization") == nil })
            let result = try await Tool.run(["doctor", server.url("/", user: "me:hidden").absoluteString], in: folder)
            #expect(result.code == 0)
            #expect(result.text.contains("answers 200"))
            #expect(!result.text.contains("hidden"))
        }
    }

    @Test func `--stores shows stored cookies and responses and does not send them`() async throws {
        try await withScriptedServer(reply: { _ in
            .ok("kept", [("Cache-Control", "max-age=600"), ("Set-Cookie", "mark=hidden; Path=/; Max-Age=600")])
        }) {
            (server) async throws in
            let url = server.url().absoluteString
            _ = try await Tool.run(["get", url], in: folder, home: home)
            let without = try await examine(url)
            #expect(without["cookies"]?.facts.isEmpty == true)
            let report = try await examine("--stores", url)
            #expect(report["cookies"]?.facts["names"] == ["mark"])
            #expect(report["cache"]?.lines.first?.hasPrefix("a response with status 200 is stored, fresh for ") == true)
            #expect(server.requests.allSatisfy { $0.header("Cookie") == nil })
            let text = try await Tool.run(["doctor", "--stores", url], in: folder, home: home).text
            #expect(!text.contains("hidden"))
        }
    }

    @Test(arguments: [("ftp://a.example/", 1), ("http://", 3), ("http://[", 3)] as [(String, Int32)])
    func `an invalid http URL is reported before anything is sent`(_ address: String, _ code: Int32) async throws {
        let report = try await examine(address)
        #expect(report.exitCode == code)
        #expect(report.failing == ["URL"])
        #expect(report.verdict.hasPrefix("Nothing was sent: "))
    }

    @Test func `a host with non-ASCII letters is shown with its name on the network`() async throws {
        let report = try await examine("http://bücher.invalid/")
        #expect(report["URL"]?.facts["host"] == ["xn--bcher-kva.invalid"])
        #expect(report["URL"]?.lines.contains { $0.contains("IDNA") } == true)
    }

    /// RFC 9111, sections 5.1 and 1.2.2: an invalid `Age` is ignored, and an `Age` that is too large counts as the largest valid
    /// one.
    @Test(arguments: [
        ("nan", "fresh"), ("inf", "fresh"), ("1e300", "fresh"), ("-1", "fresh"), ("99999999999999999999", "stale"),
    ])
    func `a stored response with an absurd Age does not break the report`(_ age: String, _ state: String) async throws {
        try await withScriptedServer(reply: { _ in .ok("body", [("Cache-Control", "max-age=60"), ("Age", age)]) }) {
            (server) async throws in
            let address = server.url("/").absoluteString
            _ = try await Tool.run(["-s", address], in: folder, home: home)
            let report = try await examine("--stores", address)
            #expect(report.exitCode == 0)
            let line = try #require(report["cache"]?.lines.first)
            #expect(line.hasPrefix("a response with status 200 is stored, \(state) for "), "\(line)")
        }
    }
}
