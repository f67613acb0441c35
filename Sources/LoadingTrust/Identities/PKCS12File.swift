// SPDX-License-Identifier: Apache-2.0

import Crypto
import FoundationEssentials
import SwiftASN1

/// A PKCS #12 file (RFC 7292) in password integrity mode: its certificates and private keys.
///
/// The TLS library's parser is not used, because its Swift interface traps on a file without a key.
struct PKCS12File {
    struct Content {
        /// The certificates in DER.
        var certificates: [Data] = []
        /// The private keys, unencrypted, as PKCS #8 in DER.
        var keys: [[UInt8]] = []
        fileprivate var rounds = RoundBudget()

        fileprivate mutating func decrypt(_ value: EncryptedValue, _ secret: PasswordBytes) throws(IdentityFailure) -> [UInt8] {
            try value.decrypted(with: secret, &rounds)
        }
    }

    private enum Name {
        static let data: ASN1ObjectIdentifier = [1, 2, 840, 113_549, 1, 7, 1]
        static let encryptedData: ASN1ObjectIdentifier = [1, 2, 840, 113_549, 1, 7, 6]
        static let keyBag: ASN1ObjectIdentifier = [1, 2, 840, 113_549, 1, 12, 10, 1, 1]
        static let shroudedKeyBag: ASN1ObjectIdentifier = [1, 2, 840, 113_549, 1, 12, 10, 1, 2]
        static let certificateBag: ASN1ObjectIdentifier = [1, 2, 840, 113_549, 1, 12, 10, 1, 3]
        static let nestedBag: ASN1ObjectIdentifier = [1, 2, 840, 113_549, 1, 12, 10, 1, 6]
        static let x509: ASN1ObjectIdentifier = [1, 2, 840, 113_549, 1, 9, 22, 1]
    }

    private static let damaged = IdentityFailure.malformed("the PKCS #12 file is damaged")

    /// Decrypts the content of a file.
    ///
    /// A missing password and "" are equivalent, because programs encode a missing password in two ways.
    static func content(of file: [UInt8], password: String?) throws(IdentityFailure) -> Content {
        guard let root = try? BER.parse(file), root.identifier == .sequence, let fields = root.children(), fields.count >= 2,
            let authenticated = fields[1].children(), let type = authenticated.first?.name
        else { throw .malformed("it is not a PKCS #12 file") }
        guard type == Name.data else { throw .unsupported("a PKCS #12 file that is signed with a public key") }
        guard authenticated.count == 2, let safe = authenticated[1].children()?.first?.octets else { throw damaged }
        var content = Content()
        var secret = PasswordBytes(password ?? "")
        if fields.count > 2 {
            guard let seal = PKCS12Seal(fields[2]) else { throw .unsupported("the integrity check of the PKCS #12 file") }
            if try !seal.matches(safe, secret, &content.rounds) {
                let none = PasswordBytes.none
                guard password ?? "" == "", try seal.matches(safe, none, &content.rounds) else {
                    throw password == nil ? .passwordRequired : .wrongPassword
                }
                secret = none
            }
        }
        guard let infos = (try? BER.parse(safe))?.children() else { throw damaged }
        for info in infos { try read(info, secret, into: &content) }
        return content
    }

    /// Reads a `ContentInfo` (section 4.1): encrypted or unencrypted bags.
    private static func read(
        _ info: ASN1Node, _ secret: PasswordBytes, into content: inout Content
    ) throws(IdentityFailure) {
        guard let parts = info.children(), parts.count == 2, let type = parts[0].name, let inner = parts[1].children()?.first
        else { throw damaged }
        switch type {
        case Name.data:
            guard let bags = inner.octets else { throw damaged }
            try read(bags: bags, secret, into: &content, depth: 0)
        case Name.encryptedData:
            guard let encrypted = inner.children()?.last.flatMap(EncryptedValue.init(encryptedContent:)) else { throw damaged }
            try read(bags: try content.decrypt(encrypted, secret), secret, into: &content, depth: 0)
        default: throw .unsupported("a PKCS #12 file that is encrypted with a public key")
        }
    }

    private static func read(
        bags: [UInt8], _ secret: PasswordBytes, into content: inout Content, depth: Int
    ) throws(IdentityFailure) {
        guard let bags = (try? BER.parse(bags))?.children() else { throw damaged }
        for bag in bags {
            guard let parts = bag.children(), parts.count >= 2, let type = parts[0].name, let value = parts[1].children()?.first
            else { throw damaged }
            switch type {
            case Name.keyBag: content.keys.append(Array(value.encodedBytes))
            case Name.shroudedKeyBag:
                guard let encrypted = EncryptedValue(encryptedKey: value) else { throw damaged }
                content.keys.append(try content.decrypt(encrypted, secret))
            case Name.certificateBag:
                guard let certificate = value.children(), certificate.count == 2 else { throw damaged }
                guard certificate[0].name == Name.x509 else { continue }
                guard let der = certificate[1].children()?.first?.octets else { throw damaged }
                content.certificates.append(Data(der))
            case Name.nestedBag:
                if depth > 8 { throw damaged }
                try read(bags: Array(value.encodedBytes), secret, into: &content, depth: depth + 1)
            default: continue
            }
        }
    }
}
