// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Delegates of every shape: isolated to an actor, with only `async` methods, with only completion handlers, and inherited.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct DelegateShapeTests {
    /// Loads a page through a redirect, and returns the mark that the delegate set in the redirected request.
    private func roundTrip(_ delegate: any URLSessionDelegate) async throws -> String? {
        var mark: String?
        try await withScriptedServer(reply: { $0.path == "/a" ? .redirect(302, to: "/b") : .ok("end") }) {
            (server) async throws in
            let session = try URLSession(configuration: .scripted(), delegate: delegate, delegateQueue: nil)
            session.dataTask(with: server.url("/a")).resume()
            session.finishTasksAndInvalidate()
            try await server.waitForRequests(2)
            try await server.waitForAllClosed()
            mark = server.requests[1].header("X-Mark")
        }
        return mark
    }

    @Test func `a delegate isolated to the main actor is called on it`() async throws {
        let delegate = await MainActorDelegate()
        #expect(try await roundTrip(delegate) == "main")
        try await delegate.invalid.count(reaches: 1)
        #expect(await delegate.events == ["redirect", "response", "data", "metrics", "complete"])
    }

    @Test func `a delegate isolated to an app's global actor is called on it`() async throws {
        let delegate = StudioDelegate()
        #expect(try await roundTrip(delegate) == "studio")
        #expect(await delegate.count == 1)
    }

    @Test func `a delegate with only async methods is called`() async throws {
        let delegate = AsyncOnlyDelegate()
        #expect(try await roundTrip(delegate) == "async")
        #expect(delegate.events.all == ["redirect", "response"])
    }

    @Test func `a delegate with only completion handler methods is called`() async throws {
        let delegate = HandlerDelegate()
        #expect(try await roundTrip(delegate) == "handler")
        #expect(delegate.events.all == ["redirect", "response"])
    }

    @Test func `a subclass overrides its superclass, and inherits the other methods`() async throws {
        let delegate = HandlerSubclass()
        #expect(try await roundTrip(delegate) == "subclass")
        #expect(delegate.events.all == ["response"])
    }

    @MainActor
    @Test func `async calls from the main actor return to it`() async throws {
        try await withScenario(reply: { _ in .ok("line\n") }) { (server, session) async throws in
            var count = 0
            let delegate = MainActorDelegate()
            let (data, _) = try await session.data(from: server.url(), delegate: delegate)
            MainActor.assertIsolated()
            count += data.count
            for try await line in try await session.bytes(from: server.url()).0.lines {
                MainActor.assertIsolated()
                count += line.count
            }
            let (file, _) = try await session.download(from: server.url())
            try FileManager.default.removeItem(at: file)
            #expect(count == 9)
        }
    }
}

extension URLRequest {
    fileprivate func marked(_ mark: String) -> URLRequest {
        var request = self
        request.setValue(mark, forHTTPHeaderField: "X-Mark")
        return request
    }
}

@MainActor
private final class MainActorDelegate: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate {
    private(set) var events: [String] = []
    nonisolated let invalid = Delivered<Bool>()

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest? {
        MainActor.assertIsolated()
        events.append("redirect")
        await Task.yield()
        return request.marked("main")
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
    ) async -> URLSession.ResponseDisposition {
        MainActor.assertIsolated()
        events.append("response")
        return .allow
    }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) { (.performDefaultHandling, nil) }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) { (.performDefaultHandling, nil) }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest
    ) async -> (URLSession.DelayedRequestDisposition, URLRequest?) { (.continueLoading, nil) }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
    ) async -> CachedURLResponse? { proposedResponse }

    // Methods without a result are called on the delegate queue, so an isolated class declares them nonisolated.
    nonisolated func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) { note("data") }

    nonisolated func urlSession(
        _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
    ) { note("metrics") }

    nonisolated func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        note("complete")
    }

    nonisolated func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {}

    nonisolated func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        DispatchQueue.main.async { self.invalid(true) }
    }

    private nonisolated func note(_ event: String) {
        DispatchQueue.main.async { MainActor.assumeIsolated { self.events.append(event) } }
    }
}

@globalActor
private actor Studio: GlobalActor {
    static let shared = Studio()
}

@Studio
private final class StudioDelegate: NSObject, URLSessionTaskDelegate {
    private(set) var count = 0

    nonisolated override init() { super.init() }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest? {
        count += 1
        return request.marked("studio")
    }
}

private final class AsyncOnlyDelegate: NSObject, URLSessionDataDelegate, Sendable {
    let events = Delivered<String>()

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest? {
        events("redirect")
        return request.marked("async")
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
    ) async -> URLSession.ResponseDisposition {
        events("response")
        return .allow
    }
}

private class HandlerDelegate: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    let events = Delivered<String>()

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        events("redirect")
        completionHandler(request.marked("handler"))
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        events("response")
        completionHandler(.allow)
    }
}

private final class HandlerSubclass: HandlerDelegate, @unchecked Sendable {
    override func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(request.marked("subclass"))
    }
}
