// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Real proxies, in cleartext and over TLS.
@Suite(.timeLimit(.minutes(1)))
struct RealProxyTests {
    private let certificates: TestCertificates
    /// The trusted roots, with the chain of squid's certificate, because squid does not send its issuer's certificate.
    private var roots: [Data] { [certificates.root, Data(certificates.valid.chainPEM.utf8)] }

    init() throws { certificates = try TestCertificates.shared.get() }

    private func withServers(
        _ configure: (URLSessionConfiguration) -> Void, delegate: (any URLSessionDelegate)? = nil,
        test: ([URL], URLSession) async throws -> Void
    ) async throws {
        let clear = try await ScriptedServer.start(reply: { .ok("clear \($0.proxyAuthorization ?? "")\($0.bodyText.count)") })
        let secure = try await ScriptedServer.start(
            identity: certificates.valid, reply: { .ok("secure \($0.proxyAuthorization ?? "")\($0.bodyText.count)") })
        try await withSession(delegate: delegate) {
            $0.tlsTrustRoots = roots
            configure($0)
        } test: { (session) async throws in
            try await test([clear.url("/x"), secure.url("/x"), secure.url("/y", host: "localhost")], session)
        }
        try await clear.close()
        try await secure.close()
    }

    private func check(_ urls: [URL], _ session: URLSession) async throws {
        for _ in 0..<2 {
            #expect(try await session.text(urls[0]) == "clear 0")
            #expect(try await session.text(urls[1]) == "secure 0")
            #expect(try await session.text(urls[2]) == "secure 0")
        }
    }

    @Test(arguments: ["socks4", "socks5", "socks5h"]) func `dante carries every SOCKS version`(_ scheme: String) async throws {
        let proxy = try SmallServer.dante()
        defer { proxy.stop() }
        try await withServers {
            $0.proxyEnvironment = ["all_proxy": "\(scheme)://127.0.0.1:\(proxy.port)"]
        } test: {
            try await check($0, $1)
        }
    }

    @Test func `microsocks accepts a password`() async throws {
        let proxy = try SmallServer.microsocks(user: "ada", password: "love:lace")
        defer { proxy.stop() }
        try await withServers {
            $0.proxyEnvironment = ["all_proxy": "socks5h://ada:love%3Alace@127.0.0.1:\(proxy.port)"]
        } test: {
            try await check($0, $1)
        }
    }

    @Test func `tinyproxy carries http and https`() async throws {
        let proxy = try SmallServer.tinyproxy()
        defer { proxy.stop() }
        try await withServers {
            $0.connectionProxyDictionary = proxyDictionary(http: proxy.port, https: proxy.port)
        } test: {
            try await check($0, $1)
        }
    }

    @Test(arguments: [[], [SquidServer.Scheme.basic], [.digest]]) func `squid over TLS carries http and tunnels`(
        _ schemes: [SquidServer.Scheme]
    ) async throws {
        let squid = try SquidServer.start(schemes, identity: certificates.valid)
        defer { squid.stop() }
        let recorder = ProxyMetrics()
        try await withServers(
            {
                $0.proxyEnvironment = ["all_proxy": "https://ada:lovelace@127.0.0.1:\(squid.port)"]
            }, delegate: recorder
        ) { (urls, session) async throws in
            try await check(urls, session)
            // The connection to the proxy uses TLS, so the kernel must not send the file directly to the socket.
            let body = Data(repeating: 65, count: 6_000_000)
            let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
            try body.write(to: file)
            defer { try? FileManager.default.removeItem(at: file) }
            let post = URLRequest(urls[0], method: "PUT")
            let (answer, _) = try await session.upload(for: post, fromFile: file)
            #expect(String(decoding: answer, as: UTF8.self) == "clear 6000000")
            #expect(try await recorder.all.value.allSatisfy(\.isProxyConnection))
        }
        #expect(try squid.logs("GET http://127.0.0.1"), "\(squid.accessLog)")
        // squid logs a tunnel when the tunnel is closed.
        #expect(try squid.logs("CONNECT 127.0.0.1"), "\(squid.accessLog)")
    }

    /// The proxy either forwards the request or opens a tunnel.
    @Test(arguments: [false, true]) func `a large body is downloaded to a file through a proxy over TLS`(
        isTunnelled: Bool
    ) async throws {
        let squid = try SquidServer.start(identity: certificates.valid)
        defer { squid.stop() }
        let body = String(repeating: "0123456789abcdef", count: 600_000)
        try await withScriptedServer(reply: { _ in .ok(body) }) { (server) async throws in
            try await withSession {
                $0.tlsTrustRoots = roots
                if isTunnelled {
                    let end = NWEndpoint.hostPort(host: "localhost", port: NWEndpoint.Port(rawValue: UInt16(squid.port)))
                    $0.proxyConfigurations = [ProxyConfiguration(httpCONNECTProxy: end, tlsOptions: NWProtocolTLS.Options())]
                } else {
                    $0.proxyEnvironment = ["http_proxy": "https://127.0.0.1:\(squid.port)"]
                }
            } test: { (session) async throws in
                let (file, _) = try await session.download(from: server.url())
                defer { try? FileManager.default.removeItem(at: file) }
                #expect(try Data(contentsOf: file) == Data(body.utf8))
            }
        }
    }

    @Test func `proxyConfigurations supports a proxy over TLS with a credential`() async throws {
        let squid = try SquidServer.start([.basic], identity: certificates.valid)
        defer { squid.stop() }
        try await withServers {
            var proxy = ProxyConfiguration(
                httpCONNECTProxy: .hostPort(host: "localhost", port: NWEndpoint.Port(rawValue: UInt16(squid.port))),
                tlsOptions: NWProtocolTLS.Options())
            proxy.applyCredential(username: "ada", password: "lovelace")
            $0.proxyConfigurations = [proxy]
        } test: {
            try await check($0, $1)
        }
        #expect(!squid.accessLog.contains("GET"))
    }

    @Test func `a proxy with an untrusted certificate gets no request, whatever the delegate trusts`() async throws {
        let squid = try SquidServer.start(identity: certificates.expired)
        defer { squid.stop() }
        let interview = Interview(.useCredential)
        try await withServers(
            {
                $0.proxyEnvironment = ["all_proxy": "https://127.0.0.1:\(squid.port)"]
            }, delegate: Interviewer(interview)
        ) { (urls, session) async throws in
            for url in urls {
                let error = await expectFailure(.serverCertificateHasBadDate, .serverCertificateUntrusted) {
                    try await session.data(from: url)
                }
                #expect(error?.localizedDescription.contains("the proxy 127.0.0.1:\(squid.port)") == true)
            }
        }
        #expect(!squid.accessLog.contains("CONNECT") && !squid.accessLog.contains("GET"))
    }
}

private final class ProxyMetrics: NSObject, URLSessionTaskDelegate {
    let all = Delivered<[URLSessionTaskTransactionMetrics]>()

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        all(metrics.transactionMetrics)
    }
}
