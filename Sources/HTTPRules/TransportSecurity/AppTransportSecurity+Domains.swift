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
    /// What `NSExceptionDomains` says of one domain.
    ///
    /// It takes the place of every other rule: "Domains you specify in that dictionary aren't affected by"
    /// `NSAllowsArbitraryLoads`, so a domain without any key is under all of App Transport Security; the same is done for hosts
    /// that are otherwise exempt.
    package struct Exception: Sendable, Hashable {
        /// `NSIncludesSubdomains`: "all subdomains of the domain", of any depth.
        ///
        /// *Differs from* what Apple says today, that only those "that have one additional path component" are meant, because its
        /// documentation had no such limit for years, and dictionaries written then count on that; for pins, more is safer.
        package var includesSubdomains: Bool
        /// `NSExceptionAllowsInsecureHTTPLoads`: "allow insecure HTTP loads for the given domain, or … be able to loosen the
        /// server trust evaluation requirements for HTTPS connections to the domain". "Using only this key also doesn't change
        /// the TLS or forward secrecy requirements."
        package var allowsInsecureLoads: Bool
        /// `NSExceptionMinimumTLSVersion`, "with a default value of `TLSv1.2`", as it stands on the wire.
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

    /// An exception for addresses; "the `NSIncludesSubdomains` key has no effect" for it.
    package struct RangeException: Sendable, Hashable {
        package var range: AddressRange
        /// As it was written.
        package var key: String
        package var exception: Exception
    }

    /// What `NSPinnedDomains` says of one domain.
    package struct Pins: Sendable, Hashable {
        package var includesSubdomains: Bool
        /// `NSPinnedLeafIdentities`: SHA-256 of SubjectPublicKeyInfo, one of which the server's certificate has to have.
        package let leaf: [Data]
        /// `NSPinnedCAIdentities`: the same of an authority's certificate in the chain.
        package let ca: [Data]
        /// What is wrong with the pins: then the domain is not reached at all, because it was to be pinned.
        package let fault: String?

        /// "You must include one or more" identities, and each is of 32 bytes; else there is a fault.
        package init(includesSubdomains: Bool = false, leaf: [Data] = [], ca: [Data] = [], fault: String? = nil) {
            self.includesSubdomains = includesSubdomains
            self.leaf = leaf
            self.ca = ca
            if let fault {
                self.fault = fault
            } else if leaf.isEmpty, ca.isEmpty {
                self.fault = "it names no key"
            } else {
                self.fault = (leaf + ca).allSatisfy { $0.count == 32 } ? nil : "a key's hash is not of 32 bytes"
            }
        }
    }
}

extension AppTransportSecurity {
    /// Addresses as `NSExceptionDomains` names them: one, or a "classless inter-domain routing (CIDR) range" (RFC 4632).
    package struct AddressRange: Sendable, Hashable {
        /// Four or sixteen bytes, those after the prefix zero.
        package let address: [UInt8]
        package let prefixLength: Int

        /// `192.168.42.63`, `2001:db8:12::34`, `2001:db8:12::/48`; nil for anything else.
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

        /// Whether a host is an address of this range; a zone (RFC 6874) does not count.
        func contains(_ other: [UInt8]) -> Bool {
            other.count == address.count
                && other.indices.allSatisfy { other[$0] & Self.mask(byte: $0, prefixLength: prefixLength) == address[$0] }
        }

        /// The bytes of a host that is an address in its usual spelling, with or without brackets and zone.
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
            text.contains(":") ? longBytes(text) : dottedBytes(text)
        }

        /// Four decimal numbers: other spellings of an IPv4 address do not mean the same everywhere.
        private static func dottedBytes(_ text: Substring) -> [UInt8]? {
            let numbers = text.split(separator: ".", omittingEmptySubsequences: false)
            let bytes = numbers.compactMap { decimal($0).flatMap { UInt8(exactly: $0) } }
            return numbers.count == 4 && bytes.count == 4 ? bytes : nil
        }

        /// RFC 4291, section 2.2: groups of hexadecimal digits, `::` for groups of zeros, an IPv4 address at the end.
        private static func longBytes(_ text: Substring) -> [UInt8]? {
            let halves = text.split(separator: "::", maxSplits: 1, omittingEmptySubsequences: false)
            guard let head = halves.first, let before = groups(head, mayEndDotted: halves.count == 1) else { return nil }
            guard halves.count == 2 else { return before.count == 16 ? before : nil }
            guard let after = groups(halves[1], mayEndDotted: true), before.count + after.count <= 14 else { return nil }
            return before + [UInt8](repeating: 0, count: 16 - before.count - after.count) + after
        }

        private static func groups(_ text: Substring, mayEndDotted: Bool) -> [UInt8]? {
            guard !text.isEmpty else { return [] }
            let parts = text.split(separator: ":", omittingEmptySubsequences: false)
            var bytes: [UInt8] = []
            for (index, part) in parts.enumerated() {
                if mayEndDotted, index == parts.count - 1, part.contains(".") {
                    guard let dotted = dottedBytes(part) else { return nil }
                    bytes += dotted
                } else {
                    guard part.utf8.count <= 4, part.first != "+", part.first != "-", let group = UInt16(part, radix: 16)
                    else { return nil }
                    bytes += [UInt8(group >> 8), UInt8(group & 0xFF)]
                }
            }
            return bytes.count <= 16 ? bytes : nil
        }

        /// At most three digits, without a zero before them that some read as octal.
        private static func decimal(_ text: Substring) -> Int? {
            guard 1...3 ~= text.utf8.count, text.utf8.allSatisfy({ $0 &- UInt8(ascii: "0") <= 9 }) else { return nil }
            guard text.utf8.count == 1 || text.utf8.first != UInt8(ascii: "0") else { return nil }
            return Int(text)
        }
    }
}
