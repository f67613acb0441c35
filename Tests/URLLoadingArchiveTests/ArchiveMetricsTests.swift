// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Synchronization
import Testing
import URLLoading
import URLLoadingArchive

/// Archive entries for loads from a server.
@Suite(.timeLimit(.minutes(1)))
struct ArchiveMetricsTests {
    private final class Observer: NSObject, URLSessionDataDelegate, Sendable {
        let metrics = Mutex<URLSessionTaskMetrics?>(nil)
        let heads = Mutex<[[String]]>([])
        let user: URLCredential?

        init(user: URLCredential? = nil) { self.user = user }

        func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
            self.metrics.withLock { $0 = metrics }
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didSendRequestHead head: [String]) {
            heads.withLock { $0.append(head) }
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            completionHandler(user == nil ? .performDefaultHandling : .useCredential, user)
        }
    }

    private func load(
        _ request: URLRequest, in session: URLSession, user: URLCredential? = nil, detail: HTTPArchive.Detail = .init()
    ) async throws -> [HTTPArchive.Entry] {
        let observer = Observer(user: user)
        var particulars = HTTPArchive.Particulars()
        particulars.requestBody = request.httpBody
        do {
            particulars.responseBody = try await session.data(for: request, delegate: observer).0
        } catch {
            particulars.error = error
        }
        particulars.sentHeads = observer.heads.withLock { $0 }
        let metrics = try #require(observer.metrics.withLock { $0 })
        var archive = HTTPArchive()
        archive.append(metrics, particulars, detail: detail)
        return archive.entries
    }

    private let session = URLSession(configuration: .ephemeral)

    @Test func `each redirect is an entry`() async throws {
        try await withScriptedServer(reply: {
            $0.path == "/old"
                ? .redirect(301, to: "/new?token=abc", [("Set-Cookie", "a=b; Path=/")])
                : .ok("body", [("Content-Type", "text/x; a=b")])
        }) { (server) async throws in
            let entries = try await load(URLRequest(url: server.url("/old", user: nil)), in: session)
            #expect(entries.map(\.response.status) == [301, 200])
            #expect(
                entries.map(\.request.url) == [
                    server.url("/old").absoluteString, server.url("/new?token=REDACTED").absoluteString,
                ])
            #expect(entries[0].response.redirectURL == "/new?token=REDACTED")
            #expect(entries[0].response.cookies.map(\.value) == ["REDACTED"])
            #expect(entries[0].response.statusText == "Scripted")
            #expect(entries[1].request.headers.value(of: "Cookie") == "a=REDACTED")
            #expect(entries[1].request.cookies.map(\.name) == ["a"])
            #expect(entries[1].response.content.size == 4)
            #expect(entries[1].response.content.text == nil)
            #expect(entries[1].response.content.mimeType == "text/x; a=b")
            #expect(entries.allSatisfy { $0.serverIPAddress == "127.0.0.1" && $0.request.httpVersion == "HTTP/1.1" })
            #expect(entries[0].timings.connect >= 0)
            #expect(entries[1].timings.connect == -1, "the connection was reused")
            #expect(entries[0].connection == entries[1].connection)
            #expect(entries.allSatisfy { abs($0.time - $0.timings.sum) < 0.01 && $0.timings.ssl == -1 })
            let sizes = server.requests.map { Int64($0.rawHead.count) }
            #expect(
                zip(entries, sizes).allSatisfy { abs($0.request.headersSize - $1) <= 2 },
                "\(entries.map(\.request.headersSize)) \(sizes)")
        }
    }

    @Test func `the time to connect includes TLS`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withScriptedServer(identity: certificates.valid, reply: { _ in .ok() }) { (server) async throws in
            let configuration = URLSessionConfiguration.ephemeral
            configuration.tlsTrustRoots = [certificates.root]
            let entry = try #require(
                try await load(URLRequest(url: server.url()), in: URLSession(configuration: configuration)).first)
            #expect(entry.response.status == 200)
            #expect(entry.timings.ssl > 0)
            #expect(entry.timings.connect > entry.timings.ssl)
            #expect(abs(entry.time - entry.timings.sum) < 0.01)
        }
    }

    @Test func `a challenge and its answer are two entries, and the credential is in neither`() async throws {
        try await withScriptedServer(reply: {
            $0.header("Authorization") == nil ? .status(401, [("WWW-Authenticate", "Basic realm=\"r\"")]) : .ok("in")
        }) { (server) async throws in
            let user = URLCredential(user: "me", password: "secret", persistence: .forSession)
            let entries = try await load(URLRequest(url: server.url()), in: session, user: user)
            #expect(entries.map(\.response.status) == [401, 200])
            #expect(entries.map { $0.request.headers.value(of: "authorization") } == [nil, "Basic REDACTED"])
            var detail = HTTPArchive.Detail()
            detail.redaction = nil
            let open = try await load(URLRequest(url: server.url()), in: session, user: user, detail: detail)
            #expect(open.last?.request.headers.value(of: "authorization") == "Basic bWU6c2VjcmV0")
        }
    }

    @Test func `a cache hit is marked`() async throws {
        try await withScriptedServer(reply: { _ in .ok("kept", [("Cache-Control", "max-age=600"), ("ETag", "\"e\"")]) }) {
            (server) async throws in
            let configuration = URLSessionConfiguration.ephemeral
            let session = URLSession(configuration: configuration)
            let first = try await load(URLRequest(url: server.url()), in: session)
            let second = try await load(URLRequest(url: server.url()), in: session)
            #expect(first.map(\.fromCache) == [nil])
            let hit = try #require(second.first)
            #expect(hit.fromCache == "cache")
            #expect(hit.cache.beforeRequest?.eTag == "\"e\"")
            #expect(hit.response.status == 200)
            #expect(hit.response.bodySize == 0)
            #expect(hit.response.content.size == 4)
            #expect(hit.timings.connect == -1)
        }
    }

    @Test func `bodies are recorded on request, up to a limit`() async throws {
        let gzip = String(repeating: "text ", count: 20)
        try await withScriptedServer(reply: {
            switch $0.path {
            case "/gzip": .gzip(Array(gzip.utf8))
            case "/binary": .ok([0, 1, 255])
            default: .ok(String(repeating: "x", count: 101))
            }
        }) { (server) async throws in
            var detail = HTTPArchive.Detail()
            detail.keepsBodies = true
            detail.maximumBodySize = 100
            var request = URLRequest(url: server.url("/gzip"))
            request.httpMethod = "POST"
            request.httpBody = Data("a=b".utf8)
            let posted = try #require(try await load(request, in: session, detail: detail).first)
            #expect(posted.request.postData?.text == "a=b")
            #expect(posted.request.bodySize == 3)
            #expect(posted.response.content.text == gzip)
            #expect(posted.response.content.compression == Int64(gzip.utf8.count) - posted.response.bodySize)
            let binary = try #require(try await load(URLRequest(url: server.url("/binary")), in: session, detail: detail).first)
            #expect(binary.response.content.encoding == "base64")
            #expect(binary.response.content.data == Data([0, 1, 255]))
            let long = try #require(try await load(URLRequest(url: server.url("/long")), in: session, detail: detail).first)
            #expect(long.response.content.text == nil)
            #expect(long.response.content.size == 101)
            #expect(long.response.content.comment?.contains("100") == true)
        }
    }

    @Test func `a failed load is an entry with the reason`() async throws {
        try await withScriptedServer(reply: { _ in [.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"), .close] }) {
            (server) async throws in
            let entry = try #require(try await load(URLRequest(url: server.url()), in: session).first)
            #expect(entry.response.status == 200)
            #expect(entry.response.error?.isEmpty == false)
        }
        let port = try RefusingPort()
        let url = try #require(URL(string: "http://user:secret@127.0.0.1:\(port.number)/"))
        let refused = try #require(try await load(URLRequest(url: url), in: session).first)
        #expect(refused.response.status == 0)
        #expect(refused.response.error?.contains("refused") == true)
        #expect(!String(decoding: try JSONEncoder().encode(refused), as: UTF8.self).contains("secret"))
    }
}
