// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Redirects to other schemes, such as the final redirect of a login to the app itself.
@Suite(.timeLimit(.minutes(1)))
struct RedirectSchemeTests {
    private static let callback = "myapp://callback/done?code=1#state"

    private func withRedirect(
        to location: String, delegate: (any URLSessionDelegate)? = nil, classes: [AnyClass] = [],
        test: (ScriptedServer, URLSession) async throws -> Void
    ) async throws {
        try await withScenario(
            delegate: delegate, configure: { $0.protocolClasses = classes },
            reply: { _ in .redirect(302, to: location, body: "the old place") }, test: test
        )
    }

    @Test(arguments: [callback, "mailto:somebody@example.org", "tel:+4912"])
    func `the delegate is asked first, and if it refuses, the redirect is the response`(location: String) async throws {
        var answers = EventRecorder.Answers()
        answers.redirect = { _, _ in nil }
        let recorder = EventRecorder(answers)
        try await withRedirect(to: location, delegate: recorder) { (server, session) async throws in
            let task = session.dataTask(with: URLRequest(server.url("/a"), headers: ["Authorization": "Bearer x"]))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.letters == "crRDME")
            #expect(record.redirectRequests.map { $0.url?.absoluteString } == [location])
            #expect(record.redirectRequests.map { $0.value(forHTTPHeaderField: "Authorization") } == [nil])
            #expect((record.response as? HTTPURLResponse)?.statusCode == 302)
            #expect(record.body == Data("the old place".utf8))
            #expect(record.error == nil && server.requests.count == 1)
        }
    }

    @Test func `following a redirect to an unsupported scheme fails with the URL`() async throws {
        let recorder = EventRecorder()
        try await withRedirect(to: Self.callback, delegate: recorder) { (server, session) async throws in
            let task = session.dataTask(with: server.url("/a"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.letters == "crME")
            let error = record.error as? URLError
            #expect(error?.code == .unsupportedURL)
            #expect(error?.failingURL?.absoluteString == Self.callback)
            #expect(task.currentRequest?.url?.absoluteString == Self.callback)
        }
    }

    @Test func `without a delegate a redirect to an unsupported scheme fails the same way`() async throws {
        try await withRedirect(to: Self.callback) { (server, session) async throws in
            let error = await expectFailure(.unsupportedURL) { try await session.data(from: server.url()) }
            #expect(error?.failingURL?.absoluteString == Self.callback)
            #expect(server.requests.count == 1)
        }
    }

    @Test func `a URLProtocol class loads the target of a redirect`() async throws {
        let recorder = EventRecorder()
        try await withRedirect(to: Self.callback, delegate: recorder, classes: [CallbackProtocol.self]) {
            (server, session) async throws in
            let task = session.dataTask(with: server.url("/a"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.letters == "crRDME")
            #expect(record.error == nil && record.body == Data(Self.callback.utf8))
        }
    }

    @Test(arguments: ["file:///etc/hostname", "data:,root"])
    func `a redirect to a local URL fails without asking the delegate`(location: String) async throws {
        let recorder = EventRecorder()
        try await withRedirect(to: location, delegate: recorder, classes: [CallbackProtocol.self]) {
            (server, session) async throws in
            let task = session.dataTask(with: server.url("/a"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.letters == "cME")
            #expect((record.error as? URLError)?.code == .unsupportedURL)
        }
    }
}

/// Responds with its own URL.
private final class CallbackProtocol: URLProtocol, @unchecked Sendable {
    override class func canInit(with request: URLRequest) -> Bool {
        !["http", "https"].contains(request.url?.scheme)
    }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        guard let url = request.url, let client else { return }
        let response = URLResponse(url: url, mimeType: "text/plain", expectedContentLength: -1, textEncodingName: nil)
        client.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        client.urlProtocol(self, didLoad: Data(url.absoluteString.utf8))
        client.urlProtocolDidFinishLoading(self)
    }

    override func stopLoading() {}
}
