// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// A response stored by one run is not used by a run that would have rejected the server, or that has other credentials.
@Suite(.timeLimit(.minutes(3)))
struct CachedTrustTests {
    private static let fresh = [("Cache-Control", "max-age=86400")]
    private let certificates: TestCertificates
    private let home: TemporaryDirectory

    init() throws {
        certificates = try TestCertificates.shared.get()
        home = try TemporaryDirectory()
    }

    private func run(_ arguments: String...) async throws -> Tool.Result {
        try await Tool.run(arguments, home: home)
    }

    @Test func `responses accepted by --insecure or --cacert are not stored for later runs`() async throws {
        let root = try home.write(Array(certificates.rootPEM.utf8), to: "root.pem").path
        let rows = [(certificates.selfSigned, ["-k"]), (certificates.valid, ["--cacert", root])]
        for (identity, trust) in rows {
            try await withScriptedServer(identity: identity, reply: { _ in .ok("gold", Self.fresh) }) { (server) async throws in
                let address = server.url("/a", host: "localhost").absoluteString
                let first = try await Tool.run(["get", "--cached", address] + trust, home: home)
                #expect(first.code == 0 && first.text == "gold", "\(first.errors)")
                #expect(try await run("get", "--cached", address).code == 60)
                #expect(try await run("cache", "list").text.split(separator: "\n").dropFirst().isEmpty)
            }
        }
    }

    @Test func `a stored response is not shown with another password or none`() async throws {
        let right = "Basic " + Data("ali:pw".utf8).base64EncodedString()
        try await withScriptedServer(reply: { request in
            request.header("Authorization") == right
                ? .ok("private", Self.fresh) : .status(401, [("WWW-Authenticate", "Basic realm=\"r\"")], body: "no")
        }) { (server) async throws in
            let address = server.url().absoluteString
            #expect(try await run("get", "--cached", "-u", "ali:pw", address).text == "private")
            #expect(try await run("get", "--cached", "-u", "bob:wrong", address).text != "private")
            #expect(try await run("get", "--cached", address).text != "private")
            #expect(try await run("get", "--cached", "-u", "ali:pw", address).text == "private")
        }
    }

    @Test func `--connect-to neither stores responses nor uses stored ones`() async throws {
        try await withScriptedServer(reply: { _ in .ok("real", Self.fresh) }) { (real) async throws in
            try await withScriptedServer(reply: { _ in .ok("other", Self.fresh) }) { (other) async throws in
                let address = real.url("/", host: "localhost").absoluteString
                let directed = ["--connect-to", "localhost:\(real.port):127.0.0.1:\(other.port)"]
                #expect(try await Tool.run(["get", "--cached", address] + directed, home: home).text == "other")
                #expect(try await run("get", "--cached", address).text == "real")
                #expect(try await Tool.run(["get", "--cached", address] + directed, home: home).text == "other")
            }
        }
    }
}
