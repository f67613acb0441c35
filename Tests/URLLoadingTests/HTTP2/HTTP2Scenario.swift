// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// How a client starts HTTP/2.
enum HTTP2Start: String, Sendable, CaseIterable, CustomTestStringConvertible {
    /// By ALPN, over TLS.
    case secure
    /// With prior knowledge, in cleartext (RFC 9113, section 3.3).
    case clear

    var testDescription: String { self == .secure ? "TLS" : "prior knowledge" }
}

extension URLSessionConfiguration {
    /// Configures a session to speak HTTP/2 with a server of the tests.
    func speakHTTP2(_ way: HTTP2Start, _ certificates: TestCertificates) {
        switch way {
        case .secure: tlsTrustRoots = [certificates.root]
        case .clear: connectionOptions.httpVersions = .http2PriorKnowledge
        }
    }
}

/// Runs a test with a scripted HTTP/2 server and a session that speaks HTTP/2 with it.
func withHTTP2Scenario(
    _ way: HTTP2Start = .secure,
    identity: TestCertificates.Identity? = nil,
    protocols: [String] = ["h2", "http/1.1"],
    delegate: (any URLSessionDelegate)? = nil,
    configure: (URLSessionConfiguration) -> Void = { _ in },
    greeting: @escaping HTTP2ScriptedServer.Greeting = { _ in [.settings()] },
    reply: @escaping HTTP2ScriptedServer.Reply,
    test: (HTTP2ScriptedServer, URLSession) async throws -> Void
) async throws {
    let certificates = try TestCertificates.shared.get()
    let identity = way == .secure ? identity ?? certificates.valid : nil
    try await withHTTP2Server(
        identity: identity, protocols: protocols, greeting: greeting, reply: reply
    ) { (server) async throws in
        try await withSession(
            delegate: delegate,
            { configuration in
                configuration.speakHTTP2(way, certificates)
                configure(configuration)
            }, test: { session in try await test(server, session) })
    }
}

/// The error codes after a protocol violation or a closed connection; the state of the load determines which one occurs.
let brokenProtocol: Set<URLError.Code> = [.networkConnectionLost, .badServerResponse, .cannotParseResponse]

/// The error codes for a malformed response.
let malformedResponse: Set<URLError.Code> = [.cannotParseResponse, .badServerResponse]

/// Expects a load to fail with one of a set of codes.
@discardableResult
func expectFailure<Result>(
    in codes: Set<URLError.Code>, _ row: String = "", sourceLocation: SourceLocation = #_sourceLocation,
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

extension HTTP2ScriptedServer {
    /// Sends a PING and waits for its acknowledgement, after which the client has processed everything that was sent before.
    func settle(on connection: Int = 0) async throws {
        let bytes = HTTP2Step.bytes(of: UInt64.random(in: 0...UInt64.max))
        run(.ping(bytes), on: connection)
        try await frame(.ping, on: connection) { $0.flags.contains(.ack) && $0.data == bytes }
    }

    /// Like ``settle(on:)``, but also returns if the client ends the connection.
    func settleOrEnd(on connection: Int) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await self.settle(on: connection) }
            group.addTask { try await self.waitForEnd(of: connection) }
            try await group.next()
            group.cancelAll()
        }
    }

    /// The value of a setting in the client's first SETTINGS frame; nil if the setting is absent.
    func setting(_ setting: HTTP2Frame.Setting, on connection: Int = 0) -> Int? {
        frames(.settings, on: connection).first { !$0.flags.contains(.ack) }?.value(of: setting)
    }
}

extension HTTP2Step {
    /// The head of a well-formed response.
    static func head(_ status: Int = 200, _ headers: [(String, String)] = [], ends: Bool = false) -> HTTP2Step {
        .headers([(":status", "\(status)")] + headers, ends: ends)
    }
}
