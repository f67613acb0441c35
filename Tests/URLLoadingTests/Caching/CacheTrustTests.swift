// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// A stored response is not served to a load that would not have accepted the connection over which the response arrived.
@Suite(.timeLimit(.minutes(2)))
struct CacheTrustTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func withServer(
        _ identity: TestCertificates.Identity, later: [TestCertificates.Identity] = [],
        _ fields: [(String, String)] = Fields.fresh,
        test: (ScriptedServer, CacheScene) async throws -> Void
    ) async throws {
        let scene = try CacheScene()
        let server = try await ScriptedServer.start(identity: identity, laterIdentities: later) { .ok("\($0.order)", fields) }
        do { try await test(server, scene) } catch {
            try? await server.close()
            throw error
        }
        try await server.close()
    }

    private func withSession(
        _ scene: CacheScene, _ delegate: (any URLSessionDelegate)? = nil, roots: [Data] = [],
        test: (URLSession) async throws -> Void
    ) async throws {
        try await URLLoadingTests.withSession(delegate: delegate) {
            $0.urlCache = scene.cache
            $0.tlsTrustRoots = roots
        } test: {
            try await test($0)
        }
    }

    // MARK: Which loads are served

    @Test func `a response trusted only by the app is served to that session only`() async throws {
        try await withServer(certificates.selfSigned) { (server, scene) async throws in
            try await withSession(scene, SessionJudge(.trusting)) { (session) async throws in
                #expect(try await session.text(server.url()) == "0")
                #expect(try await session.text(server.url()) == "0")
                #expect(server.requests.count == 1)
                try await withSession(scene) { (other) async throws in
                    await expectFailure(.serverCertificateUntrusted, .serverCertificateHasUnknownRoot) {
                        try await other.text(server.url())
                    }
                }
                try await withSession(scene, SessionJudge(.trusting)) { (other) async throws in
                    #expect(try await other.text(server.url()) == "1")
                }
                #expect(scene.cache.entries().isEmpty && scene.reopened().entries().isEmpty)
                #expect(scene.cache.cachedResponse(for: URLRequest(url: server.url())) == nil)
            }
        }
    }

    @Test func `a response trusted by a session's own roots is served to that session only`() async throws {
        try await withServer(certificates.valid) { (server, scene) async throws in
            try await withSession(scene, roots: [certificates.root]) { (session) async throws in
                #expect(try await session.text(server.url()) == "0")
                #expect(try await session.text(server.url()) == "0")
                try await withSession(scene) { (other) async throws in
                    await expectFailure(.serverCertificateUntrusted, .serverCertificateHasUnknownRoot) {
                        try await other.text(server.url())
                    }
                }
                try await withSession(scene, roots: [certificates.root]) { (other) async throws in
                    #expect(try await other.text(server.url()) == "1")
                }
                #expect(scene.cache.entries().isEmpty)
            }
        }
    }

    /// The cache has read neither its directory nor its key when the test begins.
    @Test func `a session with its own roots stores a response for each credential`() async throws {
        try await withServer(certificates.valid) { (server, scene) async throws in
            try await withSession(scene, roots: [certificates.root]) { (session) async throws in
                func text(_ credential: String) async throws -> String {
                    try await session.text(URLRequest(server.url(), headers: ["Authorization": credential])).text
                }
                #expect(try await text("Bearer ali") == "0")
                #expect(try await text("Bearer ali") == "0")
                #expect(try await text("Bearer bob") == "1")
                #expect(try await text("Bearer ali") == "0")
                #expect(scene.cache.entries().isEmpty)
            }
        }
    }

    @Test func `a response trusted by a task's own delegate is served to that delegate's tasks`() async throws {
        try await withServer(certificates.selfSigned) { (server, scene) async throws in
            try await withSession(scene) { (session) async throws in
                func text(_ delegate: TaskJudge?) async throws -> String {
                    String(decoding: try await session.data(from: server.url(), delegate: delegate).0, as: UTF8.self)
                }
                let (one, two) = (TaskJudge(.trusting), TaskJudge(.trusting))
                #expect(try await text(one) == "0")
                #expect(try await text(one) == "0")
                #expect(try await text(two) == "1")
                #expect(try await text(one) == "0")
                await expectFailure(.serverCertificateUntrusted, .serverCertificateHasUnknownRoot) { try await text(nil) }
            }
        }
    }

    @Test func `removing responses from the cache also removes the private responses of a session`() async throws {
        try await withServer(certificates.selfSigned) { (server, scene) async throws in
            try await withSession(scene, SessionJudge(.trusting)) { (session) async throws in
                let removals: [() -> Void] = [
                    { scene.cache.removeAllCachedResponses() },
                    { scene.cache.removeCachedResponse(for: URLRequest(url: server.url())) },
                    { scene.cache.removeCachedResponses(since: .distantPast) },
                ]
                for (order, remove) in removals.enumerated() {
                    #expect(try await session.text(server.url()) == "\(order)")
                    #expect(try await session.text(server.url()) == "\(order)")
                    remove()
                }
            }
        }
    }

    @Test func `a session's reset removes its private responses`() async throws {
        try await withServer(certificates.selfSigned) { (server, scene) async throws in
            try await withSession(scene, SessionJudge(.trusting)) { (session) async throws in
                #expect(try await session.text(server.url()) == "0")
                await session.reset()
                #expect(try await session.text(server.url()) == "1")
            }
        }
    }

    @Test func `a stale response is not served if trust evaluation fails`() async throws {
        let fields = [("Cache-Control", "max-age=0, stale-if-error=600"), ("ETag", "\"v\""), ("Connection", "close")]
        try await withServer(certificates.valid, later: [certificates.selfSigned], fields) { (server, scene) async throws in
            try await withSession(scene, roots: [certificates.root]) { (session) async throws in
                #expect(try await session.text(server.url()) == "0")
                await expectFailure(.serverCertificateUntrusted, .serverCertificateHasUnknownRoot) {
                    try await session.text(server.url())
                }
            }
        }
    }

    // MARK: Another endpoint

    @Test func `a session whose connections lead elsewhere neither fills nor uses the shared cache`() async throws {
        let scene = try CacheScene()
        try await withScriptedServer(reply: { _ in .ok("real", Fields.fresh) }) { (real) async throws in
            try await withScriptedServer(reply: { _ in .ok("other", Fields.fresh) }) { (other) async throws in
                let url = real.url("/", host: "localhost")
                func text(_ port: Int?) async throws -> String {
                    var text = ""
                    try await URLLoadingTests.withSession {
                        $0.urlCache = scene.cache
                        if let port {
                            $0.connectionOptions.substitutions = [
                                .init(of: .init(host: "localhost", port: nil), with: .init(host: nil, port: port))
                            ]
                        }
                    } test: { session in
                        for _ in 0..<2 { text += try await session.text(url) + " " }
                    }
                    return text
                }
                #expect(try await text(other.port) == "other other ")
                #expect(try await text(nil) == "real real ")
                #expect(try await text(other.port) == "other other ")
                #expect(real.requests.count == 1 && other.requests.count == 2)
            }
        }
    }

    // MARK: The system's roots

    @Test func `a response trusted by the system's roots is served to every session that would accept the connection`()
        async throws
    {
        let folder = try TemporaryDirectory()
        let roots = try folder.write(certificates.rootPEM.utf8, to: "roots.pem")
        let valid = try await ScriptedServer.start(identity: certificates.valid, tls: .v1_2 ... .v1_2) {
            .ok("\($0.order)", Fields.fresh + [("Strict-Transport-Security", "max-age=600")])
        }
        let fields = [("Cache-Control", "max-age=0"), ("ETag", "\"v\""), ("Connection", "close")]
        let untrustedLater = try await ScriptedServer.start(
            identity: certificates.valid, laterIdentities: [certificates.selfSigned]
        ) {
            $0.header("If-None-Match") == nil
                ? .ok("turned", fields)
                : .bare(304, [("Cache-Control", "max-age=600"), ("Connection", "close")])
        }
        // The first connection presents one certificate; all later connections present another one that the roots also trust.
        func changed() async throws -> ScriptedServer {
            try await ScriptedServer.start(identity: certificates.valid, laterIdentities: [certificates.nameConstraintSatisfied])
            {
                let fields = [("ETag", "\"v\""), ("Connection", "close")]
                let later = fields + [("Cache-Control", "max-age=31536000"), ("X-Server", "other")]
                if $0.method == "HEAD" { return .bare(200, later + [("Content-Length", "5")]) }
                return $0.header("If-None-Match") == nil
                    ? .ok("first", fields + [("Cache-Control", "max-age=0")]) : .bare(304, later)
            }
        }
        let (renewing, heading) = (try await changed(), try await changed())
        let trusted = try await ScriptedServer.start(identity: certificates.selfSigned, laterIdentities: [certificates.valid]) {
            .ok("\($0.order)", Fields.fresh + [("Connection", "close")])
        }
        let asking = try await ScriptedServer.start(identity: certificates.valid, clientRoot: certificates.rootPEM) {
            .ok("\($0.order)", $0.method == "GET" ? Fields.fresh : [])
        }
        let leaf = try #require(SecCertificateCreateWithData(nil, Data(certificates.valid.chain[0]) as CFData))
        try await SeparateProcess.run(
            "SharedTrustProbe",
            environment: [
                "SSL_CERT_FILE": roots.path, "PROBED_VALID": valid.url("/", host: "localhost").absoluteString,
                "HOME": folder.path,
                "PROBED_TURNED": untrustedLater.url().absoluteString,
                "PROBED_PIN": PinningSamples.publicKeyHash(of: leaf),
                "PROBED_RENEWING": renewing.url("/", host: "localhost").absoluteString,
                "PROBED_HEADING": heading.url("/", host: "localhost").absoluteString,
                "PROBED_TRUSTED": trusted.url().absoluteString,
                "PROBED_ASKING": asking.url().absoluteString,
                "PROBED_CLIENT": certificates.client.chainPEM + certificates.client.keyPEM,
                "XDG_DATA_HOME": folder.path, "XDG_CACHE_HOME": folder.path, "XDG_STATE_HOME": folder.path,
            ])
        for server in [renewing, heading, trusted, asking] { try await server.close() }
        try await valid.close()
        try await untrustedLater.close()
    }
}

