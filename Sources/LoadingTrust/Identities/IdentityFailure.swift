// SPDX-License-Identifier: Apache-2.0

/// Why a certificate and its key could not be read.
package enum IdentityFailure: Error, Sendable, Hashable {
    /// The data is not in the expected format, such as PEM or PKCS #12.
    case malformed(String)
    case noCertificate
    case noKey
    /// The key is encrypted, and no password was given.
    case passwordRequired
    case wrongPassword
    /// A cipher, a hash or a kind of key is not supported.
    case unsupported(String)
    /// Its cipher (an object identifier) is one that no program writes any more unless it is told to.
    case outdatedCipher(String)
    /// None of the certificates belongs to the key.
    case keyDoesNotMatch
}

extension IdentityFailure: CustomStringConvertible {
    package var description: String {
        switch self {
        case .malformed(let what): "the identity cannot be read: \(what)"
        case .noCertificate: "the identity has no certificate"
        case .noKey: "the identity has no private key"
        case .passwordRequired: "the private key is encrypted, and no password was given"
        case .wrongPassword: "the password of the identity is wrong"
        case .unsupported(let what): "the identity cannot be read: \(what) is not supported"
        case .outdatedCipher(let name):
            "the identity cannot be read: its cipher (\(name)) is outdated; to replace it in a PKCS #12 file, use 'openssl pkcs12 -legacy "
                + "-in OLD.p12 -out TEMPORARY.pem' and 'openssl pkcs12 -export -in TEMPORARY.pem -out NEW.p12'"
        case .keyDoesNotMatch: "none of the identity's certificates belongs to its private key"
        }
    }
}
