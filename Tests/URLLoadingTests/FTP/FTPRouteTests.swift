// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

private let content = ScriptedFile.pattern(200_000)

/// How loads reach servers: proxies, redirects, caches and the app's `URLProtocol` classes.
@Suite(.timeLimit(.minutes(1)))
struct FTPRouteTests {
    @Test func `each connection has its own tunnel`() async throws {
        try await withFTP(["/home/a.bin": content]) { (server, _) async throws in
            try await withTunnelProxy({ .tunnel(to: Int($0.target.split(separator: ":").last ?? "") ?? 0) }) {
                (proxy) async throws in
                try await withSession {
                    $0.connectionProxyDictionary = proxyDictionary(https: proxy.port)
                    $0.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
                } test: { (session) async throws in
                    // A name that only the proxy can resolve.
                    let url = try server.url("/a.bin", host: "files.test")
                    #expect(try await session.data(from: url).0 == Data(content))
                    #expect(proxy.demands.map(\.method) == ["CONNECT", "CONNECT"])
                    #expect(proxy.demands.first?.target == "files.test:\(server.port)")
                    // The control connection's peer is the proxy, so the data connection uses the host name of the control connection.
                    #expect(proxy.demands.last?.target.hasPrefix("files.test:") == true, "\(proxy.demands.map(\.target))")
                    _ = try await session.upload(
                        for: URLRequest(url: try server.url("/b.bin", host: "files.test")), from: Data(content))
                    #expect(server.content("/home/b.bin") == content)
                    #expect(proxy.demands.count >= 3)
                }
            }
        }
    }

    typealias Options = URLSessionConfiguration.ConnectionOptions

    private static let ways: [@Sendable (Int) -> Options] = [
        { port in
            var options = Options()
            options.substitutions = [
                Options.Substitution(of: Options.Endpoint(), with: Options.Endpoint(host: "127.0.0.1", port: port))
            ]
            return options
        },
        { port in
            var options = Options()
            options.substitutions = [
                Options.Substitution(of: Options.Endpoint(host: "files.test"), with: Options.Endpoint(port: port))
            ]
            options.addresses = [Options.Endpoint(host: "files.test"): ["127.0.0.1"]]
            return options
        },
        { port in
            var options = Options()
            options.substitutions = [
                Options.Substitution(of: Options.Endpoint(port: 21), with: Options.Endpoint(host: "localhost", port: port))
            ]
            // The data connection leads to the control connection's peer, not to another address of its host.
            options.addresses = [
                Options.Endpoint(host: "localhost", port: port): ["127.0.0.1"], Options.Endpoint(): ["127.0.0.2"],
            ]
            return options
        },
    ]

