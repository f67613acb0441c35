// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPRules
import LoadingEngine
import LoadingModel
import LoadingTestKit
import Synchronization
import Testing
import URLLoading

/// RFC 7838: the alternative services that a session remembers.
@Suite(.timeLimit(.minutes(1)))
struct AlternativeServiceTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    /// Runs a test with a server that sends the decoded path as its `Alt-Svc` field, and a session whose engine the test can inspect.
    private func with(
        _ identity: TestCertificates.Identity? = nil, isSecure: Bool = true, status: Int = 200, network: TestMonitor? = nil,
        test: (URLSession, _ load: (String) async throws -> [Int]) async throws -> Void
    ) async throws {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = 20
        configuration.tlsTrustRoots = [certificates.root]
        let engine = SessionEngine.make(
            policy: configuration.sessionPolicy(), stores: SessionStores(), security: .off, network: network)
        try await withScriptedServer(
            identity: isSecure ? identity ?? certificates.valid : nil,
            reply: { request in
                let field = String(request.path.dropFirst()).removingPercentEncoding ?? ""
                return .status(status, field.isEmpty ? [] : [("Alt-Svc", field)])
            }
        ) { (server) async throws in
            let session = URLSession(
                configuration: configuration, delegate: SessionJudge(.trusting), delegateQueue: nil, service: engine)
            defer { session.invalidateAndCancel() }
            try await test(session) { field in
                let path = try #require(field.addingPercentEncoding(withAllowedCharacters: .alphanumerics))
                let url = server.url("/" + path, host: "localhost")
                _ = try await session.data(from: url)
                let origin = try #require(Origin(url))
                return try await #require(engine as? SessionEngine).alternatives(of: origin).map(\.port)
            }
        }
    }

    @Test func `a session remembers the alternatives of an origin until it receives new ones or is reset`() async throws {
        try await with { (session, load) async throws in
            #expect(try await load("") == [])
            #expect(try await load("h3=\":1\"; ma=1000, h2=\":2\"") == [1, 2])
            #expect(try await load("") == [1, 2])
            #expect(try await load("h2=\":x\"") == [1, 2])
            #expect(try await load("h2=\":3\"") == [3])
            await session.reset()
            #expect(try await load("") == [])
            #expect(try await load("h2=\":3\"") == [3])
            #expect(try await load("clear") == [])
        }
    }

    @Test func `Alt-Svc is ignored if only a delegate trusts the server, over http, and in a 421`()
        async throws
    {
        try await with(certificates.selfSigned) { (_, load) async throws in #expect(try await load("h3=\":1\"") == []) }
        try await with(isSecure: false) { (_, load) async throws in #expect(try await load("h3=\":1\"") == []) }
        try await with(status: 421) { (_, load) async throws in #expect(try await load("h3=\":1\"") == []) }
        try await with(status: 404) { (_, load) async throws in #expect(try await load("h3=\":1\"") == [1]) }
    }

    @Test func `after a network change only persistent alternatives remain`() async throws {
        let network = TestMonitor(
            .init(interfaces: [.init(name: "eth7", index: 7, kind: .wired, addresses: ["192.0.2.1"])], isSatisfied: true))
        try await with(network: network) { (_, load) async throws in
            #expect(try await load("h3=\":1\"; persist=1, h2=\":2\"") == [1, 2])
            // The same network, now expensive.
            var path = network.path.withLock { $0 }
            path.interfaces[0].isExpensive = true
            network.change(to: path)
            #expect(try await load("") == [1, 2])
            path.interfaces[0].addresses = ["192.0.2.2"]
            network.change(to: path)
            #expect(try await load("") == [1])
        }
    }
}

/// Reports the networks that a test sets, also for loopback.
private final class TestMonitor: NetworkMonitoring {
    let path: Mutex<LoadingModel.NetworkPath>
    private let watchers = Mutex<[@Sendable (LoadingModel.NetworkPath) -> Void]>([])

    init(_ path: LoadingModel.NetworkPath) { self.path = Mutex(path) }

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

    func change(to new: LoadingModel.NetworkPath) {
        path.withLock { $0 = new }
        for watcher in watchers.withLock({ $0 }) { watcher(new) }
    }
}
