// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Passwords stored in the Secret Service.
@Suite(.timeLimit(.minutes(2)))
struct KeyringCommandTests {
    @Test func `with an unlocked keyring`() async throws { try await KeyringSession.run("CommandsWithKeyringTests") }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("CommandsWithKeyringTests")), .timeLimit(.minutes(2)))
struct CommandsWithKeyringTests {
    /// Two home folders, which share only the keyring.
    private let (folder, other): (TemporaryDirectory, TemporaryDirectory)

    init() throws { (folder, other) = (try TemporaryDirectory(), try TemporaryDirectory()) }

    private func run(
        _ arguments: String..., home: TemporaryDirectory? = nil, input: URL? = nil, preparation: String? = nil
    ) async throws -> Tool.Result {
        try await Tool.run(arguments, in: folder, home: home ?? folder, input: input, preparation: preparation)
    }

    @Test func `a password in the keyring is found by other processes of the tool, but not by other programs`() async throws {
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = { request in
            request.header("Authorization") == "Basic " + Data("ali:sesame".utf8).base64EncodedString()
                ? .ok("gold") : .status(401, [("WWW-Authenticate", "Basic realm=\"cave\"")], body: "closed")
        }
        let password = try folder.write("sesame\n".utf8, to: "password.txt")
        // Runs the tool under another name, which makes it another program.
        let stranger = #"test -e stranger || ln "$0" stranger 2>&- || cp "$0" stranger; exec ./stranger "$@""#
        try await withScriptedServer(reply: reply) { (server) async throws in
            let url = server.url("/").absoluteString
            let kept = try await run("credentials", "set", url, "ali", "--password-stdin", input: password)
            #expect(kept.code == 0, "\(kept.errors)")
            for home in [folder, other] {
                let listed = try await run("credentials", "list", home: home)
                let rows = listed.text.split(separator: "\n").dropFirst().map { $0.split(separator: " ").map(String.init) }
                #expect(rows == [["http://127.0.0.1:\(server.port)", "any", "-", "permanent", "ali"]], "\(listed.errors)")
                #expect(try await run("get", url, home: home).text == "gold")
            }
            let theirs = try await run("credentials", "list", preparation: stranger)
            #expect(theirs.code == 0 && theirs.text.isEmpty, "\(theirs.errors)")
            #expect(try await run("get", url, preparation: stranger).text == "closed")
            let removed = try await run("credentials", "delete", "--all", preparation: stranger)
            #expect(removed.code == 0 && removed.errors == "deleted 0 credentials\n", "\(removed.errors)")
            #expect(try await run("get", url).text == "gold")
            let deleted = try await run("credentials", "delete", url, "ali")
            #expect(deleted.code == 0 && deleted.errors == "deleted 1 credential\n", "\(deleted.errors)")
            for home in [folder, other] {
                #expect(try await run("credentials", "list", home: home).text.isEmpty)
                #expect(try await run("get", url, home: home).text == "closed")
            }
        }
        for home in [folder, other] {
            let files = try FileManager.default.subpathsOfDirectory(atPath: home.path)
            #expect(!files.contains { URL(fileURLWithPath: $0).lastPathComponent.hasPrefix("credentials") }, "\(files)")
        }
    }
}
