// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// `--user`, the options for schemes, and `--proxy`.
@Suite(.timeLimit(.minutes(3)))
struct AuthenticationOptionTests {
    /// Hides the keyring and the Kerberos tickets of the user who runs the tests.
    private static let environment = [
        "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent", "KRB5CCNAME": "FILE:/nonexistent/cache",
        "KRB5_CONFIG": "/dev/null",
    ]
    private static let digest = #"Digest realm="r", nonce="n1", qop="auth", algorithm=SHA-256"#
    private static let basic = #"Basic realm="r""#

    private func run(_ arguments: String..., preparation: String? = nil) async throws -> Tool.Result {
        try await Tool.run(arguments, environment: Self.environment, preparation: preparation)
    }

    private static func words(_ user: String, _ password: String) -> String {
        "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
    }

    /// Returns a server's replies: it challenges with the given schemes, and accepts an `Authorization` that begins with `word`.
    private static func asking(
        _ schemes: String..., for word: String
    ) -> @Sendable (RecordedRequest) -> ScriptedReply {
        { request in
            request.header("Authorization")?.hasPrefix(word) == true
                ? .ok("gold") : .status(401, schemes.map { ("WWW-Authenticate", $0) }, body: "closed")
        }
    }

    private static func schemes(_ server: ScriptedServer) -> [String?] {
        server.requests.map { $0.header("Authorization").map { String($0.prefix { $0 != " " }) } }
    }

    // MARK: The user

    @Test(arguments: [("ali:sesame", "ali", "sesame"), ("ali:open:sesame", "ali", "open:sesame"), ("ali:", "ali", "")])
    func `--user answers a challenge`(_ option: String, _ user: String, _ password: String) async throws {
        try await withScriptedServer(reply: Self.asking(Self.basic, for: Self.words(user, password))) { server in
            let result = try await run("get", "-v", "--user", option, server.url("/a").absoluteString)
            #expect(result.code == 0, "\(result.errors)")
            #expect(result.text == "gold")
            #expect(Self.schemes(server) == [nil, "Basic"])
            #expect(password.isEmpty || !result.errors.contains(password))
            #expect(!result.errors.contains(Self.words(user, password)))
        }
    }

    @Test func `a user in the URL answers a challenge and is not shown`() async throws {
        try await withScriptedServer(reply: Self.asking(Self.basic, for: Self.words("ali", "open sesame"))) { server in
            let result = try await run("get", "-v", server.url("/a", user: "ali:open%20sesame").absoluteString)
            #expect(result.text == "gold", "\(result.errors)")
            #expect(!result.errors.contains("sesame"))
        }
    }

    @Test func `every command answers challenges`() async throws {
        let folder = try TemporaryDirectory()
        try folder.write(Array("report".utf8), to: "report.txt")
        try await withScriptedServer(reply: Self.asking(Self.basic, for: Self.words("ali", "sesame"))) { server in
            let address = server.url("/a").absoluteString
            for arguments in [
                ["download", "-o", "a"], ["upload", "report.txt"], ["get", "--repeat", "5", "--parallel-max", "2"],
            ] {
                let result = try await Tool.run(
                    arguments + ["-u", "ali:sesame", address], in: folder, environment: Self.environment
                )
                #expect(result.code == 0, "\(arguments): \(result.errors)")
            }
            #expect(String(decoding: try Data(contentsOf: folder.file("a")), as: UTF8.self) == "gold")
            #expect(server.requests.last { $0.method == "PUT" }?.bodyText == "report")
        }
    }

    @Test func `a rejected login ends with the response`() async throws {
        try await withScriptedServer(reply: Self.asking(Self.basic, for: "nothing")) { server in
            let address = server.url("/a").absoluteString
            let result = try await run("get", "-u", "ali:sesame", address)
            #expect(result.code == 0, "\(result.errors)")
            #expect(result.text == "closed")
            #expect(Self.schemes(server) == [nil, "Basic"])
            let failed = try await run("get", "--fail", "-u", "ali:sesame", address)
            #expect(failed.code == 22)
            #expect(!failed.errors.contains("sesame"))
        }
    }

