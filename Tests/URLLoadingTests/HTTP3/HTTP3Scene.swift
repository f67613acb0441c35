// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// An origin whose servers over TCP and over QUIC have the same port number.
struct HTTP3Origin: Sendable {
    let tcp: ScriptedServer
    let quic: HTTP3ScriptedServer

    var port: Int { tcp.port }

    func url(_ path: String = "/", host: String = "localhost") -> URL { tcp.url(path, host: host) }
}

/// What a load returned, and what its metrics say.
struct HTTP3Outcome: Sendable {
    let text: String
    let response: HTTPURLResponse
    let transactions: [URLSessionTaskTransactionMetrics]

    var protocols: [String?] { transactions.map(\.networkProtocolName) }
    var last: String? { transactions.last?.networkProtocolName }
}

extension URLRequest {
    /// A request whose server is assumed to speak HTTP/3.
    static func assuming(
        _ url: URL, method: String = "GET", headers: [String: String] = [:], body: Data? = nil
    ) -> URLRequest {
        var request = URLRequest(url, method: method, headers: headers, body: body)
        request.assumesHTTP3Capable = true
        return request
    }
}

extension URLSession {
    private final class Listener: NSObject, URLSessionTaskDelegate, Sendable {
        let metrics = Delivered<URLSessionTaskMetrics>()

        func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
            self.metrics(metrics)
        }
    }

    /// Loads a request, and returns its metrics, too.
    func outcome(_ request: URLRequest) async throws -> HTTP3Outcome {
        let listener = Listener()
        let (data, response) = try await data(for: request, delegate: listener)
        return HTTP3Outcome(
            text: String(decoding: data, as: UTF8.self), response: try #require(response as? HTTPURLResponse),
            transactions: try await listener.metrics.value.transactionMetrics)
    }

    func outcome(_ url: URL) async throws -> HTTP3Outcome { try await outcome(URLRequest(url: url)) }
}

/// Starts a server over TCP, and something else on the UDP port of the same number.
func withPort<Other: Sendable>(
    over version: ScriptedVersion? = .http1OverTLS,
    identity: TestCertificates.Identity? = nil,
    reply: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply,
    other: (_ port: Int) async throws -> Other,
    close: (Other) async throws -> Void,
    test: (ScriptedServer, Other) async throws -> Void
) async throws {
    for attempt in 0... {
        let server = try await ScriptedServer.start(version: version, identity: identity, reply: reply)
        let second: Other
        do {
            second = try await other(server.port)
        } catch {
            // Another program has the UDP port.
            try await server.close()
            if attempt < 20 { continue }
            throw error
        }
        do {
            try await test(server, second)
        } catch {
            try? await close(second)
            try? await server.close()
            throw error
        }
        do { try await close(second) } catch {
            try? await server.close()
            throw error
        }
        return try await server.close()
    }
}

/// A reply after which HTTP/1.1 needs a new connection.
func closing(_ body: String, _ headers: [(String, String)] = []) -> ScriptedReply {
    .ok(body, headers + [("Connection", "close")])
}

/// Runs a test with an origin over TCP and QUIC, and with a session that trusts the test's root.
///
/// By default, each response says over what it came, and each load over TCP needs a new connection.
func withHTTP3Origin(
    over version: ScriptedVersion? = .http1OverTLS,
    tcpIdentity: TestCertificates.Identity? = nil,
    identities: [TestCertificates.Identity]? = nil,
    isMortal: Bool = false,
    delegate: (any URLSessionDelegate)? = nil,
    configure: (URLSessionConfiguration) -> Void = { _ in },
    opening: @escaping HTTP3ScriptedServer.Opening = { _ in HTTP3Opening() },
    greeting: @escaping HTTP3ScriptedServer.Greeting = { _ in [.settings()] },
    tcp: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply = { _ in closing("tcp") },
    quic: @escaping HTTP3ScriptedServer.Reply = { _ in .ok("quic") },
    test: (HTTP3Origin, URLSession) async throws -> Void
) async throws {
    let root = try TestCertificates.shared.get().root
    try await withPort(over: version, identity: tcpIdentity, reply: tcp) { (port) async throws in
        try await HTTP3ScriptedServer.start(
            identities: identities, port: port, isMortal: isMortal, opening: opening, greeting: greeting, reply: quic)
    } close: { (server) async throws in
        try await server.close()
    } test: { (server, second) async throws in
        try await withSession(delegate: delegate) {
            $0.tlsTrustRoots = [root]
            configure($0)
        } test: { (session) async throws in
            try await test(HTTP3Origin(tcp: server, quic: second), session)
        }
    }
}

/// Runs a test with a server of the version-neutral scripts over HTTP/3, and a session that demands it.
func withNeutralHTTP3(
    sendBuffer: Int? = nil,
    delegate: (any URLSessionDelegate)? = nil,
    configure: (URLSessionConfiguration) -> Void = { _ in },
    early: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply? = { _ in nil },
    reply: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply,
    test: (ScriptedServer, URLSession) async throws -> Void
) async throws {
    let root = try TestCertificates.shared.get().root
    try await withScenario(
        version: .http3, sendBuffer: sendBuffer, delegate: delegate,
        configure: {
            $0.tlsTrustRoots = [root]
            $0.connectionOptions.httpVersions = .http3Only
            configure($0)
        }, early: early, reply: reply, test: test)
}

/// A UDP port that takes datagrams and never answers.
func blackHole(on port: Int) async throws -> UDPRelay {
    let relay = try await UDPRelay.start(to: 1, port: port)
    relay.blackHole(true)
    return relay
}

extension HTTP3Origin {
    /// Expects a load over HTTP/3, which may lose the race against TCP where the machine is busy: then a further session tries it.
    static func withTries(_ test: () async throws -> Bool) async throws {
        for _ in 0..<8 {
            if try await test() { return }
        }
        Issue.record("HTTP/3 was never used")
    }
}
