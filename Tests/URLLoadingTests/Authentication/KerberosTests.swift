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
                    ServerProcess.Order(fixed + arguments + [url.absoluteString], environment: environment, output: output))
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
}
