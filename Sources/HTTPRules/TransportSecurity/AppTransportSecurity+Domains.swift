//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import FoundationEssentials

extension AppTransportSecurity {
    /// An entry of `NSExceptionDomains` for one domain.
    ///
    /// The entry replaces every other rule: "Domains you specify in that dictionary aren't affected by" `NSAllowsArbitraryLoads`.
    /// An entry without any key makes its domain fully subject to App Transport Security, including hosts that are exempt
    /// otherwise.
    package struct Exception: Sendable, Hashable {
        /// `NSIncludesSubdomains`: "all subdomains of the domain", of any depth.
        ///
        /// *Differs from* Apple's current statement that only subdomains "that have one additional path component" are included.
        /// The documentation had no such limit for years, and dictionaries written at that time rely on it. For pins, including
        /// more subdomains is safer.
        package var includesSubdomains: Bool
        /// `NSExceptionAllowsInsecureHTTPLoads`: "allow insecure HTTP loads for the given domain, or … be able to loosen the
        /// server trust evaluation requirements for HTTPS connections to the domain". "Using only this key also doesn't change
        /// the TLS or forward secrecy requirements."
        package var allowsInsecureLoads: Bool
        /// `NSExceptionMinimumTLSVersion`, "with a default value of `TLSv1.2`", as the protocol's version number.
        package var minimumVersion: UInt16
        /// `NSExceptionRequiresForwardSecrecy`; "disabling this requirement also removes the key length check".
        package var requiresForwardSecrecy: Bool

        package init(
            includesSubdomains: Bool = false,
            allowsInsecureLoads: Bool = false,
            minimumVersion: UInt16 = 0x0303,
            requiresForwardSecrecy: Bool = true
        ) {
            self.includesSubdomains = includesSubdomains
            self.allowsInsecureLoads = allowsInsecureLoads
            self.minimumVersion = minimumVersion
            self.requiresForwardSecrecy = requiresForwardSecrecy
        }

        var demands: TLSDemands {
            TLSDemands(
                minimumVersion: minimumVersion,
                requiresForwardSecrecy: requiresForwardSecrecy,
                requiresStrongKeys: requiresForwardSecrecy,
                enforcesTrust: !allowsInsecureLoads
            )
        }
    }

    /// An exception for addresses, for which "the `NSIncludesSubdomains` key has no effect".
    package struct RangeException: Sendable, Hashable {
        package var range: AddressRange
        /// The key as it was written.
        package var key: String
        package var exception: Exception
    }

    /// An entry of `NSPinnedDomains` for one domain.
    package struct Pins: Sendable, Hashable {
        package var includesSubdomains: Bool
        /// `NSPinnedLeafIdentities`: SHA-256 hashes of SubjectPublicKeyInfo.
        ///
        /// The server's certificate must match one of the hashes.
        package let leaf: [Data]
        /// `NSPinnedCAIdentities`: SHA-256 hashes, one of which a CA certificate in the chain must match.
        package let ca: [Data]
        /// The error in the entry, if any.
        ///
        /// If there is an error, all connections to the domain fail, because the domain was meant to be pinned.
        package let fault: String?

        /// Creates an entry: "You must include one or more" identities, each of 32 bytes; otherwise ``fault`` is set.
        package init(includesSubdomains: Bool = false, leaf: [Data] = [], ca: [Data] = [], fault: String? = nil) {
            self.includesSubdomains = includesSubdomains
            self.leaf = leaf
            self.ca = ca
            if let fault {
                self.fault = fault
            } else if leaf.isEmpty, ca.isEmpty {
                self.fault = "it names no key"
            } else {
                self.fault = (leaf + ca).allSatisfy { $0.count == 32 } ? nil : "the hash of a key is not 32 bytes long"
            }
        }
    }
}

