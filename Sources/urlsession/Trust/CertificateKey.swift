//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Finds the public key of a certificate (X.690, RFC 5280).
enum CertificateKey {
    /// Returns the SubjectPublicKeyInfo of a DER certificate; nil if the certificate is malformed.
    static func information(of certificate: [UInt8]) -> [UInt8]? {
        guard let whole = element(certificate[...], tag: 0x30), let body = element(whole.content, tag: 0x30) else { return nil }
        var rest = body.content
        // A certificate of version 1 has no version field.
        if let version = element(rest, tag: 0xA0) { rest = version.after }
        // RFC 5280, section 4.1: serial number, signature, issuer, validity, subject, and then the key.
        for tag: UInt8 in [0x02, 0x30, 0x30, 0x30, 0x30] {
            guard let next = element(rest, tag: tag) else { return nil }
            rest = next.after
        }
        return element(rest, tag: 0x30).map { Array($0.all) }
    }

    private struct Element {
        /// The element with its tag and length.
        let all: ArraySlice<UInt8>
        let content: ArraySlice<UInt8>
        let after: ArraySlice<UInt8>
    }

    /// Returns the first element, if it has the tag.
    private static func element(_ bytes: ArraySlice<UInt8>, tag: UInt8) -> Element? {
        var rest = bytes
        guard rest.popFirst() == tag, let first = rest.popFirst() else { return nil }
        var length = Int(first)
        if first >= 0x80 {
            let size = Int(first & 0x7F)
            guard 1...4 ~= size, rest.count >= size else { return nil }
            length = rest.prefix(size).reduce(0) { $0 << 8 | Int($1) }
            rest = rest.dropFirst(size)
        }
        guard length <= rest.count else { return nil }
        let content = rest.prefix(length)
        return Element(all: bytes[bytes.startIndex..<content.endIndex], content: content, after: rest.dropFirst(length))
    }
}
