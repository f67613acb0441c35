// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Checks the servers of the authentication tests with curl: if these tests fail, the other tests fail for a reason outside the
/// client.
@Suite(.timeLimit(.minutes(1)))
struct ServersTests {
    /// Runs curl, and returns the status, the page, and the values of `X-User` and `X-Client`.
    private struct Curl {
        var environment: [String: String] = [:]
        let certificates: TestCertificates
        let directory: TemporaryDirectory
        let program: String

        struct Answer: Equatable {
            var status: String
            var user: String
            var page: String
            var client = ""
        }

        init() throws {
            certificates = try TestCertificates.shared.get()
            directory = try TemporaryDirectory()
            try directory.write(certificates.rootPEM.utf8, to: "root.pem")
            try directory.write(certificates.client.chainPEM.utf8, to: "client.pem")
            try directory.write(certificates.client.keyPEM.utf8, to: "client.key")
            program = try ServerProcess.program("curl", package: "curl")
        }

        func callAsFunction(_ url: URL, _ arguments: String...) throws -> Answer {
            let output = directory.file(UUID().uuidString)
            let page = directory.file("page-\(UUID().uuidString)")
            let format = "%{http_code}|%{http_connect}|%header{x-user}|%header{x-client}"
            let fixed = [
                program, "-q", "-sS", "-m", "20", "-4", "--cacert", directory.file("root.pem").path, "-o", page.path, "-w",
                format,
            ]
            // curl exits with an error if it cannot connect.
            let text = try ServerProcess.run(
                ServerProcess.Command(fixed + arguments + [url.absoluteString], environment: environment, output: output)
            )
            let fields = text.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
            let status = fields[0] == "000" ? fields[1] : fields[0]
            // An empty value is written as an empty line.
            let names = fields[2...].map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }
            let content = (try? String(contentsOf: page, encoding: .utf8)) ?? ""
            return Answer(status: status, user: names[0], page: content, client: names[1])
        }
    }

    @Test func `Apache challenges with Basic and Digest`() throws {
        let curl = try Curl()
        let apache = try ApacheServer.start(curl.certificates)
        defer { apache.stop() }
        let open = try curl(apache.url("/open/page.txt"))
        #expect(open == Curl.Answer(status: "200", user: "", page: "page of open"))
        for (path, option) in [
            ("/basic/", "--basic"), ("/digest/", "--digest"), ("/digest/other/", "--digest"), ("/int/", "--digest"),
        ] {
            #expect(try curl(apache.url(path + "page.txt")).status == "401")
            #expect(try curl(apache.url(path + "page.txt"), option, "-u", "ada:wrong").status == "401")
            let answer = try curl(apache.url(path + "page.txt"), option, "-u", "ada:lovelace")
            #expect(answer.status == "200" && answer.user == "ada" && answer.page.hasPrefix("page of "))
            let echo = try curl(apache.url(path + "echo", .secure), option, "-u", "ada:lovelace", "-d", "to and fro")
            #expect(echo.status == "200" && echo.page == "to and fro")
        }
        let input = try curl.directory.write("put".utf8, to: "put")
        let put = try curl(apache.url("/digest/new.txt"), "--digest", "-u", "ada:lovelace", "-T", input.path)
        #expect(put.status == "201")
        #expect(try apache.content(at: "/digest/new.txt") == Array("put".utf8))
    }

    @Test func `Apache asks for a client certificate`() throws {
        let curl = try Curl()
        let apache = try ApacheServer.start(curl.certificates)
        defer { apache.stop() }
        let identity = ["--cert", curl.directory.file("client.pem").path, "--key", curl.directory.file("client.key").path]
        for access in [ApacheServer.Access.optionalCertificate, .requiredCertificate] {
            let url = apache.url("/open/page.txt", access)
            let answer = try curl(url, identity[0], identity[1], identity[2], identity[3])
            #expect(answer.status == "200" && answer.client.hasPrefix("CN="))
        }
        let anonymous = try curl(apache.url("/open/page.txt", .optionalCertificate))
        #expect(anonymous.status == "200" && anonymous.client.isEmpty)
        #expect(throws: ServerProcess.Failure.self) { try curl(apache.url("/open/page.txt", .requiredCertificate)) }
    }

    @Test func `Apache accepts Kerberos tickets, and passwords known to the KDC`() throws {
        var curl = try Curl()
        let realm = try KerberosRealm.start()
        defer { realm.stop() }
        let apache = try ApacheServer.start(curl.certificates, realm: realm)
        defer { apache.stop() }
        curl.environment = realm.environment
        let url = apache.url("/negotiate/page.txt")
        #expect(try curl(url).status == "401")
        #expect(try curl(url, "--negotiate", "-u", ":").status == "401")
        #expect(try curl(apache.url("/negotiate-or-basic/page.txt"), "--basic", "-u", "ada:wrong").status == "401")
        let withPassword = try curl(apache.url("/negotiate-or-basic/page.txt"), "--basic", "-u", "ada:lovelace")
        #expect(withPassword.status == "200" && withPassword.user == "ada@\(KerberosRealm.name)")
        #expect(throws: ServerProcess.Failure.self) { try realm.ticket(for: "ada", password: "wrong") }
        curl.environment = try realm.ticket(for: "ada", password: "lovelace")
        let answer = try curl(url, "--negotiate", "-u", ":")
        #expect(answer == Curl.Answer(status: "200", user: "ada@\(KerberosRealm.name)", page: "page of negotiate"))
        #expect(realm.log.contains("HTTP/localhost@\(KerberosRealm.name)"))
    }

    @Test func `pyspnego accepts NTLM, directly and in Negotiate`() throws {
        let curl = try Curl()
        for identity in [nil, curl.certificates.valid] {
            let server = try NTLMServer.start(identity)
            defer { server.stop() }
            #expect(try curl(server.url("/open")).status == "200")
            for path in ["/ntlm", "/both", "/ntlm-or-basic", "/closing"] {
                #expect(try curl(server.url(path)).status == "401")
                #expect(try curl(server.url(path), "--ntlm", "-u", "ada:wrong").status == "401")
                let answer = try curl(server.url(path), "--ntlm", "-u", "\(NTLMServer.domain)\\ada:lovelace")
                #expect(answer.status == "200" && answer.user == "\(NTLMServer.domain)\\ada")
                #expect(answer.page.hasPrefix("GET \(path) 0 "))
            }
            let body = try curl(server.url("/ntlm"), "--ntlm", "-u", "\(NTLMServer.domain)\\ada:lovelace", "-d", "to and fro")
            #expect(body.page.hasPrefix("POST /ntlm 10 "))
            #expect(try curl(server.url("/ntlm-or-basic"), "--basic", "-u", "ada:lovelace").status == "200")
            // curl sends no channel binding.
            let bound = try curl(server.url("/bound"), "--ntlm", "-u", "\(NTLMServer.domain)\\ada:lovelace")
            #expect(bound.status == (identity == nil ? "200" : "401"))
        }
    }

    @Test func `squid demands authentication with each configured scheme, or not at all`() throws {
        var curl = try Curl()
        let apache = try ApacheServer.start(curl.certificates)
        defer { apache.stop() }
        let urls = [apache.url("/open/page.txt"), apache.url("/open/page.txt", .secure)]
        let open = try SquidServer.start()
        defer { open.stop() }
        for url in urls {
            #expect(try curl(url, "-x", "http://127.0.0.1:\(open.port)").status == "200")
        }
        #expect(try open.logs("CONNECT"), "\(open.accessLog)")
        let realm = try KerberosRealm.start()
        defer { realm.stop() }
        curl.environment = try realm.ticket(for: "ada", password: "lovelace")
        let squid = try SquidServer.start([.negotiate, .ntlm, .digest, .basic], realm: realm)
        defer { squid.stop() }
        let proxy = "http://localhost:\(squid.port)"
        for (option, user) in [
            ("--proxy-basic", "ada"), ("--proxy-digest", "ada"), ("--proxy-ntlm", "\(NTLMServer.domain)\\ada"),
        ] {
            #expect(try curl(urls[0], "-x", proxy, option, "-U", "\(user):wrong").status == "407")
            for url in urls {
                let answer = try curl(url, "-x", proxy, option, "-U", "\(user):lovelace")
                #expect(answer.status == "200" && answer.page == "page of open", "\(option) \(url)")
            }
        }
        for url in urls {
            #expect(try curl(url, "-x", proxy, "--proxy-negotiate", "-U", ":").status == "200")
        }
        #expect(try squid.logs("ada@\(KerberosRealm.name)"), "\(squid.accessLog)")
    }
}
