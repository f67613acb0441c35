// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// The daemon applies the program's TLS settings, and handles a server that changes its certificate.
@Suite(.timeLimit(.minutes(2)))
struct BackgroundSecurityTests {
    private static let file = ScriptedFile(ScriptedFile.pattern(1_500_000, seed: 9))
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    /// A place whose programs trust the root, with a very short pause between attempts.
    private func withTrustingPlace(_ test: (BackgroundPlace, [String: String]) async throws -> Void) async throws {
        let folder = try TemporaryDirectory()
        let root = try folder.write(Array(certificates.rootPEM.utf8), to: "root.pem")
        try await withBackgroundPlace(daemonVariables: ["URLSESSIOND_PAUSE": "0.002"]) { (place) async throws in
            try await test(place, ["SSL_CERT_FILE": root.path])
        }
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func `the daemon presents the identity of the session's storage when the program is gone`(version: String) async throws {
        let options = [version, "-Verify", "3", "-verify_return_error"]
        try await withOpenSSL(certificates.valid, root: certificates.rootPEM, options) { (server) async throws in
            try await withTrustingPlace { (place, variables) async throws in
                let client = certificates.client
                let file = try place.write((client.chainPEM + client.keyPEM).utf8, to: "client.pem")
                let (identity, url) = ("identity=\(file.lastPathComponent)", try server.url().absoluteString)
                let program = try place.start("one", variables: variables)
                program.tell("session", "main", identity, "port=\(server.port)")
                // When the download begins, the program has left, or is leaving.
                program.tell("download", "main", url, "a", "begin=0.3")
                try await program.line("ordered main.1")
                try await program.leave()
                let after = try place.start("after", variables: variables)
                after.tell("session", "main", identity, "port=\(server.port)")
                try await after.line("completed main.1 ok gone status=200")
                #expect(String(decoding: try place.downloaded("a"), as: UTF8.self).contains("Test Client"))
                try await after.leave()
                // A program without an identity is refused.
                let stranger = try place.start("stranger", as: "stranger", variables: variables)
                stranger.tell("session", "main")
                stranger.tell("download", "main", url, "b")
                let refused = try await stranger.line("completed main.1")
                #expect(
                    refused.hasPrefix("completed main.1 -1206 {") || refused.hasPrefix("completed main.1 -1205 {"), "\(refused)")
                try await stranger.leave()
            }
        }
    }

    @Test func `roots that the program reads from a pipe apply to its background sessions`() async throws {
        let folder = try TemporaryDirectory()
        let pipe = folder.file("roots.pem").path
        try #require(mkfifo(pipe, 0o600) == 0)
        let pem = Array(certificates.rootPEM.utf8)
        // Waits for a reader.
        let writer = Thread {
            guard let file = fopen(pipe, "w") else { return }
            fwrite(pem, 1, pem.count, file)
            fclose(file)
        }
        writer.start()
        let server = try await ScriptedServer.start(identity: certificates.valid, reply: { .ok($0.path) })
        try await withBackgroundPlace { (place) async throws in
            let program = try place.start("one", variables: ["SSL_CERT_FILE": pipe])
            program.tell("session", "main")
            program.tell("download", "main", server.url("/a").absoluteString, "a")
            let end = try await program.line("completed main.1")
            #expect(end.hasPrefix("completed main.1 ok"), "\(end)")
            try await program.leave()
        }
        try await server.close()
    }

    @Test func `the daemon applies the minimum TLS version of a configuration`() async throws {
        let server = try await ScriptedServer.start(identity: certificates.valid, tls: .v1_2 ... .v1_2, reply: { .ok($0.path) })
        try await withTrustingPlace { (place, variables) async throws in
            let program = try place.start("one", variables: variables)
            program.tell("session", "strict", "tls=1.3")
            program.tell("session", "lenient", "tls=1.2")
            program.tell("download", "strict", server.url("/a").absoluteString, "a")
            let refused = try await program.line("completed strict.1")
            #expect(refused.hasPrefix("completed strict.1 -1200 {"), "\(refused)")
            #expect(server.requests.isEmpty)
            program.tell("download", "lenient", server.url("/b").absoluteString, "b")
            try await program.line("completed lenient.1 ok")
            #expect(try place.downloaded("b") == Array("/b".utf8))
            try await program.leave()
        }
        try await server.close()
    }

