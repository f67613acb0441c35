// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Octets that are not UTF-8 are sent back unchanged, whatever text the app sees.
@Suite(.timeLimit(.minutes(2)))
struct OctetTests {
    /// A response whose field has these octets.
    static func reply(_ name: String, _ value: [UInt8], _ more: String = "") -> ScriptedReply {
        [.write(Array("HTTP/1.1 200 OK\r\n\(name): ".utf8) + value + Array("\r\n\(more)Content-Length: 2\r\n\r\nok".utf8))]
    }

    private static let values: [[UInt8]] = [
        Array("a=caf".utf8) + [0xE9], Array("a=".utf8) + [0xFF, 0xFE, 0x80], Array("a=caf".utf8) + [0xC3, 0xA9],
        // F4 8F BF A9 is the UTF-8 of U+10FFE9, the character that represents the octet E9 internally.
        Array("a=".utf8) + [0xF4, 0x8F, 0xBF, 0xA9], Array("a=".utf8) + [0xF4, 0x8F, 0xBF, 0xA9, 0xE9],
    ]

    @Test(arguments: values) func `a cookie is sent back octet for octet`(_ value: [UInt8]) async throws {
        try await withScenario(reply: { $0.order == 0 ? Self.reply("Set-Cookie", value) : .ok() }) {
            (server, session) async throws in
            _ = try await session.text(server.url())
            _ = try await session.text(server.url())
            #expect(try #require(server.requests.last).octets(of: "Cookie") == [value])
        }
    }

    @Test func `a cookie that is not UTF-8 is shown as ISO 8859-1`() async throws {
        try await withScenario(reply: { _ in Self.reply("Set-Cookie", Self.values[0]) }) { (server, session) async throws in
            _ = try await session.text(server.url())
            let cookie = try #require(session.configuration.httpCookieStorage?.cookies?.first)
            #expect(cookie.value == "caf\u{E9}")
            #expect(cookie.properties?[.value] as? String == "caf\u{E9}")
            #expect(cookie.description.contains("caf\u{E9}"))
        }
    }

    @Test func `the size limit of a cookie counts octets, whatever their encoding`() async throws {
        let value = Array("a=".utf8) + [UInt8](repeating: 0xE9, count: 4_095)
        try await withScenario(reply: { $0.order == 0 ? Self.reply("Set-Cookie", value) : .ok() }) {
            (server, session) async throws in
            _ = try await session.text(server.url())
            _ = try await session.text(server.url())
            #expect(try #require(server.requests.last).octets(of: "Cookie") == [value])
        }
    }

    @Test func `a cookie that was stored on disk, or copied by the app, is sent back octet for octet`() async throws {
        let home = try TemporaryDirectory()
        let value = Self.values[0]
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = {
            $0.order == 0 ? Self.reply("Set-Cookie", value + Array("; Max-Age=1000".utf8)) : .ok()
        }
        try await withScriptedServer(reply: reply) { (server) async throws in
            for _ in 0..<2 {
                await #expect(processExitsWith: .success) {
                    [home = home.path as String, url = server.url("/a") as URL] () async throws in
                    TestHome.settle(in: home)
                    let session = URLSession(configuration: .default)
                    _ = try await session.data(from: url)
                    await session.flush()
                }
            }
            #expect(try #require(server.requests.last).octets(of: "Cookie") == [value])
        }
        try await withScenario(reply: { $0.order == 0 ? Self.reply("Set-Cookie", value) : .ok() }) {
            (server, session) async throws in
            _ = try await session.text(server.url())
            let cookies = try #require(session.configuration.httpCookieStorage?.cookies)
            try await withSession {
                $0.httpCookieStorage = nil
            } test: { (other) async throws in
                var request = URLRequest(server.url())
                request.allHTTPHeaderFields = HTTPCookie.requestHeaderFields(with: cookies)
                _ = try await other.text(request)
            }
            let storage = HTTPCookieStorage()
            for cookie in cookies { storage.setCookie(cookie) }
            try await withSession {
                $0.httpCookieStorage = storage
            } test: { (other) async throws in
                _ = try await other.text(server.url())
            }
            for request in server.requests.suffix(2) { #expect(request.octets(of: "Cookie") == [value]) }
        }
    }

