// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import Testing
import URLLoading

private typealias Disposition = URLSession.ResponseDisposition

private final class AsyncOnly: NSObject, URLSessionDataDelegate {
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse) async -> Disposition {
        .cancel
    }
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest? { nil }
}

/// Calls its completion handlers twice, with different answers.
private final class AnsweringTwice: NSObject, URLSessionDataDelegate {
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (Disposition) -> Void
    ) {
        completionHandler(.cancel)
        completionHandler(.becomeDownload)
    }
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
        completionHandler(request)
    }
}

private class CompletionOnly: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    let received = Atomic(0)
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (Disposition) -> Void
    ) { completionHandler(.becomeDownload) }
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        received.add(1, ordering: .relaxed)
    }
}

private final class Overriding: CompletionOnly, @unchecked Sendable {
    override func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        received.add(10, ordering: .relaxed)
    }
}

private final class Nothing: NSObject, URLSessionDataDelegate {}

/// Forwards calls in the form in which it receives them.
private final class Wrapper: NSObject, URLSessionDataDelegate {
    let wrapped: any URLSessionDataDelegate
    init(_ wrapped: any URLSessionDataDelegate) { self.wrapped = wrapped }
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (Disposition) -> Void
    ) { wrapped.urlSession(session, dataTask: dataTask, didReceive: response, completionHandler: completionHandler) }
}

private final class AsyncWrapper: NSObject, URLSessionDataDelegate {
    let wrapped: any URLSessionDataDelegate
    init(_ wrapped: any URLSessionDataDelegate) { self.wrapped = wrapped }
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse) async -> Disposition {
        await wrapped.urlSession(session, dataTask: dataTask, didReceive: response)
    }
}

@Suite struct DelegateProbeTests {
    private static let session = URLSession(configuration: .ephemeral)

    private func ask(_ delegate: any URLSessionDataDelegate) async -> Disposition? {
        let task = URLSessionDataTask()
        let response = URLResponse(url: URL(filePath: "/"), mimeType: nil, expectedContentLength: 0, textEncodingName: nil)
        return await withCheckedContinuation { continuation in
            DelegateCall.ask(
                .response, delegate,
                completionForm: {
                    delegate.urlSession(Self.session, dataTask: task, didReceive: response, completionHandler: $0)
                },
                reply: { continuation.resume(returning: $0) }
            )
        }
    }

    @Test func `a class with only the async form is called in that form, the first time and later`() async {
        #expect(await ask(AsyncOnly()) == .cancel)
        #expect(DelegateForms.form(of: .response, in: AsyncOnly.self) == .async)
        #expect(await ask(AsyncOnly()) == .cancel)
    }

    @Test func `a class with only the completion form is called in that form`() async {
        #expect(await ask(CompletionOnly()) == .becomeDownload)
        #expect(DelegateForms.form(of: .response, in: CompletionOnly.self) == .completion)
        #expect(await ask(CompletionOnly()) == .becomeDownload)
    }

    @Test func `a class with neither form is known not to implement the method`() async {
        #expect(await ask(Nothing()) == nil)
        #expect(DelegateForms.form(of: .response, in: Nothing.self) == .absent)
        #expect(await ask(Nothing()) == nil)
    }

    @Test func `a delegate that wraps another delegate returns the answer of the other, in either form`() async {
        #expect(await ask(Wrapper(AsyncOnly())) == .cancel)
        #expect(await ask(Wrapper(CompletionOnly())) == .becomeDownload)
        #expect(await ask(Wrapper(Nothing())) == .allow)
        #expect(await ask(Wrapper(Wrapper(Nothing()))) == .allow)
        #expect(DelegateForms.form(of: .response, in: Wrapper.self) == .completion)
        #expect(await ask(AsyncWrapper(AsyncOnly())) == .cancel)
        #expect(await ask(AsyncWrapper(CompletionOnly())) == .becomeDownload)
        #expect(await ask(AsyncWrapper(Nothing())) == .allow)
    }

    @Test func `only the first answer of a wrapped delegate counts`() async throws {
        #expect(await ask(AsyncWrapper(AnsweringTwice())) == .cancel)
        let url = URL(filePath: "/")
        let response = try #require(HTTPURLResponse(url: url, statusCode: 302, httpVersion: nil, headerFields: nil))
        let request: URLRequest? = await AnsweringTwice().urlSession(
            Self.session, task: URLSessionDataTask(), willPerformHTTPRedirection: response, newRequest: URLRequest(url: url)
        )
        #expect(request == nil)
    }

    @Test func `a notification reaches the class, or its subclass that overrides the method`() {
        for (delegate, expected) in [(CompletionOnly(), 2), (Overriding(), 20)] {
            for _ in 0..<2 {
                let isImplemented = DelegateCall.tell(.data, delegate) {
                    delegate.urlSession(Self.session, dataTask: URLSessionDataTask(), didReceive: Data())
                }
                #expect(isImplemented)
            }
            #expect(delegate.received.load(ordering: .relaxed) == expected)
        }
    }

    @Test func `a class that does not implement a notification is not called again`() {
        let delegate = Nothing()
        var calls = 0
        for _ in 0..<3 {
            let isImplemented = DelegateCall.tell(.completed, delegate) {
                calls += 1
                delegate.urlSession(Self.session, task: URLSessionDataTask(), didCompleteWithError: nil)
            }
            #expect(!isImplemented)
        }
        #expect(calls == 1)
    }

    @Test func `the async and completion forms of a redirect coexist`() async throws {
        let delegate: any URLSessionTaskDelegate = AsyncOnly()
        let url = URL(filePath: "/")
        let response = try #require(HTTPURLResponse(url: url, statusCode: 302, httpVersion: nil, headerFields: nil))
        let request = URLRequest(url: url)
        let answer: URLRequest?? = await withCheckedContinuation { continuation in
            DelegateCall.ask(
                .redirection, delegate,
                completionForm: { (handler: @escaping @Sendable (URLRequest?) -> Void) in
                    delegate.urlSession(
                        Self.session, task: URLSessionDataTask(), willPerformHTTPRedirection: response, newRequest: request,
                        completionHandler: handler
                    )
                },
                reply: { continuation.resume(returning: $0) }
            )
        }
        #expect(answer == .some(nil))
    }
}