    // MARK: What the daemon stores

    @Test func `the next daemon sends Authorization of session and request, and no file contains it`()
        async throws
    {
        let (session, own) = ("Bearer-session-4711", "Bearer-own-0815")
        let file = ScriptedFile(ScriptedFile.pattern(500_000))
        try await withScriptedServer(
            reply: { $0.order < 2 ? file.reply(to: $0, cutAfter: 200_000, ending: .gate("never")) : file.reply(to: $0) }
        ) { (server) async throws in
            try await withBackgroundPlace { (place) async throws in
                let program = try place.start("one")
                program.tell("session", "main", "header=Authorization:\(session)")
                program.tell("download", "main", server.url("/a").absoluteString, "a")
                try await program.line("wrote main.1 200000/500000")
                program.tell("download", "main", server.url("/b").absoluteString, "b", "header=Authorization:\(own)")
                try await program.line("wrote main.2 200000/500000")
                // The files include the resume data of both downloads, and the journal of the database, which is still open.
                let kept = try place.kept()
                #expect(kept.contains { $0.path.contains("/state/urlloading/background/") && $0.bytes.count > 4096 })
                for (path, bytes) in kept {
                    for secret in [session, own] { #expect(bytes.firstRange(of: Data(secret.utf8)) == nil, "\(path)") }
                }
                place.killDaemon()
                try await program.line("completed main.1 ok")
                try await program.line("completed main.2 ok")
                #expect(Set(server.requests.compactMap { $0.header("Authorization") }) == [session, own])
                #expect(server.requests.count == 4)
                for request in server.requests {
                    #expect(request.values(of: "Authorization") == [request.path == "/a" ? session : own])
                }
                try await program.leave()
            }
        }
    }

    // MARK: Changed certificates

    /// The first response breaks off halfway; the n-th connection gets the n-th certificate.
    private func withServer(
        _ identities: [TestCertificates.Identity],
        _ test: (BackgroundPlace, [String: String], ScriptedServer) async throws -> Void
    ) async throws {
        let server = try await ScriptedServer.start(
            identity: identities[0], laterIdentities: Array(identities.dropFirst()),
            reply: { Self.file.reply(to: $0, cutAfter: $0.order == 0 ? 1_000_000 : nil, ending: .close) })
        try await withTrustingPlace { (place, variables) async throws in try await test(place, variables, server) }
        try await server.close()
    }

    @Test func `an expired certificate ends a download, and another one resumes it`() async throws {
        try await withServer([certificates.valid, certificates.expired, certificates.valid]) {
            (place, variables, server) async throws in
            let program = try place.start("one", variables: variables)
            program.tell("session", "main")
            program.tell("download", "main", server.url().absoluteString, "a")
            let failed = try await program.line("completed main.1")
            #expect(failed.hasPrefix("completed main.1 -1201 resumable {"), "\(failed)")
            #expect(server.requests.count == 1)
            program.tell("continue", "main", "rest")
            try await program.line("completed main.2 ok")
            #expect(try place.downloaded("rest").elementsEqual(Self.file.content))
            #expect(server.requests.count == 2 && server.requests[1].header("Range") != nil)
            try await program.leave()
        }
    }

    @Test func `a download continues when the server's certificate is renewed`() async throws {
        try await withServer([certificates.valid, certificates.nameConstraintSatisfied]) {
            (place, variables, server) async throws in
            let program = try place.start("one", variables: variables)
            program.tell("session", "main")
            program.tell("download", "main", server.url().absoluteString, "a")
            try await program.line("completed main.1 ok")
            #expect(try place.downloaded("a").elementsEqual(Self.file.content))
            #expect(server.requests.count == 2 && server.requests[1].header("Range") != nil)
            try await program.leave()
        }
    }
}