    @Test func `a missing password is prompted for`() async throws {
        let terminal = try Terminal()
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: Self.asking(Self.basic, for: Self.words("ali", "sesame"))) { server in
            let tool = try Tool(
                ["get", "-u", "ali", server.url("/a").absoluteString], in: folder,
                environment: terminal.environment(Self.environment), preparation: terminal.preparation
            )
            try await terminal.shown("Enter host password for user 'ali': ")
            #expect(!terminal.echoes)
            try terminal.type("sesame\n")
            let result = try await tool.result()
            #expect(result.text == "gold", "\(result.errors)")
            #expect(try terminal.echoedAtTheEnd)
            #expect(!terminal.shown.contains("sesame"))
        }
    }

    @Test func `without a terminal, a missing password is a usage error`() async throws {
        let result = try await run("get", "-u", "ali", "http://127.0.0.1/", preparation: #"exec setsid --wait "$0" "$@""#)
        #expect(result.code == 2)
        #expect(result.errors.contains("there is no terminal"), "\(result.errors)")
    }

    @Test(arguments: ["127.0.0.1", "localhost"])
    func `a redirect to another server gets no password`(_ host: String) async throws {
        try await withScriptedServer(reply: Self.asking(Self.basic, for: "Basic")) { other in
            let target = other.url("/b", host: host).absoluteString
            try await withScriptedServer(reply: { request in
                request.header("Authorization") == nil
                    ? .status(401, [("WWW-Authenticate", Self.basic)]) : .redirect(302, to: target)
            }) { server in
                let result = try await run("get", "-u", "ali:sesame", server.url("/a").absoluteString)
                #expect(result.text == "closed", "\(result.errors)")
                #expect(Self.schemes(server) == [nil, "Basic"])
                #expect(Self.schemes(other) == [nil])
            }
        }
    }

    // MARK: Schemes

    struct Choice: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let offered: [String]
        let arguments: [String]
        let sent: [String?]
    }

    static let choices = [
        Choice(testDescription: "the strongest", offered: [basic, digest], arguments: [], sent: [nil, "Digest"]),
        Choice(testDescription: "only Basic", offered: [basic, digest], arguments: ["--basic"], sent: [nil, "Basic"]),
        Choice(
            testDescription: "only Digest", offered: ["NTLM", basic, digest], arguments: ["--digest"], sent: [nil, "Digest"]),
        Choice(testDescription: "only NTLM", offered: [digest, "NTLM", basic], arguments: ["--ntlm"], sent: [nil, "NTLM"]),
        Choice(
            testDescription: "one of two", offered: [digest, "NTLM", basic], arguments: ["--basic", "--digest"],
            sent: [nil, "Digest"]
        ),
        Choice(testDescription: "Digest, not offered", offered: [basic], arguments: ["--digest"], sent: [nil]),
        Choice(testDescription: "NTLM, not offered", offered: [basic, digest], arguments: ["--ntlm"], sent: [nil]),
    ]

    @Test(arguments: choices)
    func `the strongest allowed scheme is used`(_ choice: Choice) async throws {
        try await withScriptedServer(reply: { request in
            request.header("Authorization") == nil
                ? .status(401, choice.offered.map { ("WWW-Authenticate", $0) }, body: "closed") : .ok("gold")
        }) { server in
            let arguments = ["get", "-u", "ali:sesame"] + choice.arguments + [server.url("/a").absoluteString]
            let result = try await Tool.run(arguments, environment: Self.environment)
            #expect(result.code == 0, "\(result.errors)")
            #expect(Self.schemes(server) == choice.sent)
            #expect(result.text == (choice.sent.count > 1 ? "gold" : "closed"))
        }
    }

    @Test func `the options for schemes apply to a user in the URL`() async throws {
        try await withScriptedServer(reply: Self.asking(Self.basic, for: "Basic")) { server in
            let result = try await run("get", "--digest", server.url("/a", user: "ali:sesame").absoluteString)
            #expect(result.text == "closed", "\(result.errors)")
            #expect(Self.schemes(server) == [nil])
        }
    }

    @Test func `without TLS, a rejected Digest is not followed by Basic`() async throws {
        try await withScriptedServer(reply: Self.asking(Self.digest, Self.basic, for: "Basic")) { server in
            let result = try await run("get", "-u", "ali:sesame", server.url("/a").absoluteString)
            #expect(result.text == "closed", "\(result.errors)")
            #expect(Self.schemes(server) == [nil, "Digest"])
        }
    }

    @Test func `over TLS each scheme is tried once`() async throws {
        let certificates = try TestCertificates.shared.get()
        let folder = try TemporaryDirectory()
        try folder.write(Array(certificates.rootPEM.utf8), to: "root.pem")
        let reply = Self.asking(Self.digest, Self.basic, for: "nothing")
        try await withScriptedServer(identity: certificates.valid, reply: reply) { server in
            let result = try await Tool.run(
                ["get", "--cacert", "root.pem", "-u", "ali:sesame", server.url("/a").absoluteString], in: folder,
                environment: Self.environment
            )
            #expect(result.text == "closed", "\(result.errors)")
            #expect(Self.schemes(server) == [nil, "Digest", "Basic"])
        }
    }

    @Test func `without a ticket and a user, no challenge is answered`() async throws {
        try await withScriptedServer(reply: Self.asking("Negotiate", Self.basic, for: "Basic")) { server in
            let result = try await run("get", "--negotiate", server.url("/a").absoluteString)
            #expect(result.code == 0, "\(result.errors)")
            #expect(result.text == "closed")
            #expect(Self.schemes(server) == [nil])
        }
    }

    // MARK: Proxies

    @Test(arguments: [("--proxy", "127.0.0.1:"), ("-x", "http://127.0.0.1:"), ("-x", "HTTP://localhost:")])
    func `a request is sent to the proxy`(_ option: String, _ prefix: String) async throws {
        try await withScriptedServer(reply: { _ in .ok("by proxy") }) { proxy in
            let result = try await run("get", option, prefix + "\(proxy.port)", "http://nowhere.example/a?b")
            #expect(result.code == 0, "\(result.errors)")
            #expect(result.text == "by proxy")
            #expect(proxy.requests.map(\.target) == ["http://nowhere.example/a?b"])
        }
    }

    @Test(arguments: [true, false])
    func `a proxy's challenge is answered, and the server gets no credentials`(_ isOption: Bool) async throws {
        try await withScriptedServer(reply: { request in
            request.header("Proxy-Authorization") == Self.words("ali", "sesame")
                ? .ok("by proxy") : .status(407, [("Proxy-Authenticate", Self.basic)], body: "closed")
        }) { proxy in
            let user = isOption ? "" : "ali:sesame@"
            let arguments = ["get", "-v", "-x", "http://\(user)127.0.0.1:\(proxy.port)", "http://nowhere.example/"]
            let result = try await Tool.run(
                arguments + (isOption ? ["--proxy-user", "ali:sesame"] : []), environment: Self.environment
            )
            #expect(result.text == "by proxy", "\(result.errors)")
            #expect(proxy.requests.allSatisfy { $0.header("Authorization") == nil })
            #expect(!result.errors.contains("sesame"))
        }
    }

    @Test func `the server's password is not sent to the proxy`() async throws {
        let closed = ScriptedReply.status(407, [("Proxy-Authenticate", Self.basic)], body: "closed")
        try await withScriptedServer(reply: { _ in closed }) { proxy in
            let result = try await run(
                "get", "-u", "ali:sesame", "-x", "127.0.0.1:\(proxy.port)", "http://127.0.0.1:\(proxy.port)/"
            )
            #expect(result.text == "closed", "\(result.errors)")
            #expect(proxy.requests.allSatisfy { $0.header("Proxy-Authorization") == nil && $0.header("Authorization") == nil })
        }
    }

    @Test func `a tunnel that the proxy refuses is a denied login`() async throws {
        try await withScriptedServer(reply: { _ in .status(407, [("Proxy-Authenticate", Self.basic)]) }) { proxy in
            let result = try await run(
                "get", "-v", "-x", "127.0.0.1:\(proxy.port)", "-U", "ali:sesame", "-u", "baba:word", "https://nowhere.example/"
            )
            #expect(result.code == 67, "\(result.errors)")
            #expect(!result.errors.contains("sesame") && !result.errors.contains("from the cache"))
            #expect(result.errors.contains("* the proxy's response to CONNECT\n< HTTP/1.1 407"), "\(result.errors)")
            #expect(proxy.requests.allSatisfy { $0.method == "CONNECT" && $0.target == "nowhere.example:443" })
            #expect(proxy.requests.compactMap { $0.header("Proxy-Authorization") } == [Self.words("ali", "sesame")])
            #expect(proxy.requests.allSatisfy { $0.header("Authorization") == nil })
        }
    }

    @Test(arguments: [(["-x", "http://nowhere.invalid:1"], [:]), ([], ["http_proxy": "nowhere.invalid:1"])])
    func `an unknown proxy name results in exit code 5`(_ options: [String], _ variables: [String: String]) async throws {
        let result = try await Tool.run(
            ["get"] + options + ["http://127.0.0.1/"], environment: Self.environment.merging(variables) { $1 })
        #expect(result.code == 5 && result.errors.contains("looking up the proxy nowhere.invalid: "), "\(result.errors)")
    }

    @Test func `an unreachable proxy results in exit code 7`() async throws {
        let proxy = try RefusingPort()
        for address in ["http://nowhere.example/", "https://nowhere.example/"] {
            let result = try await run("get", "-x", "127.0.0.1:\(proxy.number)", address)
            #expect(result.code == 7, "\(result.errors)")
        }
    }

    @Test func `the environment's proxies are chosen as curl does, and options override them`() async throws {
        try await withScriptedServer(reply: { _ in .ok("direct") }) { server in
            try await withScriptedServer(reply: { .ok("proxy \($0.target)") }) { proxy in
                let (url, by) = (server.url("/a").absoluteString, "http://127.0.0.1:\(proxy.port)")
                let rows: [(options: [String], variables: [String: String], isDirect: Bool)] = [
                    ([], ["http_proxy": by], false), ([], ["HTTP_PROXY": by], true),
                    ([], ["http_proxy": by, "no_proxy": "127.0.0.1"], true), (["--noproxy", "*"], ["http_proxy": by], true),
                    (["--noproxy", "a.test"], ["http_proxy": by, "NO_PROXY": "*"], false),
                    (["--proxy", ""], ["http_proxy": by], true), (["-x", by], ["http_proxy": "127.0.0.1:1"], false),
                    (["-x", by, "--noproxy", "127.0.0.0/8"], [:], true), (["-x", by], ["no_proxy": "127.0.0.1"], true),
                ]
                for (options, variables, isDirect) in rows {
                    let result = try await Tool.run(
                        ["get"] + options + [url], environment: Self.environment.merging(variables) { $1 })
                    #expect(result.text == (isDirect ? "direct" : "proxy \(url)"), "\(options) \(variables) \(result.errors)")
                }
            }
        }
    }

    @Test func `a GNOME desktop's proxy settings apply if the environment names no proxy`() async throws {
        try await withScriptedServer(reply: { _ in .ok("direct") }) { server in
            try await withScriptedServer(reply: { .ok("proxy \($0.target)") }) { proxy in
                let url = server.url("/a").absoluteString
                let http = "[system/proxy/http]\nhost='127.0.0.1'\nport=\(proxy.port)\n"
                let script = "function FindProxyForURL() { return 'PROXY 127.0.0.1:\(proxy.port)' }"
                let place = "data:text/plain;base64,\(Data(script.utf8).base64EncodedString())"
                let rows: [(settings: String, more: [String: String], text: String, code: Int32)] = [
                    ("mode='manual'\nignore-hosts=@as []\n" + http, [:], "proxy \(url)", 0),
                    ("mode='manual'\nignore-hosts=['127.0.0.0/8']\n" + http, [:], "direct", 0),
                    ("mode='none'\nignore-hosts=@as []\n" + http, [:], "direct", 0),
                    ("mode='auto'\nautoconfig-url='\(place)'\nignore-hosts=@as []\n", [:], "proxy \(url)", 0),
                    ("mode='auto'\nignore-hosts=@as []\n", [:], "", 7),
                    ("mode='manual'\nignore-hosts=@as []\n[system/proxy/http]\nhost='a'\nport=0\n", [:], "", 7),
                    ("mode='manual'\nignore-hosts=@as []\n" + http, ["http_proxy": "127.0.0.1:1", "no_proxy": "*"], "direct", 0),
                    ("mode='manual'\nignore-hosts=@as []\n" + http, ["XDG_CURRENT_DESKTOP": "KDE"], "direct", 0),
                ]
                for (settings, more, text, code) in rows {
                    let folder = try TemporaryDirectory()
                    let place = folder.url.appending(path: "glib-2.0/settings")
                    try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
                    try Data("[system/proxy]\n\(settings)".utf8).write(to: place.appending(path: "keyfile"))
                    let desktop = [
                        "XDG_CURRENT_DESKTOP": "ubuntu:GNOME", "GSETTINGS_BACKEND": "keyfile", "XDG_CONFIG_HOME": folder.url.path,
                    ]
                    let environment = Self.environment.merging(desktop) { $1 }.merging(more) { $1 }
                    let result = try await Tool.run(["get", url], environment: environment)
                    #expect(result.text == text && result.code == code, "\(settings) \(more) \(result.errors)")
                }
            }
        }
    }

    @Test(
        arguments: [
            (["-x", String(repeating: "a", count: 70) + ".example:80"], 5),
            (["-x", "http://ali:sesame@"], 5), (["-x", "127.0.0.1:99999"], 5), (["-x", "socks5://127.0.0.1:1"], 7),
            (["-x", "gopher://127.0.0.1:1"], 7), (["-x", "http://127.0.0.1:1/a"], 5),
            (["--proxy-user", "ali:sesame"], 2), (["-u", ":sesame"], 2),
        ] as [([String], Int32)])
    func `an invalid proxy or user has curl's exit code`(_ arguments: [String], _ code: Int32) async throws {
        let result = try await Tool.run(["get"] + arguments + ["http://127.0.0.1:1/"], environment: Self.environment)
        #expect(result.code == code, "\(result.errors)")
        #expect(!result.errors.contains("sesame"))
    }
}
