// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Synchronization
import Testing
import URLLoading

/// Heads of requests and responses as they are on the wire, unlike in Apple's API.
@Suite(.timeLimit(.minutes(1)))
struct MessageHeadTests {
    private final class Reader: NSObject, URLSessionTaskDelegate, Sendable {
        let heads = Mutex<[[String]]>([])

        func urlSession(_ session: URLSession, task: URLSessionTask, didSendRequestHead head: [String]) {
            heads.withLock { $0.append(head) }
        }
    }

    @Test func `the delegate receives each request head as it is sent`() async throws {
        let reader = Reader()
        try await withScenario(
            delegate: reader,
            reply: { $0.path == "/old" ? .redirect(302, to: "/new") : .ok("new", [("Cache-Control", "max-age=60")]) }
        ) { (server, session) async throws in
            let request = URLRequest(server.url("/old"), headers: ["Z-Last": "1", "A-First": "2"])
            _ = try await session.data(for: request, delegate: reader)
            let sent = server.requests.map { $0.headText.components(separatedBy: "\r\n").filter { !$0.isEmpty } }
            #expect(sent.map(\.first) == ["GET /old HTTP/1.1", "GET /new HTTP/1.1"])
            #expect(reader.heads.withLock { $0 } == sent)
        }
    }

    @Test func `a response from the cache has no request head`() async throws {
        let reader = Reader()
        let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0)
        try await withScenario(
            delegate: reader, configure: { $0.urlCache = cache }, reply: { _ in .ok("kept", [("Cache-Control", "max-age=60")]) }
        ) { (server, session) async throws in
            for _ in 1...2 { _ = try await session.data(from: server.url("/a"), delegate: reader) }
            #expect(reader.heads.withLock { $0.count } == 1)
            #expect(server.requests.count == 1)
        }
    }

    @Test func `the header lines of a response keep the server's order`() async throws {
        let head =
            "HTTP/1.0 299 Quite  Well\r\nz-last: 1\r\nA-First:2\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nEmpty:\r\nContent-Length: 0\r\n\r\n"
        try await withScenario(reply: { _ in .raw(head) }) { (server, session) async throws in
            let response = try #require(try await session.data(from: server.url("/a")).1 as? HTTPURLResponse)
            #expect(
                response.headLines == [
                    "HTTP/1.0 299 Quite  Well", "z-last: 1", "A-First: 2", "Set-Cookie: a=1", "Set-Cookie: b=2", "Empty:",
                    "Content-Length: 0",
                ])
        }
    }

    @Test func `the header lines of a response made by the app are sorted by name`() throws {
        let url = try #require(URL(string: "http://example.com/"))
        let response = try #require(
            HTTPURLResponse(url: url, statusCode: 404, httpVersion: "HTTP/1.1", headerFields: ["B": "2", "A": "1"]))
        #expect(response.headLines == ["HTTP/1.1 404", "A: 1", "B: 2"])
    }

    @Test func `a download resumes with a new request, and resume data works without the first request's fields`()
        async throws
    {
        let file = ScriptedFile(ScriptedFile.pattern(600_000))
        let recorder = EventRecorder()
        try await withScenario(
            delegate: recorder, reply: { file.reply(to: $0, cutAfter: $0.order == 0 ? 200_000 : nil, ending: .stall) }
        ) { (server, session) async throws in
            let request = URLRequest(server.url("/file", user: "ada:hunter2"), headers: ["X-Secret": "sesame"])
            let first = session.downloadTask(with: request)
            first.resume()
            try await recorder.wait(for: first) {
                !$0.events.filter { if case .wrote(200_000, _) = $0 { true } else { false } }.isEmpty
            }
            let data = try #require(await first.cancelByProducingResumeData())
            #expect(["sesame", "hunter2"].allSatisfy(String(decoding: data, as: UTF8.self).contains))
            let bare = try #require(URLSessionDownloadTask.resumeDataWithoutHeaderFields(data))
            #expect(!["sesame", "hunter2"].contains(where: String(decoding: bare, as: UTF8.self).contains))
            // Two files may have equal validators, but parts of different URLs must not be joined.
            let count = server.requests.count
            let other = session.downloadTask(with: URLRequest(server.url("/other")), resumeFrom: bare)
            other.resume()
            let refused = try await recorder.completion(of: other)
            #expect((refused.error as? URLError)?.code == .cannotOpenFile)
            #expect(server.requests.count == count)
            let again = URLRequest(server.url("/file?signed=anew"), headers: ["X-Secret": "other"])
            let second = session.downloadTask(with: again, resumeFrom: bare)
            second.resume()
            let record = try await recorder.completion(of: second)
            #expect(record.error == nil)
            #expect(record.file == Data(file.content))
            let last = try #require(server.requests.last)
            #expect(last.header("X-Secret") == "other")
            #expect(last.header("Range") == "bytes=200000-")
            #expect(URLSessionDownloadTask.resumeDataWithoutHeaderFields(Data("nonsense".utf8)) == nil)
        }
    }
}
