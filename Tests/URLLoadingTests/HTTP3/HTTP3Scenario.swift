// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

extension URLSessionConfiguration {
    /// Configures a session to speak only HTTP/3 with a server of the tests.
    func speakHTTP3(_ certificates: TestCertificates) {
        tlsTrustRoots = [certificates.root]
        connectionOptions.httpVersions = .http3Only
    }
}

/// Runs a test with a scripted HTTP/3 server and a session that speaks nothing else with it.
func withHTTP3Scenario(
    identities: [TestCertificates.Identity]? = nil,
    isMortal: Bool = false,
    retries: Bool = false,
    versions: [UInt32] = [1],
    delegate: (any URLSessionDelegate)? = nil,
    configure: (URLSessionConfiguration) -> Void = { _ in },
    opening: @escaping HTTP3ScriptedServer.Opening = { _ in HTTP3Opening() },
    greeting: @escaping HTTP3ScriptedServer.Greeting = { _ in [.settings()] },
    reply: @escaping HTTP3ScriptedServer.Reply,
    test: (HTTP3ScriptedServer, URLSession) async throws -> Void
) async throws {
    let certificates = try TestCertificates.shared.get()
    try await withHTTP3Server(
        identities: identities, isMortal: isMortal, retries: retries, versions: versions, opening: opening, greeting: greeting,
        reply: reply
    ) { (server) async throws in
        try await withSession(
            delegate: delegate,
            {
                $0.speakHTTP3(certificates)
                configure($0)
            }, test: { session in try await test(server, session) })
    }
}

/// Two servers on one port: over UDP one that speaks HTTP/3 by script, and over TCP one that speaks HTTP/2 and responds with `tcp`.
struct HTTP3Pair {
    let quic: HTTP3ScriptedServer
    let tcp: ScriptedServer
    let session: URLSession

    func request(_ path: String = "/", method: String = "GET", body: Data? = nil) -> URLRequest {
        var request = URLRequest(quic.url(path), method: method, body: body)
        request.assumesHTTP3Capable = true
        return request
    }

    /// Loads a path, for which the session assumes HTTP/3.
    func text(_ path: String = "/") async throws -> String { try await session.text(request(path)).text }
}

/// Runs a test with two servers on one port, and a session that assumes HTTP/3.
func withHTTP3Pair(
    identities: [TestCertificates.Identity]? = nil,
    tcpVersion: ScriptedVersion = .http2,
    tcpIdentity: TestCertificates.Identity? = nil,
    isMortal: Bool = false,
    versions: [UInt32] = [1],
    delegate: (any URLSessionDelegate)? = nil,
    configure: (URLSessionConfiguration) -> Void = { _ in },
    opening: @escaping HTTP3ScriptedServer.Opening = { _ in HTTP3Opening() },
    greeting: @escaping HTTP3ScriptedServer.Greeting = { _ in [.settings()] },
    reply: @escaping HTTP3ScriptedServer.Reply = { _ in .ok("quic") },
    tcpReply: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply = { _ in .ok("tcp") },
    test: (HTTP3Pair) async throws -> Void
) async throws {
    let certificates = try TestCertificates.shared.get()
    try await withScriptedServer(
        version: tcpVersion, identity: tcpIdentity ?? certificates.valid, reply: tcpReply
    ) { (tcp) async throws in
        try await withHTTP3Server(
            identities: identities, port: tcp.port, isMortal: isMortal, versions: versions, opening: opening, greeting: greeting,
            reply: reply
        ) { (quic) async throws in
            try await withSession(
                delegate: delegate,
                {
                    $0.tlsTrustRoots = [certificates.root]
                    configure($0)
                }, test: { session in try await test(HTTP3Pair(quic: quic, tcp: tcp, session: session)) })
        }
    }
}

extension HTTP3Step {
    /// The head of a well-formed response.
    static func head(_ status: Int = 200, _ headers: [(String, String)] = [], ends: Bool = false) -> HTTP3Step {
        .headers([(":status", "\(status)")] + headers, ends: ends)
    }
}
