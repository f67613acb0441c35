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
