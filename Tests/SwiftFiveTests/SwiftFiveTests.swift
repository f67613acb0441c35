// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Ordinary programs written for Foundation in Swift 5 mode compile and run.
@Suite(.timeLimit(.minutes(1)))
struct SwiftFiveTests {
    @Test func `a delegate that is not declared Sendable is called`() async throws {
        try await withScriptedServer(reply: { $0.path == "/a" ? .redirect(302, to: "/b") : .ok("end") }) {
            (server) async throws in
            let loader = Loader()
            let text: String = await withCheckedContinuation { continuation in
                loader.load(server.url("/a")) { continuation.resume(returning: $0) }
            }
            #expect(text == "1 redirect, 200: end")
        }
    }

    @Test func `a completion handler may capture anything`() async throws {
        try await withScriptedServer(reply: { _ in .ok("hello") }) { (server) async throws in
            let session = URLSession(configuration: .default)
            let result = Box()
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                let task = session.dataTask(with: server.url()) { data, response, error in
                    result.text = data.flatMap { String(data: $0, encoding: .utf8) } ?? "\(String(describing: error))"
                    result.status = (response as? HTTPURLResponse)?.statusCode ?? 0
                    continuation.resume()
                }
                task.resume()
            }
            session.finishTasksAndInvalidate()
            #expect(result.text == "hello" && result.status == 200)
        }
    }

    @Test func `a main-actor model loads with await`() async throws {
        try await withScriptedServer(reply: { _ in .ok("hello") }) { (server) async throws in
            let model = await Model()
            try await model.load(server.url())
            #expect(await model.text == "hello")
        }
    }
}

private final class Box {
    var text = ""
    var status = 0
}

private class Loader: NSObject, URLSessionDataDelegate {
    private lazy var session = URLSession(configuration: .default, delegate: self, delegateQueue: nil)
    private var received = Data()
    private var redirects = 0
    private var status = 0
    private var completion: ((String) -> Void)?

    func load(_ url: URL, completion: @escaping (String) -> Void) {
        self.completion = completion
        var request = URLRequest(url: url)
        request.setValue("text/plain", forHTTPHeaderField: "Accept")
        session.dataTask(with: request).resume()
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) {
        redirects += 1
        completionHandler(request)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
    ) {
        status = (response as? HTTPURLResponse)?.statusCode ?? 0
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) { received.append(data) }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: Error?) {
        completion?("\(redirects) redirect, \(status): \(String(decoding: received, as: UTF8.self))")
        session.finishTasksAndInvalidate()
    }
}

@MainActor
private final class Model: NSObject, URLSessionTaskDelegate {
    private(set) var text = ""

    func load(_ url: URL) async throws {
        let (data, _) = try await URLSession.shared.data(from: url, delegate: self)
        text = String(decoding: data, as: UTF8.self)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest? { request }
}
