// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// A server that is to speak HTTP/3 and does not: TCP is always in the race (RFC 9114, section 3.1.1).
@Suite(.timeLimit(.minutes(2)))
struct HTTP3FallbackTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let change: @Sendable (inout HTTP3Opening) -> Void

        init(_ name: String, _ change: @escaping @Sendable (inout HTTP3Opening) -> Void) {
            testDescription = name
            self.change = change
        }

        static func parameter(_ name: String, _ number: UInt64, _ bytes: [UInt8]?) -> Row {
            Row(name) { $0.parameters = [HTTP3Opening.Parameter(number, bytes)] }
        }

        static func parameter(_ name: String, _ number: UInt64, _ value: UInt64) -> Row {
            parameter(name, number, HTTP3Bytes.integer(value))
        }
    }

    /// Handshakes that cannot succeed.
    private static let failures: [Row] = [
        // RFC 9001, section 8.1.
        Row("no protocol in common") { $0.protocols = ["hq-interop"] },
        Row("no protocol at all") { $0.protocols = nil },
        Row("a protocol that was not offered") { $0.selects = "h2" },
        // RFC 9000, sections 7.3, 7.4 and 18.2.
        .parameter("no original destination", 0x00, nil),
        .parameter("another original destination", 0x00, [1, 2, 3, 4, 5, 6, 7, 8]),
        .parameter("no initial source", 0x0F, nil),
        .parameter("another initial source", 0x0F, [1, 2, 3, 4, 5, 6, 7, 8]),
        .parameter("the source of a Retry that was not sent", 0x10, [1, 2, 3, 4, 5, 6, 7, 8]),
        .parameter("a token of 15 bytes", 0x02, [UInt8](repeating: 1, count: 15)),
        .parameter("a maximum payload of 1,199 bytes", 0x03, 1_199),
        .parameter("an exponent of 21", 0x0A, 21),
        .parameter("a maximum delay of 2^14", 0x0B, 1 << 14),
        .parameter("a limit of one connection ID", 0x0E, 1),
        .parameter("streams beyond 2^60", 0x08, (1 << 60) + 1),
        .parameter("an integer cut off", 0x04, [0xC0, 0x00]),
        .parameter("an integer with more bytes behind it", 0x04, [0x01, 0x01]),
        Row("a parameter cut off") { $0.moreParameters = [0x21, 0x40] },
        Row("no answer") { $0.mute = true },
        Row("another version") { $0.before = [.versions([0x0A0A_0A0A])] },
    ]

    @Test(arguments: failures) func `a handshake that cannot succeed leaves the load to TCP`(row: Row) async throws {
        try await withHTTP3Pair(opening: { _ in HTTP3Opening(row.change) }) { (pair) async throws in
            #expect(try await pair.text() == "tcp")
            try await pair.quic.waitForConnections(1)
            #expect(pair.quic.requests.isEmpty)
            // The place is known to be broken, so TCP does not wait for it.
            #expect(try await pair.text() == "tcp")
            #expect(pair.quic.connectionCount == 1)
        }
    }

    @Test(arguments: failures) func `a handshake that cannot succeed fails the load of a session that demands HTTP/3`(
        row: Row
    ) async throws {
        try await withHTTP3Scenario(
            configure: { $0.timeoutIntervalForRequest = 3 }, opening: { _ in HTTP3Opening(row.change) }, reply: { _ in .ok() }
        ) { (server, session) async throws in
            await expectFailure(
                .cannotConnectToHost, .timedOut, .secureConnectionFailed, .networkConnectionLost, .badServerResponse,
                in: row.testDescription
            ) { try await session.text(server.url()) }
            #expect(server.requests.isEmpty)
        }
    }

    /// Parameters that are unusual, but permitted.
    private static let tolerable: [Row] = [
        .parameter("windows of 2^62 - 1", 0x04, (1 << 62) - 1),
        .parameter("2^60 streams", 0x08, 1 << 60),
        .parameter("an unknown parameter", 0x7FFF, [UInt8](repeating: 9, count: 100)),
        .parameter("a maximum delay of 2^14 - 1", 0x0B, (1 << 14) - 1),
        .parameter("an exponent of 20", 0x0A, 20),
        .parameter("an idle timeout of 2^62 - 1", 0x01, (1 << 62) - 1),
        .parameter("no idle timeout", 0x01, nil),
        .parameter("no migration", 0x0C, []),
        .parameter("many connection IDs", 0x0E, (1 << 62) - 1),
        .parameter("a maximum payload of 2^62 - 1", 0x03, (1 << 62) - 1),
    ]

    @Test(arguments: tolerable) func `a parameter that is permitted changes nothing`(row: Row) async throws {
        try await withHTTP3Scenario(opening: { _ in HTTP3Opening(row.change) }, reply: { .ok($0.path) }) {
            (server, session) async throws in
            for path in ["/a", "/b"] { #expect(try await session.text(server.url(path)) == path) }
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `a port that is closed leaves the load to TCP`() async throws {
        try await withHTTP3Pair { (pair) async throws in
            pair.quic.stopListening()
            #expect(try await pair.text() == "tcp")
            #expect(pair.quic.requests.isEmpty)
        }
    }

    @Test func `a server of another version leaves the load to TCP`() async throws {
        try await withHTTP3Pair(versions: [0x0A0A_0A0A]) { (pair) async throws in
            #expect(try await pair.text() == "tcp")
            #expect(pair.quic.connectionCount == 0)
        }
    }

    @Test func `a server that closes the connection within the handshake leaves the load to TCP`() async throws {
        try await withHTTP3Pair(opening: { _ in HTTP3Opening { $0.closes = 0x1 } }) { (pair) async throws in
            #expect(try await pair.text() == "tcp")
            #expect(pair.quic.requests.isEmpty)
        }
    }

    @Test func `a handshake that succeeds is used before TCP is tried`() async throws {
        try await withHTTP3Pair { (pair) async throws in
            for _ in 0..<3 { #expect(try await pair.text() == "quic") }
            #expect(pair.quic.connectionCount == 1)
            #expect(pair.quic.serverName() == "localhost")
        }
    }

    // MARK: Trust

    @Test func `a chain that is refused over QUIC carries no request, and TCP decides`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withHTTP3Pair(identities: [certificates.selfSigned]) { (pair) async throws in
            #expect(try await pair.text() == "tcp")
            #expect(pair.quic.requests.isEmpty)
            let connections = pair.quic.connectionCount
            #expect(try await pair.text() == "tcp")
            #expect(pair.quic.connectionCount == connections)
        }
    }

    @Test func `a chain that is refused over QUIC and TCP is the load's error`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withHTTP3Pair(
            identities: [certificates.unknownAuthority], tcpIdentity: certificates.unknownAuthority
        ) { (pair) async throws in
            await expectFailure(.serverCertificateUntrusted, .serverCertificateHasUnknownRoot) { try await pair.text() }
            #expect(pair.quic.requests.isEmpty && pair.tcp.requests.isEmpty)
        }
    }

    private static let refused: [(String, @Sendable (TestCertificates) -> TestCertificates.Identity, Set<URLError.Code>)] = [
        ("expired", { $0.expired }, [.serverCertificateHasBadDate, .serverCertificateUntrusted]),
        ("not yet valid", { $0.notYetValid }, [.serverCertificateNotYetValid, .serverCertificateUntrusted]),
        ("another host", { $0.wrongHost }, [.serverCertificateUntrusted]),
        ("self-signed", { $0.selfSigned }, [.serverCertificateUntrusted, .serverCertificateHasUnknownRoot]),
        ("an unknown authority", { $0.unknownAuthority }, [.serverCertificateUntrusted, .serverCertificateHasUnknownRoot]),
        ("a missing intermediate", { $0.missingIntermediate }, [.serverCertificateUntrusted, .serverCertificateHasUnknownRoot]),
        ("an impostor of the issuer", { $0.impostorIssuer }, [.serverCertificateUntrusted, .serverCertificateHasUnknownRoot]),
        ("an issuer that is no authority", { $0.nonCAIssuer }, [.serverCertificateUntrusted, .serverCertificateHasUnknownRoot]),
        ("name constraints", { $0.nameConstraintViolated }, [.serverCertificateUntrusted]),
        ("a client's certificate", { $0.clientOnly }, [.serverCertificateUntrusted]),
    ]

    @Test(arguments: refused.indices) func `a chain that is not trusted fails the load before its request`(row: Int) async throws
    {
        let certificates = try TestCertificates.shared.get()
        let (name, identity, codes) = Self.refused[row]
        try await withHTTP3Scenario(
            identities: [identity(certificates)], reply: { _ in .ok() }
        ) { (server, session) async throws in
            await expectFailure(in: codes, name) { try await session.text(server.url()) }
            let end = try await server.waitForEnd()
            // An alert of TLS (RFC 9001, section 4.8).
            #expect(end.map { 0x100...0x1FF ~= $0.code && $0.frame != nil } == true, "\(name): \(String(describing: end))")
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `a chain of hundreds of certificates is refused, in bounded time`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withHTTP3Pair(identities: [certificates.valid.lengthened(to: 300)]) { (pair) async throws in
            #expect(try await pair.text() == "tcp")
            #expect(pair.quic.requests.isEmpty)
        }
    }

    /// The delegate is asked as over TCP.
    final class Judge: NSObject, URLSessionDelegate {
        let asked = Delivered<String>()
        private let gate: Watched<Bool>

        init(_ gate: Watched<Bool>) { self.gate = gate }

        func urlSession(
            _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
        ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
            asked(challenge.protectionSpace.authenticationMethod)
            guard let trust = challenge.protectionSpace.serverTrust else { return (.performDefaultHandling, nil) }
            try? await gate.value { $0 ? () : nil }
            return (.useCredential, URLCredential(trust: trust))
        }
    }

    @Test func `no byte of a request is sent while the app judges the chain`() async throws {
        let certificates = try TestCertificates.shared.get()
        let gate = Watched(false)
        let judge = Judge(gate)
        try await withHTTP3Scenario(
            identities: [certificates.selfSigned], delegate: judge, reply: { .ok($0.path) }
        ) { (server, session) async throws in
            let url = server.url("/judged")
            async let text = session.text(url)
            #expect(try await judge.asked.value == NSURLAuthenticationMethodServerTrust)
            try await server.waitForHandshake()
            #expect(server.requests.isEmpty)
            gate.change { $0 = true }
            #expect(try await text == "/judged")
            #expect(judge.asked.all.count == 1)
        }
    }

    // MARK: Versions

    @Test func `a server that asks for HTTP/1.1 gets the request over HTTP/1.1`() async throws {
        try await withHTTP3Pair(
            tcpVersion: .http1OverTLS, reply: { _ in [.awaitRequestEnd, .close(.versionFallback)] }
        ) { (pair) async throws in
            #expect(try await pair.text() == "tcp")
            #expect(pair.quic.requests.count == 1)
            #expect(try await pair.session.text(pair.request("/post", method: "POST", body: Data("body".utf8))).text == "tcp")
            #expect(pair.tcp.requests.map(\.method) == ["GET", "POST"])
        }
    }

    @Test func `a stream reset with H3_VERSION_FALLBACK is repeated over HTTP/1.1`() async throws {
        try await withHTTP3Pair(
            tcpVersion: .http1OverTLS, reply: { $0.path == "/old" ? [.awaitRequestEnd, .reset(.versionFallback)] : .ok("quic") }
        ) { (pair) async throws in
            #expect(try await pair.text() == "quic")
            #expect(try await pair.text("/old") == "tcp")
        }
    }

    @Test func `a misdirected request is repeated over TCP`() async throws {
        try await withHTTP3Pair(reply: { _ in .status(421, body: Array("misdirected".utf8)) }) { (pair) async throws in
            #expect(try await pair.text() == "tcp")
            #expect(try await pair.text() == "tcp")
        }
    }
}
