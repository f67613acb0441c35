// SPDX-License-Identifier: Apache-2.0

import SwiftASN1
import X509

/// The policy extensions of a certificate (RFC 5280, sections 4.2.1.4, 4.2.1.5, 4.2.1.11 and 4.2.1.14).
struct CertificatePolicies {
    enum Name {
        static let policies: ASN1ObjectIdentifier = [2, 5, 29, 32]
        static let mappings: ASN1ObjectIdentifier = [2, 5, 29, 33]
        static let constraints: ASN1ObjectIdentifier = [2, 5, 29, 36]
        static let inhibitAny: ASN1ObjectIdentifier = [2, 5, 29, 54]
        static let any: ASN1ObjectIdentifier = [2, 5, 29, 32, 0]
    }

    struct Malformed: Error {}

    private(set) var policies: Set<ASN1ObjectIdentifier> = []
    /// Maps an issuer's policy to the equivalent policies of its subjects.
    private(set) var mappings: [ASN1ObjectIdentifier: Set<ASN1ObjectIdentifier>] = [:]
    /// The number of further certificates before an explicit policy is required; nil if the certificate has no such field.
    private(set) var requireExplicitPolicy: Int?
    private(set) var inhibitPolicyMapping: Int?
    private(set) var inhibitAnyPolicy: Int?

    init(_ extensions: Certificate.Extensions) throws {
        for information in try extensions[oid: Name.policies].map(Self.items) ?? [] {
            guard let name = information.children()?.first else { throw Malformed() }
            policies.insert(try ASN1ObjectIdentifier(derEncoded: name))
        }
        for mapping in try extensions[oid: Name.mappings].map(Self.items) ?? [] {
            guard let names = try mapping.children()?.map(ASN1ObjectIdentifier.init(derEncoded:)), names.count == 2,
                !names.contains(Name.any)
            else { throw Malformed() }
            mappings[names[0], default: []].insert(names[1])
        }
        for field in try extensions[oid: Name.constraints].map(Self.items) ?? [] {
            let count = try Self.count(field, field.identifier)
            switch field.identifier {
            case ASN1Identifier(tagWithNumber: 0, tagClass: .contextSpecific): requireExplicitPolicy = count
            case ASN1Identifier(tagWithNumber: 1, tagClass: .contextSpecific): inhibitPolicyMapping = count
            default: throw Malformed()
            }
        }
        if let field = extensions[oid: Name.inhibitAny] { inhibitAnyPolicy = try Self.count(DER.parse(field.value), .integer) }
    }

    private static func items(_ field: Certificate.Extension) throws -> [ASN1Node] {
        let node = try DER.parse(field.value)
        guard node.identifier == .sequence, let items = node.children() else { throw Malformed() }
        return items
    }

    private static func count(_ node: ASN1Node, _ identifier: ASN1Identifier) throws -> Int {
        let count = try Int(derEncoded: node, withIdentifier: identifier)
        guard count >= 0 else { throw Malformed() }
        return count
    }
}
