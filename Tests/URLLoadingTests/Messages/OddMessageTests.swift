// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Unusual but permitted messages.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct OddMessageTests {
    // MARK: Content-Type

    @Test(arguments: ["garbage", "text", "text/", "/plain", "te xt/plain", "text/pl ain", "text/plain/x", "*", "text/\"x\""])
    func `an invalid Content-Type yields no MIME type`(_ field: String) async throws {
        try await withScenario(reply: { _ in .ok("a", [("Content-Type", field)]) }) { (server, session) async throws in
            let response = try await session.text(URLRequest(server.url("/a.txt"))).response
            #expect(response.mimeType == nil)
            #expect(response.textEncodingName == nil)
            #expect(response.value(forHTTPHeaderField: "Content-Type") == field)
        }
    }

    // MARK: Location

    @Test(arguments: ["http:///PLACE/b", "HTTP:////PLACE/b", "///PLACE/b", "/////PLACE/b"])
    func `a Location with extra slashes leads to the host that browsers would use`(_ location: String) async throws {
        let secrets = ["Authorization": "Basic c2VjcmV0", "Cookie": "own=secret"]
        try await withScriptedServer(reply: { _ in .ok("there") }) { (other) async throws in
            let scheme = other.isSecure ? "https:" : "http:"
            let target = location.replacingOccurrences(of: "PLACE", with: "127.0.0.1:\(other.port)")
                .replacingOccurrences(of: "http:", with: scheme).replacingOccurrences(of: "HTTP:", with: scheme.uppercased())
            try await withScenario(reply: { _ in .redirect(302, to: target) }) { (server, session) async throws in
                #expect(try await session.text(URLRequest(server.url("/a"), headers: secrets)).text == "there")
                let request = try #require(other.requests.first)
                #expect(request.path == "/b")
                #expect(request.header("Authorization") == nil && request.header("Cookie") == nil)
            }
        }
    }

    // MARK: Range

    @Test func `a range request asks for the identity coding unless the app sets another`() async throws {
        try await withScenario(reply: { _ in .ok("a") }) { (server, session) async throws in
            _ = try await session.text(URLRequest(server.url(), headers: ["Range": "bytes=0-"]))
            _ = try await session.text(URLRequest(server.url(), headers: ["Range": "bytes=0-", "Accept-Encoding": "br"]))
            _ = try await session.text(URLRequest(server.url()))
            #expect(server.requests.map { $0.header("Accept-Encoding") }.prefix(2) == ["identity", "br"])
            #expect(server.requests.last?.header("Accept-Encoding")?.hasPrefix("gzip") == true)
        }
        try await withScenario(
            configure: { $0.httpAdditionalHeaders = ["Range": "bytes=0-"] }, reply: { _ in .ok("a") }
        ) { (server, session) async throws in
            _ = try await session.text(URLRequest(server.url()))
            #expect(server.requests.map { $0.header("Accept-Encoding") } == ["identity"])
        }
        try await withScenario(
            configure: { $0.httpAdditionalHeaders = ["Accept-Encoding": "gzip"] }, reply: { _ in .ok("a") }
        ) { (server, session) async throws in
            _ = try await session.text(URLRequest(server.url(), headers: ["Range": "bytes=0-"]))
            #expect(server.requests.map { $0.header("Accept-Encoding") } == ["gzip"])
        }
    }

    // MARK: Descriptions

    @Test func `a request without a URL says so in its description`() throws {
        let mutable = NSMutableURLRequest(url: try #require(URL(string: "http://a/")))
        mutable.url = nil
        #expect(mutable.description.contains("URL: (null)"), "\(mutable.description)")
        let request = try #require(mutable.copy() as? NSURLRequest)
        #expect(request.description.contains("URL: (null)"), "\(request.description)")
    }

    // MARK: Trust

    @Test func `the error for a certificate that does not match shows its IP addresses in readable form`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withScenario(
            identity: certificates.valid,
            configure: {
                $0.tlsTrustRoots = [certificates.root]
                $0.connectionOptions.addresses[.init(host: "other.example")] = ["127.0.0.1"]
            }, reply: { _ in .ok() }
        ) { (server, session) async throws in
            let error = await expectFailure(.serverCertificateUntrusted) {
                try await session.text(server.url("/", host: "other.example"))
            }
            let text = error?.localizedDescription ?? ""
            #expect(!text.contains("IPAddress") && text.contains("127.0.0.1") && text.contains("::1"), "\(text)")
        }
    }

    @Test func `without root certificates the error names the missing package instead of blaming the server`() async throws {
        for file in ["/dev/null", "/nonexistent/roots.pem"] {
            try await SeparateProcess.run("MissingRootTests", environment: ["SSL_CERT_FILE": file, "SSL_CERT_DIR": nil])
        }
    }

    @Test(.enabled(if: geteuid() == 0))
    func `without system root certificates the error names the missing package instead of blaming the server`() async throws {
        let script = """
            for file in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem /etc/ssl/cert.pem; do \
            [ ! -e $file ] || mount --bind /dev/null $file; done; exec "$@"
            """
        try await SeparateProcess.run(
            "MissingRootTests", environment: ["SSL_CERT_FILE": nil, "SSL_CERT_DIR": nil],
            wrapper: ["/usr/bin/env", "unshare", "-m", "/bin/sh", "-c", script, "sh"])
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("MissingRootTests")), .timeLimit(.minutes(1))) struct MissingRootTests {
    @Test func `the error is the same whatever certificate the server has`() async throws {
        let certificates = try TestCertificates.shared.get()
        for identity in [certificates.valid, certificates.selfSigned, certificates.missingIntermediate] {
            try await withScenario(identity: identity, reply: { _ in .ok() }) { (server, session) async throws in
                let error = await expectFailure(.secureConnectionFailed) {
                    try await session.text(server.url("/", host: "localhost"))
                }
                let text = error?.localizedDescription ?? ""
                #expect(text.contains("no root certificates") && text.contains("ca-certificates"), "\(text)")
            }
        }
        // Roots configured on the session suffice.
        try await withScenario(
            identity: certificates.valid, configure: { $0.tlsTrustRoots = [certificates.root] }, reply: { _ in .ok("there") }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/", host: "localhost")) == "there")
        }
    }
}
