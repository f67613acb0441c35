// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// What App Transport Security requires of a TLS connection to a host that is not exempt.
@Suite(.timeLimit(.minutes(1)))
struct TransportSecurityTLSTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private static func exception(_ values: [String: Any]) -> [String: Any] {
        ["NSExceptionDomains": ["www.example.com": values]]
    }
    private static let keyExchangeWithoutSecrecy = ["-tls1_2", "-cipher", "AES128-GCM-SHA256:AES256-GCM-SHA384"]

    /// Loads from the server at a port of this machine, under the given host name.
    private func load(
        _ port: Int, as host: String, _ dictionary: [String: Any]?, delegate: (any URLSessionDelegate)? = nil,
        roots: [Data]? = nil,
        configure: (URLSessionConfiguration) -> Void = { _ in }
    ) async throws -> String {
        let relay = try NameRelay(to: port)
        var text = ""
        try await withSession(delegate: delegate) {
            $0.tlsTrustRoots = roots ?? [certificates.root]
            $0.connectionProxyDictionary = relay.dictionary
            if let dictionary { $0.appTransportSecurity = dictionary }
            configure($0)
        } test: { (session) async throws in
            text = try await session.text(try #require(URL(string: "https://\(host)/")))
        }
        return text
    }

    /// Runs a test with an `openssl s_server` that has a self-signed certificate with an RSA key.
    ///
    /// Key exchanges without forward secrecy require an RSA key.
    private func withRSAServer(
        bits: Int = 2048, _ options: [[String]], test: (PeerProcess, Data, Int) async throws -> Void
    ) async throws {
        let folder = try TemporaryDirectory()
        try await ServerProcess.run(
            ServerProcess.Command(
                [
                    ServerProcess.program("openssl", package: "openssl"), "req", "-x509", "-newkey", "rsa:\(bits)", "-nodes",
                    "-keyout", folder.file("key").path, "-out", folder.file("chain").path, "-subj", "/CN=RSA", "-days", "2",
                    "-addext", "subjectAltName=DNS:www.example.com,DNS:localhost",
                ], output: folder.file("output")))
        let chain = try String(contentsOf: folder.file("chain"), encoding: .utf8)
        let key = try String(contentsOf: folder.file("key"), encoding: .utf8)
        for (index, options) in options.enumerated() {
            let server = try await PeerProcess.openSSL(chain: chain, key: key, root: chain, options)
            defer { server.stop() }
            try await test(server, Data(chain.utf8), index)
        }
    }

    @Test func `a key exchange without forward secrecy is refused unless an exception allows it`() async throws {
        let rows: [(String, String, [String: Any]?, isAllowed: Bool)] = [
            ("no dictionary", "www.example.com", nil, false),
            ("no exception", "www.example.com", [:], false),
            ("an exception about other things", "www.example.com", Self.exception(["NSIncludesSubdomains": true]), false),
            ("demanded", "www.example.com", Self.exception(["NSExceptionRequiresForwardSecrecy": true]), false),
            ("not demanded", "www.example.com", Self.exception(["NSExceptionRequiresForwardSecrecy": false]), true),
            (
                "not demanded of another", "www.example.com",
                ["NSExceptionDomains": ["example.com": ["NSExceptionRequiresForwardSecrecy": false]]], false
            ),
            ("arbitrary loads", "www.example.com", ["NSAllowsArbitraryLoads": true], true),
            ("an exempt name", "localhost", nil, true),
        ]
        try await withRSAServer([Self.keyExchangeWithoutSecrecy]) { (server, root, _) async throws in
            for (name, host, dictionary, isAllowed) in rows {
                if isAllowed {
                    let text = try await load(server.port, as: host, dictionary, roots: [root])
                    #expect(
                        text.contains("Cipher is AES128-GCM-SHA256") || text.contains("Cipher is AES256-GCM-SHA384"), "\(name)")
                } else {
                    let error = await expectFailure(.secureConnectionFailed, in: name) {
                        try await load(server.port, as: host, dictionary, roots: [root])
                    }
                    let message = error?.localizedDescription ?? ""
                    let key = "NSExceptionDomains/www.example.com/NSExceptionRequiresForwardSecrecy"
                    #expect(message.contains(key) && message.contains("App Transport Security"), "\(name): \(message)")
                }
            }
        }
        // The RSA key is not the reason for the refusal.
        try await withRSAServer([["-tls1_2"]]) { (server, root, _) async throws in
            _ = try await load(server.port, as: "www.example.com", nil, roots: [root])
        }
    }

    @Test func `an exception may require a newer TLS, or allow an older one if the configuration does`() async throws {
        let rows: [(String, [String], [String: Any]?, allowsOlder: Bool, isAllowed: Bool)] = [
            ("1.2 by default", ["-tls1_2"], nil, false, true),
            ("1.3 by default", ["-tls1_3"], nil, false, true),
            ("1.2 where 1.3 is demanded", ["-tls1_2"], Self.exception(["NSExceptionMinimumTLSVersion": "TLSv1.3"]), false, false),
            ("1.3 where 1.3 is demanded", ["-tls1_3"], Self.exception(["NSExceptionMinimumTLSVersion": "TLSv1.3"]), false, true),
            ("1.1 though the configuration allows it", ["-tls1_1"], nil, true, false),
            ("1.1 allowed by both", ["-tls1_1"], Self.exception(["NSExceptionMinimumTLSVersion": "TLSv1.1"]), true, true),
            ("1.1 where 1.0 is allowed", ["-tls1_1"], Self.exception(["NSExceptionMinimumTLSVersion": "TLSv1.0"]), true, true),
            ("1.0 where 1.1 is demanded", ["-tls1"], Self.exception(["NSExceptionMinimumTLSVersion": "TLSv1.1"]), true, false),
            ("1.1 with arbitrary loads", ["-tls1_1"], ["NSAllowsArbitraryLoads": true], true, true),
        ]
        let options = rows.map { $0.1 + ($0.allowsOlder ? ["-cipher", "ALL:@SECLEVEL=0"] : []) }
        try await withRSAServer(options) { (server, root, index) async throws in
            let row = rows[index]
            let attempt: () async throws -> String = {
                try await load(server.port, as: "www.example.com", row.2, roots: [root]) {
                    if row.allowsOlder { $0.tlsMinimumSupportedProtocolVersion = .TLSv10 }
                }
            }
            if row.isAllowed {
                _ = try await attempt()
            } else {
                let message = await expectFailure(.secureConnectionFailed, in: row.0, attempt)?.localizedDescription ?? ""
                let key = "NSExceptionDomains/www.example.com/NSExceptionMinimumTLSVersion"
                #expect(message.contains(key) && message.contains("App Transport Security"), "\(row.0): \(message)")
                #expect(!message.contains("configuration"), "\(row.0): \(message)")
            }
        }
    }

    @Test func `a refusal by the configuration does not blame App Transport Security`() async throws {
        let rows: [([String: Any], namesBoth: Bool)] = [
            (["NSAllowsArbitraryLoads": true], false), ([:], false),
            (Self.exception(["NSExceptionMinimumTLSVersion": "TLSv1.3"]), true),
        ]
        try await withRSAServer([["-tls1_2"]]) { (server, root, _) async throws in
            for (dictionary, namesBoth) in rows {
                let error = await expectFailure(.secureConnectionFailed) {
                    try await load(server.port, as: "www.example.com", dictionary, roots: [root]) {
                        $0.tlsMinimumSupportedProtocolVersion = .TLSv13
                    }
                }
                let message = error?.localizedDescription ?? ""
                #expect(message.contains("configuration"), "\(message)")
                #expect(message.contains("NSException") == namesBoth, "\(message)")
            }
        }
        let keyExchange = Self.keyExchangeWithoutSecrecy.dropFirst()
        try await withRSAServer([["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], ["-tls1_2"] + keyExchange]) { (server, root, index) in
            let error = await expectFailure(.secureConnectionFailed) {
                try await load(server.port, as: "www.example.com", ["NSAllowsArbitraryLoads": true], roots: [root]) {
                    if index == 1 { $0.tlsMinimumSupportedProtocolVersion = .TLSv13 }
                }
            }
            #expect(error?.localizedDescription.contains("NSException") == false, "\(String(describing: error))")
        }
    }

    @Test func `a weak key is refused`() async throws {
        try await withRSAServer(bits: 1024, [["-tls1_2", "-cipher", "ALL:@SECLEVEL=0"]]) { (server, root, _) async throws in
            for dictionary in [nil, Self.exception(["NSExceptionRequiresForwardSecrecy": false])] {
                await expectFailure(.serverCertificateUntrusted) {
                    try await load(server.port, as: "www.example.com", dictionary, roots: [root])
                }
            }
        }
    }

    @Test func `a weak key is refused even if the app trusts the server, unless forward secrecy is disabled`() async throws {
        let loose: [String: Any] = ["NSExceptionAllowsInsecureHTTPLoads": true]
        let looser: [String: Any] = loose.merging(["NSExceptionRequiresForwardSecrecy": false]) { $1 }
        let rows: [([String: Any], isAllowed: Bool)] = [
            ([:], false), (Self.exception(loose), false), (Self.exception(looser), true),
            (["NSAllowsArbitraryLoads": true], true),
        ]
        try await withRSAServer(bits: 1024, [["-tls1_2", "-cipher", "ALL:@SECLEVEL=0"]]) { (server, _, _) async throws in
            for (dictionary, isAllowed) in rows {
                let attempt = {
                    try await load(server.port, as: "www.example.com", dictionary, delegate: SessionJudge(.trusting))
                }
                if isAllowed {
                    _ = try await attempt()
                } else {
                    let error = await expectFailure(.serverCertificateUntrusted, in: "\(dictionary)", attempt)
                    let message = error?.localizedDescription ?? ""
                    #expect(message.contains("www.example.com/NSExceptionRequiresForwardSecrecy"), "\(message)")
                }
            }
        }
    }

    @Test func `a delegate cannot trust more than the system for a host that is not exempt`() async throws {
        let rows: [(String, [String: Any]?, isAllowed: Bool)] = [
            ("no dictionary", nil, false), ("no exception", [:], false),
            ("an exception about other things", Self.exception(["NSIncludesSubdomains": true]), false),
            ("insecure loads", Self.exception(["NSExceptionAllowsInsecureHTTPLoads": true]), true),
            ("arbitrary loads", ["NSAllowsArbitraryLoads": true], true),
        ]
        try await withScriptedServer(identity: certificates.selfSigned, reply: { _ in .ok("trusted") }) { (server) async throws in
            for (name, dictionary, isAllowed) in rows {
                let judge = Judge.trusting
                let attempt: () async throws -> String = {
                    try await load(server.port, as: "www.example.com", dictionary, delegate: SessionJudge(judge))
                }
                if isAllowed {
                    #expect(try await attempt() == "trusted", "\(name)")
                } else {
                    let error = await expectFailure(.serverCertificateUntrusted, in: name) { try await attempt() }
                    let message = error?.localizedDescription ?? ""
                    #expect(message.contains("NSExceptionAllowsInsecureHTTPLoads"), "\(name): \(message)")
                }
                #expect(judge.all.count == 1, "\(name)")
                #expect(judge.all.first?.space.host == "www.example.com")
                #expect(judge.all.first?.space.port == 443)
            }
            #expect(server.requests.count == 2)
        }
    }

    @Test func `a delegate may trust less than the system`() async throws {
        try await withScriptedServer(identity: certificates.wildcard, reply: { _ in .ok("trusted") }) { (server) async throws in
            #expect(try await load(server.port, as: "www.example.com", nil, delegate: SessionJudge(.trusting)) == "trusted")
            await expectFailure(.cancelled) {
                try await load(
                    server.port, as: "www.example.com", nil, delegate: SessionJudge(.saying(.cancelAuthenticationChallenge)))
            }
        }
    }
}
