// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// The life of a `URLProtocol` instance: what it receives, when it is stopped, and who answers its challenges.
@Suite(.timeLimit(.minutes(1)))
struct CustomProtocolLifeTests {
    private func withTracedSession(
        delegate: (any URLSessionDelegate)? = nil, test: (URLSession) async throws -> Void
    ) async throws {
        try await withSession(
            delegate: delegate, { $0.protocolClasses = [RefusingProtocol.self, TracedProtocol.self] }, test: test)
    }

    /// A URL for a behaviour, and the name under which its instance records its traces.
    private func address(_ behaviour: String) throws -> (url: URL, name: String) {
        let name = UUID().uuidString
        return (try #require(URL(string: "traced://host/\(behaviour)?\(name)")), name)
    }

    @Test(arguments: ["data", "silent", "fail", "redirect", "cached", "nothing", "more-after-end"])
    func `an instance is stopped exactly once, however its load ends`(behaviour: String) async throws {
        try await withTracedSession { (session) async throws in
            let (url, name) = try address(behaviour)
            _ = try? await session.data(from: url)
            try await TracedProtocol.traces.value { $0[name]?.contains("stop") == true ? () : nil }
            // When this load ends, the first instance has made all its calls.
            _ = try await session.data(from: try address("data").url)
            #expect(TracedProtocol.traces.read { $0[name] } == ["start", "stop"])
        }
    }

    @Test func `every instance is stopped when there are too many redirects`() async throws {
        try await withTracedSession { (session) async throws in
            let (url, name) = try address("circle")
            await expectFailure(.httpTooManyRedirects) { try await session.data(from: url) }
            let traces = try await TracedProtocol.traces.value { traces in
                traces[name].flatMap { all in all.filter { $0 == "stop" }.count == all.filter { $0 == "start" }.count ? all : nil
                }
            }
            #expect(traces.count > 2 && traces.last == "stop")
        }
    }

    @Test func `a cancelled load's instance is stopped once, and its later reports are dropped`() async throws {
        try await withTracedSession { (session) async throws in
            let (url, name) = try address("stall")
            let done = Delivered<URLError.Code?>()
            let task = session.dataTask(with: url) { _, _, error in done((error as? URLError)?.code) }
            task.resume()
            try await TracedProtocol.traces.value { $0[name] == ["start"] ? () : nil }
            task.cancel()
            #expect(try await done.value == .cancelled)
            try await TracedProtocol.traces.value { $0[name] == ["start", "stop"] ? () : nil }
        }
    }

    @Test func `a protocol gets the body of every kind of upload as a stream`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write("from a file".utf8, to: "body")
        try await withTracedSession { (session) async throws in
            let request = URLRequest(try address("stream").url, method: "POST")
            #expect(try await session.upload(for: request, from: Data("from data".utf8)).0 == Data("from data".utf8))
            #expect(try await session.upload(for: request, fromFile: file).0 == Data("from a file".utf8))
            var withBody = request
            withBody.httpBody = Data("from a request".utf8)
            #expect(try await session.data(for: withBody).0 == Data("from a request".utf8))
            withBody.httpBodyStream = InputStream(data: Data("from a stream".utf8))
            #expect(try await session.data(for: withBody).0 == Data("from a stream".utf8))
        }
    }

    @Test func `a protocol sees the configuration's header fields and the properties of the request`() async throws {
        try await withSession({
            $0.protocolClasses = [TracedProtocol.self]
            $0.httpAdditionalHeaders = ["X-Session": "yes", "X-Both": "session"]
        }) { (session) async throws in
            let mutable = NSMutableURLRequest(url: try address("headers").url)
            mutable.setValue("request", forHTTPHeaderField: "X-Both")
            TracedProtocol.setProperty("kept", forKey: "mark", in: mutable)
            let (data, _) = try await session.data(for: mutable as URLRequest)
            #expect(String(decoding: data, as: UTF8.self) == "yes request kept")
        }
    }

    @Test func `a class that refuses the task is skipped, even if it accepts the request`() async throws {
        try await withTracedSession { (session) async throws in
            #expect(try await session.data(from: try address("data").url).0 == Data("data".utf8))
        }
    }

    @Test func `the task's delegate answers a protocol's challenge, even if the task has a completion handler`() async throws {
        let delegate = ChallengeDelegate()
        try await withTracedSession(delegate: delegate) { (session) async throws in
            let done = Delivered<String>()
            session.dataTask(with: try address("challenge").url) { data, _, _ in
                done(String(decoding: data ?? Data(), as: UTF8.self))
            }.resume()
            #expect(try await done.value == "user")
        }
    }

    @Test func `a cached response that the protocol declares valid is delivered`() async throws {
        try await withTracedSession { (session) async throws in
            let (data, response) = try await session.data(from: try address("cached").url)
            #expect(data == Data("from the cache".utf8))
            #expect(response.mimeType == "text/cached")
        }
    }

