// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingEngine
import LoadingModel
import LoadingTestKit
import Synchronization
import Testing
import URLLoading

/// HTTP/3 at the places that an origin announces (RFC 7838).
@Suite(.timeLimit(.minutes(2)))
struct HTTP3AlternativeTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    /// Runs a test with an origin over TCP, which announces what `field` returns for the port of a server over QUIC.
    private func with(
        over version: ScriptedVersion = .http1OverTLS, tcpIdentity: TestCertificates.Identity? = nil,
        identity: TestCertificates.Identity? = nil, field: @escaping @Sendable (_ port: Int) -> String,
        configure: (URLSessionConfiguration) -> Void = { _ in },
        reply: @escaping HTTP3ScriptedServer.Reply = { _ in .ok("quic") },
        test: (ScriptedServer, HTTP3ScriptedServer, URLSession) async throws -> Void
    ) async throws {
        let identities = [identity ?? certificates.valid]
        try await withHTTP3Server(identities: identities, reply: reply) { (quic) async throws in
            try await withScriptedServer(
                version: version, identity: tcpIdentity,
                reply: { request in
                    let value = request.path == "/clear" ? "clear" : request.path == "/plain" ? "" : field(quic.port)
                    let fields = value.isEmpty ? [] : [("Alt-Svc", value)]
                    return version == .http2 ? .ok("tcp", fields) : closing("tcp", fields)
                }
            ) { (server) async throws in
                try await withSession {
                    $0.tlsTrustRoots = [certificates.root]
                    configure($0)
                } test: { (session) async throws in
                    try await test(server, quic, session)
                }
            }
        }
    }

    /// Loads until HTTP/3 is used, which may lose races where the machine is busy; returns the outcome.
    private func eventually(_ session: URLSession, _ url: URL) async throws -> HTTP3Outcome {
        var outcome = try await session.outcome(url)
        for _ in 0..<20 where outcome.last != "h3" { outcome = try await session.outcome(url) }
        return outcome
    }

    @Test func `the connection after the announcement uses HTTP/3, and names the alternative`() async throws {
        try await with(field: { "h3=\":\($0)\"; ma=60" }) { (server, quic, session) async throws in
            let url = server.url("/a", host: "localhost")
            #expect(try await session.outcome(url).protocols == ["http/1.1"])
            #expect(quic.connectionCount == 0)
            let second = try await eventually(session, url)
            #expect(second.text == "quic" && second.last == "h3")
            let request = try #require(quic.requests.last)
            #expect(request.authority == "localhost:\(server.port)")
            #expect(request.header("alt-used") == "localhost:\(quic.port)")
            #expect(quic.serverName() == "localhost")
            #expect(second.transactions.last?.remotePort == quic.port)
        }
    }

    @Test func `a connection of HTTP/2 is used on`() async throws {
        try await with(over: .http2, field: { "h3=\":\($0)\"; ma=60" }) { (server, quic, session) async throws in
            for _ in 0..<4 { #expect(try await session.outcome(server.url(host: "localhost")).protocols == ["h2"]) }
            #expect(server.connectionCount == 1 && quic.connectionCount == 0)
        }
    }

    @Test func `an announcement that is withdrawn, or was never valid, leads nowhere`() async throws {
        try await with(field: { "h3=\":\($0)\"; ma=60" }) { (server, quic, session) async throws in
            _ = try await session.text(server.url("/", host: "localhost"))
            // A load over TCP that was already under way may withdraw it.
            await session.reset()
            #expect(try await session.text(server.url("/plain", host: "localhost")) == "tcp")
            #expect(quic.connectionCount == 0)
        }
        let rows: [(String, @Sendable (Int) -> String)] = [
            ("withdrawn", { "h3=\":\($0)\"; ma=60, clear" }), ("no time", { "h3=\":\($0)\"; ma=0" }),
            ("a draft", { "h3-29=\":\($0)\"; ma=60" }), ("HTTP/2", { "h2=\":\($0)\"; ma=60" }),
            ("nonsense", { "h3=:\($0); ma=60" }), ("port 0", { _ in "h3=\":0\"" }),
        ]
        for (name, field) in rows {
            try await with(field: field) { (server, quic, session) async throws in
                for _ in 0..<3 { #expect(try await session.text(server.url(host: "localhost")) == "tcp", "\(name)") }
                #expect(quic.connectionCount == 0, "\(name)")
            }
        }
    }

    /// RFC 7838, section 3: "clear" invalidates all alternatives, also if it arrives over the alternative.
    @Test func `a response over HTTP/3 can withdraw the alternative`() async throws {
        try await with(
            field: { "h3=\":\($0)\"; ma=60" },
            reply: { request in .ok("quic", request.path == "/clear" ? [("alt-svc", "clear")] : []) }
        ) { (server, quic, session) async throws in
            _ = try await session.text(server.url(host: "localhost"))
            let cleared = try await eventually(session, server.url("/clear", host: "localhost"))
            // Either server can have withdrawn it, by the same path.
            guard cleared.last == "h3" else { return }
            quic.run(.goAway(1 << 20), on: 0)
            quic.run(.close(.noError), on: 0)
            try await quic.waitForEnd()
            let count = quic.connectionCount
            #expect(try await session.text(server.url("/plain", host: "localhost")) == "tcp")
            #expect(quic.connectionCount == count)
        }
    }

    @Test func `an alternative expires`() async throws {
        let clock = SteppedClock(start: Date().timeIntervalSinceReferenceDate)
        try await with(field: { "h3=\":\($0)\"; ma=60" }, configure: { $0.steppedClock = clock }) {
            (server, quic, session) async throws in
            #expect(try await session.text(server.url(host: "localhost")) == "tcp")
            await clock.step(by: 61_000_000_000)
            #expect(try await session.text(server.url("/plain", host: "localhost")) == "tcp")
            #expect(quic.connectionCount == 0)
        }
    }

    /// RFC 7838, section 2.1: the certificate must be valid for the origin.
    @Test func `an alternative at another host needs the origin's certificate`() async throws {
        let addresses: [URLSessionConfiguration.ConnectionOptions.Endpoint: [String]] = [
            .init(host: "elsewhere.test"): ["127.0.0.1"], .init(host: "www.shop.localhost"): ["127.0.0.1"],
        ]
        try await with(
            tcpIdentity: certificates.shop, identity: certificates.shop, field: { "h3=\"elsewhere.test:\($0)\"; ma=60" },
            configure: { $0.connectionOptions.addresses = addresses }
        ) { (server, quic, session) async throws in
            let outcome = try await eventually(session, server.url(host: "www.shop.localhost"))
            #expect(outcome.last == "h3")
            #expect(quic.serverName() == "www.shop.localhost")
            #expect(quic.requests.last?.authority == "www.shop.localhost:\(server.port)")
            #expect(quic.requests.last?.header("alt-used") == "elsewhere.test:\(quic.port)")
        }
        try await with(
            tcpIdentity: certificates.shop, identity: certificates.valid, field: { "h3=\"elsewhere.test:\($0)\"; ma=60" },
            configure: { $0.connectionOptions.addresses = addresses }
        ) { (server, quic, session) async throws in
            for _ in 0..<4 { #expect(try await session.text(server.url(host: "www.shop.localhost")) == "tcp") }
            #expect(quic.requests.isEmpty && quic.connectionCount <= 1)
        }
    }

    @Test func `an alternative whose host does not exist costs nothing but the attempt`() async throws {
        let options = [URLSessionConfiguration.ConnectionOptions.Endpoint(host: "nowhere.test"): [String]()]
        try await with(
            field: { _ in "h3=\"nowhere.test:443\"; ma=60" }, configure: { $0.connectionOptions.addresses = options }
        ) { (server, _, session) async throws in
            for _ in 0..<4 { #expect(try await session.text(server.url(host: "localhost")) == "tcp") }
        }
    }

    @Test func `an alternative that does not exist leads to TCP, and is not tried again`() async throws {
        let hole = try await UDPRelay.start(to: 1)
        hole.blackHole(true)
        try await with(field: { [port = hole.port] _ in "h3=\":\(port)\"; ma=60" }) { (server, _, session) async throws in
            let url = server.url(host: "localhost")
            #expect(try await session.text(url) == "tcp")
            #expect(hole.counts.clients == 0)
            #expect(try await session.text(url) == "tcp")
            try await hole.counts { $0.clients == 1 }
            for _ in 0..<3 { #expect(try await session.text(url) == "tcp") }
            #expect(hole.counts.clients == 1)
        }
        await hole.close()
    }

    @Test func `a second alternative is used where the first is broken`() async throws {
        let hole = try await UDPRelay.start(to: 1)
        hole.blackHole(true)
        try await with(field: { [port = hole.port] in "h3=\":\(port)\"; ma=60, h3=\":\($0)\"; ma=60" }) {
            (server, quic, session) async throws in
            #expect(try await eventually(session, server.url(host: "localhost")).last == "h3")
            #expect(quic.requests.last?.header("alt-used") == "localhost:\(quic.port)")
        }
        await hole.close()
    }

    @Test func `an alternative of one origin is not used for another`() async throws {
        try await with(field: { "h3=\":\($0)\"; ma=60" }) { (server, quic, session) async throws in
            _ = try await session.text(server.url(host: "localhost"))
            #expect(try await session.text(server.url("/plain", host: "127.0.0.1")) == "tcp")
            #expect(quic.connectionCount == 0)
        }
    }

    @Test func `an announcement is ignored if only a delegate trusts the server`() async throws {
        try await withHTTP3Server(identities: [certificates.selfSigned], reply: { _ in .ok("quic") }) { (quic) async throws in
            let port = quic.port
            try await withScenario(
                version: .http1OverTLS, identity: certificates.selfSigned, delegate: SessionJudge(.trusting),
                reply: { _ in closing("tcp", [("Alt-Svc", "h3=\":\(port)\"; ma=60")]) }
            ) { (server, session) async throws in
                for _ in 0..<3 { #expect(try await session.text(server.url(host: "localhost")) == "tcp") }
                #expect(quic.connectionCount == 0)
            }
        }
    }

    @Test func `a session that demands HTTP/3 needs no announcement`() async throws {
        try await withHTTP3Scenario(reply: { _ in .ok("quic") }) { (server, session) async throws in
            let outcome = try await session.outcome(server.url())
            #expect(outcome.text == "quic" && outcome.protocols == ["h3"])
            #expect(server.requests.first?.header("alt-used") == nil)
        }
    }

    // MARK: Change of network

    @Test func `on another network, a broken alternative is tried again`() async throws {
        let network = NetworkOfTest()
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = 20
        configuration.tlsTrustRoots = [certificates.root]
        let engine = SessionEngine.make(
            policy: configuration.sessionPolicy(), stores: SessionStores(), security: .off, network: network)
        try await withScriptedServer(version: .http1OverTLS, reply: { _ in closing("tcp") }) { (server) async throws in
            let session = URLSession(configuration: configuration, delegate: nil, delegateQueue: nil, service: engine)
            defer { session.invalidateAndCancel() }
            let url = server.url(host: "localhost")
            #expect(try await session.text(.assuming(url)).text == "tcp")
            try await withHTTP3Server(port: server.port, reply: { _ in .ok("quic") }) { (quic) async throws in
                #expect(try await session.text(.assuming(url)).text == "tcp")
                #expect(quic.connectionCount == 0)
                network.change()
                for _ in 0..<8 where quic.requests.isEmpty { _ = try await session.text(.assuming(url)) }
                #expect(quic.connectionCount > 0)
            }
        }
    }
}

/// Reports the networks that a test sets, also for loopback.
private final class NetworkOfTest: NetworkMonitoring {
    private let path = Mutex(
        LoadingModel.NetworkPath(
            interfaces: [.init(name: "eth7", index: 7, kind: .wired, addresses: ["192.0.2.1"])], isSatisfied: true))
    private let watchers = Mutex<[@Sendable (LoadingModel.NetworkPath) -> Void]>([])

    var coversLoopback: Bool { true }
    var current: LoadingModel.NetworkPath? { path.withLock { $0 } }
    var isOffline: Bool { false }

    func watch(_ changed: @escaping @Sendable (LoadingModel.NetworkPath) -> Void) -> @Sendable () -> Void {
        watchers.withLock { $0.append(changed) }
        return { [self] in watchers.withLock { $0 = [] } }
    }

    func interface(to address: String, in path: LoadingModel.NetworkPath) -> LoadingModel.NetworkPath.Interface? {
        path.interfaces.first
    }

    func leads(_ interface: LoadingModel.NetworkPath.Interface, to address: String) -> Bool { false }

    /// The device gets another address.
    func change() {
        let new = path.withLock { path in
            path.interfaces[0].addresses = ["192.0.2.2"]
            return path
        }
        for watcher in watchers.withLock({ $0 }) { watcher(new) }
    }
}
