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

/// A web server that demands a client's certificate and says what it saw: `openssl s_server` on a loopback port of its own.
final class CertificateServer: Sendable {
    struct Failure: Error {
        let output: String
    }

    let port: Int
    private let processID: Int32
    private let output = Watched("")

    /// With the certificate for localhost; it trusts clients of the same root.
    init(_ certificates: TestCertificates, in folder: TemporaryDirectory) async throws {
        let identity = certificates.valid
        try folder.write(Array(identity.chainPEM.utf8), to: "server.pem")
        try folder.write(Array(identity.keyPEM.utf8), to: "server.key")
        try folder.write(Array(certificates.rootPEM.utf8), to: "clients.pem")
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
        process.arguments = [
            "s_server", "-accept", "127.0.0.1:0", "-cert", "server.pem", "-cert_chain", "server.pem", "-key", "server.key",
            "-CAfile", "clients.pem", "-Verify", "3", "-verify_return_error", "-www",
        ]
        process.currentDirectoryURL = folder.url
        process.standardInput = FileHandle.nullDevice
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        let output = output
        Thread.detachNewThread {
            let handle = pipe.fileHandleForReading
            while true {
                let data = handle.availableData
                guard !data.isEmpty else { return output.change { $0 += "\nover\n" } }
                output.change { $0 += String(decoding: data, as: UTF8.self) }
            }
        }
        try process.run()
        processID = process.processIdentifier
        // It says "ACCEPT 127.0.0.1:PORT" when it listens.
        let found = try await output.value { text -> Int? in
            let lines = text.split(separator: "\n").dropLast(text.hasSuffix("\n") ? 0 : 1)
            guard let line = lines.first(where: { $0.hasPrefix("ACCEPT ") }) else {
                return text.contains("\nover\n") ? 0 : nil
            }
            return line.split(separator: ":").last.flatMap { Int($0) } ?? 0
        }
        guard found > 0 else {
            kill(processID, SIGKILL)
            throw Failure(output: output.read { $0 })
        }
        port = found
    }

    deinit { kill(processID, SIGKILL) }
}
