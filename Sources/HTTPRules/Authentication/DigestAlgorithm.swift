// SPDX-License-Identifier: Apache-2.0

import Crypto
import CryptoExtras
import FoundationEssentials
import HTTPWire

/// The hash algorithms of Digest (RFC 7616, section 6.1).
package enum DigestAlgorithm: String, Sendable, Hashable, CaseIterable {
    case md5 = "MD5"
    case md5sess = "MD5-sess"
    case sha256 = "SHA-256"
    case sha256sess = "SHA-256-sess"
    case sha512_256 = "SHA-512-256"
    case sha512_256sess = "SHA-512-256-sess"

    /// Returns nil for an unknown algorithm: "the challenge SHOULD be ignored" (section 3.3).
    package init?(name: String) {
        let name = name.lowercased()
        guard let algorithm = Self.allCases.first(where: { $0.rawValue.lowercased() == name }) else { return nil }
        self = algorithm
    }

    /// Whether the hash of the password is bound to the first nonce (section 3.4.2).
    package var isSession: Bool { rawValue.hasSuffix("-sess") }

    /// The rank of the algorithm, used to select the stronger of two algorithms.
    ///
    /// A session variant has the same rank as the plain algorithm.
    var strength: Int {
        switch self {
        case .md5, .md5sess: 1
        case .sha256, .sha256sess: 2
        case .sha512_256, .sha512_256sess: 3
        }
    }

    /// Returns the hash in hexadecimal, as in the header field.
    package func hash(_ bytes: [UInt8]) -> String {
        var hasher = Hasher(self)
        hasher.update(bytes)
        return hasher.finish()
    }

    /// Returns the hash of a text, which may be an ``OctetText``: of the octets that are sent.
    func hash(_ text: String) -> String { hash(OctetText.octets(of: text)) }

    /// Hashes a body incrementally, for `auth-int`.
    package struct Hasher: Sendable {
        private var function: any HashFunction & Sendable

        package init(_ algorithm: DigestAlgorithm) {
            switch algorithm {
            case .md5, .md5sess: function = Insecure.MD5()
            case .sha256, .sha256sess: function = SHA256()
            case .sha512_256, .sha512_256sess: function = SHA512256()
            }
        }

        package mutating func update(_ bytes: [UInt8]) { function.update(data: bytes) }

        package func finish() -> String { function.finalize().withUnsafeBytes { ASCII.hexadecimal($0) } }
    }
}