    @Test(arguments: ways.indices)
    func `a data connection leads to the control connection's peer, and nothing is substituted for its port`(
        way: Int
    ) async throws {
        try await withFTP(["/home/a.bin": content]) { (server, _) async throws in
            try await withSession {
                $0.connectionOptions = Self.ways[way](server.port)
                $0.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
                $0.timeoutIntervalForRequest = 5
            } test: { (session) async throws in
                let url = try #require(URL(string: "ftp://files.test/a.bin"))
                #expect(try await session.data(from: url).0 == Data(content))
                _ = try await session.upload(
                    for: URLRequest(url: try #require(URL(string: "ftp://files.test/b.bin"))), from: Data(content))
                #expect(server.content("/home/b.bin") == content)
            }
        }
    }

    @Test func `through a proxy, a data connection leads to the host that was substituted for the control connection`()
        async throws
    {
        try await withFTP(["/home/a.bin": content]) { (server, _) async throws in
            try await withTunnelProxy({ .tunnel(to: Int($0.target.split(separator: ":").last ?? "") ?? 0) }) {
                (proxy) async throws in
                try await withSession {
                    $0.connectionProxyDictionary = proxyDictionary(https: proxy.port)
                    $0.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
                    $0.connectionOptions.substitutions = [
                        Options.Substitution(
                            of: Options.Endpoint(host: "files.test"),
                            with: Options.Endpoint(host: "other.test", port: server.port))
                    ]
                } test: { (session) async throws in
                    let url = try #require(URL(string: "ftp://files.test/a.bin"))
                    #expect(try await session.data(from: url).0 == Data(content))
                    #expect(proxy.demands.first?.target == "other.test:\(server.port)")
                    #expect(proxy.demands.allSatisfy { $0.target.hasPrefix("other.test:") }, "\(proxy.demands.map(\.target))")
                }
            }
        }
    }

    @Test(arguments: ["EPSV", "PASV"])
    func `the control connection's own port is refused for a data connection`(word: String) async throws {
        try await withFTP(configure: { $0.timeoutIntervalForRequest = 5 }) { visit, order in
            let port = visit.server.port
            switch order.word {
            case "EPSV" where word == "PASV": try visit.say("500 what?")
            case "EPSV": try visit.say("229 (|||\(port)|)")
            case "PASV": try visit.say("227 (127,0,0,1,\(port / 256),\(port % 256))")
            default: return false
            }
            return true
        } test: { (server, session) async throws in
            await expectFailure(.badServerResponse) { try await session.data(from: try server.url("/a.bin")) }
            #expect(server.connectionCount == 1)
            #expect(server.commands("RETR") == [])
        }
    }

    @Test func `the data of a host in the exceptions list is also fetched directly`() async throws {
        try await withFTP(
            ["/home/a.bin": content],
            configure: {
                // No server listens on this port.
                $0.connectionProxyDictionary = proxyDictionary(https: 1, ["ExceptionsList": ["localhost"]])
            }
        ) { (server, session) async throws in
            let url = try server.url("/a.bin", host: "localhost")
            #expect(try await session.data(from: url).0 == Data(content))
        }
    }

    @Test func `the proxy is not asked for the address in a 227`() async throws {
        try await withFTP(["/home/a.bin": content]) { visit, order in
            switch order.word {
            case "EPSV": try visit.say("500 what?")
            case "PASV":
                let port = try visit.open()
                try visit.say("227 (10,213,77,1,\(port / 256),\(port % 256))")
            default: return false
            }
            return true
        } test: { (server, _) async throws in
            try await withTunnelProxy({ .tunnel(to: Int($0.target.split(separator: ":").last ?? "") ?? 0) }) {
                (proxy) async throws in
                try await withSession {
                    $0.connectionProxyDictionary = proxyDictionary(https: proxy.port)
                    $0.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
                } test: { (session) async throws in
                    let url = try server.url("/a.bin", host: "files.test")
                    let data = try? await session.data(from: url).0
                    #expect(data == nil || data == Data(content))
                    #expect(proxy.demands.allSatisfy { $0.target.hasPrefix("files.test:") }, "\(proxy.demands.map(\.target))")
                }
            }
        }
    }

    @Test func `a proxy that refuses the data connection fails the load`() async throws {
        try await withFTP(["/home/a.bin": content]) { (server, _) async throws in
            let answer: @Sendable (TunnelProxy.Demand) -> TunnelProxy.Answer = { [port = server.port] demand in
                demand.target.hasSuffix(":\(port)")
                    ? .tunnel(to: port) : .say("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", closes: true)
            }
            try await withTunnelProxy(answer) { (proxy) async throws in
                try await withSession {
                    $0.connectionProxyDictionary = proxyDictionary(https: proxy.port)
                } test: { (session) async throws in
                    await #expect(throws: URLError.self) {
                        try await session.data(from: try server.url("/a.bin", host: "localhost"))
                    }
                    #expect(server.dataCount == 0)
                }
            }
        }
    }

    @Test func `a SOCKS proxy gets the host name of the control connection for the data connection`() async throws {
        try await withFTP(["/home/a.bin": content]) { (server, _) async throws in
            let name = Array("files.test".utf8)
            let steps: [SOCKSProxy.Step] = [
                .take(3), .say([5, 0]), .take(7 + name.count), .say([5, 0, 0, 1, 127, 0, 0, 1, 0, 80]), .tunnel(server.port),
            ]
            try await withSOCKSProxy({ _ in steps }) { (proxy) async throws in
                try await withSession {
                    $0.connectionProxyDictionary = ["SOCKSEnable": 1, "SOCKSProxy": "127.0.0.1", "SOCKSPort": proxy.port]
                    $0.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
                    $0.timeoutIntervalForRequest = 3
                } test: { (session) async throws in
                    // The proxy connects the data connection to the control port, so the transfer fails, but the proxy gets the request.
                    _ = try? await session.data(from: try server.url("/a.bin", host: "files.test"))
                    let port = [UInt8(server.port >> 8), UInt8(server.port & 255)]
                    #expect(proxy.received.first == [5, 1, 0, 5, 1, 0, 3, UInt8(name.count)] + name + port)
                    #expect(proxy.received.count >= 2)
                    #expect(
                        proxy.received.dropFirst().allSatisfy { Array($0.dropFirst(7).prefix(1 + name.count)) == [10] + name })
                    #expect(server.dataCount == 0)
                }
            }
        }
    }