/// Tests that run in a process in which the system's roots include the test's root.
@Suite(.enabled(if: SeparateProcess.isCurrentSuite("SharedTrustProbe")), .serialized, .timeLimit(.minutes(1)))
struct SharedTrustProbe {
    private func url(_ name: String) throws -> URL {
        try #require(ProcessInfo.processInfo.environment[name].flatMap { URL(string: $0) })
    }

    private func text(
        _ url: URL, _ scene: CacheScene, _ delegate: (any URLSessionDelegate)? = nil,
        _ configure: (URLSessionConfiguration) -> Void = { _ in }
    ) async throws -> String {
        var text = ""
        try await withSession(delegate: delegate) {
            $0.urlCache = scene.cache
            configure($0)
        } test: {
            text = try await $0.text(url)
        }
        return text
    }

    private static let wrongPin = Data(count: 32).base64EncodedString()

    private static func pinned(_ pin: String) -> [String: Any] {
        ["NSPinnedDomains": ["localhost": ["NSPinnedLeafIdentities": [["SPKI-SHA256-BASE64": pin]]]]]
    }

    @Test func `a response is served to sessions that would accept it, not to those that pin another key or require newer TLS`()
        async throws
    {
        let scene = try CacheScene()
        let url = try url("PROBED_VALID")
        // A root with the same name as the trusted root, but from another run.
        let otherRoot = try TestCertificates.shared.get().root
        let first = try await text(url, scene)
        #expect(try await text(url, scene) == first)
        // A delegate that also trusts the server makes no difference.
        #expect(try await text(url, scene, SessionJudge(.trusting)) == first)
        await expectFailure(.secureConnectionFailed) {
            try await text(url, scene) { $0.tlsMinimumSupportedProtocolVersion = .TLSv13 }
        }
        await expectFailure(.serverCertificateUntrusted, .serverCertificateHasUnknownRoot) {
            try await text(url, scene) { $0.tlsTrustRoots = [otherRoot] }
        }
        await expectFailure(.serverCertificateUntrusted) {
            try await text(url, scene) { $0.appTransportSecurity = Self.pinned(Self.wrongPin) }
        }
        #expect(try await text(url, scene) == first)
    }

