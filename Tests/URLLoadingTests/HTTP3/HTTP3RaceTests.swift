// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingEngine
import LoadingTestKit
import Testing
import URLLoading

/// Which of TCP and QUIC carries the first requests of an origin that is assumed to speak HTTP/3.
@Suite(.timeLimit(.minutes(2)))
struct HTTP3RaceTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func withTCP(
        _ identity: TestCertificates.Identity? = nil, configure: (URLSessionConfiguration) -> Void = { _ in },
        other: (_ port: Int) async throws -> UDPRelay, test: (ScriptedServer, UDPRelay, URLSession) async throws -> Void
    ) async throws {
        try await withPort(identity: identity, reply: { _ in closing("tcp") }, other: other) { (relay) async throws in
            await relay.close()
        } test: { (server, relay) async throws in
            try await withSession {
                $0.tlsTrustRoots = [certificates.root]
                configure($0)
            } test: { (session) async throws in
                try await test(server, relay, session)
            }
        }
    }

    // MARK: Success

    @Test func `a request that assumes HTTP/3 uses it at once, and nothing goes over TCP`() async throws {
        try await HTTP3Origin.withTries {
            var isRight = false
            try await withHTTP3Origin { (origin, session) async throws in
                let first = try await session.outcome(.assuming(origin.url("/a")))
                let second = try await session.outcome(.assuming(origin.url("/b")))
                isRight = first.protocols == ["h3"] && second.protocols == ["h3"] && origin.tcp.connectionCount == 0
                guard isRight else { return }
                #expect(first.text == "quic" && second.text == "quic")
                #expect(origin.quic.connectionCount == 1)
                #expect(origin.quic.requests.map(\.path) == ["/a", "/b"])
                #expect(origin.quic.requests.allSatisfy { $0.header("alt-used") == nil })
                #expect(origin.quic.serverName() == "localhost")
            }
            return isRight
        }
    }

    @Test func `a request that assumes nothing uses TCP, and no datagram is sent`() async throws {
        try await withHTTP3Origin { (origin, session) async throws in
            let outcome = try await session.outcome(origin.url())
            #expect(outcome.text == "tcp" && outcome.protocols == ["http/1.1"])
            #expect(origin.quic.connectionCount == 0)
        }
    }

    @Test func `no server name is sent for an address`() async throws {
        try await withHTTP3Scenario(reply: { _ in .ok("quic") }) { (server, session) async throws in
            #expect(try await session.text(server.url(host: "127.0.0.1")) == "quic")
            #expect(server.serverName() == nil)
            #expect(server.requests.first?.authority == "127.0.0.1:\(server.port)")
        }
    }

    @Test func `HTTP/3 is used where TCP is silent`() async throws {
        // The handshake over TCP never ends, because this server speaks no TLS.
        try await withHTTP3Origin(over: nil) { (origin, session) async throws in
            var request = URLRequest.assuming(try #require(URL(string: "https://localhost:\(origin.port)/")))
            request.timeoutInterval = 15
            let outcome = try await session.outcome(request)
            #expect(outcome.text == "quic" && outcome.last == "h3")
        }
    }

    @Test func `HTTP/3 is used where TCP is refused`() async throws {
        try await withHTTP3Scenario {
            $0.connectionOptions.httpVersions = .negotiated
        } reply: { _ in
            .ok("quic")
        } test: { (server, session) async throws in
            for _ in 0..<3 { #expect(try await session.outcome(.assuming(server.url())).protocols == ["h3"]) }
            #expect(server.connectionCount == 1)
        }
    }

    /// A Retry packet costs a round trip, and is no failure (RFC 9000, section 8.1.2).
    @Test func `a server that validates addresses is reached`() async throws {
        try await withHTTP3Scenario(retries: true, reply: { _ in .ok("quic") }) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "quic")
            #expect(server.connectionCount == 1)
        }
    }

    // MARK: Falling back

    @Test func `a closed UDP port leads to TCP, and later connections do not try QUIC`() async throws {
        try await withScriptedServer(version: .http1OverTLS, reply: { _ in closing("tcp") }) { (server) async throws in
            try await withSession {
                $0.tlsTrustRoots = [certificates.root]
            } test: { (session) async throws in
                let url = server.url(host: "localhost")
                #expect(try await session.outcome(.assuming(url)).protocols.last == "http/1.1")
                try await withHTTP3Server(port: server.port, reply: { _ in .ok("quic") }) { (quic) async throws in
                    for _ in 0..<3 { #expect(try await session.text(.assuming(url)).text == "tcp") }
                    #expect(quic.connectionCount == 0)
                }
                #expect(server.connectionCount == 4)
            }
        }
    }

    @Test func `a black hole leads to TCP, and later connections send no datagram`() async throws {
        try await withTCP(other: { try await blackHole(on: $0) }) { (server, hole, session) async throws in
            let url = server.url(host: "localhost")
            #expect(try await session.text(.assuming(url)).text == "tcp")
            try await hole.counts { $0.fromClients > 0 }
            let clients = hole.counts.clients
            for _ in 0..<3 { #expect(try await session.text(.assuming(url)).text == "tcp") }
            #expect(hole.counts.clients == clients)
            #expect(server.requests.count == 4 && server.requests.allSatisfy { $0.isComplete })
        }
    }

    @Test func `concurrent loads of a new origin share one race`() async throws {
        try await withTCP(other: { try await blackHole(on: $0) }) { (server, hole, session) async throws in
            let url = server.url(host: "localhost")
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<12 { group.addTask { try await session.text(.assuming(url)).text } }
                for try await text in group { #expect(text == "tcp") }
            }
            // The pool dials as many connections as HTTP/1.1 may have.
            #expect(hole.counts.clients <= 6)
            #expect(server.requests.count == 12)
        }
    }

    @Test func `a server without a version of QUIC that the client speaks leads to TCP`() async throws {
        try await withPort(reply: { _ in closing("tcp") }) { (port) async throws in
            try await HTTP3ScriptedServer.start(port: port, versions: [0x0A1A_2A3A], reply: { _ in .ok("quic") })
        } close: { (server) async throws in
            try await server.close()
        } test: { (server, _) async throws in
            try await withSession {
                $0.tlsTrustRoots = [certificates.root]
            } test: { (session) async throws in
                let url = server.url(host: "localhost")
                #expect(try await session.text(.assuming(url)).text == "tcp")
            }
        }
    }

    @Test(arguments: [["nonsense"], nil] as [[String]?])
    func `a server that does not select h3 leads to TCP`(protocols: [String]?) async throws {
        try await withHTTP3Origin(opening: { _ in HTTP3Opening { $0.protocols = protocols } }) { (origin, session) async throws in
            #expect(try await session.text(.assuming(origin.url())).text == "tcp")
            #expect(try await session.text(.assuming(origin.url())).text == "tcp")
            #expect(origin.quic.requests.isEmpty)
        }
    }

    @Test func `if QUIC and TCP fail, the error is that of TCP`() async throws {
        let port = try RefusingPort()
        try await withSession {
            $0.tlsTrustRoots = [certificates.root]
        } test: { (session) async throws in
            let url = try #require(URL(string: "https://localhost:\(port.number)/"))
            let error = await expectFailure(.cannotConnectToHost) { try await session.data(for: .assuming(url)) }
            #expect(error?.failingURL == url)
        }
        try await withTCP(certificates.expired, other: { try await blackHole(on: $0) }) { (server, _, session) async throws in
            let url = server.url(host: "localhost")
            await expectFailure(.serverCertificateHasBadDate) { try await session.data(for: .assuming(url)) }
            #expect(server.requests.isEmpty)
        }
    }

    /// RFC 9114, section 4.1.1: what arrived on a connection that dies may have been processed.
    @Test func `a connection that dies before its first response is replaced by TCP for a GET`() async throws {
        try await withHTTP3Origin(over: nil, quic: { _ in [.awaitRequestEnd, .close(.internalError)] }) {
            (origin, session) async throws in
            // TCP speaks no TLS, so that QUIC wins the race.
            let url = try #require(URL(string: "https://localhost:\(origin.port)/"))
            var request = URLRequest.assuming(url, method: "POST", body: Data("once".utf8))
            request.timeoutInterval = 10
            await expectFailure(.networkConnectionLost, .badServerResponse) { try await session.data(for: request) }
            #expect(origin.quic.requests.count == 1)
        }
    }

    // MARK: Broken marks

    @Test func `a broken origin is tried again after 5 minutes, then after 10`() async throws {
        let clock = SteppedClock(start: Date().timeIntervalSinceReferenceDate)
        try await withScriptedServer(version: .http1OverTLS, reply: { _ in closing("tcp") }) { (server) async throws in
            try await withSession {
                $0.tlsTrustRoots = [certificates.root]
                $0.steppedClock = clock
            } test: { (session) async throws in
                let url = server.url(host: "localhost")
                let minute: Int64 = 60_000_000_000
                /// Loads with QUIC present; returns whether it was asked.
                func isTried(_ row: String) async throws -> Bool {
                    var count = 0
                    try await withHTTP3Server(port: server.port, reply: { _ in .ok("quic") }) { (quic) async throws in
                        let text = try await session.text(.assuming(url)).text
                        #expect(["tcp", "quic"].contains(text), "\(row)")
                        count = quic.connectionCount
                        if count > 0 {
                            // The next load needs a new connection.
                            quic.run(.close(.noError))
                            try await quic.waitForEnd()
                        }
                    }
                    return count > 0
                }
                #expect(try await session.text(.assuming(url)).text == "tcp")
                await clock.step(by: 5 * minute - 1_000_000_000)
                #expect(try await isTried("before 5 minutes") == false)
                await clock.step(by: 2_000_000_000)
                // It fails again.
                #expect(try await session.text(.assuming(url)).text == "tcp")
                await clock.step(by: 10 * minute - 1_000_000_000)
                #expect(try await isTried("before 10 minutes") == false)
                await clock.step(by: 2_000_000_000)
                #expect(try await isTried("after 10 minutes"))
            }
        }
    }

    @Test func `resetting the session forgets broken origins and assumptions`() async throws {
        try await withScriptedServer(version: .http1OverTLS, reply: { _ in closing("tcp") }) { (server) async throws in
            try await withSession {
                $0.tlsTrustRoots = [certificates.root]
            } test: { (session) async throws in
                let url = server.url(host: "localhost")
                #expect(try await session.text(.assuming(url)).text == "tcp")
                await session.reset()
                try await withHTTP3Server(port: server.port, reply: { _ in .ok("quic") }) { (quic) async throws in
                    #expect(try await session.text(url) == "tcp")
                    #expect(quic.connectionCount == 0)
                    _ = try await session.text(.assuming(url))
                    #expect(quic.connectionCount == 1)
                }
            }
        }
    }

    // MARK: Never

    @Test(arguments: [true, false])
    func `a session without HTTP/3 sends no datagram`(isOnlyHTTP1: Bool) async throws {
        try await withTCP {
            $0.connectionOptions.httpVersions = isOnlyHTTP1 ? .http1Only : .withoutHTTP3
        } other: {
            try await blackHole(on: $0)
        } test: { (server, hole, session) async throws in
            #expect(try await session.text(.assuming(server.url(host: "localhost"))).text == "tcp")
            #expect(hole.counts.fromClients == 0)
        }
    }

    @Test func `a session whose TLS maximum is 1.2 sends no datagram`() async throws {
        try await withTCP {
            $0.tlsMaximumSupportedProtocolVersion = .TLSv12
        } other: {
            try await blackHole(on: $0)
        } test: { (server, hole, session) async throws in
            #expect(try await session.text(.assuming(server.url(host: "localhost"))).text == "tcp")
            #expect(hole.counts.fromClients == 0)
        }
    }

    @Test func `requests through proxies send no datagram`() async throws {
        try await withTCP(other: { try await blackHole(on: $0) }) { (server, hole, _) async throws in
            let relay = try NameRelay(to: server.port)
            try await withSession {
                $0.tlsTrustRoots = [certificates.root]
                $0.connectionProxyDictionary = relay.dictionary
            } test: { (session) async throws in
                #expect(try await session.text(.assuming(server.url(host: "localhost"))).text == "tcp")
            }
            #expect(hole.counts.fromClients == 0)
        }
    }

    @Test func `a request that is misdirected is repeated without HTTP/3`() async throws {
        try await withHTTP3Origin(over: .http2, tcp: { _ in .ok("tcp") }, quic: { _ in .status(421) }) {
            (origin, session) async throws in
            for _ in 0..<3 {
                let body = Data("body".utf8)
                #expect(try await session.text(.assuming(origin.url(), method: "POST", body: body)).text == "tcp")
            }
            #expect(origin.quic.requests.count <= 1)
            #expect(origin.tcp.requests.allSatisfy { $0.bodyText == "body" })
        }
    }

    // MARK: Only HTTP/3

    @Test func `a session that demands HTTP/3 does not use TCP`() async throws {
        try await withScriptedServer(version: .http1OverTLS, reply: { _ in closing("tcp") }) { (server) async throws in
            try await withSession {
                $0.tlsTrustRoots = [certificates.root]
                $0.connectionOptions.httpVersions = .http3Only
            } test: { (session) async throws in
                let url = server.url(host: "localhost")
                let error = await expectFailure(.cannotConnectToHost) { try await session.data(from: url) }
                #expect(error?.failingURL == url)
                // A failure over QUIC does not stop it: there is no other way.
                try await withHTTP3Server(port: server.port, reply: { _ in .ok("quic") }) { (quic) async throws in
                    #expect(try await session.outcome(url).protocols == ["h3"])
                }
                #expect(server.connectionCount == 0)
            }
        }
        try await withTCP {
            $0.connectionOptions.httpVersions = .http3Only
        } other: {
            try await blackHole(on: $0)
        } test: { (server, hole, session) async throws in
            var request = URLRequest(url: server.url(host: "localhost"))
            request.timeoutInterval = 1
            await expectFailure(.timedOut) { try await session.data(for: request) }
            #expect(server.connectionCount == 0 && hole.counts.clients > 0)
        }
    }
}
