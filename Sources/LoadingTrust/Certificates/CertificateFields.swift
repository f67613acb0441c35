//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import SwiftASN1

/// The fields of a certificate as they are encoded (RFC 5280, section 4.1), for any kind of key.
struct CertificateFields {
    let serialNumber: ArraySlice<UInt8>
    let issuer: ArraySlice<UInt8>
    let subject: ArraySlice<UInt8>
    let subjectPublicKeyInfo: ArraySlice<UInt8>
    let keyAlgorithm: ASN1ObjectIdentifier
    let publicKey: ArraySlice<UInt8>
    let signatureAlgorithm: ASN1ObjectIdentifier

    init?(_ der: [UInt8]) {
        guard let root = try? DER.parse(der), let whole = root.children(), whole.count == 3,
            var fields = whole[0].children().map({ $0[...] }), let algorithm = whole[1].children()?.first,
            let signatureAlgorithm = try? ASN1ObjectIdentifier(derEncoded: algorithm)
        else { return nil }
        let version = ASN1Identifier(tagWithNumber: 0, tagClass: .contextSpecific)
        if fields.first?.identifier == version { fields = fields.dropFirst() }
        let parts = Array(fields)
        guard parts.count >= 6, case .primitive(let serialNumber) = parts[0].content,
            let key = parts[5].children(), key.count == 2, case .primitive(let bits) = key[1].content,
            let keyAlgorithm = key[0].children()?.first.flatMap({ try? ASN1ObjectIdentifier(derEncoded: $0) })
        else { return nil }
        self.serialNumber = serialNumber
        issuer = parts[2].encodedBytes
        subject = parts[4].encodedBytes
        subjectPublicKeyInfo = parts[5].encodedBytes
        publicKey = bits.dropFirst()
        self.keyAlgorithm = keyAlgorithm
        self.signatureAlgorithm = signatureAlgorithm
    }

    /// The size of an RSA or EC key in bits, even of a key that is too short to be used.
    var keyBits: Int? {
        switch keyAlgorithm {
        case [1, 2, 840, 113_549, 1, 1, 1], [1, 2, 840, 10_045, 2, 1]: KeyFacts(bytes: publicKey).bits
        default: nil
        }
    }
}

extension ASN1Node {
    /// Returns the nodes of a constructed value; nil for a primitive value.
    func children() -> [ASN1Node]? {
        guard case .constructed(let nodes) = content else { return nil }
        return Array(nodes)
    }
}
