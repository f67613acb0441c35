// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Automatic configuration: `ProxyAutoConfigJavaScript` and `ProxyAutoConfigURLString`.
@Suite(.timeLimit(.minutes(2)))
struct ProxyScriptTests {
    private static func dictionary(_ script: String, _ more: [String: Any] = [:]) -> [AnyHashable: Any] {
        var dictionary: [AnyHashable: Any] = ["ProxyAutoConfigEnable": 1, "ProxyAutoConfigJavaScript": script]
        for (key, value) in more { dictionary[key] = value }
        return dictionary
    }

    private func withServers(test: (_ server: ScriptedServer, _ proxy: ScriptedServer) async throws -> Void) async throws {
        try await withScriptedServer(reply: { .ok("direct \($0.target)") }) { (server) async throws in
            try await withScriptedServer(reply: { .ok("proxy \($0.target)") }) { (proxy) async throws in
                try await test(server, proxy)
            }
        }
    }

    @Test func `the script chooses the proxy of each request`() async throws {
        try await withServers { (server, proxy) async throws in
            let script = """
                function FindProxyForURL(url, host) {
                  let way = `PROXY 127.0.0.1:\(proxy.port); DIRECT`;
                  return host === 'localhost' && shExpMatch(url, '*/by-proxy?') ? way : 'DIRECT';
                }
                """
            try await withSession {
                $0.connectionProxyDictionary = Self.dictionary(script)
            } test: { (session) async throws in
                #expect(try await session.text(server.url("/a")) == "direct /a")
                #expect(try await session.text(server.url("/a", host: "localhost")) == "direct /a")
                let url = server.url("/by-proxy1", host: "localhost")
                #expect(try await session.text(url) == "proxy \(url)")
            }
        }
    }

    @Test func `a script is loaded once, without proxies, for all concurrent loads`() async throws {
        try await withServers { (server, proxy) async throws in
            let script = "function FindProxyForURL() { return 'PROXY 127.0.0.1:\(proxy.port)' }"
            try await withScriptedServer(reply: {
                $0.target == "/moved" ? .status(302, [("Location", "/proxy.pac")]) : .ok(script)
            }) { (scriptServer) async throws in
                try await withSession {
                    $0.connectionProxyDictionary = [
                        "ProxyAutoConfigEnable": 1, "ProxyAutoConfigURLString": scriptServer.url("/moved").absoluteString,
                    ]
                } test: { (session) async throws in
                    try await withThrowingTaskGroup(of: Bool.self) { group in
                        for index in 0..<20 {
                            let url = server.url("/\(index)")
                            group.addTask { try await session.text(url) == "proxy \(url)" }
                        }
                        for try await isRight in group { #expect(isRight) }
                    }
                    #expect(scriptServer.requests.map(\.target) == ["/moved", "/proxy.pac"])
                    await session.reset()
                    _ = try await session.data(from: server.url())
                    #expect(scriptServer.requests.count == 4)
                    #expect(server.connectionCount == 0)
                }
            }
        }
    }

    @Test func `a script may be in a file or in a data URL`() async throws {
        try await withServers { (server, proxy) async throws in
            let script = "function FindProxyForURL() { return 'PROXY 127.0.0.1:\(proxy.port)' }"
            let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString + ".pac")
            try Data(script.utf8).write(to: file)
            defer { try? FileManager.default.removeItem(at: file) }
            for place in [
                file.absoluteString, "data:application/x-ns-proxy-autoconfig;base64,\(Data(script.utf8).base64EncodedString())",
            ] {
                try await withSession {
                    $0.connectionProxyDictionary = ["ProxyAutoConfigEnable": 1, "ProxyAutoConfigURLString": place]
                } test: { (session) async throws in
                    #expect(try await session.text(server.url("/a")) == "proxy \(server.url("/a"))", "\(place)")
                }
            }
        }
    }

