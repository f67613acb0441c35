// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import Foundation
import HTTPRules
import LoadingModel
import LoadingTestKit
import Testing

/// A program built with the previous version, which speaks only JSON.
@Suite(.timeLimit(.minutes(2)))
struct OlderProgramTests {
    /// Runs a daemon that a program of this version has started.
    private func withDaemon(_ test: (BackgroundPlace, ScriptedServer) async throws -> Void) async throws {
        try await withScriptedServer(reply: { .ok($0.path) }) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let program = try place.start("one")
                program.tell("session", "main")
                try await program.line("session main")
                try await test(place, server)
                try await program.leave()
            }
        }
    }

    @Test func `an older program is refused, and told how to continue`() async throws {
        try await withDaemon { (place, _) async throws in
            let client = try RawClient(place)
            client.say(text: #"{"kind":"hello","role":"session","version":1}"#)
            let reason =
                "outdated: urlsessiond supports protocol version 2, but the program needs 1: build the program with URLLoading "
                + "\(LibraryVersion.text) or newer"
            #expect(try await client.refusal() == reason)
            #expect(client.firstBytes == [UInt8(ascii: "{")])
        }
    }

    @Test func `a program of this version receives JSON only in a refusal`() async throws {
        try await withDaemon { (place, _) async throws in
            let client = try RawClient(place)
            try client.attach("new")
            try await client.waitForMessage { if case .attached = $0 { true } else { nil } }
            let version = try await client.waitForMessage { if case .welcome(let version) = $0 { version } else { nil } }
            #expect(version == MessageCoding.version && client.firstBytes == [2])
            client.say(text: "{")
            #expect(try await client.refusal().hasPrefix("malformed"))
            #expect(client.firstBytes == [2, UInt8(ascii: "{")])
        }
    }

    @Test func `a newer program's version is refused with a message that it can read`() async throws {
        try await withDaemon { (place, _) async throws in
            let client = try RawClient(place)
            try client.say(.hello(version: MessageCoding.version + 1, role: .session))
            #expect(try await client.refusal() == "version: urlsessiond supports protocol version 2, but the program needs 3")
            #expect(client.firstBytes == [UInt8(ascii: "{")])
        }
    }
}
