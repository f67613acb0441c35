// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// The password of a URL and the values of header fields appear in no text that may be logged.
@Suite(.timeLimit(.minutes(1)))
struct LoggedPasswordTests {
    private static let password = "lovelace"

    /// All printed forms of a value.
    private func texts(_ value: some Any) -> [String] { ["\(value)", String(reflecting: value), dumped(value)] }

    private func dumped(_ value: some Any) -> String {
        var text = ""
        dump(value, to: &text)
        return text
    }

    private func expectNoSecret(_ texts: [String], sourceLocation: SourceLocation = #_sourceLocation) {
        for text in texts { #expect(!text.contains(Self.password), "\(text)", sourceLocation: sourceLocation) }
    }

    /// Loads a URL, calls `onTask` when the task has ended, and returns the recorded delegate calls.
    private func record(
        _ url: URL, configure: (URLSessionConfiguration) -> Void = { _ in }, onTask: (URLSessionTask) -> Void = { _ in }
    ) async throws -> EventRecorder.Record {
        let recorder = EventRecorder()
        var record: EventRecorder.Record?
        try await withSession(delegate: recorder, configure) { (session) async throws in
            let task = session.dataTask(with: url)
            task.resume()
            record = try await recorder.completion(of: task)
            onTask(task)
        }
        return try #require(record)
    }

    private func expectNoSecret(of error: (any Error)?, at url: URL) throws {
        let error = try #require(error as? URLError)
        expectNoSecret(texts(error))
        expectNoSecret([error.localizedDescription, (error as NSError).description, (error as NSError).debugDescription])
        expectNoSecret(error.userInfo.flatMap { ["\($0.value)", String(reflecting: $0.value)] })
        let cause = error.userInfo[NSUnderlyingErrorKey] as? NSError
        expectNoSecret(cause.map { texts($0) + [$0.localizedDescription] + $0.userInfo.values.map { "\($0)" } } ?? [])
        // Everything else in the URL is kept.
        let failing = try #require(error.failingURL)
        #expect(failing.user() == "ada" && failing.password() == nil)
        #expect(failing.host() == url.host() && failing.port == url.port && failing.path() == url.path())
        #expect(failing.query() == url.query())
        #expect(error.userInfo["NSErrorFailingURLStringKey"] as? String == failing.absoluteString)
    }

    @Test func `the error and metrics of a refused connection do not contain the password`() async throws {
        let port = try RefusingPort()
        let url = try #require(URL(string: "http://ada:\(Self.password)@127.0.0.1:\(port.number)/a?b=c"))
        let record = try await record(url)
        #expect((record.error as? URLError)?.code == .cannotConnectToHost)
        try expectNoSecret(of: record.error, at: url)
        let metrics = try #require(record.metrics)
        #expect(metrics.description.contains("ada@127.0.0.1:\(port.number)/a?b=c"))
        expectNoSecret([metrics.description, String(reflecting: metrics)])
    }

    @Test func `other errors do not contain the password`() async throws {
        let replies: [(String, ScriptedReply, URLError.Code)] = [
            ("/close", [.close], .networkConnectionLost), ("/head", [.write("nonsense\r\n\r\n"), .close], .badServerResponse),
            ("/endless", .redirect(302, to: "/endless"), .httpTooManyRedirects), ("/stall", [.stall], .timedOut),
        ]
        try await withScriptedServer(reply: { request in
            replies.first { $0.0 == request.path }?.1 ?? .ok()
        }) { (server) async throws in
            for (path, _, code) in replies {
                let url = server.url(path, user: "ada:\(Self.password)")
                let record = try await record(url, configure: { if path == "/stall" { $0.timeoutIntervalForRequest = 0.3 } })
                #expect((record.error as? URLError)?.code == code, "\(path)")
                // A redirect removes user and password from the URL.
                if path != "/endless" { try expectNoSecret(of: record.error, at: url) }
                expectNoSecret(texts(try #require(record.error)))
                expectNoSecret([try #require(record.metrics).description])
            }
        }
    }

    @Test func `errors about unsupported URLs do not contain the password`() async throws {
        for text in ["foo://ada:\(Self.password)@a.example/", "http://ada:\(Self.password)@/"] {
            guard let url = URL(string: text) else { continue }
            let record = try await record(url)
            let error = try #require(record.error)
            expectNoSecret(texts(error) + [error.localizedDescription, "\((error as NSError).userInfo)"])
        }
    }

    @Test func `the task of a successful load does not contain the password`() async throws {
        try await withScriptedServer(reply: BasicScript()()) { (server) async throws in
            let url = server.url("/x", user: "ada:\(Self.password)")
            let record = try await record(
                url,
                onTask: { task in
                    expectNoSecret(texts(task))
                    expectNoSecret([task.currentRequest, task.originalRequest].flatMap { texts($0 as Any) })
                    expectNoSecret(["\(String(describing: task.response))"])
                    #expect(task.originalRequest?.url == url, "the app's request was changed")
                })
            #expect(record.error == nil && record.body == Data("in".utf8))
            let metrics = try #require(record.metrics)
            #expect(metrics.transactionMetrics.count == 2)
            expectNoSecret([metrics.description] + metrics.transactionMetrics.map(\.description))
            expectNoSecret(metrics.transactionMetrics.flatMap { texts($0.request) + ["\($0.response as Any)"] })
        }
    }

    @Test func `descriptions of values with a URL do not contain the password`() throws {
        let url = try #require(URL(string: "https://ada:\(Self.password)@a.example/x?y#z"))
        let request = URLRequest(url: url)
        #expect(request.description == "https://ada@a.example/x?y#z")
        #expect(request.url == url)
        expectNoSecret(texts(request) + [request.debugDescription])
        expectNoSecret([NSURLRequest(url: url).description, NSMutableURLRequest(url: url).debugDescription])
        let plain = URLResponse(url: url, mimeType: nil, expectedContentLength: 1, textEncodingName: nil)
        let fields = ["X-Secret": Self.password]
        let http = try #require(HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: fields))
        expectNoSecret([plain.description, http.description, String(reflecting: http)])
        #expect(plain.url == url && http.description.contains("https://ada@a.example/x?y#z"))
        let relative = try #require(URL(string: "/x", relativeTo: url))
        expectNoSecret(["\(URLRequest(url: relative))"])
    }

    @Test func `a dump of a request names its header fields without their values`() throws {
        var request = URLRequest(url: try #require(URL(string: "https://a.example/")))
        request.setValue("Bearer \(Self.password)", forHTTPHeaderField: "Authorization")
        request.setValue("session=\(Self.password)", forHTTPHeaderField: "Cookie")
        request.mainDocumentURL = URL(string: "https://ada:\(Self.password)@a.example/")
        expectNoSecret(texts(request))
        #expect(dumped(request).contains("Authorization") && dumped(request).contains("Cookie"))
        #expect(request.value(forHTTPHeaderField: "Authorization") == "Bearer \(Self.password)")
    }
}