    @Test(
        arguments: [
            "", "function FindProxyForURL( {", "throw 'x'", "function FindProxyForURL() { throw new Error('my reason') }",
            "function FindProxyForURL() {}", "function FindProxyForURL() { return 7 }",
            "function FindProxyForURL() { return {toString: function() { return 'DIRECT' }} }",
            "function FindProxyForURL() { return 'nonsense' }", "function FindProxyForURL() { return 'PROXY' }",
            "function FindProxyForURL() { return 'PROXY 127.0.0.1:99999' }",
            "function FindProxyForURL() { return 'DIRECTLY; PROXY a/b' }",
            "function FindProxyForURL() { return 'DIRECT;'.repeat(100000) }", "var FindProxyForURL = 7",
            "function FindProxyForURL(u, h) { return FindProxyForURL(u, h) + 1 }",
        ])
    func `a script that is invalid or returns nonsense fails the load`(_ script: String) async throws {
        try await withServers { (server, _) async throws in
            try await withSession {
                $0.connectionProxyDictionary = Self.dictionary(script)
            } test: { (session) async throws in
                let error = await expectFailure(.cannotConnectToHost, in: script) { try await session.data(from: server.url()) }
                #expect(error?.localizedDescription.hasPrefix("the proxy script ") == true, "\(String(describing: error))")
                if script.contains("my reason") { #expect(error?.localizedDescription.contains("my reason") == true) }
                #expect(server.connectionCount == 0)
            }
        }
    }

    @Test func `null and an empty string mean a direct connection`() async throws {
        try await withServers { (server, _) async throws in
            for answer in ["null", "''", "' ; '", "'direct'"] {
                try await withSession {
                    $0.connectionProxyDictionary = Self.dictionary("function FindProxyForURL() { return \(answer) }")
                } test: { (session) async throws in
                    #expect(try await session.text(server.url("/a")) == "direct /a", "\(answer)")
                }
            }
        }
    }

    /// A script that never ends, or takes a minute, only blocks the loads of its own session, and only until its time limit.
    @Test(
        arguments: [
            "function FindProxyForURL() { while (true) {} }", "while (true) {}",
            "function FindProxyForURL() { var t = Date.now(); while (Date.now() - t < 60000) {} return 'DIRECT' }",
        ])
    func `a script that does not end fails the load, and the loop serves others meanwhile`(_ script: String) async throws {
        try await withServers { (server, _) async throws in
            try await withSession {
                $0.connectionProxyDictionary = Self.dictionary(script, ["ExceptionsList": ["127.0.0.1"]])
            } test: { (session) async throws in
                let isOver = Watched(false)
                let url = server.url("/a", host: "localhost")
                async let slow: Void = {
                    await expectFailure(.cannotConnectToHost) { try await session.data(from: url) }
                    isOver.change { $0 = true }
                }()
                for index in 0..<20 { #expect(try await session.text(server.url("/\(index)")) == "direct /\(index)") }
                #expect(!isOver.read { $0 })
                await slow
                #expect(server.requests.allSatisfy { $0.header("Host")?.hasPrefix("127") == true })
            }
        }
    }

    @Test func `a script is interrupted if it does not end, and serves the next load`() async throws {
        let script = "var count = 0; function FindProxyForURL() { if (count++ == 0) { while (true) {} } return 'DIRECT' }"
        try await withServers { (server, _) async throws in
            try await withSession {
                $0.connectionProxyDictionary = Self.dictionary(script)
            } test: { (session) async throws in
                await expectFailure(.cannotConnectToHost) { try await session.data(from: server.url()) }
                #expect(try await session.text(server.url("/a")) == "direct /a")
            }
        }
    }

    /// If pending jobs were not dropped, they could run forever, each with its own time limit, before the load gets the script's result.
    @Test(
        arguments: [
            "async function g() { for (;;) { await null; } }", "function g() { Promise.resolve().then(g) }",
            "function g() { Promise.resolve().then(g); Promise.resolve().then(g) }",
            "async function g() { for (;;) { try { await null } catch (e) { g() } finally { g() } } }",
        ])
    func `a script's pending jobs are dropped, and its result counts`(_ script: String) async throws {
        try await withServers { (server, _) async throws in
            for (begin, end) in [("", "g(); "), ("g(); ", "")] {
                let script = "\(script) \(begin) var count = 0; function FindProxyForURL() { \(end)count++; return 'DIRECT' }"
                try await withSession {
                    $0.connectionProxyDictionary = Self.dictionary(script)
                } test: { (session) async throws in
                    for index in 0..<3 { #expect(try await session.text(server.url("/\(index)")) == "direct /\(index)") }
                }
            }
        }
    }

    @Test func `a timeout or cancellation ends a load while its script runs`() async throws {
        try await withServers { (server, _) async throws in
            try await withSession {
                $0.timeoutIntervalForRequest = 0.3
                $0.connectionProxyDictionary = Self.dictionary("function FindProxyForURL() { while (true) {} }")
            } test: { (session) async throws in
                await expectFailure(.timedOut) { try await session.data(from: server.url()) }
                let task = session.dataTask(with: server.url())
                let ended = Delivered<URLError.Code?>()
                let other = session.dataTask(with: server.url()) { _, _, error in ended((error as? URLError)?.code) }
                task.resume()
                other.resume()
                other.cancel()
                #expect(try await ended.value == .cancelled)
            }
        }
    }

    @Test func `a script that cannot be loaded fails the load, and is requested again`() async throws {
        let gone = try RefusingPort()
        try await withServers { (server, _) async throws in
            try await withScriptedServer(reply: { request in
                switch request.target {
                case "/missing": .status(404, body: "function FindProxyForURL() { return 'DIRECT' }")
                case "/long": .ok(String(repeating: " ", count: 1_100_000))
                default: .ok("")
                }
            }) { (scriptServer) async throws in
                let rows = [
                    (scriptServer.url("/missing").absoluteString, "404"), (scriptServer.url("/long").absoluteString, "1 MiB"),
                    ("http://127.0.0.1:\(gone.number)/a", "refused"), ("http://a.invalid/", "a.invalid"),
                    ("file:///nowhere/proxy.pac", "nowhere"), ("ftp://127.0.0.1/", "ProxyAutoConfigURLString"),
                    ("", "ProxyAutoConfigURLString"),
                ]
                for (place, reason) in rows {
                    try await withSession {
                        $0.connectionProxyDictionary = ["ProxyAutoConfigEnable": 1, "ProxyAutoConfigURLString": place]
                    } test: { (session) async throws in
                        for _ in 0..<2 {
                            let error = await expectFailure(.cannotConnectToHost, in: place) {
                                try await session.data(from: server.url())
                            }
                            #expect(error?.localizedDescription.contains(reason) == true, "\(String(describing: error))")
                        }
                    }
                }
                #expect(scriptServer.requests.filter { $0.target == "/missing" }.count == 2)
                #expect(server.connectionCount == 0)
            }
        }
    }

    @Test func `the next proxy of a list replaces one that cannot be reached`() async throws {
        let gone = try RefusingPort()
        try await withServers { (server, proxy) async throws in
            let script = "function FindProxyForURL() { return 'PROXY 127.0.0.1:\(gone.number); PROXY 127.0.0.1:\(proxy.port)' }"
            try await withSession {
                $0.connectionProxyDictionary = Self.dictionary(script)
            } test: { (session) async throws in
                for _ in 0..<2 { #expect(try await session.text(server.url("/a")) == "proxy \(server.url("/a"))") }
            }
            try await withSession {
                $0.connectionProxyDictionary = Self.dictionary(
                    "function FindProxyForURL() { return 'PROXY 127.0.0.1:\(gone.number); DIRECT' }")
            } test: { (session) async throws in
                #expect(try await session.text(server.url("/a")) == "direct /a")
            }
        }
    }

    @Test func `a stale response is not used while another proxy can be tried`() async throws {
        let gone = try RefusingPort()
        let count = Watched(0)
        try await withScriptedServer(reply: { _ in
            let number = count.change { count in
                count += 1
                return count
            }
            return .ok("answer \(number)", [("Cache-Control", "max-age=60, stale-if-error=600"), ("Age", "100")])
        }) { (proxy) async throws in
            let good = "PROXY 127.0.0.1:\(proxy.port)"
            let script =
                "var n = 0; function FindProxyForURL() { return (n++ ? 'PROXY 127.0.0.1:\(gone.number); ' : '') + '\(good)' }"
            try await withSession {
                $0.urlCache = URLCache(memoryCapacity: 10_000_000, diskCapacity: 0)
                $0.connectionProxyDictionary = Self.dictionary(script)
            } test: { (session) async throws in
                for number in 1...2 { #expect(try await session.text(URL(string: "http://127.0.0.1:1/")!) == "answer \(number)") }
                #expect(proxy.requests.count == 2)
            }
        }
    }

    @Test func `the script does not see the path of an https URL`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withScriptedServer(identity: certificates.valid, reply: { _ in .ok("secret") }) { (server) async throws in
            let whole = "https://127.0.0.1:\(server.port)/"
            let script = "function FindProxyForURL(url) { return url === '\(whole)' ? 'DIRECT' : 'PROXY 127.0.0.1:1' }"
            try await withSession {
                $0.tlsTrustRoots = [certificates.root]
                $0.connectionProxyDictionary = Self.dictionary(script)
            } test: { (session) async throws in
                #expect(try await session.text(server.url("/path?query")) == "secret")
            }
        }
    }

    @Test func `scripts can call the standard helper functions`() async throws {
        let facts = [
            "isPlainHostName('a') && !isPlainHostName('a.b')",
            "dnsDomainIs('www.a.test', '.a.test') && !dnsDomainIs('a.test', '.b.test')",
            "localHostOrDomainIs('www', 'www.a.test') && localHostOrDomainIs('www.a.test', 'www.a.test')",
            "!localHostOrDomainIs('w', 'www.a.test')", "isResolvable('localhost') && !isResolvable('a.invalid')",
            "dnsResolve('localhost') === '127.0.0.1' && dnsResolve('a.invalid') === null",
            "isInNet('10.1.2.3', '10.0.0.0', '255.0.0.0') && !isInNet('11.1.2.3', '10.0.0.0', '255.0.0.0')",
            "isInNet('localhost', '127.0.0.0', '255.0.0.0') && !isInNet('a.invalid', '0.0.0.0', '0.0.0.0')",
            "/^\\\\d+\\\\.\\\\d+\\\\.\\\\d+\\\\.\\\\d+$/.test(myIpAddress())", "dnsDomainLevels('a.b.c') === 2",
            "convert_addr('1.2.3.4') === 0x01020304", "shExpMatch('http://a.test/b', '*.test/*') && !shExpMatch('a', 'b*')",
            "shExpMatch('abc', 'a?c') && shExpMatch('a.c', 'a.c') && !shExpMatch('abc', 'a.c')",
            "!shExpMatch('a'.repeat(50000), '*a*a*a*a*a*a*a*b')",
            "weekdayRange('SUN', 'SAT') && weekdayRange('MON', 'SUN', 'GMT')",
            "!weekdayRange('NODAY')", "timeRange(0, 23) && timeRange(0, 0, 23, 59) && timeRange(0, 0, 0, 23, 59, 59, 'GMT')",
            "dateRange(1, 31) && dateRange('JAN', 'DEC') && dateRange(2000, 2999) && dateRange(1, 'JAN', 31, 'DEC')",
            "dateRange(1, 'JAN', 2000, 31, 'DEC', 2999) && !dateRange(1990, 1999) && !dateRange('JAN', 1990, 'DEC', 1999)",
            "isInNetEx('fd12::1', 'fd00::/8') && !isInNetEx('fe12::1', 'fd00::/8') && isInNetEx('10.1.1.1', '10.0.0.0/8')",
            "isResolvableEx('localhost') && dnsResolveEx('localhost').indexOf('127.0.0.1') >= 0", "alert('x') === undefined",
        ]
        try await withServers { (server, _) async throws in
            let list = facts.map { "\"\($0.replacingOccurrences(of: "\\\\", with: "\\\\"))\"" }.joined(separator: ",\n")
            let script = """
                var facts = [\(list)];
                function FindProxyForURL() {
                  for (var i = 0; i < facts.length; i++) if (!eval(facts[i])) throw 'not so: ' + facts[i];
                  return 'DIRECT';
                }
                """
            try await withSession {
                $0.connectionProxyDictionary = Self.dictionary(script)
            } test: { (session) async throws in
                #expect(try await session.text(server.url("/a")) == "direct /a")
            }
        }
    }
}
