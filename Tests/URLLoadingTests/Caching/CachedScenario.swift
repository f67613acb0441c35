// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Runs a test with a scripted server, a cache in its own directory, and a session that uses the cache.
func withCachedScenario(
    memory: Int = CacheScene.largeCapacity,
    disk: Int = CacheScene.largeCapacity,
    cache own: URLCache? = nil,
    identity: TestCertificates.Identity? = nil,
    delegate: (any URLSessionDelegate)? = nil,
    configure: (URLSessionConfiguration) -> Void = { _ in },
    reply: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply,
    test: (ScriptedServer, URLSession, CacheScene) async throws -> Void
) async throws {
    let scene = try CacheScene(memory: memory, disk: disk)
    try await withScenario(
        identity: identity, delegate: delegate,
        configure: { configuration in
            configuration.urlCache = own ?? scene.cache
            configure(configuration)
        },
        reply: reply
    ) { (server, session) async throws in
        try await test(server, session, scene)
    }
}

/// Runs a test with another session that uses `cache`.
func withSession(on cache: URLCache, test: (URLSession) async throws -> Void) async throws {
    try await withSession({ $0.urlCache = cache }, test: test)
}

/// The interface of a session that a load uses.
enum LoadForm: String, CaseIterable, Sendable {
    case async, handler, delegate, bytes

    /// Loads through a session whose delegate is a recorder.
    func load(
        _ request: URLRequest, in session: URLSession, _ recorder: EventRecorder
    ) async throws -> (data: Data, response: HTTPURLResponse) {
        switch self {
        case .async:
            let (data, response) = try await session.data(for: request)
            return (data, try #require(response as? HTTPURLResponse))
        case .handler:
            let done = Delivered<(Data?, URLResponse?, (any Error)?)>()
            session.dataTask(with: request) { done(($0, $1, $2)) }.resume()
            let (data, response, error) = try await done.value
            if let error { throw error }
            return (try #require(data), try #require(response as? HTTPURLResponse))
        case .delegate:
            let task = session.dataTask(with: request)
            task.resume()
            let record = try await recorder.completion(of: task)
            if let error = record.error { throw error }
            return (record.body, try #require(record.response as? HTTPURLResponse))
        case .bytes:
            let (bytes, response) = try await session.bytes(for: request)
            var data = Data()
            for try await byte in bytes { data.append(byte) }
            return (data, try #require(response as? HTTPURLResponse))
        }
    }
}

/// The date `seconds` from now, as in header fields (RFC 9110, section 5.6.7).
func httpDate(_ seconds: TimeInterval) -> String {
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = TimeZone(secondsFromGMT: 0)
    formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    return formatter.string(from: Date(timeIntervalSinceNow: seconds))
}

/// Header fields of responses.
enum Fields {
    typealias List = [(String, String)]

    static let fresh: List = [("Cache-Control", "max-age=600")]
    /// The fields of a stale response with a validator.
    static let stale: List = [("Cache-Control", "max-age=60"), ("Age", "100"), ("ETag", "\"v\"")]
}

extension URLRequest {
    /// This request with another cache policy.
    func with(_ policy: URLRequest.CachePolicy) -> URLRequest {
        var request = self
        request.cachePolicy = policy
        return request
    }
}
