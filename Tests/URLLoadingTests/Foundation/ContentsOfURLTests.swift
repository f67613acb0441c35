// SPDX-License-Identifier: Apache-2.0

import Foundation
import FoundationXML
import LoadingTestKit
import Testing
import URLLoading

/// Foundation's initializers that load a URL and wait for the content.
@Suite(.timeLimit(.minutes(1)))
struct ContentsOfURLTests {
    /// The reply for each path.
    private static let reply: @Sendable (RecordedRequest) throws -> ScriptedReply = { request in
        switch request.path {
        case "/text": .ok("grün", [("Content-Type", "text/plain; charset=utf-8")])
        case "/page": .ok("<page><line/></page>", [("Content-Type", "text/xml")])
        case "/moved": .redirect(302, to: "/text")
        case let path where path.hasPrefix("/status/"): .status(Int(path.dropFirst(8)) ?? 500, body: "body")
        default: .ok("body of \(request.path)")
        }
    }

    @Test func `each initializer loads its URL`() async throws {
        try await withScriptedServer(reply: Self.reply) { (server) async throws in
            #expect(try Data(contentsOf: server.url("/a")) == Data("body of /a".utf8))
            #expect(try Data(contentsOf: server.url("/moved")) == Data("grün".utf8))
            #expect(try String(contentsOf: server.url("/text"), encoding: .utf8) == "grün")
            let data: NSData? = NSData(contentsOf: server.url("/a"))
            #expect(data == NSData(data: Data("body of /a".utf8)))
            #expect(try NSData(contentsOf: server.url("/a"), options: []).length == 10)
            let text = try NSString(contentsOf: server.url("/text"), encoding: String.Encoding.utf8.rawValue)
            #expect(text as String == "grün")
            let parser = try #require(XMLParser(contentsOf: server.url("/page")))
            let names = ElementNames()
            parser.delegate = names
            #expect(parser.parse())
            #expect(names.all == ["page", "line"])
        }
    }

    private final class ElementNames: NSObject, XMLParserDelegate {
        var all: [String] = []

        func parser(
            _ parser: XMLParser, didStartElement elementName: String, namespaceURI: String?, qualifiedName: String?,
            attributes: [String: String]
        ) {
            all.append(elementName)
        }
    }

    @Test func `an error status other than 401 and 407 fails the load`() async throws {
        try await withScriptedServer(reply: Self.reply) { (server) async throws in
            for status in [204, 304, 401, 407] {
                #expect(try Data(contentsOf: server.url("/status/\(status)")).count == (status == 204 || status == 304 ? 0 : 4))
            }
            for status in [400, 403, 404, 410, 500, 503] {
                let error = await expectFailure(.badServerResponse, in: "\(status)") {
                    try Data(contentsOf: server.url("/status/\(status)"))
                }
                #expect(error?.failingURL == server.url("/status/\(status)"))
                #expect(error?.localizedDescription.contains("\(status)") == true)
            }
        }
    }

    @Test func `a failed load throws its error`() async throws {
        let port = try RefusingPort()
        let refused = try #require(URL(string: "http://127.0.0.1:\(port.number)/"))
        let clear = try #require(URL(string: "http://www.example.test/"))
        let unknown = try #require(URL(string: "none:x"))
        let error = await expectFailure(.cannotConnectToHost) { try Data(contentsOf: refused) }
        #expect(error?.failingURL == refused)
        await expectFailure(.cannotConnectToHost) { try String(contentsOf: refused, encoding: .utf8) }
        await expectFailure(.cannotConnectToHost) { try NSData(contentsOf: refused, options: []) }
        let data: NSData? = NSData(contentsOf: refused)
        #expect(data == nil)
        #expect(XMLParser(contentsOf: refused)?.parse() != true)
        // App Transport Security refuses this URL before its host name is looked up.
        await expectFailure(.appTransportSecurityRequiresSecureConnection) { try Data(contentsOf: clear) }
        await expectFailure(.unsupportedURL) { try Data(contentsOf: unknown) }
        #expect(try Data(contentsOf: URL(string: "data:,abc") ?? refused) == Data("abc".utf8))
    }

    @Test func `loading works on a session's event loop, on its delegate queue and in a completion handler`() async throws {
        try await withScriptedServer(reply: Self.reply) { (server) async throws in
            let url = server.url("/a")
            for session in [URLSession.shared, URLSession(configuration: .ephemeral)] {
                let onLoop = try await Task(executorPreference: session.taskExecutor) { try Data(contentsOf: url).count }.value
                #expect(onLoop == 10)
                let count: Int? = await withCheckedContinuation { done in
                    session.dataTask(with: url) { _, _, _ in done.resume(returning: try? Data(contentsOf: url).count) }.resume()
                }
                #expect(count == 10)
            }
        }
    }

    @Test func `loading works while every thread of the cooperative pool waits for a load`() async throws {
        try await withScriptedServer(reply: Self.reply) { (server) async throws in
            let sizes = try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 0..<200 {
                    let url = server.url("/\(number % 10)")
                    group.addTask { try Data(contentsOf: url).count }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(sizes == [Int](repeating: 10, count: 200))
        }
    }

    @Test func `a registered URLProtocol class is used`() throws {
        let url = try #require(URL(string: "contents-of-url:x"))
        #expect(URLProtocol.registerClass(Answering.self))
        defer { URLProtocol.unregisterClass(Answering.self) }
        #expect(try Data(contentsOf: url) == Data("answered".utf8))
    }

    private final class Answering: URLProtocol, @unchecked Sendable {
        override class func canInit(with request: URLRequest) -> Bool { request.url?.scheme == "contents-of-url" }
        override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

        override func startLoading() {
            guard let url = request.url else { return }
            let response = URLResponse(url: url, mimeType: nil, expectedContentLength: 8, textEncodingName: nil)
            client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
            client?.urlProtocol(self, didLoad: Data("answered".utf8))
            client?.urlProtocolDidFinishLoading(self)
        }

        override func stopLoading() {}
    }
}
