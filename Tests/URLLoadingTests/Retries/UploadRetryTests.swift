// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Synchronization
import Testing
import URLLoading

/// Uploads and streamed bodies that are retried according to the app's `RetryPolicy`.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct UploadRetryTests {
    /// Provides the body's stream a number of times.
    private final class Streams: NSObject, URLSessionDataDelegate {
        let asked = Mutex(0)
        let data = Mutex(Data())
        let end = Watched<URLError??>(.none)
        private let count: Int

        init(count: Int) { self.count = count }

        func urlSession(
            _ session: URLSession, task: URLSessionTask,
            needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
        ) {
            let number = asked.withLock { asked in
                asked += 1
                return asked
            }
            completionHandler(number <= count ? InputStream(data: Data("sent".utf8)) : nil)
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            self.data.withLock { $0 += data }
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            end.change { $0 = .some(error as? URLError) }
        }
    }

    private func withRetries(delegate: (any URLSessionDelegate)? = nil, test: (URLSession) async throws -> Void) async throws {
        var policy = URLSessionConfiguration.RetryPolicy()
        (policy.firstPause, policy.maximumPause, policy.maximumRetryCount) = (0.001, 0.01, 2)
        try await withSession(delegate: delegate) {
            $0.retryPolicy = policy
        } test: {
            try await test($0)
        }
    }

    private static let busy = ScriptedReply.status(503, body: "busy")

    private static func put(_ url: URL) -> URLRequest { URLRequest(url, method: "PUT") }

    @Test(arguments: [false, true], [false, true])
    func `an upload that could be resumed is retried until its server says so`(isLost: Bool, isFile: Bool) async throws {
        try await withScriptedServer(reply: { $0.order < 2 ? (isLost ? [.close] : Self.busy) : .ok("stored") }) {
            (server) async throws in
            try await withRetries { (session) async throws in
                let folder = try TemporaryDirectory()
                let (data, _) =
                    isFile
                    ? try await session.upload(
                        for: Self.put(server.url()), fromFile: folder.write(Array("sent".utf8), to: "body"))
                    : try await session.upload(for: Self.put(server.url()), from: Data("sent".utf8))
                #expect(data == Data("stored".utf8))
            }
            #expect(server.requests.map(\.bodyText) == ["sent", "sent", "sent"])
            // Each attempt announces that the upload can be resumed.
            #expect(server.requests.allSatisfy { $0.header("Upload-Complete") == "?1" })
        }
    }

    @Test func `the response to the last attempt of an upload is the result`() async throws {
        try await withScriptedServer(reply: { _ in Self.busy }) { (server) async throws in
            try await withRetries { (session) async throws in
                let (data, response) = try await session.upload(for: Self.put(server.url()), from: Data("sent".utf8))
                #expect((response as? HTTPURLResponse)?.statusCode == 503)
                #expect(data == Data("busy".utf8))
            }
            #expect(server.requests.count == 3)
        }
    }

    @Test(arguments: [429, 503])
    func `from the 104 response on, the upload itself decides what follows`(status: Int) async throws {
        let state = [("Upload-Draft-Interop-Version", "8"), ("Upload-Offset", "4"), ("Upload-Complete", "?1")]
        try await withScriptedServer(
            early: { request in
                guard request.method == "PUT" else { return nil }
                return .status(status, body: "busy")
                    .after(.head(104, [("Upload-Draft-Interop-Version", "8"), ("Location", "/uploads/1")]), .awaitRequestEnd)
            }, reply: { _ in .status(204, state) },
            test: { (server) async throws in
                try await withRetries { (session) async throws in
                    let (data, response) = try await session.upload(for: Self.put(server.url()), from: Data("sent".utf8))
                    // The upload is complete; the answer to it is the one that was kept.
                    #expect((response as? HTTPURLResponse)?.statusCode == status)
                    #expect(data == Data("busy".utf8))
                }
                #expect(server.requests.map(\.method) == (status == 503 ? ["PUT", "HEAD"] : ["PUT"]))
            })
    }

    @Test(arguments: ["streamed", "stream of a data task"], [false, true])
    func `the app is asked for a new stream before a retry`(kind: String, isLost: Bool) async throws {
        let delegate = Streams(count: 2)
        try await withScriptedServer(reply: { $0.order < 1 ? (isLost ? [.close] : Self.busy) : .ok($0.bodyText) }) {
            (server) async throws in
            try await withRetries(delegate: delegate) { (session) async throws in
                var request = Self.put(server.url())
                if kind == "streamed" {
                    session.uploadTask(withStreamedRequest: request).resume()
                } else {
                    request.httpBodyStream = InputStream(data: Data("sent".utf8))
                    session.dataTask(with: request).resume()
                }
                #expect(try await delegate.end.value(where: { $0 }) == nil)
                #expect(delegate.data.withLock { $0 } == Data("sent".utf8))
                // The first stream of the upload task is asked for, too.
                #expect(delegate.asked.withLock { $0 } == (kind == "streamed" ? 2 : 1))
            }
            #expect(server.requests.map(\.bodyText) == ["sent", "sent"])
        }
    }

    @Test(arguments: [false, true])
    func `without a new stream, the load ends with what would have been retried`(isLost: Bool) async throws {
        let delegate = Streams(count: 1)
        try await withScriptedServer(reply: { _ in isLost ? [.close] : Self.busy }) { (server) async throws in
            try await withRetries(delegate: delegate) { (session) async throws in
                let task = session.uploadTask(withStreamedRequest: Self.put(server.url()))
                task.resume()
                #expect(try await delegate.end.value(where: { $0 })?.code == (isLost ? .networkConnectionLost : nil))
                #expect((task.response as? HTTPURLResponse)?.statusCode == (isLost ? nil : 503))
                #expect(delegate.data.withLock { $0 } == (isLost ? Data() : Data("busy".utf8)))
            }
            #expect(server.requests.count == 1)
        }
    }
}
