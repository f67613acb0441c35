// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit

/// The verdict of `openssl verify` on a chain.
enum OpenSSL {
    /// Whether OpenSSL trusts a chain that ends with its root.
    static func trusts(_ chain: [Signer]) throws -> Bool {
        let folder = try TemporaryDirectory()
        func write(_ certificates: some Sequence<Signer>, to name: String) throws {
            let text = certificates.map { certificate in
                "-----BEGIN CERTIFICATE-----\n\(certificate.data.base64EncodedString(options: .lineLength64Characters))\n-----END CERTIFICATE-----\n"
            }
            try folder.write(Array(text.joined().utf8), to: name)
        }
        try write(chain.suffix(1), to: "root.pem")
        try write(chain.dropFirst().dropLast(), to: "others.pem")
        try write(chain.prefix(1), to: "own.pem")
        let program = try ServerProcess.program("openssl", package: "openssl")
        let others = chain.count > 2 ? ["-untrusted", "others.pem"] : []
        let arguments = ["verify", "-CAfile", "root.pem"] + others + ["own.pem"]
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.currentDirectoryURL = folder.url
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}
