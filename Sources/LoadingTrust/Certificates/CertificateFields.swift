// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import SwiftASN1
import X509

/// The fields of a certificate as they are encoded (RFC 5280, section 4.1), for any kind of key and signature.
struct CertificateFields {
    let serialNumber: ArraySlice<UInt8>
    let issuer: ArraySlice<UInt8>
    let notBefore: Date
    let notAfter: Date
    let subject: ArraySlice<UInt8>
    let subjectPublicKeyInfo: ArraySlice<UInt8>
    let keyAlgorithm: ASN1ObjectIdentifier
    let publicKey: ArraySlice<UInt8>
    let signatureAlgorithm: ASN1ObjectIdentifier
    let signature: SignatureAlgorithm
    private let extensions: ASN1Node?

    init?(_ der: [UInt8]) {
        guard let root = try? DER.parse(der), let whole = root.children(), whole.count == 3,
            var fields = whole[0].children().map({ $0[...] }), let signatureAlgorithm = whole[1].children()?.first?.name,
            let signature = SignatureAlgorithm(whole[1])
        else { return nil }
        let version = ASN1Identifier(tagWithNumber: 0, tagClass: .contextSpecific)
        if fields.first?.identifier == version { fields = fields.dropFirst() }
        let parts = Array(fields)
        guard parts.count >= 6, case .primitive(let serialNumber) = parts[0].content,
            let dates = parts[3].children(), dates.count == 2, let begin = Self.date(dates[0]), let end = Self.date(dates[1]),
            let key = parts[5].children(), key.count == 2, case .primitive(let bits) = key[1].content,
            let keyAlgorithm = key[0].children()?.first?.name
        else { return nil }
        self.serialNumber = serialNumber
        issuer = parts[2].encodedBytes
        notBefore = begin
        notAfter = end
        subject = parts[4].encodedBytes
        subjectPublicKeyInfo = parts[5].encodedBytes
        publicKey = bits.dropFirst()
        self.keyAlgorithm = keyAlgorithm
        self.signatureAlgorithm = signatureAlgorithm
        self.signature = signature
        let tag = ASN1Identifier(tagWithNumber: 3, tagClass: .contextSpecific)
        extensions = parts.dropFirst(6).first { $0.identifier == tag }?.children()?.first
    }

    private static func date(_ node: ASN1Node) -> Date? {
        if let time = try? UTCTime(derEncoded: node) {
            return date(CivilDate(year: time.year, month: time.month, day: time.day), time.hours, time.minutes, time.seconds)
        }
        guard let time = try? GeneralizedTime(derEncoded: node) else { return nil }
        return date(CivilDate(year: time.year, month: time.month, day: time.day), time.hours, time.minutes, time.seconds)
    }

    private static func date(_ day: CivilDate, _ hours: Int, _ minutes: Int, _ seconds: Int) -> Date {
        Date(timeIntervalSince1970: Double(day.daysSince1970 * 86_400 + hours * 3_600 + minutes * 60 + seconds))
    }

    var subjectName: DistinguishedName? { Self.parsed(subject) }
    var issuerName: DistinguishedName? { Self.parsed(issuer) }

    /// Parses a value as one with its own tag; names have another parser, which is deprecated and would be preferred.
    private static func parsed<Value: DERParseable>(_ bytes: ArraySlice<UInt8>) -> Value? {
        try? Value(derEncoded: Array(bytes))
    }

    /// The key; nil if it is malformed or of a kind that is not supported.
    var key: Certificate.PublicKey? { try? Certificate.PublicKey(derEncoded: Array(subjectPublicKeyInfo)) }

    /// The subject alternative names; empty if the certificate has no such names, or if they are malformed.
    var alternativeNames: [GeneralName] {
        let items = extensions?.children()?.lazy.compactMap { try? Certificate.Extension(derEncoded: $0) }
        let names = items?.first { $0.oid == .X509ExtensionID.subjectAlternativeName }.flatMap {
            try? SubjectAlternativeNames($0)
        }
        return names.map { Array($0) } ?? []
    }

    /// Why a chain with this certificate cannot be verified; nil if the certificate is not known to be an obstacle.
    var obstacle: ServerCertificatePolicy.Fault? {
        if let bits = keyBits, bits < (publicKey.first == 0x30 ? 2_048 : 256) {
            return ServerCertificatePolicy.Fault(reason: .weakKey, text: "its key has only \(bits) bits")
        }
        if !signature.isSupported {
            return ServerCertificatePolicy.Fault(
                reason: signature.isWeak == true ? .weakSignature : .unsupported,
                text: "it is signed with \(signature.name), which is not supported"
            )
        }
        if key != nil { return nil }
        let kind = keyBits.map { "of \($0) bits" } ?? "(\(keyAlgorithm))"
        return ServerCertificatePolicy.Fault(reason: .unsupported, text: "its kind of key \(kind) is not supported")
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

    /// The object identifier; nil for another kind of value.
    var name: ASN1ObjectIdentifier? { try? ASN1ObjectIdentifier(derEncoded: self) }

    /// The content of an octet string, which BER may split; nil for another kind of value.
    var octets: [UInt8]? { (try? ASN1OctetString(berEncoded: self)).map { Array($0.bytes) } }
}