    @Test func `a response is stored for all sessions if both the system roots and the delegate trust the server`() async throws {
        let scene = try CacheScene()
        let url = try url("PROBED_VALID")
        let first = try await text(url, scene, SessionJudge(.trusting))
        #expect(try await text(url, scene) == first)
        #expect(scene.cache.entries().count == 1)
    }

    @Test func `an untrusted server does not refresh a response of a trusted server`() async throws {
        let scene = try CacheScene()
        let url = try url("PROBED_TURNED")
        #expect(try await text(url, scene) == "turned")
        // From here on the server presents another certificate.
        #expect(try await text(url, scene, SessionJudge(.trusting)) == "turned")
        await expectFailure(.serverCertificateUntrusted, .serverCertificateHasUnknownRoot) { try await text(url, scene) }
    }

    @Test(arguments: [("PROBED_RENEWING", "GET"), ("PROBED_HEADING", "HEAD")])
    func `another trusted server does not refresh a response for sessions that pin the first one`(
        server: String, method: String
    ) async throws {
        let scene = try CacheScene()
        let url = try url(server)
        let pin = try #require(ProcessInfo.processInfo.environment["PROBED_PIN"])
        #expect(try await text(url, scene) { $0.appTransportSecurity = Self.pinned(pin) } == "first")
        try await withSession(on: scene.cache) { (other) async throws in
            let (text, response) = try await other.text(URLRequest(url, method: method))
            #expect(text == (method == "GET" ? "first" : "") && response.value(forHTTPHeaderField: "X-Server") == "other")
        }
        await expectFailure(.serverCertificateUntrusted) {
            try await text(url, scene) { $0.appTransportSecurity = Self.pinned(pin) }
        }
    }

