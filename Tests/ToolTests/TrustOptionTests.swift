// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// `--cacert`, `--cert`, `--pin`, `--insecure`, the versions of TLS, and `--ats`.
@Suite(.timeLimit(.minutes(3)))
struct TrustOptionTests {
    private let certificates: TestCertificates
    /// Holds the roots and the client's files.
    private let folder: TemporaryDirectory

    init() throws {
        certificates = try TestCertificates.shared.get()
        folder = try TemporaryDirectory()
        try write(certificates.rootPEM, to: "root.pem")
    }

    private func write(_ text: String, to name: String) throws {
        try folder.write(Array(text.utf8), to: name)
    }

    private func run(_ arguments: String...) async throws -> Tool.Result {
        try await Tool.run(arguments, in: folder)
    }

    private func openssl(_ script: String) async throws -> String {
        let result = try await Tool.run([], in: folder, preparation: script + "; exit 0")
        try #require(!result.text.isEmpty, "\(result.errors)")
        return result.text.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Computes a pin with the commands in the manual of curl.
    private func pin(of identity: TestCertificates.Identity) async throws -> String {
        try write(identity.chainPEM, to: "pinned.pem")
        let key = "openssl x509 -in pinned.pem -pubkey -noout | openssl pkey -pubin -outform der"
        return "sha256//" + (try await openssl(key + " | openssl dgst -sha256 -binary | openssl enc -base64"))
    }

    // MARK: Pins

    @Test func `a server with the pinned key is accepted`() async throws {
        let pin = try await pin(of: certificates.valid)
        let other = try await self.pin(of: certificates.expired)
        try await withScriptedServer(identity: certificates.valid, reply: { _ in .ok("gold") }) { server in
            let address = server.url("/a", host: "localhost").absoluteString
            for pins in [pin, "\(other);\(pin)"] {
                let result = try await run("get", "--cacert", "root.pem", "--pin", pins, address)
                #expect(result.code == 0, "\(result.errors)")
                #expect(result.text == "gold")
            }
            // A pin does not make a certificate trusted.
            #expect(try await run("get", "--pin", pin, address).code == 60)
        }
    }

    @Test func `a server with another key results in 90 and receives no request`() async throws {
        let other = try await pin(of: certificates.expired)
        // A pin of the issuer's key does not count.
        try write(certificates.rootPEM, to: "pinned.pem")
        try await withScriptedServer(identity: certificates.valid, reply: { _ in .ok("gold") }) { server in
            let address = server.url("/a", host: "localhost").absoluteString
            for trust in [["--cacert", "root.pem"], ["--insecure"]] {
                for rest in [[], ["--repeat", "3"]] {
                    let result = try await Tool.run(["get"] + trust + rest + ["--pinnedpubkey", other, address], in: folder)
                    #expect(result.code == 90, "\(result.errors)")
                    #expect(!result.text.contains("gold"))
                }
            }
            let download = try await run("download", "-o", "file", "--cacert", "root.pem", "--pin", other, address)
            #expect(download.code == 90, "\(download.errors)")
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `an RSA key can be pinned`() async throws {
        let pin = try await pin(of: certificates.weakKey)
        try await withScriptedServer(identity: certificates.weakKey, reply: { _ in .ok("gold") }) { server in
            let address = server.url("/a", host: "localhost").absoluteString
            let result = try await run("get", "-k", "--pin", pin, address)
            #expect(result.text == "gold", "\(result.errors)")
        }
    }

    // MARK: Trust

    @Test func `--insecure accepts any certificate with a warning`() async throws {
        for identity in [certificates.selfSigned, certificates.expired, certificates.wrongHost] {
            try await withScriptedServer(identity: identity, reply: { _ in .ok("gold") }) { server in
                let address = server.url("/a", host: "localhost").absoluteString
                #expect(try await run("get", address).code == 60)
                let result = try await run("get", "-k", address)
                #expect(result.code == 0, "\(result.errors)")
                #expect(result.text == "gold")
                #expect(result.errors.contains("warning: "))
                let silent = try await run("get", "-s", "--insecure", address)
                #expect(silent.text == "gold")
                #expect(silent.errors.isEmpty)
            }
        }
    }

    @Test(
        arguments: [
            (.v1_2, .v1_2, ["--tls-min", "1.3"], 35), (.v1_3, .v1_3, ["--tls-max", "1.2"], 35),
            (.v1_2, .v1_3, ["--tls-max", "1.2"], 0), (.v1_2, .v1_3, ["--tls-min", "1.3"], 0),
            (.v1_2, .v1_3, ["--tls-min", "1.2", "--tls-max", "1.3"], 0),
        ] as [(TestCertificates.Version, TestCertificates.Version, [String], Int32)])
    func `options limit the versions of TLS`(
        _ lowest: TestCertificates.Version, _ highest: TestCertificates.Version, _ arguments: [String], _ code: Int32
    ) async throws {
        let server = try await ScriptedServer.start(
            identity: certificates.valid, tls: lowest...highest, reply: { _ in .ok("gold") }
        )
        let address = server.url("/a", host: "localhost").absoluteString
        let result = try await Tool.run(["get", "--cacert", "root.pem", "--metrics"] + arguments + [address], in: folder)
        #expect(result.code == code, "\(result.errors)")
        if code == 0 {
            #expect(result.errors.contains(arguments == ["--tls-max", "1.2"] ? "TLS 1.2" : "TLS 1.3"), "\(result.errors)")
        }
        try? await server.close()
    }

    @Test(
        arguments: [
            (["--tls-min", "1.3", "--tls-max", "1.2"], 2), (["--tls-min", "2"], 2), (["--insecure", "--ats"], 2),
            (["--pin", "sha256//AAAA"], 2), (["--pin", "key.pem"], 2), (["--key", "key.pem"], 2),
            (["--cert", "a", "--p12", "b"], 2), (["--cert", "/no/such/file"], 58), (["--p12", "/no/such/file:sesame"], 58),
            (["--cert", "root.pem"], 58), (["--p12", "root.pem"], 58), (["--cacert", "/no/such/file"], 77),
        ] as [([String], Int32)])
    func `wrong usage has curl's exit code`(_ arguments: [String], _ code: Int32) async throws {
        let result = try await Tool.run(["get"] + arguments + ["https://127.0.0.1:1/"], in: folder)
        #expect(result.code == code, "\(result.errors)")
        #expect(!result.errors.contains("sesame"))
    }

    @Test func `http is allowed unless App Transport Security is requested`() async throws {
        try await withScriptedServer(reply: { _ in .ok("by proxy") }) { proxy in
            let arguments = ["get", "-x", "127.0.0.1:\(proxy.port)", "http://nowhere.example/"]
            #expect(try await Tool.run(arguments, in: folder).text == "by proxy")
            let refused = try await Tool.run(arguments + ["--ats"], in: folder)
            #expect(refused.code == 1, "\(refused.errors)")
            #expect(refused.errors.contains("NSE"), "\(refused.errors)")
            #expect(proxy.requests.count == 1)
        }
    }

    /// Reading the roots never ends, because no process writes to the pipe.
    @Test(
        arguments: [
            ["get", "--max-time", "1"], ["get", "--connect-timeout", "1"], ["get", "-v", "-m", "1"], ["doctor", "-m", "1"],
            ["get", "-m", "1", "--pin", "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="], ["download", "-m", "1"],
            ["get", "-m", "1", "--repeat", "2"],
        ])
    func `time limits hold while a server's certificates are judged`(_ arguments: [String]) async throws {
        try await withScriptedServer(identity: certificates.valid, reply: { _ in .ok("gold") }) { server in
            let result = try await Tool.run(
                arguments + [server.url("/a", host: "localhost").absoluteString], in: folder,
                environment: ["SSL_CERT_FILE": folder.path + "/pipe.pem"], preparation: "rm -f pipe.pem; mkfifo pipe.pem")
            if arguments.contains("--repeat") {
                // Failed repetitions have one code, and each reason is printed with its count.
                #expect(
                    result.code == 56 && result.errors.contains("2 times: the load took longer than 1.0 s"), "\(result.errors)")
            } else {
                #expect(result.code == 28, "\(result.errors)")
            }
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `a root with a signature that is not supported does not affect the others`() async throws {
        let command =
            "openssl req -x509 -newkey rsa:2048 -nodes -keyout pss.key -subj /CN=PSS -sigopt rsa_padding_mode:pss -days 9"
        _ = try await openssl(command + " > pss.pem; cat pss.pem root.pem | tee both.pem")
        try await withScriptedServer(identity: certificates.valid, reply: { _ in .ok("gold") }) { server in
            let address = server.url("/a", host: "localhost").absoluteString
            let option = try await run("get", "--cacert", "both.pem", address)
            #expect(option.text == "gold", "\(option.errors)")
            let file = try await Tool.run(
                ["get", address], in: folder, environment: ["SSL_CERT_FILE": folder.path + "/both.pem"])
            #expect(file.text == "gold", "\(file.errors)")
        }
        // The certificate is shown, and the reason names its signature.
        let server = try await PeerProcess.openSSL(
            chain: try String(contentsOf: folder.file("pss.pem"), encoding: .utf8),
            key: try String(contentsOf: folder.file("pss.key"), encoding: .utf8), root: certificates.rootPEM, [])
        let refused = try await run("get", "-v", "--cacert", "pss.pem", "https://localhost:\(server.port)/")
        #expect(refused.code == 60, "\(refused.errors)")
        #expect(refused.errors.contains("RSASSA-PSS, which is not supported"), "\(refused.errors)")
        #expect(refused.errors.contains("subject: CN=PSS"), "\(refused.errors)")
    }

    // MARK: Client certificates

    struct Client: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let arguments: [String]
        let code: Int32
    }

    static let clients = [
        Client(testDescription: "two files", arguments: ["--cert", "client.pem", "--key", "key.pem"], code: 0),
        Client(testDescription: "in one file", arguments: ["-E", "both.pem"], code: 0),
        Client(testDescription: "an encrypted key", arguments: ["-E", "client.pem:sesame", "--key", "locked.pem"], code: 0),
        Client(testDescription: "PKCS #12", arguments: ["--p12", "client.p12:sesame"], code: 0),
        Client(
            testDescription: "curl's type", arguments: ["-E", "client.p12", "--cert-type", "P12", "--pass", "sesame"], code: 0),
        Client(
            testDescription: "a separate password", arguments: ["-E", "client.pem", "--key", "locked.pem", "--pass", "sesame"],
            code: 0),
        Client(testDescription: "a colon in the name", arguments: ["--p12", #"cl\:ient.p12:sesame"#], code: 0),
        Client(testDescription: "a wrong password", arguments: ["--p12", "client.p12:guess"], code: 58),
        Client(testDescription: "a wrong key password", arguments: ["-E", "client.pem:guess", "--key", "locked.pem"], code: 58),
        Client(testDescription: "a mismatched key", arguments: ["--cert", "client.pem", "--key", "strange.key"], code: 58),
        Client(testDescription: "no certificate", arguments: [], code: 58),
        Client(testDescription: "an untrusted certificate", arguments: ["-E", "strange.pem"], code: 58),
    ]

    @Test(arguments: clients)
    func `a client certificate is sent to a server that asks for it`(_ client: Client) async throws {
        try writeClients()
        let server = try await PeerProcess.openSSL(
            chain: certificates.valid.chainPEM, key: certificates.valid.keyPEM, root: certificates.rootPEM,
            ["-Verify", "3", "-verify_return_error"])
        let result = try await Tool.run(
            ["get", "--cacert", "root.pem"] + client.arguments + ["https://localhost:\(server.port)/"], in: folder
        )
        #expect(result.code == client.code, "\(result.errors)")
        #expect(result.text.contains("Test Client") == (client.code == 0), "\(result.text)")
        #expect(!result.errors.contains("sesame") && !result.errors.contains("guess"))
    }

    @Test func `a missing password of a key is prompted for`() async throws {
        try writeClients()
        let server = try await PeerProcess.openSSL(
            chain: certificates.valid.chainPEM, key: certificates.valid.keyPEM, root: certificates.rootPEM,
            ["-Verify", "3", "-verify_return_error"])
        let terminal = try Terminal()
        let tool = try Tool(
            ["get", "--cacert", "root.pem", "--p12", "client.p12", "https://localhost:\(server.port)/"], in: folder,
            environment: terminal.environment([:]), preparation: terminal.preparation
        )
        try await terminal.shown("Enter the password of client.p12: ")
        try terminal.type("sesame\n")
        let result = try await tool.result()
        #expect(result.code == 0, "\(result.errors)")
        #expect(!terminal.shown.contains("sesame"))
    }

    private func writeClients() throws {
        let (client, strange) = (certificates.client, certificates.untrustedClient)
        try write(client.chainPEM, to: "client.pem")
        try write(client.keyPEM, to: "key.pem")
        try write(client.chainPEM + client.keyPEM, to: "both.pem")
        try write(strange.chainPEM + strange.keyPEM, to: "strange.pem")
        try write(strange.keyPEM, to: "strange.key")
        let file = try client.pkcs12(password: "sesame")
        try folder.write(file, to: "client.p12")
        try folder.write(file, to: "cl:ient.p12")
        let locking = [
            "pkcs8", "-topk8", "-in", "key.pem", "-out", "locked.pem", "-v2", "aes-256-cbc", "-passout", "pass:sesame",
        ]
        try ServerProcess.run(
            ServerProcess.Command(
                [ServerProcess.program("openssl", package: "openssl")] + locking, in: folder.url,
                output: .file(folder.file("locking.log"))))
    }
}
