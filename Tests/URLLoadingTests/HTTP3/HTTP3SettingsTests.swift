// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPRules
import LoadingTestKit
import Testing
import URLLoading

/// `connectionOptions.httpVersions`, as far as it excludes or demands HTTP/3.
@Suite(.timeLimit(.minutes(1)))
struct HTTP3SettingsTests {
    private typealias Configure = @Sendable (URLSessionConfiguration) -> Void

    private static let impossible: [(String, String, Configure)] = [
        ("http://localhost:1/", "HTTP/3 needs an https URL", { _ in }),
        (
            "https://localhost:1/", "the request goes through a proxy",
            {
                $0.proxyConfigurations = [
                    ProxyConfiguration(httpCONNECTProxy: .hostPort(host: "127.0.0.1", port: 1), tlsOptions: nil)
                ]
            }
        ),
        (
            "https://localhost:1/", "HTTP/3 needs TLS 1.3, and the session's maximum is lower",
            { $0.tlsMaximumSupportedProtocolVersion = .TLSv12 }
        ),
        (
            "https://localhost:1/", "the session uses a Unix domain socket",
            { $0.connectionOptions.unixSocketPath = "/nonexistent/socket" }
        ),
        ("https://localhost:1/", "the session uses multipath TCP", { $0.multipathServiceType = .handover }),
    ]

    @Test(arguments: impossible.indices)
    func `a session that demands HTTP/3 says why it cannot be used`(row: Int) async throws {
        let (url, reason, configure) = Self.impossible[row]
        try await withSession {
            $0.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
            configure($0)
            $0.connectionOptions.httpVersions = .http3Only
        } test: { session in
            let error = await #expect(throws: URLError.self) {
                _ = try await session.data(from: try #require(URL(string: url)))
            }
            #expect(error?.code == .cannotConnectToHost)
            #expect(error?.localizedDescription.contains(reason) == true, "\(error?.localizedDescription ?? "")")
        }
    }

    @Test func `a session may exclude HTTP/3, whatever a request assumes`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withScriptedServer(
            identity: certificates.valid, reply: { _ in .ok("body", [("Alt-Svc", "h3=\":443\"; ma=60")]) }
        ) { (server) async throws in
            for version in [URLSessionConfiguration.ConnectionOptions.HTTPVersions.withoutHTTP3, .http1Only] {
                try await withSession {
                    $0.tlsTrustRoots = [certificates.root]
                    $0.connectionOptions.httpVersions = version
                } test: { session in
                    var request = URLRequest(url: server.url("/", host: "localhost"))
                    request.assumesHTTP3Capable = true
                    #expect(try await session.data(for: request).0 == Data("body".utf8))
                    let standing = try #require(await session.http3(for: server.url("/", host: "localhost")))
                    #expect(standing.obstacle == .excluded)
                }
            }
        }
    }

    @Test func `the assumption of a request is kept for its origin until the session is reset`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withScriptedServer(identity: certificates.valid, reply: { _ in .ok("body") }) { (server) async throws in
            try await withSession {
                $0.tlsTrustRoots = [certificates.root]
            } test: { session in
                let url = server.url("/", host: "localhost")
                #expect(try await session.data(from: url).0 == Data("body".utf8))
                guard try #require(await session.http3(for: url)).library != nil else {
                    guard case .noLibrary(let advice) = try #require(await session.http3(for: url)).obstacle else {
                        Issue.record("there is neither a library nor advice")
                        return
                    }
                    #expect(!advice.isEmpty)
                    return
                }
                #expect(try #require(await session.http3(for: url)).choice.obstacles == [.unannounced])
                var request = URLRequest(url: url)
                request.assumesHTTP3Capable = true
                #expect(try await session.data(for: request).0 == Data("body".utf8))
                let known = try #require(await session.http3(for: url)).choice
                #expect(known.endpoints.map(\.source) == [.assumption] || known.obstacles != [.unannounced])
                await session.reset()
                #expect(try #require(await session.http3(for: url)).choice.obstacles == [.unannounced])
            }
        }
    }

    @Test func `the assumption is a property of a request, and is archived`() throws {
        var request = URLRequest(url: try #require(URL(string: "https://a.test/")))
        let plain = request
        request.assumesHTTP3Capable = true
        #expect(request != plain)
        let data = try NSKeyedArchiver.archivedData(withRootObject: request as NSURLRequest, requiringSecureCoding: true)
        let read = try NSKeyedUnarchiver.unarchivedObject(ofClass: NSURLRequest.self, from: data)
        #expect(read?.assumesHTTP3Capable == true)
        request.assumesHTTP3Capable = false
        #expect(request == plain)
    }
}