    @Test(arguments: ["by itself", "archived", "by its super class"])
    func `a subclass's response is not served to a session that pins another key`(way: String) async throws {
        let url = try url("PROBED_VALID")
        let own = RequestCache()
        let cache = way == "by its super class" ? PassingCache(memoryCapacity: 1 << 20, diskCapacity: 0) : own
        func text(_ pin: String?) async throws -> String {
            var text = ""
            try await withSession {
                $0.urlCache = cache
                if let pin { $0.appTransportSecurity = Self.pinned(pin) }
            } test: {
                text = try await $0.text(url)
            }
            return text
        }
        let first = try await text(nil)
        if way == "archived" {
            let entry = try #require(own.kept.withLock { $0[url] })
            let archive = try NSKeyedArchiver.archivedData(withRootObject: entry, requiringSecureCoding: true)
            let back = try NSKeyedUnarchiver.unarchivedObject(ofClass: CachedURLResponse.self, from: archive)
            own.kept.withLock { $0[url] = back }
        }
        #expect(try await text(nil) == first)
        let pin = try #require(ProcessInfo.processInfo.environment["PROBED_PIN"])
        #expect(try await text(pin) == first)
        await expectFailure(.serverCertificateUntrusted) { try await text(Self.wrongPin) }
    }

    @Test func `a response stored for all sessions replaces the private response of the session`() async throws {
        let scene = try CacheScene()
        let url = try url("PROBED_TRUSTED")
        try await withSession(delegate: SessionJudge(.trusting)) {
            $0.urlCache = scene.cache
        } test: { (session) async throws in
            #expect(try await session.text(url) == "0")
            #expect(try await session.text(url) == "0")
            // From here on the roots trust the server.
            #expect(try await session.text(URLRequest(url).with(.reloadIgnoringLocalCacheData)).text == "1")
            #expect(scene.cache.entries().count == 1)
            #expect(try await session.text(url) == "1")
        }
    }

    @Test func `an unsafe request with a client certificate invalidates the response of all sessions`() async throws {
        let scene = try CacheScene()
        let url = try url("PROBED_ASKING")
        let client = try #require(ProcessInfo.processInfo.environment["PROBED_CLIENT"])
        let identity = try SecIdentity(pem: Data(client.utf8))
        #expect(try await text(url, scene) == "0")
        try await withSession(delegate: SessionJudge(.showing(identity))) {
            $0.urlCache = scene.cache
        } test: { (session) async throws in
            #expect(try await session.text(url) == "0")
            #expect(try await session.text(URLRequest(url, method: "POST")).text == "1")
            #expect(try await session.text(url) == "2")
        }
        #expect(try await text(url, scene) == "3")
    }
}
