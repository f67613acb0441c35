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

/// Negotiate with Kerberos, by the tool: the library reads its environment once per process, so that each row is a process of its own.
@Suite(.timeLimit(.minutes(1)))
struct KerberosTests {
    /// The tool lies beside the tests.
    private func tool() throws -> String {
        let folder = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        let tool = folder.appendingPathComponent("urlsession").path
        try #require(FileManager.default.isExecutableFile(atPath: tool), "the tool is not built")
        return tool
    }

    private func run(_ arguments: [String], _ environment: [String: String], in directory: TemporaryDirectory) throws -> String {
        let output = directory.file(UUID().uuidString)
        let order = ServerProcess.Order([try tool()] + arguments, environment: SanitizerEnvironment.variables.merging(environment) { $1 }, output: output)
        return (try? ServerProcess.run(order)) ?? ((try? String(contentsOf: output, encoding: .utf8)) ?? "")
    }

    @Test func `a ticket opens the place without a question, a password too, and nothing else does`() throws {
        let certificates = try TestCertificates.shared.get()
        let directory = try TemporaryDirectory()
        let root = try directory.write(certificates.rootPEM.utf8, to: "root.pem").path
        let realm = try KerberosRealm.start()
        defer { realm.stop() }
        let apache = try ApacheServer.start(certificates, realm: realm)
        defer { apache.stop() }
        let ticket = try realm.ticket(for: "ada", password: "lovelace")
        let user = "ada@\(KerberosRealm.name)"
        for access in [ApacheServer.Access.clear, .secure] {
            let url = apache.url("/negotiate/page.txt", access)
            let trust = access == .secure ? root : nil
            func get(_ arguments: [String], _ environment: [String: String]) throws -> String {
                let output = directory.file(UUID().uuidString)
                let fixed = [try tool(), "get", "-i", "-s", "--no-cache"] + (trust.map { ["--cacert", $0] } ?? [])
                return try ServerProcess.run(
                    ServerProcess.Order(fixed + arguments + [url.absoluteString], environment: SanitizerEnvironment.variables.merging(environment) { $1 }, output: output))
            }
            let withTicket = try get(["--negotiate"], ticket)
            #expect(withTicket.contains("HTTP 200") && withTicket.contains("page of negotiate"), "\(withTicket)")
            #expect(withTicket.lowercased().contains("x-user: \(user.lowercased())"))
            let withPassword = try get(["--negotiate", "-u", "\(user):lovelace"], realm.environment)
            #expect(withPassword.contains("HTTP 200") && withPassword.contains("page of negotiate"), "\(withPassword)")
            let withNothing = try get([], realm.environment)
            #expect(withNothing.contains("HTTP 401") && !withNothing.contains("page of negotiate"))
            let wrong = try get(["--negotiate", "-u", "\(user):byron"], realm.environment)
            #expect(wrong.contains("HTTP 401") && !wrong.contains("page of negotiate"))
        }
    }
    @Test func `later requests bring their tokens unasked, by ticket and by password`() throws {
        let certificates = try TestCertificates.shared.get()
        let directory = try TemporaryDirectory()
        let root = try directory.write(certificates.rootPEM.utf8, to: "root.pem").path
        let realm = try KerberosRealm.start()
        defer { realm.stop() }
        let apache = try ApacheServer.start(certificates, realm: realm)
        defer { apache.stop() }
        let ticket = try realm.ticket(for: "ada", password: "lovelace")
        let user = "ada@\(KerberosRealm.name)"
        for access in [ApacheServer.Access.clear, .secure] {
            for (words, environment) in [([], ticket), (["-u", "\(user):lovelace"], realm.environment)] {
                let before = Self.statuses(apache)
                let url = apache.url("/negotiate/page.txt", access).absoluteString
                let trust = access == .secure ? ["--cacert", root] : []
                let fixed = ["get", "-s", "--no-cache", "--repeat", "4", "--negotiate"]
                let text = try run(fixed + trust + words + [url], environment, in: directory)
                #expect(text.contains("4 ok, 0 failed"), "\(text)")
                #expect(Self.statuses(apache).dropFirst(before.count) == ["401", "200", "200", "200", "200"], "\(access) \(words)")
            }
        }
    }

    /// Of all requests so far.
    private static func statuses(_ apache: ApacheServer) -> [String] {
        // Each is there twice, once in the common format, which has quotes.
        apache.accessLog.split(separator: "\n").filter { !$0.contains("\"") }.compactMap { line in
            line.split(separator: " ").first { $0 == "200" || $0 == "401" }.map { String($0) }
        }
    }

    @Test func `the ticket is for nobody who is named, and for no scheme but its own`() throws {
        let certificates = try TestCertificates.shared.get()
        let directory = try TemporaryDirectory()
        let realm = try KerberosRealm.start()
        defer { realm.stop() }
        let apache = try ApacheServer.start(certificates, realm: realm)
        defer { apache.stop() }
        let ticket = try realm.ticket(for: "ada", password: "lovelace")
        let url = apache.url("/negotiate/page.txt").absoluteString
        for (words, status) in [
            ([], "200"), (["--negotiate"], "200"), (["--basic", "--negotiate"], "200"), (["--basic"], "401"), (["--ntlm"], "401"),
            (["--digest", "--basic"], "401"), (["-u", "eve:x"], "401"), (["--negotiate", "-u", "eve:x"], "401"),
            (["--negotiate", "-u", "ada@\(KerberosRealm.name):lovelace"], "200"),
        ] {
            let text = try run(["get", "-i", "-s", "--no-cache"] + words + [url], ticket, in: directory)
            #expect(text.contains("HTTP \(status)"), "\(words): \(text)")
        }
        // Where Basic is offered besides, the user who is named gets in, and not the one who has the ticket.
        let both = apache.url("/negotiate-or-basic/page.txt").absoluteString
        let text = try run(["get", "-i", "-s", "--no-cache", "--basic", "-u", "ada:byron", both], ticket, in: directory)
        #expect(text.contains("HTTP 401"), "\(text)")
    }

    @Test func `a proxy takes tickets, for http and for tunnels`() async throws {
        let certificates = try TestCertificates.shared.get()
        let directory = try TemporaryDirectory()
        let root = try directory.write(certificates.rootPEM.utf8, to: "root.pem").path
        let realm = try KerberosRealm.start()
        defer { realm.stop() }
        let squid = try SquidServer.start([.negotiate], realm: realm)
        defer { squid.stop() }
        let ticket = try realm.ticket(for: "ada", password: "lovelace")
        for identity in [nil, certificates.valid] {
            try await withScriptedServer(identity: identity, reply: { _ in .ok("passed") }) { (server) async throws in
                let fixed = ["get", "-i", "-s", "--no-cache", "-x", "http://localhost:\(squid.port)", "--cacert", root]
                let url = server.url("/x").absoluteString
                let text = try run(fixed + [url], ticket, in: directory)
                #expect(text.contains("HTTP 200") && text.contains("passed"), "\(text)")
                let refused = try run(fixed + [url], realm.environment, in: directory)
                #expect(!refused.contains("passed"), "\(refused)")
                // By tokens that go unasked, and tunnels that are asked for anew.
                let many = try run(fixed + ["--repeat", "6", "--parallel", "2", url], ticket, in: directory)
                #expect(many.contains("6 ok, 0 failed"), "\(many)")
            }
        }
        #expect(squid.accessLog.contains("ada@\(KerberosRealm.name)"))
    }
}
