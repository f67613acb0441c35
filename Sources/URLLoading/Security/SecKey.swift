// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import LoadingTrust

/// A public or private key.
///
/// Sendable because it is immutable.
public final class SecKey: NSObject, Sendable {
    /// The encoding that ``SecKeyCopyExternalRepresentation(_:_:)`` returns.
    let publicKey: Data
    let facts: KeyFacts
    let isPrivate: Bool

    /// The value of `kSecAttrKeyType` for an Ed25519 key.
    static let ed25519 = "Ed25519"

    init(publicKey: Data, _ facts: KeyFacts, isPrivate: Bool = false) {
        self.publicKey = publicKey
        self.facts = facts
        self.isPrivate = isPrivate
        super.init()
    }

    /// Whether the other object is an equal key.
    ///
    /// - Returns: Whether they are equal.
    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? SecKey else { return false }
        return other.publicKey == publicKey && other.isPrivate == isPrivate
    }

    /// The hash of the public key.
    public override var hash: Int { publicKey.hashValue }

    /// The type and the size, without private parts.
    public override var description: String {
        "<SecKey: \(isPrivate ? "private" : "public") \(facts.kind) key of \(facts.bits) bits>"
    }
}

/// Returns the encoding of a public key: PKCS #1 for an RSA key (RFC 8017, appendix A.1.1), X9.63 for an EC key, and the 32 bytes
/// of an Ed25519 key (RFC 8032, section 5.1.5).
///
/// Private keys cannot be exported: the error is `errSecUnimplemented`.
///
/// - Returns: The bytes, or nil for a private key.
@discardableResult
public func SecKeyCopyExternalRepresentation(
    _ key: SecKey, _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> CFData? {
    if key.isPrivate {
        error?.pointee = .passRetained(SecurityFailure.error(errSecUnimplemented, "private keys cannot be exported"))
        return nil
    }
    return key.publicKey as NSData
}

/// Returns the type, the size and the class of a key: `kSecAttrKeyType`, `kSecAttrKeySizeInBits`, `kSecAttrKeyClass`.
///
/// The type of an Ed25519 key is the string `Ed25519`.
///
/// - Returns: The attributes.
@discardableResult
public func SecKeyCopyAttributes(_ key: SecKey) -> CFDictionary? {
    let type =
        switch key.facts.kind {
        case .rsa: kSecAttrKeyTypeRSA
        case .ec: kSecAttrKeyTypeECSECPrimeRandom
        case .ed25519: SecKey.ed25519 as NSString
        }
    let attributes: [String: Any] = [
        kSecAttrKeyType as String: type,
        kSecAttrKeySizeInBits as String: key.facts.bits,
        kSecAttrKeyClass as String: key.isPrivate ? kSecAttrKeyClassPrivate : kSecAttrKeyClassPublic,
    ]
    return attributes as NSDictionary
}

/// Returns the public part of a key.
///
/// - Returns: The public key.
@discardableResult
public func SecKeyCopyPublicKey(_ key: SecKey) -> SecKey? { SecKey(publicKey: key.publicKey, key.facts) }

/// Returns the size of the key, rounded up to whole bytes; for an RSA key, also the size of a signature or an encrypted block.
///
/// - Returns: The size in bytes.
@discardableResult
public func SecKeyGetBlockSize(_ key: SecKey) -> Int { (key.facts.bits + 7) / 8 }

/// Creates a public key from its encoding.
///
/// - Parameters:
///   - keyData: The encoding that ``SecKeyCopyExternalRepresentation(_:_:)`` returns.
///   - attributes: At least `kSecAttrKeyType`. Private keys are not supported.
///   - error: Receives the reason if the key cannot be created.
/// - Returns: The key; nil and an error if the data is not a key.
@discardableResult
public func SecKeyCreateWithData(
    _ keyData: CFData, _ attributes: CFDictionary, _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> SecKey? {
    func attribute(_ name: CFString) -> String? { attributes.object(forKey: name) as? String }
    if attribute(kSecAttrKeyClass) == kSecAttrKeyClassPrivate as String {
        error?.pointee = .passRetained(SecurityFailure.error(errSecUnimplemented, "use SecIdentity for private keys"))
        return nil
    }
    let bytes = Data(referencing: keyData)
    let type = attribute(kSecAttrKeyType)
    let kind: KeyFacts.Kind = type == kSecAttrKeyTypeRSA as String ? .rsa : type == SecKey.ed25519 ? .ed25519 : .ec
    guard let facts = KeyFacts(publicKey: bytes, kind: kind) else {
        error?.pointee = .passRetained(SecurityFailure.error(errSecDecode, "the key cannot be parsed"))
        return nil
    }
    return SecKey(publicKey: bytes, facts)
}
