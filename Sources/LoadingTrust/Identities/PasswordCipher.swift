//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import Crypto
import CryptoExtras
import FoundationEssentials
import SwiftASN1

/// A password-based cipher, as PKCS #5 version 2 (RFC 8018) and PKCS #12 (RFC 7292, appendix C) define it.
struct PasswordCipher {
    private let cipher: BlockCipher

    private enum Name {
        static let pbes2: ASN1ObjectIdentifier = [1, 2, 840, 113_549, 1, 5, 13]
        static let pbkdf2: ASN1ObjectIdentifier = [1, 2, 840, 113_549, 1, 5, 12]
        static let tripleDES: ASN1ObjectIdentifier = [1, 2, 840, 113_549, 1, 12, 1, 3]
        static let doubleDES: ASN1ObjectIdentifier = [1, 2, 840, 113_549, 1, 12, 1, 4]
        static let rc2of128: ASN1ObjectIdentifier = [1, 2, 840, 113_549, 1, 12, 1, 5]
        static let rc2of40: ASN1ObjectIdentifier = [1, 2, 840, 113_549, 1, 12, 1, 6]
    }

    private static let damaged = IdentityFailure.malformed("its encryption parameters are malformed")

    init(_ algorithm: ASN1Node, _ password: PasswordBytes, _ rounds: inout RoundBudget) throws(IdentityFailure) {
        guard let parts = algorithm.children(), parts.count == 2, let name = try? ASN1ObjectIdentifier(derEncoded: parts[0]),
            let parameters = parts[1].children(), parameters.count == 2
        else { throw Self.damaged }
        if name == Name.pbes2 {
            cipher = try Self.pbes2(derivation: parameters[0], encryption: parameters[1], password, &rounds)
            return
        }
        guard let salt = try? ASN1OctetString(berEncoded: parameters[0]), let count = try? Int(derEncoded: parameters[1]),
            RoundBudget.isReasonable(count)
        else { throw Self.damaged }
        // The initialization vector costs one SHA-1 hash per round; the longest key costs two hashes per round.
        try rounds.spend(count, times: 3)
        func key(_ use: PKCS12KeyDerivation.Use, _ byteCount: Int) -> [UInt8] {
            PKCS12KeyDerivation.key(
                password.utf16, salt: Array(salt.bytes), rounds: count, use: use, count: byteCount, hash: .sha1
            )
        }
        let start = key(.initialization, 8)
        switch name {
        case Name.tripleDES: cipher = .tripleDES(key: key(.encryption, 24), start: start)
        case Name.doubleDES:
            let key = key(.encryption, 16)
            cipher = .tripleDES(key: key + key.prefix(8), start: start)
        case Name.rc2of128: cipher = .rc2(key: key(.encryption, 16), bits: 128, start: start)
        case Name.rc2of40: cipher = .rc2(key: key(.encryption, 5), bits: 40, start: start)
        default: throw .unsupported("its cipher (\(name))")
        }
    }

    func decrypt(_ bytes: [UInt8]) throws(IdentityFailure) -> [UInt8] { try cipher.decrypt(bytes) }

    /// Parses PBES2 parameters (RFC 8018, section 6.2).
    private static func pbes2(
        derivation: ASN1Node, encryption: ASN1Node, _ password: PasswordBytes, _ rounds: inout RoundBudget
    ) throws(IdentityFailure) -> BlockCipher {
        guard let function = derivation.children(), function.count == 2,
            let name = try? ASN1ObjectIdentifier(derEncoded: function[0]), let fields = function[1].children(),
            let scheme = encryption.children(), let schemeName = try? scheme.first.map(ASN1ObjectIdentifier.init(derEncoded:))
        else { throw damaged }
        guard name == Name.pbkdf2 else { throw .unsupported("its key derivation (\(name))") }
        guard let (make, keyCount, startCount) = BlockCipher.named(schemeName) else {
            throw .unsupported("its cipher (\(schemeName))")
        }
        guard scheme.count == 2, let start = try? ASN1OctetString(berEncoded: scheme[1]), start.bytes.count == startCount,
            fields.count >= 2, let salt = try? ASN1OctetString(berEncoded: fields[0]),
            let count = try? Int(derEncoded: fields[1]), RoundBudget.isReasonable(count)
        else { throw damaged }
        // With the shortest hash, the key costs at most two hashes per round.
        try rounds.spend(count, times: keyCount > 20 ? 2 : 1)
        let hash = try randomFunction(fields.dropFirst(2).last)
        guard
            let key = try? KDF.Insecure.PBKDF2.deriveKey(
                from: password.utf8, salt: Array(salt.bytes), using: hash, outputByteCount: keyCount,
                unsafeUncheckedRounds: count
            )
        else { throw damaged }
        return make(key.withUnsafeBytes { Array($0) }, Array(start.bytes))
    }

    /// Returns the pseudorandom function of PBKDF2 (RFC 8018, appendix A.2), by default HMAC with SHA-1.
    ///
    /// `node` is the last field of the parameters, which contains either the function or the length of the key.
    private static func randomFunction(_ node: ASN1Node?) throws(IdentityFailure) -> KDF.Insecure.PBKDF2.HashFunction {
        guard let node, node.identifier == .sequence else { return .insecureSHA1 }
        guard let first = node.children()?.first, let name = try? ASN1ObjectIdentifier(derEncoded: first) else { throw damaged }
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
