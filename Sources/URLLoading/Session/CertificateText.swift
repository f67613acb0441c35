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

    /// Each certificate as DER. Data without a PEM marker is taken for DER as it is; a damaged PEM block is passed over.
    static func certificates(in data: Data) -> [Data] {
        guard data.first != 0x30, let text = String(data: data, encoding: .utf8), text.contains(begin) else { return [data] }
        return text.components(separatedBy: begin).dropFirst().compactMap { block in
            guard let body = block.components(separatedBy: end).first, body.count < block.count else { return nil }
            return Data(base64Encoded: body, options: .ignoreUnknownCharacters)
        }
    }
}
