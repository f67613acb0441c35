// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// A server without TLS and one with TLS, which set the cookies that a test chooses, and a session for both servers.
///
/// Both servers have the same host and thus share its cookies: ports are ignored (RFC 6265bis, section 8.5).
struct CookieScene: Sendable {
    let clear: ScriptedServer
    let secure: ScriptedServer
    let session: URLSession
    private let next: Watched<[String]>

    fileprivate init(clear: ScriptedServer, secure: ScriptedServer, session: URLSession, next: Watched<[String]>) {
        self.clear = clear
        self.secure = secure
        self.session = session
        self.next = next
    }

    /// Returns the same servers with another session.
    func with(_ session: URLSession) -> CookieScene {
        CookieScene(clear: clear, secure: secure, session: session, next: next)
    }

    var storage: HTTPCookieStorage {
        get throws { try #require(session.configuration.httpCookieStorage) }
    }

    /// The stored cookies as `name=value`, in order of creation.
    var stored: [String] {
        get throws { try #require(try storage.cookies).map { "\($0.name)=\($0.value)" } }
    }

    func url(_ path: String = "/", host: String = "localhost", overTLS: Bool = false) -> URL {
        (overTLS ? secure : clear).url(path, host: host)
    }

    /// Loads a response that sets cookies, each in a separate header field.
    func receive(
        _ fields: String..., at path: String = "/", host: String = "localhost", overTLS: Bool = false,
        change: (inout URLRequest) -> Void = { _ in }
    ) async throws {
        try await receive(all: fields, at: path, host: host, overTLS: overTLS, change: change)
    }

    func receive(
        all fields: [String], at path: String = "/", host: String = "localhost", overTLS: Bool = false,
        change: (inout URLRequest) -> Void = { _ in }
    ) async throws {
        next.change { $0 = fields }
        try await sent(at: path, host: host, overTLS: overTLS, change: change)
    }

    /// Loads a URL, and returns the `Cookie` field that the server received, or nil without that field; more than one is an error.
    @discardableResult
    func sent(
        at path: String = "/", host: String = "localhost", overTLS: Bool = false, change: (inout URLRequest) -> Void = { _ in }
    ) async throws -> String? {
        var request = URLRequest(url: url(path, host: host, overTLS: overTLS))
        change(&request)
        _ = try await session.data(for: request)
        let values = try #require((overTLS ? secure : clear).requests.last).values(of: "Cookie")
        #expect(values.count <= 1)
        return values.first
    }
}

/// Runs a test with both servers and a session that trusts the secure one.
func withCookies(
    delegate: (any URLSessionDelegate)? = nil,
    configure: (URLSessionConfiguration) -> Void = { _ in },
    test: (CookieScene) async throws -> Void
) async throws {
    let certificates = try TestCertificates.shared.get()
    let next = Watched<[String]>([])
    let reply: @Sendable (RecordedRequest) -> ScriptedReply = { _ in
        let fields = next.change { fields in
            defer { fields = [] }
            return fields
        }
        return .ok("", fields.map { ("Set-Cookie", $0) })
    }
    try await withScriptedServer(identity: certificates.valid, reply: reply) { (secure) async throws in
        try await withScenario(
            delegate: delegate,
            configure: { configuration in
                configuration.tlsTrustRoots = [certificates.root]
                configure(configuration)
            },
            reply: reply
        ) { (clear, session) async throws in
            try await test(CookieScene(clear: clear, secure: secure, session: session, next: next))
        }
    }
}

/// Makes a cookie like an app: for localhost and all paths unless `more` says otherwise.
func cookie(_ name: String, _ value: String = "1", _ more: [HTTPCookiePropertyKey: Any] = [:]) throws -> HTTPCookie {
    let least: [HTTPCookiePropertyKey: Any] = [.name: name, .value: value, .path: "/", .domain: "localhost"]
    return try #require(HTTPCookie(properties: least.merging(more) { $1 }))
}
