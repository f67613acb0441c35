// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPWire
import LoadingModel
import Synchronization
import Testing
import URLLoading

/// Loads "app:" URLs; the path of a URL determines how its load behaves.
final class AppProtocol: URLProtocol, URLAuthenticationChallengeSender, @unchecked Sendable {
    override class func canInit(with request: URLRequest) -> Bool { request.url?.scheme == "app" }

    private var url: URL { request.url ?? someURL }

    override func startLoading() {
        switch url.path {
        case "/data":
            respond()
            for chunk in ["one", "two", "three"] { client?.urlProtocol(self, didLoad: Data(chunk.utf8)) }
            client?.urlProtocolDidFinishLoading(self)
        case "/fail":
            client?.urlProtocol(self, didFailWithError: CocoaError(.fileNoSuchFile))
            client?.urlProtocolDidFinishLoading(self)
        case "/redirect":
            guard let response = HTTPURLResponse(url: url, statusCode: 302, httpVersion: nil, headerFields: nil) else { return }
            client?.urlProtocol(self, wasRedirectedTo: URLRequest(url: someURL), redirectResponse: response)
        default:
            let space = URLProtectionSpace(host: "h", port: 1, protocol: "app", realm: "realm", authenticationMethod: nil)
            client?.urlProtocol(
                self,
                didReceive: URLAuthenticationChallenge(
                    protectionSpace: space, proposedCredential: nil, previousFailureCount: 0, failureResponse: nil,
                    error: nil, sender: self
                )
            )
        }
    }

    private func respond() {
        let response = URLResponse(url: url, mimeType: "text/plain", expectedContentLength: 11, textEncodingName: nil)
        client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
    }

    private func end(_ text: String) {
        respond()
        client?.urlProtocol(self, didLoad: Data(text.utf8))
        client?.urlProtocolDidFinishLoading(self)
    }

    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) { end("user \(credential.user ?? "")") }
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) { end("without") }
    func cancel(_ challenge: URLAuthenticationChallenge) { end("cancelled") }
    func performDefaultHandling(for challenge: URLAuthenticationChallenge) { end("default") }
}

/// Runs a custom loader as an engine does.
final class Sink: CustomLoaderSink {
    private struct State {
        var response: LoadResponse?
        var body = Data()
        var end: CheckedContinuation<(LoadResponse?, Data, LoadError?), Never>?
        var redirect: LoadRequest?
        var ends = 0
    }
    private let state = Mutex(State())

    var redirect: LoadRequest? { state.withLock { $0.redirect } }
    var ends: Int { state.withLock { $0.ends } }

    func run(_ loader: any CustomLoader) async -> (LoadResponse?, Data, LoadError?) {
        await withCheckedContinuation { continuation in
            state.withLock { $0.end = continuation }
            loader.start(reportingTo: self)
        }
    }

    func received(response: LoadResponse) { state.withLock { $0.response = response } }
    func received(data: Data) { state.withLock { $0.body += data } }
    func redirected(to request: LoadRequest, response: LoadResponse) {
        state.withLock { $0.redirect = request }
        end(nil)
    }
    func finished() { end(nil) }
    func failed(_ error: LoadError) { end(error) }

    private func end(_ error: LoadError?) {
        let (continuation, result) = state.withLock { state in
            state.ends += 1
            return (state.end.take(), (state.response, state.body, error))
        }
        continuation?.resume(returning: result)
    }
}

@Suite struct CustomProtocolLoaderTests {
    /// Uses the custom loader if there is one, as the engine does.
    static let script: @Sendable (ScriptedLoad) async -> Void = { load in
        guard load.order.interests.contains(.customLoaders),
            case .customLoader(let loader?) = await load.ask(.customLoader(load.order.request))
        else { return load.finish(.collected(Data("built-in".utf8))) }
        let sink = Sink()
        let (response, data, error) = await sink.run(loader)
        loader.stop()
        if let redirect = sink.redirect { return load.finish(.collected(Data((redirect.url?.absoluteString ?? "").utf8))) }
        if let error { return load.fail(error) }
        load.finish(.collected(data), response: response)
    }

    private func text(_ url: String, _ delegate: (any URLSessionTaskDelegate)? = nil) async throws -> String {
        let (session, _) = makeSession(protocolClasses: [AppProtocol.self], script: Self.script)
        let (data, _) = try await session.data(from: URL(string: url) ?? someURL, delegate: delegate)
        return String(decoding: data, as: UTF8.self)
    }

    @Test func `all chunks of a custom protocol arrive, with its own response`() async throws {
        let (session, _) = makeSession(protocolClasses: [AppProtocol.self], script: Self.script)
        let (data, response) = try await session.data(from: URL(string: "app://x/data") ?? someURL)
        #expect(data == Data("onetwothree".utf8))
        #expect(response.mimeType == "text/plain")
    }

    @Test func `a request that no class accepts is loaded by the session`() async throws {
        #expect(try await text("http://example.test/") == "built-in")
    }

    @Test func `the protocol's error arrives unchanged, and later events are ignored`() async {
        await #expect { _ = try await text("app://x/fail") } throws: { ($0 as? CocoaError)?.code == .fileNoSuchFile }
    }

    @Test func `a redirect supplies the next request`() async throws {
        #expect(try await text("app://x/redirect") == someURL.absoluteString)
    }

    @Test func `a challenge goes to the task's delegate, and its answer to the sender`() async throws {
        #expect(try await text("app://x/challenge", Recorder()) == "user u")
        #expect(try await text("app://x/challenge") == "default")
    }
}
