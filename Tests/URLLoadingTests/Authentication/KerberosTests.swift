// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Negotiate with Kerberos, through the tool `urlsession`, because each row needs a process of its own: the Kerberos library reads
/// its environment once per process.
@Suite(.timeLimit(.minutes(1)))
struct KerberosTests {
    /// The path of the tool, which is built beside the tests.
    private func tool() throws -> String {
        let folder = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        let tool = folder.appendingPathComponent("urlsession").path
        try #require(FileManager.default.isExecutableFile(atPath: tool), "the tool is not built")
        return tool
    }

    /// A Kerberos realm with a ticket for the user `ada`, and a directory for the tool's files.
    private struct Scene {
        let tool: String
        let certificates: TestCertificates
        let directory: TemporaryDirectory
        /// The file with the root of the servers' certificates.
        let root: String
        let realm: KerberosRealm
        let ticket: [String: String]
        let user = "ada@\(KerberosRealm.name)"

        /// The tool's output, with its exit code if it failed.
        func run(_ arguments: [String], _ environment: [String: String]) -> String {
            let output = directory.file(UUID().uuidString)
            let order = ServerProcess.Command(
                [tool] + arguments, environment: SanitizerEnvironment.variables.merging(environment) { $1 }, output: output
            )
            do {
                return try ServerProcess.run(order)
            } catch {
                return "\(error)"
            }
        }
    }

    private func withRealm(_ test: (Scene) async throws -> Void) async throws {
        let certificates = try TestCertificates.shared.get()
        let directory = try TemporaryDirectory()
        let root = try directory.write(certificates.rootPEM.utf8, to: "root.pem").path
        let realm = try KerberosRealm.start()
        defer { realm.stop() }
        let ticket = try realm.ticket(for: "ada", password: "lovelace")
        try await test(
            Scene(tool: tool(), certificates: certificates, directory: directory, root: root, realm: realm, ticket: ticket)
        )
    }

    private func withApache(_ test: (Scene, ApacheServer) throws -> Void) async throws {
        try await withRealm { scene in
            let apache = try ApacheServer.start(scene.certificates, realm: scene.realm)
            defer { apache.stop() }
            try test(scene, apache)
        }
    }

    @Test func `a ticket or the right password authenticates, but a wrong password or no credential does not`() async throws {
        try await withApache { scene, apache in
            let (user, strangers) = (scene.user, scene.realm.environment)
            for access in [ApacheServer.Access.clear, .secure] {
                let url = apache.url("/negotiate/page.txt", access).absoluteString
                let trust = access == .secure ? ["--cacert", scene.root] : []
                func get(_ arguments: [String], _ environment: [String: String]) -> String {
                    scene.run(["get", "-i", "-s", "--no-cache"] + trust + arguments + [url], environment)
                }
                let withTicket = get(["--negotiate"], scene.ticket)
                #expect(withTicket.contains("HTTP/1.1 200") && withTicket.contains("page of negotiate"), "\(withTicket)")
                #expect(withTicket.lowercased().contains("x-user: \(user.lowercased())"))
                let withPassword = get(["--negotiate", "-u", "\(user):lovelace"], strangers)
                #expect(withPassword.contains("HTTP/1.1 200") && withPassword.contains("page of negotiate"), "\(withPassword)")
                let withNothing = get([], strangers)
                #expect(withNothing.contains("HTTP/1.1 401") && !withNothing.contains("page of negotiate"))
                let wrong = get(["--negotiate", "-u", "\(user):byron"], strangers)
                #expect(wrong.contains("HTTP/1.1 401") && !wrong.contains("page of negotiate"))
            }
        }
    }

    @Test func `later requests send their tokens preemptively, with a ticket and with a password`() async throws {
        try await withApache { scene, apache in
            for access in [ApacheServer.Access.clear, .secure] {
                for (words, environment) in [([], scene.ticket), (["-u", "\(scene.user):lovelace"], scene.realm.environment)] {
                    let before = Self.statuses(apache.accessLog)
                    let url = apache.url("/negotiate/page.txt", access).absoluteString
                    let trust = access == .secure ? ["--cacert", scene.root] : []
                    let fixed = ["get", "-s", "--no-cache", "--repeat", "4", "--negotiate"]
                    let text = scene.run(fixed + trust + words + [url], environment)
                    #expect(text.contains("4 ok, 0 failed"), "\(text)")
                    let expected = before + ["401", "200", "200", "200", "200"]
                    _ = try apache.logs { Self.statuses($0).count >= expected.count }
                    #expect(Self.statuses(apache.accessLog) == expected, "\(access) \(words)")
                }
            }
        }
    }

    /// The statuses of all requests in a log.
    private static func statuses(_ log: String) -> [String] {
        // The log lists each request twice; the entry in the common log format contains quotes and is skipped.
        log.split(separator: "\n").filter { !$0.contains("\"") }.compactMap { line in
            line.split(separator: " ").first { $0 == "200" || $0 == "401" }.map { String($0) }
        }
    }

    @Test func `a ticket is not used for a named user, nor for another scheme`() async throws {
        try await withApache { scene, apache in
            func get(_ words: [String], _ path: String) -> String {
                scene.run(["get", "-i", "-s", "--no-cache"] + words + [apache.url(path).absoluteString], scene.ticket)
            }
            for (words, status) in [
                ([], "200"), (["--negotiate"], "200"), (["--basic", "--negotiate"], "200"), (["--basic"], "401"),
                (["--ntlm"], "401"), (["--digest", "--basic"], "401"), (["-u", "eve:x"], "401"),
                (["--negotiate", "-u", "eve:x"], "401"), (["--negotiate", "-u", "\(scene.user):lovelace"], "200"),
            ] {
                let text = get(words, "/negotiate/page.txt")
                #expect(text.contains("HTTP/1.1 \(status)"), "\(words): \(text)")
            }
            // The named user's wrong password is sent with Basic; the ticket is not sent with Negotiate.
            let text = get(["--basic", "-u", "ada:byron"], "/negotiate-or-basic/page.txt")
            #expect(text.contains("HTTP/1.1 401"), "\(text)")
        }
    }

    @Test func `a proxy accepts tickets for http and for tunnels`() async throws {
        try await withRealm { (scene) async throws in
            let squid = try SquidServer.start([.negotiate], realm: scene.realm)
            defer { squid.stop() }
            for identity in [nil, scene.certificates.valid] {
                try await withScriptedServer(identity: identity, reply: { _ in .ok("passed") }) { (server) async throws in
                    let proxy = ["-x", "http://localhost:\(squid.port)"]
                    let fixed = ["-s", "--no-cache", "--cacert", scene.root, server.url("/x").absoluteString] + proxy
                    let text = scene.run(["get", "-i"] + fixed, scene.ticket)
                    #expect(text.contains("HTTP/1.1 200") && text.contains("passed"), "\(text)")
                    let refused = scene.run(["get", "-i"] + fixed, scene.realm.environment)
                    #expect(refused.contains(identity == nil ? "HTTP/1.1 407" : "ended with status 67"), "\(refused)")
                    #expect(!refused.contains("passed"), "\(refused)")
                    // These requests use preemptive tokens and repeated tunnels.
                    let many = scene.run(["get", "--repeat", "6", "--parallel-max", "2"] + fixed, scene.ticket)
                    #expect(many.contains("6 ok, 0 failed"), "\(many)")
                }
            }
            #expect(try squid.logs(scene.user), "\(squid.accessLog)")
        }
    }
}
