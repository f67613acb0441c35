// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// App Transport Security and roots, as Info.plist and the environment configure them, each time in a separate process.
@Suite(.timeLimit(.minutes(2)))
struct ProgramSecurityTests {
    private static let exception = """
        <?xml version="1.0" encoding="UTF-8"?>
        <plist version="1.0"><dict>
            <key>CFBundleName</key><string>Tests</string>
            <key>NSAppTransportSecurity</key><dict>
                <key>NSExceptionDomains</key><dict>
                    <key>listed.example</key><dict><key>NSExceptionAllowsInsecureHTTPLoads</key><true/></dict>
                </dict>
            </dict>
        </dict></plist>
        """

    /// Runs ``ProgramSecurityProbe`` and returns the outcome of each load: a body, or an error code.
    private func outcome(
        of urls: [String], infoPropertyList: String? = nil, environment: [String: String] = [:],
        reply: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply = { _ in .ok("clear") }
    ) async throws -> [String] {
        try await withScriptedServer(reply: reply) { (server) async throws -> [String] in
            try await ProgramRun.run(
                urls, proxy: server.port, infoPropertyList: infoPropertyList, environment: environment
            )
        }
    }

    private func withScriptedServer(
        reply: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply,
        test: (ScriptedServer) async throws -> [String]
    ) async throws -> [String] {
        let server = try await ScriptedServer.start(reply: reply)
        let result = try await test(server)
        try await server.close()
        return result
    }

    private let urls = ["http://listed.example/", "http://other.example/", "http://127.0.0.1/"]

    @Test func `a program without an Info plist has the defaults`() async throws {
        #expect(try await outcome(of: urls) == ["-1022", "-1022", "clear"])
    }

    @Test func `the Info plist beside the executable applies`() async throws {
        #expect(try await outcome(of: urls, infoPropertyList: Self.exception) == ["clear", "-1022", "clear"])
    }

    @Test func `an unreadable Info plist allows nothing`() async throws {
        for text in ["<plist><dict><key>NSAppTransportSecurity", ""] {
            #expect(try await outcome(of: urls, infoPropertyList: text) == ["-1022", "-1022", "-1022"], "\(text)")
        }
    }

    @Test func `the environment can allow arbitrary loads for the whole process`() async throws {
        for value in ["YES", "yes", "TRUE", "1"] {
            let environment = ["NSAllowsArbitraryLoads": value]
            #expect(try await outcome(of: urls, environment: environment) == ["clear", "clear", "clear"], "\(value)")
        }
        for value in ["NO", "0", ""] {
            let environment = ["NSAllowsArbitraryLoads": value]
            #expect(try await outcome(of: urls, environment: environment) == ["-1022", "-1022", "clear"], "\(value)")
        }
    }

    @Test func `the configuration's dictionary overrides the environment`() async throws {
        let environment = ["NSAllowsArbitraryLoads": "YES", ProgramRun.strict: "1"]
        #expect(try await outcome(of: urls, environment: environment) == ["-1022", "-1022", "clear"])
    }

    @Test func `the environment names the file of the system's roots`() async throws {
        let certificates = try TestCertificates.shared.get()
        let folder = try TemporaryDirectory()
        let bundle = try folder.write(certificates.rootPEM.utf8, to: "roots.pem")
        let server = try await ScriptedServer.start(identity: certificates.valid, reply: { _ in .ok("secure") })
        let urls = [server.url().absoluteString]
        #expect(try await outcome(of: urls, environment: ["SSL_CERT_FILE": bundle.path]) == ["secure"])
        let without = try await outcome(of: urls)
        #expect(["-1202", "-1203"].contains(without.first))
        try await server.close()
    }

    @Test func `the file of the system's roots may be a pipe, which is read to its end`() async throws {
        let certificates = try TestCertificates.shared.get()
        let folder = try TemporaryDirectory()
        let pipe = folder.file("roots.pem").path
        try #require(mkfifo(pipe, 0o600) == 0)
        let pem = Array((String(repeating: "\n", count: 200_000) + certificates.rootPEM).utf8)
        let server = try await ScriptedServer.start(identity: certificates.valid, reply: { _ in .ok("secure") })
        // Waits for a reader.
        let writer = Thread {
            guard let file = fopen(pipe, "w") else { return }
            fwrite(pem, 1, pem.count, file)
            fclose(file)
        }
        writer.start()
        #expect(try await outcome(of: [server.url().absoluteString], environment: ["SSL_CERT_FILE": pipe]) == ["secure"])
        try await server.close()
    }

    @Test func `the environment names folders of roots, with or without the file`() async throws {
        let certificates = try TestCertificates.shared.get()
        let folder = try TemporaryDirectory()
        let stranger = Data(certificates.unknownAuthority.chain[1]).base64EncodedString(options: .lineLength64Characters)
        let pem = "-----BEGIN CERTIFICATE-----\n\(stranger)\n-----END CERTIFICATE-----\n"
        let other = try folder.write(pem.utf8, to: "other.pem")
        try folder.write(certificates.rootPEM.utf8, to: "ours/root.pem")
        try folder.write("no certificate".utf8, to: "ours/notes.txt")
        try folder.write([], to: "empty/nothing")
        let (ours, empty) = (folder.file("ours").path, folder.file("empty").path)
        let server = try await ScriptedServer.start(identity: certificates.valid, reply: { _ in .ok("ours") })
        let strange = try await ScriptedServer.start(identity: certificates.unknownAuthority, reply: { _ in .ok("strange") })
        let urls = [server.url().absoluteString, strange.url().absoluteString]
        let rows: [([String: String], [String])] = [
            (["SSL_CERT_DIR": ours], ["ours", "-1203"]),
            (["SSL_CERT_DIR": "\(empty):\(ours)"], ["ours", "-1203"]),
            (["SSL_CERT_DIR": empty], ["-1203", "-1203"]),
            (["SSL_CERT_FILE": other.path], ["-1203", "strange"]),
            (["SSL_CERT_FILE": other.path, "SSL_CERT_DIR": ours], ["ours", "strange"]),
        ]
        for (environment, outcomes) in rows {
            let found = try await outcome(of: urls, environment: environment)
            #expect(found == outcomes, "\(environment)")
        }
        try await server.close()
        try await strange.close()
    }
}
