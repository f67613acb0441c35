// SPDX-License-Identifier: Apache-2.0

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
        package var range: AddressNetwork
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
