// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// The order of delegate calls when challenges occur, and the metrics of such tasks.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct AuthenticatedOrderTests {
    /// Records a letter for each call.
    private final class RecordingDelegate: NSObject, URLSessionDataDelegate, Sendable {
        let letters = Watched("")
        let statuses = Watched<[Int]>([])
        let metrics = Delivered<URLSessionTaskMetrics>()
        let end = Delivered<URLError.Code?>()
        let credential: URLCredential?

        init(_ credential: URLCredential?) { self.credential = credential }

        private func note(_ letter: Character) { letters.change { $0.append(letter) } }

        func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) { note("c") }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            guard challenge.protectionSpace.authenticationMethod != NSURLAuthenticationMethodServerTrust else {
                return completionHandler(.performDefaultHandling, nil)
            }
            note("A")
            completionHandler(.useCredential, credential)
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
        ) {
            note("r")
            completionHandler(request)
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask,
            needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
        ) {
            note("n")
            completionHandler(InputStream(data: Data("streamed".utf8)))
        }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
            completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
        ) {
            note("R")
            statuses.change { $0.append((response as? HTTPURLResponse)?.statusCode ?? 0) }
            completionHandler(.allow)
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) { note("D") }

        func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
            note("M")
            self.metrics(metrics)
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            note("E")
            end((error as? URLError)?.code)
        }
    }

    @Test func `an answered 401 is not delivered as a response, but an unanswered 401 is`() async throws {
        for (credential, letters, status) in [(.ada(), "cARDME", 200), (nil, "cARDME", 401)] as [(URLCredential?, String, Int)] {
            let recorder = RecordingDelegate(credential)
            try await withScenario(delegate: recorder, reply: BasicScript()()) { (server, session) async throws in
                let task = session.dataTask(with: server.url())
                task.resume()
                #expect(try await recorder.end.value == nil)
                #expect(recorder.letters.read { $0 } == letters)
                #expect(recorder.statuses.read { $0 } == [status])
                #expect((task.response as? HTTPURLResponse)?.statusCode == status)
                #expect(task.originalRequest?.value(forHTTPHeaderField: "Authorization") == nil)
                #expect(task.countOfBytesReceived == (credential == nil ? 12 : 2))
            }
        }
    }

    @Test func `redirect, challenge and new body stream are reported in order`() async throws {
        let recorder = RecordingDelegate(.ada())
        let script = BasicScript()()
        try await withScenario(
            delegate: recorder, reply: { $0.path == "/1" ? .redirect(307, to: "/2") : script($0) }
        ) { (server, session) async throws in
            session.uploadTask(withStreamedRequest: URLRequest(server.url("/1"), method: "POST")).resume()
            #expect(try await recorder.end.value == nil)
            #expect(recorder.letters.read { $0 } == "cnrnAnRDME")
            #expect(server.requests.map(\.bodyText) == ["streamed", "streamed", "streamed"])
        }
    }

    @Test(.over(.http1)) func `a cancelled challenge is followed by metrics and completion only`() async throws {
        let recorder = RecordingDelegate(nil)
        try await withScenario(
            delegate: TaskCanceller(recorder), reply: BasicScript()()
        ) { (server, session) async throws in
            session.dataTask(with: server.url()).resume()
            #expect(try await recorder.end.value == .cancelled)
            #expect(recorder.letters.read { $0 } == "ME")
        }
    }

    /// Cancels challenges and forwards all other calls to the recorder.
    private final class TaskCanceller: NSObject, URLSessionDataDelegate, Sendable {
        private let recorder: RecordingDelegate

        init(_ recorder: RecordingDelegate) { self.recorder = recorder }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            completionHandler(.cancelAuthenticationChallenge, nil)
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            recorder.urlSession(session, dataTask: dataTask, didReceive: data)
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
            recorder.urlSession(session, task: task, didFinishCollecting: metrics)
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            recorder.urlSession(session, task: task, didCompleteWithError: error)
        }
    }

    @Test func `each attempt is a transaction, and no transaction shows the password`() async throws {
        let recorder = RecordingDelegate(.ada())
        try await withScenario(delegate: recorder, reply: BasicScript()()) { (server, session) async throws in
            session.dataTask(with: server.url("/x")).resume()
            let metrics = try await recorder.metrics.value
            let transactions = metrics.transactionMetrics
            #expect(transactions.map { ($0.response as? HTTPURLResponse)?.statusCode } == [401, 200])
            #expect(transactions.map(\.isReusedConnection) == [false, true])
            #expect(transactions.allSatisfy { !$0.isProxyConnection && $0.resourceFetchType == .networkLoad })
            #expect(metrics.redirectCount == 0)
            let starts = transactions.map { $0.requestStartDate ?? .distantPast }
            #expect(starts == starts.sorted())
            let text = transactions.map(\.debugDescription).joined() + metrics.debugDescription
            #expect(!text.contains("lovelace") && !text.contains(Data("ada:lovelace".utf8).base64EncodedString()))
        }
    }

    @Test(.over(.http1)) func `NTLM records a transaction for each leg`() async throws {
        let recorder = RecordingDelegate(.ada())
        try await withScenario(delegate: recorder, reply: NTLMScript().script()) { (server, session) async throws in
            session.dataTask(with: server.url("/x")).resume()
            let transactions = try await recorder.metrics.value.transactionMetrics
            #expect(transactions.map { ($0.response as? HTTPURLResponse)?.statusCode } == [401, 401, 200])
        }
    }
}
