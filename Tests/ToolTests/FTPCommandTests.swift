// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// FTP with `get`, `download` and `upload`.
@Suite(.timeLimit(.minutes(3)))
struct FTPCommandTests {
    private let content = Data((0..<600_000).map { UInt8(truncatingIfNeeded: $0 &* 7 ^ $0 >> 9) })

    private func withServer(
        _ options: SmallServer.FTPOptions = SmallServer.FTPOptions(),
        test: (SmallServer, String, TemporaryDirectory) async throws -> Void
    ) async throws {
        let server = try SmallServer.pyftpdlib(options)
        defer { server.stop() }
        try server.put(content, at: "pub/big.bin")
        try await test(server, "ftp://localhost:\(server.port)/", TemporaryDirectory())
    }

    @Test func `get shows a file or lists a directory, and upload stores a file`() async throws {
        try await withServer { server, base, folder in
            #expect(try await Tool.run(["get", base + "pub/big.bin"]).output == content)
            #expect(try await Tool.run(["get", base + "pub/"]).text.contains("big.bin"))
            #expect(try await Tool.run(["get", base + "pub;type=d"]).text == "big.bin\r\n")
            let file = try folder.write(content, to: "up.bin")
            let result = try await Tool.run(["upload", "-u", "ada:secret", file.path, base + "pub/"])
            #expect(result.code == 0, "\(result.errors)")
            #expect(try Data(contentsOf: server.folder.appendingPathComponent("pub/up.bin")) == content)
            #expect(server.journal.contains("[ada]"))
        }
    }

    @Test(
        arguments: [
            (78, ["get", "BASEpub/none"]), (9, ["get", "BASEnone/x"]), (67, ["get", "-u", "ada:wrong", "BASEpub/big.bin"]),
            (64, ["get", "--ssl-reqd", "BASEpub/big.bin"]), (3, ["get", "BASEa%0d%0aDELE%20b"]),
            (1, ["get", "--ats", "ftp://files.example.com/x"]),
            (2, ["upload", "--resume", "/etc/hostname", "http://localhost/x"]),
        ] as [(Int32, [String])])
    func `failures have curl's exit codes`(_ code: Int32, _ arguments: [String]) async throws {
        try await withServer { _, base, _ in
            let result = try await Tool.run(arguments.map { $0.replacingOccurrences(of: "BASE", with: base) })
            #expect(result.code == code, "\(result.errors)")
            #expect(result.output.isEmpty)
        }
    }

    @Test func `an interrupted download resumes with REST`() async throws {
        var options = SmallServer.FTPOptions()
        options.rate = 100_000
        try await withServer(options) { server, base, folder in
            let tool = try Tool(["download", base + "pub/big.bin"], in: folder)
            try await tool.shown(" of 586 KiB")
            tool.interrupt()
            #expect(try await tool.result().code == 130)
            let again = try await Tool.run(["download", "--resume", base + "pub/big.bin"], in: folder)
            #expect(again.code == 0, "\(again.errors)")
            #expect(again.errors.contains("resumed at"))
            #expect(try Data(contentsOf: folder.url.appendingPathComponent("big.bin")) == content)
            #expect(server.journal.contains("<- REST "))
        }
    }

    @Test func `a partial file of another program is not resumed`() async throws {
        try await withServer { server, base, folder in
            // These bytes are not the beginning of the server's file; a resumed download would keep them.
            try folder.write(Data(repeating: 0xAA, count: 1_000), to: "big.bin")
            let result = try await Tool.run(["download", "--resume", "-o", "big.bin", base + "pub/big.bin"], in: folder)
            #expect(result.code == 0, "\(result.errors)")
            #expect(result.errors.contains("starting over"), "\(result.errors)")
            #expect(try Data(contentsOf: folder.url.appendingPathComponent("big.bin")) == content)
            #expect(server.journal.contains("<- RETR ") && !server.journal.contains("<- REST "))
        }
    }

    @Test func `an upload resumes after the bytes that the server has`() async throws {
        try await withServer { server, base, folder in
            try server.put(content.prefix(200_000), at: "pub/up.bin")
            let file = try folder.write(content, to: "up.bin")
            let result = try await Tool.run(["upload", "--resume", "-u", "ada:secret", file.path, base + "pub/up.bin"])
            #expect(result.code == 0, "\(result.errors)")
            #expect(try Data(contentsOf: server.folder.appendingPathComponent("pub/up.bin")) == content)
            #expect(server.journal.contains("<- REST 200000"))
        }
    }

    @Test func `-T stores a file, and -C - resumes it, with the password of a netrc file`() async throws {
        try await withServer { server, base, folder in
            try folder.write(content, to: "up.bin")
            let netrc = try folder.write("machine localhost login ada password secret".utf8, to: "netrc")
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: netrc.path)
            let words = ["-sS", "--netrc-file", "netrc", "-T", "up.bin", base + "pub/"]
            #expect(try await Tool.run(words, in: folder).code == 0)
            #expect(try Data(contentsOf: server.folder.appendingPathComponent("pub/up.bin")) == content)
            #expect(server.journal.contains("[ada]"))
            try server.put(content.prefix(200_000), at: "pub/up.bin")
            let rest = try await Tool.run(words + ["-C", "-"], in: folder)
            #expect(rest.code == 0, "\(rest.errors)")
            #expect(try Data(contentsOf: server.folder.appendingPathComponent("pub/up.bin")) == content)
            #expect(server.journal.contains("<- REST 200000"))
        }
    }

    @Test func `--ssl-reqd secures the connection`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withServer(SmallServer.FTPOptions(identity: certificates.valid)) { _, base, folder in
            let root = try folder.write(certificates.rootPEM.utf8, to: "root.pem")
            let result = try await Tool.run(["get", "--ssl-reqd", "--cacert", root.path, base + "pub/big.bin"])
            #expect(result.code == 0, "\(result.errors)")
            #expect(result.output == content)
            #expect(try await Tool.run(["get", "--ssl-reqd", base + "pub/big.bin"]).code == 60)
        }
    }
}