    @Test(arguments: ["tinyproxy", "microsocks", "dante"])
    func `real proxies carry loads`(kind: String) async throws {
        let proxy =
            switch kind {
            case "tinyproxy": try SmallServer.tinyproxy()
            case "microsocks": try SmallServer.microsocks(user: "ada", password: "lovelace")
            default: try SmallServer.dante()
            }
        defer { proxy.stop() }
        let server = try SmallServer.pyftpdlib()
        defer { server.stop() }
        try server.put(content, at: "a.bin")
        let address =
            switch kind {
            case "tinyproxy": "http://127.0.0.1:\(proxy.port)"
            case "microsocks": "socks5h://ada:lovelace@127.0.0.1:\(proxy.port)"
            default: "socks5h://127.0.0.1:\(proxy.port)"
            }
        try await withSession {
            $0.proxyEnvironment = kind == "tinyproxy" ? ["http_proxy": address, "https_proxy": address] : ["all_proxy": address]
        } test: { (session) async throws in
            for host in ["127.0.0.1", "localhost"] {
                let base = "ftp://\(host):\(server.port)/"
                #expect(try await session.data(from: try #require(URL(string: base + "a.bin"))).0 == Data(content))
                _ = try await session.upload(
                    for: URLRequest(url: try #require(URL(string: base + "\(host).bin"))), from: Data(content))
                #expect(try Data(contentsOf: server.folder.appendingPathComponent("\(host).bin")) == Data(content))
            }
        }
    }

    @Test(arguments: [301, 302, 303, 307, 308])
    func `a redirect from HTTP to FTP is not followed`(status: Int) async throws {
        try await withFTP { (server, _) async throws in
            let location = try server.url("/a.bin").absoluteString
            try await withScenario(reply: { _ in .status(status, [("Location", location)]) }) { (web, session) async throws in
                await expectFailure(.unsupportedURL) { try await session.data(from: web.url()) }
                #expect(server.connectionCount == 0)
            }
        }
    }

    @Test func `a load neither uses nor fills the cache`() async throws {
        let cache = URLCache(memoryCapacity: 10_000_000, diskCapacity: 0, directory: nil)
        try await withFTP(configure: { $0.urlCache = cache }) { (server, session) async throws in
            let url = try server.url("/a.bin")
            _ = try await session.data(from: url)
            #expect(cache.cachedResponse(for: URLRequest(url: url)) == nil)
            var request = URLRequest(url: url)
            request.cachePolicy = .returnCacheDataDontLoad
            let count = server.connectionCount
            await expectFailure(.resourceUnavailable) { try await session.data(for: request) }
            #expect(server.connectionCount == count)
            request.cachePolicy = .returnCacheDataElseLoad
            _ = try await session.data(for: request)
            #expect(server.commands("RETR").count == 2)
        }
    }

    @Test func `a data task becomes a download`() async throws {
        var answers = EventRecorder.Answers()
        answers.response = { _, _ in .becomeDownload }
        let recorder = EventRecorder(answers)
        try await withFTP(["/home/a.bin": content], delegate: recorder) { (server, session) async throws in
            let task = session.dataTask(with: try server.url("/a.bin"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil)
            #expect(record.file == Data(content))
            #expect(record.events.contains(.becameDownload))
        }
    }

    @Test(arguments: [
        (URLSession.ResponseDisposition.becomeStream, URLError.Code.unsupportedURL), (.cancel, .cancelled),
    ])
    func `a data task cannot become a stream, and can be cancelled at its response`(
        disposition: URLSession.ResponseDisposition, code: URLError.Code
    ) async throws {
        var answers = EventRecorder.Answers()
        answers.response = { _, _ in disposition }
        let recorder = EventRecorder(answers)
        try await withFTP(["/home/a.bin": content], delegate: recorder) { (server, session) async throws in
            let task = session.dataTask(with: try server.url("/a.bin"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect((record.error as? URLError)?.code == code)
            #expect(record.letters == "cRME")
            try await server.waitForEnds()
        }
    }

    final class CustomFTPProtocol: URLProtocol, @unchecked Sendable {
        // Sendable because the class has no state.
        override class func canInit(with request: URLRequest) -> Bool { request.url?.scheme == "ftp" }
        override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

        override func startLoading() {
            guard let url = request.url else { return }
            let response = URLResponse(url: url, mimeType: "text/plain", expectedContentLength: 3, textEncodingName: nil)
            client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
            client?.urlProtocol(self, didLoad: Data("own".utf8))
            client?.urlProtocolDidFinishLoading(self)
        }

        override func stopLoading() {}
    }

    @Test func `a URLProtocol class of the app takes precedence`() async throws {
        try await withFTP(configure: { $0.protocolClasses = [CustomFTPProtocol.self] }) { (server, session) async throws in
            #expect(try await session.data(from: try server.url("/a.bin")).0 == Data("own".utf8))
            #expect(server.connectionCount == 0)
        }
    }

    @Test func `metrics describe the control connection`() async throws {
        let recorder = EventRecorder()
        try await withFTP(["/home/a.bin": content], delegate: recorder) { (server, session) async throws in
            let task = session.dataTask(with: try server.url("/a.bin"))
            task.resume()
            let metrics = try #require(try await recorder.completion(of: task).metrics)
            #expect(metrics.redirectCount == 0)
            #expect(metrics.transactionMetrics.count == 1)
            let transaction = try #require(metrics.transactionMetrics.first)
            #expect(transaction.remoteAddress == "127.0.0.1")
            #expect(transaction.remotePort == server.port)
            #expect(transaction.isProxyConnection == false)
            #expect(transaction.resourceFetchType == .networkLoad)
            let start = try #require(transaction.fetchStartDate)
            let end = try #require(transaction.responseEndDate)
            #expect(start <= end)
            let connected = try #require(transaction.connectEndDate)
            #expect(connected <= end)
            #expect(transaction.response?.url == (try server.url("/a.bin")))
        }
    }

    @Test func `the times in metrics are in order`() async throws {
        let recorder = EventRecorder()
        try await withFTP(["/home/a.bin": content], delegate: recorder) { (server, session) async throws in
            let task = session.dataTask(with: try server.url("/a.bin"))
            task.resume()
            let transaction = try #require(try await recorder.completion(of: task).metrics?.transactionMetrics.first)
            let dates = [
                transaction.fetchStartDate, transaction.connectStartDate, transaction.connectEndDate,
                transaction.requestStartDate,
                transaction.responseStartDate, transaction.responseEndDate,
            ]
            let times = dates.compactMap { $0?.timeIntervalSinceReferenceDate }
            #expect(times == times.sorted(), "\(dates.map { $0?.timeIntervalSinceReferenceDate })")
            #expect(times.count == dates.count)
        }
    }

    @Test func `a URL whose host is missing or refuses connections fails`() async throws {
        let port = try RefusingPort()
        try await withSession { (session) async throws in
            await expectFailure(.cannotConnectToHost) {
                try await session.data(from: try #require(URL(string: "ftp://127.0.0.1:\(port.number)/a.bin")))
            }
            for bad in ["ftp:///a.bin", "ftp:a.bin"] {
                await expectFailure(.badURL, .unsupportedURL, .cannotFindHost, in: bad) {
                    try await session.data(from: try #require(URL(string: bad)))
                }
            }
        }
    }
}
