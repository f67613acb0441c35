//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// A server in clear and one over TLS, which set what cookies they are told to, and a session that talks to both.
///
/// They are of one host, and so share its cookies: ports do not part them (RFC 6265bis, section 8.5).
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

    /// The same servers, with another session.
    func with(_ session: URLSession) -> CookieScene {
        CookieScene(clear: clear, secure: secure, session: session, next: next)
    }

    var storage: HTTPCookieStorage {
        get throws { try #require(session.configuration.httpCookieStorage) }
    }

    /// The stored cookies, as `name=value`, in the order they were made.
    var stored: [String] {
        get throws { try #require(try storage.cookies).map { "\($0.name)=\($0.value)" } }
    }

    func url(_ path: String = "/", host: String = "localhost", overTLS: Bool = false) -> URL {
        (overTLS ? secure : clear).url(path, host: host)
    }

    /// Has a response set cookies, each in a field of its own.
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

    /// Loads, and says what cookies the server got: nil for no field, and more than one field is never sent.
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

/// A cookie as an app makes it: for localhost and all paths unless it says otherwise.
func cookie(_ name: String, _ value: String = "1", _ more: [HTTPCookiePropertyKey: Any] = [:]) throws -> HTTPCookie {
    let least: [HTTPCookiePropertyKey: Any] = [.name: name, .value: value, .path: "/", .domain: "localhost"]
    return try #require(HTTPCookie(properties: least.merging(more) { $1 }))
}
