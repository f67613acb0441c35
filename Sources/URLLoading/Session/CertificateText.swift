// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Extracts the certificates from data that the app provides: DER, or PEM text (RFC 7468) with any number of certificates.
enum CertificateText {
    private static let begin = "-----BEGIN CERTIFICATE-----"
    private static let end = "-----END CERTIFICATE-----"

    /// Returns each certificate as DER.
    ///
    /// Data without a PEM marker is assumed to be DER.
    ///
    /// The result is never empty: a damaged PEM block is returned as it is, and acts as a root that issued no certificate. If it
    /// were dropped, an app with malformed roots would silently trust the system's roots.
    static func certificates(in data: Data) -> [Data] {
        guard data.first != 0x30, let text = String(data: data, encoding: .utf8), text.contains(begin) else { return [data] }
        return text.components(separatedBy: begin).dropFirst().map { block in
            guard let body = block.components(separatedBy: end).first, body.count < block.count,
                let certificate = Data(base64Encoded: body, options: .ignoreUnknownCharacters), !certificate.isEmpty
            else { return Data(block.utf8) }
            return certificate
        }
    }
}