    @Test func `downloads and their delegate get the data that a protocol loads`() async throws {
        let recorder = EventRecorder()
        try await withTracedSession(delegate: recorder) { (session) async throws in
            let task = session.downloadTask(with: try address("data").url)
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.file == Data("data".utf8))
            try recorder.expectOrder(of: task, EventRecorder.downloadGrammar)
            let failing = session.downloadTask(with: try address("fail").url)
            failing.resume()
            let failed = try await recorder.completion(of: failing)
            #expect((failed.error as NSError?)?.domain == "TracedProtocol" && failed.file == nil)
        }
    }
}

/// Accepts every request, but no task.
private final class RefusingProtocol: URLProtocol, @unchecked Sendable {
    override class func canInit(with request: URLRequest) -> Bool { true }
    override class func canInit(with task: URLSessionTask) -> Bool { false }
}

private final class TracedProtocol: URLProtocol, URLAuthenticationChallengeSender, @unchecked Sendable {
    /// The calls that each instance received, by the name in the query of the instance's URL.
    static let traces = Watched<[String: [String]]>([:])

    override class func canInit(with request: URLRequest) -> Bool { request.url?.scheme == "traced" }

    private var name: String { request.url?.query ?? "" }

    private func trace(_ step: String) { Self.traces.change { [name] in $0[name, default: []].append(step) } }

    override func stopLoading() { trace("stop") }

    override func startLoading() {
        trace("start")
        guard let client, let url = request.url else { return }
        switch url.lastPathComponent {
        case "data": succeed("data")
        case "more-after-end":
            succeed("data")
            client.urlProtocol(self, didLoad: Data("more".utf8))
            client.urlProtocol(self, didFailWithError: CocoaError(.fileNoSuchFile))
            client.urlProtocolDidFinishLoading(self)
        case "silent":
            respond()
            client.urlProtocolDidFinishLoading(self)
        case "nothing": client.urlProtocolDidFinishLoading(self)
        case "fail": client.urlProtocol(self, didFailWithError: NSError(domain: "TracedProtocol", code: 1))
        case "cached":
            let response = URLResponse(
                url: url, mimeType: "text/cached", expectedContentLength: 14, textEncodingName: nil)
            client.urlProtocol(
                self, cachedResponseIsValid: CachedURLResponse(response: response, data: Data("from the cache".utf8)))
        case "redirect":
            guard let target = URL(string: "traced://host/data"),
                let response = HTTPURLResponse(url: url, statusCode: 302, httpVersion: nil, headerFields: nil)
            else { return }
            client.urlProtocol(self, wasRedirectedTo: URLRequest(url: target), redirectResponse: response)
        case "circle":
            guard let response = HTTPURLResponse(url: url, statusCode: 302, httpVersion: nil, headerFields: nil) else { return }
            client.urlProtocol(self, wasRedirectedTo: URLRequest(url: url), redirectResponse: response)
        case "headers":
            let mark = Self.property(forKey: "mark", in: request) as? String ?? ""
            succeed("\(request.allHTTPHeaderFields?["X-Session"] ?? "") \(request.allHTTPHeaderFields?["X-Both"] ?? "") \(mark)")
        case "stream": succeed(request.httpBodyStream.map(Self.read) ?? "no stream")
        case "challenge":
            let space = URLProtectionSpace(host: "host", port: 1, protocol: "traced", realm: "r", authenticationMethod: nil)
            let challenge = URLAuthenticationChallenge(
                protectionSpace: space, proposedCredential: nil, previousFailureCount: 0, failureResponse: nil, error: nil,
                sender: self)
            client.urlProtocol(self, didReceive: challenge)
        default: break
        }
    }

    private func respond() {
        guard let url = request.url else { return }
        let response = URLResponse(url: url, mimeType: "text/plain", expectedContentLength: -1, textEncodingName: nil)
        client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
    }

    private func succeed(_ text: String) {
        respond()
        client?.urlProtocol(self, didLoad: Data(text.utf8))
        client?.urlProtocolDidFinishLoading(self)
    }

    private static func read(_ stream: InputStream) -> String {
        stream.open()
        defer { stream.close() }
        var buffer = [UInt8](repeating: 0, count: 4096)
        var data = Data()
        while case let count = stream.read(&buffer, maxLength: buffer.count), count > 0 {
            data.append(contentsOf: buffer.prefix(count))
        }
        return String(decoding: data, as: UTF8.self)
    }

    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) { succeed(credential.user ?? "") }
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) { succeed("without") }
    func cancel(_ challenge: URLAuthenticationChallenge) { succeed("cancelled") }
}

private final class ChallengeDelegate: NSObject, URLSessionTaskDelegate, Sendable {
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        (.useCredential, URLCredential(user: "user", password: "secret", persistence: .forSession))
    }
}
