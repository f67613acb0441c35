// SPDX-License-Identifier: Apache-2.0

import SwiftASN1
import X509

/// A subtree of the names of one kind (RFC 5280, section 4.2.1.10).
struct NameSubtree {
    enum Relation { case inside, outside, undecided }

    private enum Base {
        case domain(DomainName)
        case uri(DomainName)
        case mailbox(local: String?, DomainName)
        /// Nil if the base is malformed.
        case network(AddressRange?)
        case directory(DirectoryName)
        case other(ASN1ObjectIdentifier)
        case x400Address, ediPartyName, registeredID
    }

    private struct AddressRange {
        var base: ArraySlice<UInt8>
        var mask: ArraySlice<UInt8>

        /// Parses an address and a mask that begins with ones and ends with zeros ("in the style of RFC 4632").
        init?(_ bytes: ArraySlice<UInt8>) {
            guard bytes.count == 8 || bytes.count == 32 else { return nil }
            (base, mask) = (bytes.prefix(bytes.count / 2), bytes.suffix(bytes.count / 2))
            let rest = mask.drop { $0 == 0xFF }
            guard let first = rest.first else { return }
            let ones = (~first).leadingZeroBitCount
            guard first << ones == 0, rest.dropFirst().allSatisfy({ $0 == 0 }) else { return nil }
        }

        func contains(_ address: ArraySlice<UInt8>) -> Bool {
            base.count == address.count && zip(zip(base, mask), address).allSatisfy { ($0.0 ^ $1) & $0.1 == 0 }
        }
    }

    private let base: Base

    init(_ name: GeneralName) {
        base =
            switch name {
            case .dnsName(let name): .domain(DomainName(base: name.utf8[...]))
            case .uniformResourceIdentifier(let host): .uri(DomainName(base: host.utf8[...]))
            case .rfc822Name(let address):
                if let at = address.utf8.lastIndex(of: UInt8(ascii: "@")) {
                    .mailbox(local: String(address[..<at]), DomainName(address.utf8[at...].dropFirst()))
                } else {
                    .mailbox(local: nil, DomainName(base: address.utf8[...]))
                }
            case .ipAddress(let address): .network(AddressRange(address.bytes))
            case .directoryName(let name): .directory(DirectoryName(name))
            case .otherName(let name): .other(name.typeID)
            case .x400Address: .x400Address
            case .ediPartyName: .ediPartyName
            case .registeredID: .registeredID
            }
    }

    /// Returns whether a name is in the subtree; nil if the name is of another kind, for which the subtree says nothing.
    func relation(to name: CertificateName) -> Relation? {
        switch (base, name.form) {
        case (.domain(let base), .domain(let name)): base.relation(to: name)
        case (.uri(let base), .uri(let host)): host.map { base.relation(toHost: $0) } ?? .undecided
        case (.mailbox(nil, let base), .mailbox(let name)): name.map { base.relation(toHost: $0.host) } ?? .undecided
        case (.mailbox(let local?, let base), .mailbox(let name)):
            if let name, base.isValid, name.host.isValid {
                // Section 7.5: only the host is compared without regard to case.
                local == name.local && base.bytes == name.host.bytes ? .inside : .outside
            } else {
                .undecided
            }
        // RFC 9598, section 6: mailboxes with letters beyond ASCII have a kind of their own, but the same constraints.
        case (.mailbox, .other([1, 3, 6, 1, 5, 5, 7, 8, 9])): .undecided
        case (.network(let range), .address(let address)):
            if let range, address.count == 4 || address.count == 16 {
                range.contains(address) ? .inside : .outside
            } else {
                .undecided
            }
        case (.directory(let base), .directory(let name)): base.relation(to: name)
        // Nothing is known about the order of such names.
        case (.other(let kind), .other(let other)): kind == other ? .undecided : nil
        case (.x400Address, .x400Address), (.ediPartyName, .ediPartyName), (.registeredID, .registeredID): .undecided
        default: nil
        }
    }
}
