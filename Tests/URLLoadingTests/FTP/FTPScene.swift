// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import URLLoading

/// Runs a test with a scripted FTP server and a session.
func withFTP(
    _ files: [String: [UInt8]] = ["/home/a.bin": Array("hello".utf8)], delegate: (any URLSessionDelegate)? = nil,
    isSplit: Bool = false, isIPv6: Bool = false, configure: (URLSessionConfiguration) -> Void = { _ in },
    greeting: @escaping @Sendable (ScriptedFTP.Visit) throws -> Void = { try $0.say("220 ready") },
    rule: @escaping ScriptedFTP.Rule = { _, _ in false }, test: (ScriptedFTP, URLSession) async throws -> Void
) async throws {
    let server = try ScriptedFTP(
        files.mapValues { ScriptedFTP.File(content: $0) }, isSplit: isSplit, isIPv6: isIPv6, greeting: greeting, rule: rule)
    defer { server.stop() }
    try await withSession(delegate: delegate, configure) { (session) async throws in try await test(server, session) }
}

/// Runs a test with a scripted FTP server that has a rule and the usual greeting, and a session.
func withFTP(
    _ files: [String: [UInt8]] = ["/home/a.bin": Array("hello".utf8)], delegate: (any URLSessionDelegate)? = nil,
    configure: (URLSessionConfiguration) -> Void = { _ in }, _ rule: @escaping ScriptedFTP.Rule,
    test: (ScriptedFTP, URLSession) async throws -> Void
) async throws {
    try await withFTP(
        files, delegate: delegate, configure: configure, greeting: { try $0.say("220 ready") }, rule: rule, test: test)
}
