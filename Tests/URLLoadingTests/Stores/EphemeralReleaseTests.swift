// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// What an ephemeral session remembers is released with it.
@Suite(.timeLimit(.minutes(1)))
struct EphemeralReleaseTests {
    @Test(arguments: [true, false])
    func `an ephemeral session's stores are released with the session and its configuration`(isInvalidated: Bool) async throws {
        let fields = [
            ("Set-Cookie", "kept=1; Max-Age=8640000"), ("Cache-Control", "max-age=600"),
            ("Strict-Transport-Security", "max-age=1000"),
        ]
        let certificates = try TestCertificates.shared.get()
        try await withScriptedServer(
            identity: certificates.valid, reply: { $0.path == "/secret" ? BasicScript()()($0) : .ok("kept", fields) }
        ) { (server) async throws in
            let held = try await Self.use(server, root: certificates.root, isInvalidated: isInvalidated)
            try await held.waitUntilReleased()
        }
    }

    /// Uses a session so that each store has content; afterwards only the library may hold the session.
    private static func use(_ server: ScriptedServer, root: Data, isInvalidated: Bool) async throws -> WeakReferences {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.tlsTrustRoots = [root]
        let session = URLSession(
            configuration: configuration, delegate: TaskInterviewer(Interview(.ada(.permanent))), delegateQueue: nil)
        for _ in 0..<2 {
            #expect(try await session.text(server.url("/a", host: "localhost")) == "kept")
            #expect(try await session.text(server.url("/secret", host: "localhost")) == "in")
        }
        #expect(server.requests.map(\.path) == ["/a", "/secret", "/secret", "/secret"], "the second /a was not from the cache")
        let own = session.configuration
        #expect(own.httpCookieStorage?.cookies?.count == 1)
        #expect(own.urlCredentialStorage?.allCredentials.count == 1)
        if isInvalidated { session.finishTasksAndInvalidate() }
        return WeakReferences(own)
    }
}

/// Weak references to objects that should be released.
private final class WeakReferences: @unchecked Sendable {
    // Weak references, set once: reading them is safe from any thread.
    private weak let cookies: HTTPCookieStorage?
    private weak let cache: URLCache?
    private weak let credentials: URLCredentialStorage?

    init(_ configuration: URLSessionConfiguration) {
        (cookies, cache) = (configuration.httpCookieStorage, configuration.urlCache)
        credentials = configuration.urlCredentialStorage
        #expect(names.count == 3)
    }

    private var names: [String] {
        [cookies == nil ? nil : "the cookies", cache == nil ? nil : "the cache", credentials == nil ? nil : "the credentials"]
            .compactMap { $0 }
    }

    /// Yields until everything is released, or the time limit expires.
    func waitUntilReleased() async throws {
        while !names.isEmpty {
            guard !Task.isCancelled else {
                Issue.record("still held: \(names.joined(separator: ", "))")
                return
            }
            await Task.yield()
        }
    }
}
