//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation

/// Finds the certificates in what an app gives as one: DER, or PEM text (RFC 7468) with any number of them.
enum CertificateText {
    private static let begin = "-----BEGIN CERTIFICATE-----"
    private static let end = "-----END CERTIFICATE-----"

    /// Each certificate as DER.
    ///
    /// Data without a PEM marker is taken for DER as it is.
    ///
    /// There is never less than one, and a damaged PEM block stays as it is: as a root that no certificate leads to. If it were left
    /// out, an app that names its roots badly would find itself trusting the system's.
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
