// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Reads the certificates of a PEM file (RFC 7468).
enum PEMFile {
    static func certificates(of path: String) throws -> [Data] {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
            throw ToolFailure(77, "cannot read certificates from \(path)")
        }
        var certificates: [Data] = []
        for block in text.components(separatedBy: "-----BEGIN CERTIFICATE-----").dropFirst() {
            let coded = block.components(separatedBy: "-----END CERTIFICATE-----")[0]
            guard let certificate = Data(base64Encoded: coded, options: .ignoreUnknownCharacters), !certificate.isEmpty else {
                throw ToolFailure(77, "a certificate in \(path) is damaged")
            }
            certificates.append(certificate)
        }
        guard !certificates.isEmpty else {
            throw ToolFailure(77, "there is no certificate in \(path)")
        }
        return certificates
    }
}
