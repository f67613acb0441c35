// SPDX-License-Identifier: Apache-2.0

/// The part of the network that an IP address belongs to (RFC 6890).
package enum AddressKind: Sendable, Hashable {
    /// An address that belongs to no other case.
    case global
    /// This machine; includes 0.0.0.0 and ::, to which Linux connects as to the loopback address.
    case loopback
    case linkLocal
    /// RFC 1918, RFC 4193, and other addresses that are not routed globally, such as those of RFC 6598.
    case privateUse
    /// Multicast and reserved addresses, and what is no address.
    case other

    /// Classifies the bytes of an address in network order.
    ///
    /// An IPv6 address that contains an IPv4 address for a translator or a tunnel (RFC 4291, 6052, 3056) is of the same kind as the
    /// IPv4 address.
    package init(_ bytes: [UInt8]) {
        switch bytes.count {
        case 4: self = Self.kind(of: bytes[0], bytes[1], bytes[2])
        case 16: self = Self.kind(ofIPv6: bytes)
        default: self = .other
        }
    }

    /// Whether a connection that is restricted to global addresses and to this kind may lead to an address of another kind.
    package func allows(_ other: AddressKind) -> Bool { other == .global || other == self && other != .other }

    private static func kind(of first: UInt8, _ second: UInt8, _ third: UInt8) -> AddressKind {
        switch (first, second, third) {
        case (0, _, _), (127, _, _): .loopback
        case (169, 254, _): .linkLocal
        case (10, _, _), (172, 16...31, _), (192, 168, _), (100, 64...127, _), (192, 0, 0), (198, 18...19, _): .privateUse
        case (224..., _, _): .other
        default: .global
        }
    }

    private static func kind(ofIPv6 bytes: [UInt8]) -> AddressKind {
        func embedded(at index: Int) -> AddressKind { kind(of: bytes[index], bytes[index + 1], bytes[index + 2]) }
        if bytes[..<10].allSatisfy({ $0 == 0 }) {
            if bytes[10] == 0xFF, bytes[11] == 0xFF { return embedded(at: 12) }
            if bytes[10] == 0, bytes[11] == 0 {
                // :: and ::1 are within 0.0.0.0/8, if read as IPv4.
                return embedded(at: 12)
            }
        }
        switch (bytes[0], bytes[1]) {
        case (0x00, 0x64) where bytes[2] == 0xFF && bytes[3] == 0x9B: return embedded(at: 12)
        case (0x20, 0x02): return embedded(at: 2)
        case (0xFE, 0x80...0xBF): return .linkLocal
        case (0xFE, 0xC0...), (0xFC...0xFD, _): return .privateUse
        case (0xFF, _): return .other
        default: return .global
        }
    }
}
