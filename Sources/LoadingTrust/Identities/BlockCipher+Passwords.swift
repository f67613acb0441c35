// SPDX-License-Identifier: Apache-2.0

import Crypto
import CryptoExtras
import FoundationEssentials
import SwiftASN1

/// The password-based ciphers of PKCS #5 version 2 (RFC 8018) and of PKCS #12 (RFC 7292, appendix C).
///
/// Of the latter, those are supported that a program still writes unless told otherwise: RC2 with 40 bits for certificates (macOS's
/// Keychain Access), and triple DES with three keys (Keychain Access for private keys, .NET and Windows for both).
extension BlockCipher {
    private enum Name {
        static let pbes2: ASN1ObjectIdentifier = [1, 2, 840, 113_549, 1, 5, 13]
        static let pbkdf2: ASN1ObjectIdentifier = [1, 2, 840, 113_549, 1, 5, 12]
        static let tripleDES: ASN1ObjectIdentifier = [1, 2, 840, 113_549, 1, 12, 1, 3]
        static let rc2of40: ASN1ObjectIdentifier = [1, 2, 840, 113_549, 1, 12, 1, 6]
    }

    private static let damaged = IdentityFailure.malformed("its encryption parameters are malformed")

    init(_ algorithm: ASN1Node, _ password: PasswordBytes, _ rounds: inout RoundBudget) throws(IdentityFailure) {
        guard let parts = algorithm.children(), parts.count == 2, let name = parts[0].name,
            let parameters = parts[1].children(), parameters.count == 2
        else { throw Self.damaged }
        if name == Name.pbes2 {
            self = try Self.pbes2(derivation: parameters[0], encryption: parameters[1], password, &rounds)
            return
        }
        guard let salt = parameters[0].octets, let count = try? Int(derEncoded: parameters[1]), RoundBudget.isReasonable(count)
        else { throw Self.damaged }
        // The initialization vector costs one SHA-1 hash per round; the longest key costs two hashes per round.
        try rounds.spend(count, times: 3)
        func key(_ use: PasswordKeyUse, _ byteCount: Int) -> [UInt8] {
            Insecure.SHA1.key(password.utf16, salt: salt, rounds: count, use: use, count: byteCount)
        }
        switch name {
        case Name.tripleDES: self = .tripleDES(key: key(.encryption, 24), start: key(.initialization, 8))
        case Name.rc2of40: self = .rc2(key: key(.encryption, 5), start: key(.initialization, 8))
        default:
            // Those of RFC 7292, appendix C.
            let isOutdated = "\(name)".hasPrefix("1.2.840.113549.1.12.1.")
            throw isOutdated ? .outdatedCipher("\(name)") : .unsupported("its cipher (\(name))")
        }
    }

    /// Parses PBES2 parameters (RFC 8018, section 6.2).
    private static func pbes2(
        derivation: ASN1Node, encryption: ASN1Node, _ password: PasswordBytes, _ rounds: inout RoundBudget
    ) throws(IdentityFailure) -> BlockCipher {
        guard let function = derivation.children(), function.count == 2, let name = function[0].name,
            let fields = function[1].children(), let scheme = encryption.children(), let schemeName = scheme.first?.name
        else { throw damaged }
        guard name == Name.pbkdf2 else { throw .unsupported("its key derivation (\(name))") }
        guard let (make, keyCount, startCount) = BlockCipher.named(schemeName) else {
            throw .unsupported("its cipher (\(schemeName))")
        }
        guard scheme.count == 2, let start = scheme[1].octets, start.count == startCount, fields.count >= 2,
            let salt = fields[0].octets, let count = try? Int(derEncoded: fields[1]), RoundBudget.isReasonable(count)
        else { throw damaged }
        // With the shortest hash, the key costs at most two hashes per round.
        try rounds.spend(count, times: keyCount > 20 ? 2 : 1)
        let hash = try randomFunction(fields.dropFirst(2).last)
        guard
            let key = try? KDF.Insecure.PBKDF2.deriveKey(
                from: password.utf8, salt: salt, using: hash, outputByteCount: keyCount, unsafeUncheckedRounds: count)
        else { throw damaged }
        return make(key.withUnsafeBytes { Array($0) }, start)
    }

    /// Returns the pseudorandom function of PBKDF2 (RFC 8018, appendix A.2), by default HMAC with SHA-1.
    ///
    /// `node` is the last field of the parameters, which contains either the function or the length of the key.
    private static func randomFunction(_ node: ASN1Node?) throws(IdentityFailure) -> KDF.Insecure.PBKDF2.HashFunction {
        guard let node, node.identifier == .sequence else { return .insecureSHA1 }
        guard let name = node.children()?.first?.name else { throw damaged }
        switch name {
        case [1, 2, 840, 113_549, 2, 7]: return .insecureSHA1
        case [1, 2, 840, 113_549, 2, 8]: return .insecureSHA224
        case [1, 2, 840, 113_549, 2, 9]: return .sha256
        case [1, 2, 840, 113_549, 2, 10]: return .sha384
        case [1, 2, 840, 113_549, 2, 11]: return .sha512
        default: throw .unsupported("its key derivation (\(name))")
        }
    }
}
