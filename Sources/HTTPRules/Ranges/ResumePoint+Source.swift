// SPDX-License-Identifier: Apache-2.0

import Crypto
package import FoundationEssentials

extension ResumePoint {
    /// The source of a download's bytes: the connections, and the credential that the server received.
    ///
    /// A load continues earlier bytes only if their source matches the source of its own response. Bytes received without a
    /// credential are valid for every user. An unknown source matches no other source.
    package struct Source: Hashable, Sendable {
        /// The credential that the server received.
        package enum Credential: Hashable, Sendable {
            case none
            /// The request's own `Authorization` field.
            ///
            /// The request is part of the resume data. If the app provides another request for the same file, the app is
            /// responsible for using the same credential.
            case request
            /// A credential of the session or the response to a challenge. The values are seals of the credential, one for each key
            /// of the load, each Base64 of 32 bytes.
            ///
            /// Resume data can be copied to other machines. Without one of the keys, the seals cannot be used to check
            /// guesses of the credential.
            case sealed([String])
            /// A credential that cannot be compared with others.
            case unknown

            /// Whether both credentials are known to be equal, or the earlier bytes were received without a credential.
            func accepts(_ earlier: Credential) -> Bool {
                switch (self, earlier) {
                case (_, .none), (.request, .request): true
                case (.sealed(let seals), .sealed(let others)): !Set(seals).isDisjoint(with: others)
                case (.none, _), (.request, _), (.sealed, _), (.unknown, _): false
                }
            }
        }

        /// The digest of what established the trust in the servers, such as roots (``voucher(of:)``); nil if unknown.
        package var voucher: Data?
        package var credential = Credential.unknown
        /// The security of the TLS connections, by host.
        package var connections: [String: ConnectionSecurity] = [:]

        /// Creates an unknown source.
        package init() {}

        /// Returns a digest that is equal only for equal sets of vouchers, regardless of their order and of duplicates.
        ///
        /// - Parameter vouchers: The parts of each voucher.
        /// - Returns: A SHA-256 digest.
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

        /// Whether bytes from this source may continue bytes from an earlier source.
        ///
        /// The load's own requirements are checked separately (``ConnectionSecurity/satisfies(_:versions:)``).
        package func accepts(_ earlier: Source) -> Bool {
            guard let voucher, voucher == earlier.voucher else { return false }
            return credential.accepts(earlier.credential)
        }

        /// Adds the connections of the earlier bytes.
        package mutating func join(_ earlier: Source) {
            connections.merge(earlier.connections) { $0.joined(with: $1) }
        }

        /// This source if it is small enough for resume data; otherwise an unknown source, with which the download starts over.
        package var bounded: Source { isPlausible ? self : Source() }

        // MARK: Text representation

        static let maximumConnections = 64
        /// The maximum number of keys in one certificate chain.
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

        /// Whether a connection is valid: the host is one word of visible ASCII.
        ///
        /// An empty key stands for an unknown key.
        private static func isPlausible(_ host: String, _ connection: ConnectionSecurity) -> Bool {
            !host.isEmpty && host.utf8.allSatisfy { 0x21...0x7e ~= $0 } && connection.keys.count <= maximumKeys
                && connection.keys.allSatisfy { $0.isEmpty || $0.count == SHA256.Digest.byteCount }
        }

        /// The voucher as text; nil if unknown.
        var voucherText: String? { voucher?.base64EncodedString() }

        /// The credential as texts; nil if unknown.
        var credentialTexts: [String]? {
            switch credential {
            case .none: []
            case .request: ["request"]
            case .sealed(let seals): seals
            case .unknown: nil
            }
        }

        /// One text per connection: the host, the version, two flags, and the keys in Base64 (`-` for an unknown key), separated by
        /// spaces.
        var connectionTexts: [String] {
            connections.sorted { $0.key < $1.key }.map { host, connection in
                let flags = (connection.hasForwardSecrecy ? "1" : "0") + (connection.hasStrongKeys ? "1" : "0")
                let keys = connection.keys.map { $0.isEmpty ? "-" : $0.base64EncodedString() }
                return ([host, String(connection.version), flags] + keys).joined(separator: " ")
            }
        }

        /// Parses the texts; returns nil if a text was not written by the properties above.
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