    @Test func `an entity tag is sent back octet for octet`() async throws {
        let tag = Array("\"caf".utf8) + [0xE9, 0x22]
        try await withScenario(
            configure: { $0.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0) },
            reply: { _ in Self.reply("ETag", tag, "Cache-Control: no-cache\r\n") }
        ) { (server, session) async throws in
            for _ in 0..<2 { _ = try await session.text(server.url()) }
            #expect(try #require(server.requests.last).octets(of: "If-None-Match") == [tag])
        }
    }

    @Test func `a field is copied from a response to a request octet for octet`() async throws {
        let value = Array("caf".utf8) + [0xE9]
        try await withScenario(reply: { _ in Self.reply("X-Token", value) }) { (server, session) async throws in
            let response = try await session.text(URLRequest(server.url())).response
            #expect(response.value(forHTTPHeaderField: "X-Token") == "caf\u{E9}")
            var request = URLRequest(server.url())
            request.copyHTTPHeaderField("x-token", from: response)
            request.copyHTTPHeaderField("X-Token", from: response, as: "X-Other")
            request.copyHTTPHeaderField("X-None", from: response)
            #expect(request.value(forHTTPHeaderField: "X-Token") == "caf\u{E9}")
            #expect(request.value(forHTTPHeaderField: "X-None") == nil)
            _ = try await session.text(request)
            let sent = try #require(server.requests.last)
            #expect(sent.octets(of: "x-token") == [value] && sent.octets(of: "X-Other") == [value])
        }
    }

    @Test(
        arguments: [
            (Array("/jos".utf8) + [0xE9], "/jos%E9"), (Array("/jos\u{E9}?\u{E9}/".utf8) + [0xE9], "/jos%C3%A9?%C3%A9/%E9"),
            (Array("/a b/".utf8) + [0xFF, 0xC3], "/a%20b/%FF%C3"),
        ] as [([UInt8], String)])
    func `a Location is asked for octet for octet`(location: [UInt8], target: String) async throws {
        let reply = Array("HTTP/1.1 302 Found\r\nLocation: ".utf8) + location + Array("\r\nContent-Length: 0\r\n\r\n".utf8)
        let recorder = EventRecorder()
        try await withScenario(delegate: recorder, reply: { $0.order == 0 ? [.write(reply)] : .ok("in") }) {
            (server, session) async throws in
            let task = session.dataTask(with: server.url())
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.body == Data("in".utf8) && server.requests[1].target == target)
            #expect(record.redirectRequests[0].url?.absoluteString.hasSuffix(target) == true)
        }
    }

    @Test func `a login in a URL, and that of a proxy, are sent octet for octet`() async throws {
        let expected = "Basic " + Data([0x75, 0x3A, 0x70, 0xE4]).base64EncodedString()
        try await withScenario(
            reply: { $0.authorization == expected ? .ok("in") : .unauthorized("Basic realm=\"r\"") }
        ) { (server, session) async throws in
            let url = try #require(URL(string: "http://u:p%E4@127.0.0.1:\(server.port)/"))
            #expect(try await session.text(url) == "in")
        }
        try await withScriptedServer(
            reply: { $0.header("Proxy-Authorization") == expected ? .ok("in") : .proxyUnauthorized("Basic realm=\"r\"") }
        ) { (proxy) async throws in
            try await withSession {
                $0.proxyEnvironment = ["http_proxy": "http://u:p%E4@127.0.0.1:\(proxy.port)"]
                $0.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
            } test: { (session) async throws in
                #expect(try await session.text(try #require(URL(string: "http://far.example/"))) == "in")
            }
        }
    }

    @Test func `a realm that is not UTF-8 is shown as ISO 8859-1, and sent back octet for octet`() async throws {
        let challenge =
            Array("Digest realm=\"caf".utf8) + [0xE9] + Array("\", nonce=\"n".utf8) + [0xFF] + Array("\", qop=auth".utf8)
        let interview = Interview(user: "u", password: "p")
        let reply =
            Array("HTTP/1.1 401 No\r\nWWW-Authenticate: ".utf8) + challenge + Array("\r\nContent-Length: 0\r\n\r\n".utf8)
        try await withScenario(
            delegate: TaskInterviewer(interview), reply: { $0.order == 0 ? [.write(reply)] : .ok("in") }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "in")
            #expect(interview.questions.map(\.realm) == ["caf\u{E9}"])
            let sent = try #require(server.requests[1].octets(of: "Authorization").first)
            #expect(sent.firstRange(of: Array("realm=\"caf".utf8) + [0xE9, 0x22]) != nil)
            #expect(sent.firstRange(of: Array("nonce=\"n".utf8) + [0xFF, 0x22]) != nil)
        }
    }
}