extension AppTransportSecurity {
    /// Addresses in `NSExceptionDomains`: a single address, or a "classless inter-domain routing (CIDR) range" (RFC 4632).
    package struct AddressRange: Sendable, Hashable {
        /// Four or sixteen bytes.
        ///
        /// All bits after the prefix are zero.
        package let address: [UInt8]
        package let prefixLength: Int

        /// Parses `192.168.42.63`, `2001:db8:12::34` or `2001:db8:12::/48`; nil for any other text.
        package init?(_ text: String) {
            let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
            guard let first = parts.first, var address = Self.bytes(first) else { return nil }
            var length = address.count * 8
            if parts.count == 2 {
                guard let given = Self.decimal(parts[1]), given <= length else { return nil }
                length = given
            }
            for index in address.indices { address[index] &= Self.mask(byte: index, prefixLength: length) }
            self.address = address
            prefixLength = length
        }

        /// Whether an address, as 4 or 16 bytes, belongs to this range.
        func contains(_ other: [UInt8]) -> Bool {
            other.count == address.count
                && other.indices.allSatisfy { other[$0] & Self.mask(byte: $0, prefixLength: prefixLength) == address[$0] }
        }

        /// Returns the bytes of a host that is an address in its usual notation, with or without brackets and zone.
        ///
        /// The zone (RFC 6874) is ignored.
        static func bytes(ofHost host: String) -> [UInt8]? {
            let bare = HostName.unbracketed(host)
            let end = bare.firstIndex(of: "%") ?? bare.endIndex
            return bytes(bare[..<end])
        }

        private static func mask(byte: Int, prefixLength: Int) -> UInt8 {
            let bits = min(max(prefixLength - byte * 8, 0), 8)
            return UInt8(truncatingIfNeeded: 0xFF00 >> bits)
        }

        private static func bytes(_ text: Substring) -> [UInt8]? {
            text.contains(":") ? ipv6Bytes(text) : ipv4Bytes(text)
        }

        /// Parses four decimal numbers.
        ///
        /// Other notations of an IPv4 address are ambiguous.
        private static func ipv4Bytes(_ text: Substring) -> [UInt8]? {
            let numbers = text.split(separator: ".", omittingEmptySubsequences: false)
            let bytes = numbers.compactMap { decimal($0).flatMap { UInt8(exactly: $0) } }
            return numbers.count == 4 && bytes.count == 4 ? bytes : nil
        }

        /// Parses groups of hexadecimal digits, `::` for groups of zeros, and an optional IPv4 address at the end (RFC 4291,
        /// section 2.2).
        private static func ipv6Bytes(_ text: Substring) -> [UInt8]? {
            let halves = text.split(separator: "::", maxSplits: 1, omittingEmptySubsequences: false)
            guard let head = halves.first, let before = groups(head, allowsIPv4Suffix: halves.count == 1) else { return nil }
            guard halves.count == 2 else { return before.count == 16 ? before : nil }
            guard let after = groups(halves[1], allowsIPv4Suffix: true), before.count + after.count <= 14 else { return nil }
            return before + [UInt8](repeating: 0, count: 16 - before.count - after.count) + after
        }

        private static func groups(_ text: Substring, allowsIPv4Suffix: Bool) -> [UInt8]? {
            guard !text.isEmpty else { return [] }
            let parts = text.split(separator: ":", omittingEmptySubsequences: false)
            var bytes: [UInt8] = []
            for (index, part) in parts.enumerated() {
                if allowsIPv4Suffix, index == parts.count - 1, part.contains(".") {
                    guard let dotted = ipv4Bytes(part) else { return nil }
                    bytes += dotted
                } else {
                    guard part.utf8.count <= 4, part.first != "+", part.first != "-", let group = UInt16(part, radix: 16)
                    else { return nil }
                    bytes += [UInt8(group >> 8), UInt8(group & 0xFF)]
                }
            }
            return bytes.count <= 16 ? bytes : nil
        }

        /// Parses at most three digits without a leading zero, which some parsers would read as the start of an octal number.
        private static func decimal(_ text: Substring) -> Int? {
            guard 1...3 ~= text.utf8.count, text.utf8.allSatisfy({ $0 &- UInt8(ascii: "0") <= 9 }) else { return nil }
            guard text.utf8.count == 1 || text.utf8.first != UInt8(ascii: "0") else { return nil }
            return Int(text)
        }
    }
}
