//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Crypto
package import FoundationEssentials

extension ResumePoint {
    /// What the bytes of a download came by: the connections, and the credential that the server took the request to come from.
    ///
    /// A load continues only what came by the same as its own answer does; what came to a request without a credential is for every user. What
    /// is not known is the same as nothing.
    package struct Source: Hashable, Sendable {
        /// Whom the server took the request to come from.
        package enum Credential: Hashable, Sendable {
            case none
            /// What the request itself says in `Authorization`.
            ///
            /// The request is part of the resume data, or the app gives another one for the same file, and answers for it.
            case request
            /// One of the session's, or the answer to a challenge: its seals under the keys that the load had, Base64 of 32 bytes each.
            ///
            /// Resume data may travel: without one of the keys nothing can be tried against a seal.
            case sealed([String])
            /// One that cannot be told from others.
            case unknown

            /// Whether both are known to be the same, or the earlier bytes came to a request without one.
            func accepts(_ earlier: Credential) -> Bool {
                switch (self, earlier) {
                case (_, .none), (.request, .request): true
                case (.sealed(let seals), .sealed(let others)): !Set(seals).isDisjoint(with: others)
                case (.none, _), (.request, _), (.sealed, _), (.unknown, _): false
                }
            }
        }

        /// The digest of all that vouched for the servers (``voucher(of:)``); nil where that is not known.
        package var voucher: Data?
        package var credential = Credential.unknown
        /// What the TLS connections agreed on, by host.
        package var connections: [String: ConnectionSecurity] = [:]

        /// An unknown one.
        package init() {}

        /// A digest that is the same for the same vouchers alone, in whatever order and however often they come.
        ///
        /// - Parameter vouchers: The parts of each.
        /// - Returns: SHA-256 of them.
        package static func voucher(of vouchers: [[Data]]) -> Data {
            let digests = vouchers.map { digest(of: $0) }.sorted { $0.lexicographicallyPrecedes($1) }
            var distinct: [Data] = []
            for digest in digests where digest != distinct.last { distinct.append(digest) }
            return digest(of: distinct)
        }

        private static func digest(of parts: [Data]) -> Data {
            var hash = SHA256()
            for part in parts { hash.update(data: Data(SHA256.hash(data: part))) }
            return Data(hash.finalize())
        }

        /// Whether what came by this may continue what came earlier, as far as no load's own terms decide
        /// (``ConnectionSecurity/satisfies(_:versions:)``).
        package func accepts(_ earlier: Source) -> Bool {
            guard let voucher, voucher == earlier.voucher else { return false }
            return credential.accepts(earlier.credential)
        }

        /// Adds the connections that the bytes before came over.
        package mutating func join(_ earlier: Source) {
            connections.merge(earlier.connections) { $0.joined(with: $1) }
        }

        /// The same, or an unknown one where there is more than resume data takes: a download begins again then.
        package var bounded: Source { isPlausible ? self : Source() }

        // MARK: As text

        static let maximumConnections = 64
        /// Of one chain.
        static let maximumKeys = 32
        private static let maximumSeals = 4

        var isPlausible: Bool {
            guard voucher.map({ $0.count == SHA256.Digest.byteCount }) ?? true, connections.count <= Self.maximumConnections,
                connections.allSatisfy({ Self.isPlausible($0, $1) })
            else { return false }
            guard case .sealed(let seals) = credential else { return true }
            return 1...Self.maximumSeals ~= seals.count
                && seals.allSatisfy { Data(base64Encoded: $0)?.count == SHA256.Digest.byteCount }
        }

        /// A host is one word of visible ASCII.
        ///
        /// A key that is unknown is empty.
        private static func isPlausible(_ host: String, _ connection: ConnectionSecurity) -> Bool {
            !host.isEmpty && host.utf8.allSatisfy { 0x21...0x7e ~= $0 } && connection.keys.count <= maximumKeys
                && connection.keys.allSatisfy { $0.isEmpty || $0.count == SHA256.Digest.byteCount }
        }

        /// Nil where it is unknown.
        var voucherText: String? { voucher?.base64EncodedString() }

        /// Nil where it is unknown.
        var credentialTexts: [String]? {
            switch credential {
            case .none: []
            case .request: ["request"]
            case .sealed(let seals): seals
            case .unknown: nil
            }
        }

        /// Host, version, two flags, and keys in Base64, `-` for an unknown one: words with a space between them.
        var connectionTexts: [String] {
            connections.sorted { $0.key < $1.key }.map { host, connection in
                let flags = (connection.hasForwardSecrecy ? "1" : "0") + (connection.hasStrongKeys ? "1" : "0")
                let keys = connection.keys.map { $0.isEmpty ? "-" : $0.base64EncodedString() }
                return ([host, String(connection.version), flags] + keys).joined(separator: " ")
            }
        }

        /// Nil where a text is not one that the properties above write.
        init?(voucher: String?, credential: [String]?, connections: [String]) {
            if let voucher {
                guard let digest = Data(base64Encoded: voucher) else { return nil }
                self.voucher = digest
            }
            switch credential {
            case nil: self.credential = .unknown
            case []: self.credential = .none
            case ["request"]: self.credential = .request
            case .some(let seals): self.credential = .sealed(seals)
            }
            guard connections.count <= Self.maximumConnections else { return nil }
            for text in connections {
                let words = text.split(separator: " ", maxSplits: Self.maximumKeys + 3, omittingEmptySubsequences: false)
                guard words.count >= 3, let version = UInt16(words[1]), words[2].count == 2,
                    words[2].allSatisfy({ $0 == "0" || $0 == "1" })
                else { return nil }
                var keys: [Data] = []
                for word in words.dropFirst(3) {
                    guard let key = word == "-" ? Data() : Data(base64Encoded: String(word)) else { return nil }
                    keys.append(key)
                }
                let connection = ConnectionSecurity(
                    version: version, hasForwardSecrecy: words[2].hasPrefix("1"), hasStrongKeys: words[2].hasSuffix("1"),
                    keys: keys)
                guard self.connections.updateValue(connection, forKey: String(words[0])) == nil else { return nil }
            }
            guard isPlausible else { return nil }
        }
    }
}
