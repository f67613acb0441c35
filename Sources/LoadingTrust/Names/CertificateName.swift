// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import SwiftASN1
import X509

/// A name in a certificate, in the form that is compared with name constraints.
struct CertificateName: CustomStringConvertible {
    enum Form {
        case domain(DomainName)
        /// The host; nil if the URI has none.
        case uri(DomainName?)
        /// Nil if the address is malformed.
        case mailbox((local: String, host: DomainName)?)
        case address(ArraySlice<UInt8>)
        case directory(DirectoryName)
        case other(ASN1ObjectIdentifier)
        case x400Address, ediPartyName, registeredID
    }

    let form: Form
    private let name: GeneralName

    init(_ name: GeneralName) {
        self.name = name
        form =
            switch name {
            case .dnsName(let name): .domain(DomainName(name.utf8[...]))
            case .uniformResourceIdentifier(let text): .uri(Self.host(ofURI: text))
            case .rfc822Name(let address): .mailbox(Self.parts(ofMailbox: address))
            case .ipAddress(let address): .address(address.bytes)
            case .directoryName(let name): .directory(DirectoryName(name))
            case .otherName(let name): .other(name.typeID)
            case .x400Address: .x400Address
            case .ediPartyName: .ediPartyName
            case .registeredID: .registeredID
            }
    }

    /// Creates a name from that of a host; nil if the host is an address.
    init?(host: String) {
        if HostName.isAddress(host) { return nil }
        self.init(.dnsName(host.hasSuffix(".") ? String(host.dropLast()) : host))
    }

    /// Returns all names of a certificate, to which constraints apply.
    ///
    /// - Throws: An error if the alternative names are malformed.
    static func names(of certificate: Certificate) throws -> [CertificateName] {
        var names = certificate.subject.isEmpty ? [] : [CertificateName(.directoryName(certificate.subject))]
        if let others = try certificate.extensions.subjectAlternativeNames {
            names += others.map(CertificateName.init)
        } else {
            // Section 4.2.1.10: without alternative names, the subject may contain the mail address.
            for attribute in certificate.subject.joined() where attribute.type == .RDNAttributeType.emailAddress {
                names.append(CertificateName(.rfc822Name(String(attribute.value) ?? "")))
            }
        }
        return names
    }

    var description: String { String(TrustExplanation.text(of: name).prefix(100)) }

    /// Returns the host of a URI with an authority (RFC 3986, section 3.2).
    private static func host(ofURI text: String) -> DomainName? {
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let rest = text.utf8[colon...].dropFirst()
        guard rest.starts(with: "//".utf8) else { return nil }
        var authority = rest.dropFirst(2).prefix { !"/?#".utf8.contains($0) }
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) { authority = authority[at...].dropFirst() }
        if let colon = authority.lastIndex(of: UInt8(ascii: ":")) { authority = authority[..<colon] }
        return authority.isEmpty ? nil : DomainName(authority)
    }

    private static func parts(ofMailbox address: String) -> (local: String, host: DomainName)? {
        guard let at = address.utf8.lastIndex(of: UInt8(ascii: "@")), at > address.startIndex else { return nil }
        return (String(address[..<at]), DomainName(address.utf8[at...].dropFirst()))
    }
}
