// SPDX-License-Identifier: Apache-2.0

#if Logging || Metrics || Tracing
import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Runs a test with a new session, whose timeout is so long that it should not expire.
func withSession(
    delegate: (any URLSessionDelegate)? = nil, _ configure: (URLSessionConfiguration) -> Void,
    test: (URLSession) async throws -> Void
) async throws {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.timeoutIntervalForRequest = 20
    configure(configuration)
    let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    defer { session.invalidateAndCancel() }
    try await test(session)
}

/// Runs a test with a scripted server and a session.
func withScenario(
    greeting: @escaping @Sendable (_ connection: Int) -> [SocketEffect] = { _ in [] },
    delegate: (any URLSessionDelegate)? = nil, configure: (URLSessionConfiguration) -> Void,
    reply: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply,
    test: (ScriptedServer, URLSession) async throws -> Void
) async throws {
    try await withScriptedServer(greeting: greeting, reply: reply) { (server) async throws in
        try await withSession(delegate: delegate, configure) { session in try await test(server, session) }
    }
}

extension URLRequest {
    /// Creates a request in one expression.
    init(_ url: URL, method: String = "GET", headers: [String: String] = [:], body: Data? = nil) {
        self.init(url: url)
        httpMethod = method
        for (name, value) in headers { setValue(value, forHTTPHeaderField: name) }
        httpBody = body
    }
}

/// Answers all challenges with one password.
final class Password: NSObject, URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        completionHandler(.useCredential, URLCredential(user: "ada", password: "lovelace", persistence: .none))
    }
}
#endif
