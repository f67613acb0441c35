// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Runs a test with its own session, without shared state, and with a timeout that no test should reach.
func withSession(
    delegate: (any URLSessionDelegate)? = nil,
    _ configure: (URLSessionConfiguration) -> Void = { _ in },
    test: (URLSession) async throws -> Void
) async throws {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.timeoutIntervalForRequest = 20
    try configuration.trustVersion()
    configure(configuration)
    let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    defer { session.invalidateAndCancel() }
    try await test(session)
}

/// Runs a test with a scripted server and a session.
func withScenario(
    version: ScriptedVersion? = ScriptedVersion.current,
    identity: TestCertificates.Identity? = nil,
    sendBuffer: Int? = nil,
    delegate: (any URLSessionDelegate)? = nil,
    configure: (URLSessionConfiguration) -> Void = { _ in },
    greeting: @escaping @Sendable (_ connection: Int) -> [SocketEffect] = { _ in [] },
    early: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply? = { _ in nil },
    reply: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply,
    test: (ScriptedServer, URLSession) async throws -> Void
) async throws {
    try await withScriptedServer(
        version: version, identity: identity, sendBuffer: sendBuffer, greeting: greeting, early: early, reply: reply
    ) { (server) async throws in
        try await withSession(delegate: delegate, configure) { session in try await test(server, session) }
    }
}

/// Expects a load to fail with one of the given codes, and returns the error.
@discardableResult
func expectFailure<Result>(
    _ codes: URLError.Code..., in row: String = "", sourceLocation: SourceLocation = #_sourceLocation,
    _ load: () async throws -> Result
) async -> URLError? {
    do {
        _ = try await load()
        Issue.record("the load succeeded: \(row)", sourceLocation: sourceLocation)
    } catch let error as URLError {
        #expect(codes.contains(error.code), "\(row): \(error)", sourceLocation: sourceLocation)
        return error
    } catch {
        Issue.record("\(row): not a URLError: \(error)", sourceLocation: sourceLocation)
    }
    return nil
}

/// Runs a test that uses real timers with longer and longer times until it succeeds: on a busy machine, short times prove nothing.
func withGrowingTimes(_ test: (_ scale: Double) async throws -> Bool) async throws {
    for scale in [1.0, 4, 12] {
        if try await test(scale) { return }
    }
    Issue.record("the test failed even with the longest times")
}

extension URLRequest {
    /// Creates a request with a method, header fields and a body in one expression.
    init(_ url: URL, method: String = "GET", headers: [String: String] = [:], body: Data? = nil) {
        self.init(url: url)
        httpMethod = method
        for (name, value) in headers { setValue(value, forHTTPHeaderField: name) }
        httpBody = body
    }
}

extension URLSession {
    /// Loads a request, and returns the body as text with the response.
    func text(_ request: URLRequest) async throws -> (text: String, response: HTTPURLResponse) {
        let (data, response) = try await data(for: request)
        return (String(decoding: data, as: UTF8.self), try #require(response as? HTTPURLResponse))
    }

    func text(_ url: URL) async throws -> String { try await text(URLRequest(url: url)).text }
}

/// Carries values from callbacks to the test.
struct Delivered<Value: Sendable>: Sendable {
    private let box = Watched<[Value]>([])

    func callAsFunction(_ value: Value) { box.change { $0.append(value) } }

    /// The first value, as soon as there is one.
    var value: Value { get async throws { try await box.value(where: \.first) } }
    var all: [Value] { box.read { $0 } }
    func count(reaches count: Int) async throws { try await box.value { $0.count >= count ? () : nil } }
}
