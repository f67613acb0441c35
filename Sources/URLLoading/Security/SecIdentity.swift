// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import LoadingModel
internal import LoadingTrust

/// A certificate with its private key, for `URLCredential(identity:certificates:persistence:)`.
///
/// Linux has no keychain; identities come from files. Sendable because it is immutable.
public final class SecIdentity: NSObject, Sendable {
    let clientIdentity: ClientIdentity

    init(_ identity: ClientIdentity) {
        clientIdentity = identity
        super.init()
    }

    /// Creates an identity from PEM text; not in Apple's API.
    ///
    /// - Parameters:
    ///   - pem: The certificate, any intermediate certificates that the server needs, and the private key, unless `key` contains
    ///     it.
    ///   - key: The private key as PEM or DER, in the format of PKCS #8, PKCS #1 or SEC 1. RSA, P-256, P-384, P-521 and Ed25519 are
    ///     supported.
    ///   - password: The password of an encrypted key.
    /// - Throws: An error in `NSOSStatusErrorDomain` with the reason.
    public convenience init(pem: Data, key: Data? = nil, password: String? = nil) throws {
        self.init(
            try Self.reading { () throws(IdentityFailure) in
                try IdentityReader.identity(pem: pem, key: key, password: password)
            })
    }

    /// Creates an identity from a PKCS #12 file (`.p12`, `.pfx`); not in Apple's API.
    ///
    /// - Parameters:
    ///   - pkcs12: The contents of the file.
    ///   - password: The password of the file.
    /// - Throws: An error in `NSOSStatusErrorDomain` with the reason, such as `errSecAuthFailed` for a wrong password.
    public convenience init(pkcs12: Data, password: String?) throws {
        self.init(
            try Self.reading { () throws(IdentityFailure) in
                try IdentityReader.identity(pkcs12: pkcs12, password: password)
            })
    }

    private static func reading(_ read: () throws(IdentityFailure) -> ClientIdentity) throws -> ClientIdentity {
        do {
            return try read()
        } catch {
            throw SecurityFailure.error(SecurityFailure.status(of: error), error.description)
        }
    }

    /// The certificates: the leaf first, then the intermediate certificates.
    var certificates: [SecCertificate] { clientIdentity.certificates.map { SecCertificate(presented: $0) } }

    /// Whether the other object is an equal identity.
    ///
    /// - Returns: Whether they are equal.
    public override func isEqual(_ object: Any?) -> Bool { (object as? SecIdentity)?.clientIdentity == clientIdentity }

    /// The hash of the certificates.
    public override var hash: Int { clientIdentity.certificates.hashValue }

    /// A summary of the certificate, without the key.
    public override var description: String {
        "<SecIdentity: \(certificates.first?.facts?.subjectSummary ?? "unreadable")>"
    }
}

/// Copies the certificate of an identity.
///
/// - Returns: `errSecSuccess`, or `errSecItemNotFound` if there is no certificate.
@discardableResult
public func SecIdentityCopyCertificate(
    _ identityRef: SecIdentity, _ certificateRef: UnsafeMutablePointer<SecCertificate?>
) -> OSStatus {
    guard let certificate = identityRef.certificates.first else { return errSecItemNotFound }
    certificateRef.pointee = certificate
    return errSecSuccess
}

/// Copies the private key of an identity.
///
/// - Returns: `errSecSuccess`, or `errSecItemNotFound` if there is no certificate.
@discardableResult
public func SecIdentityCopyPrivateKey(
    _ identityRef: SecIdentity, _ privateKeyRef: UnsafeMutablePointer<SecKey?>
) -> OSStatus {
    guard let facts = identityRef.certificates.first?.facts, let key = facts.key else { return errSecItemNotFound }
    privateKeyRef.pointee = SecKey(publicKey: facts.publicKey, key, isPrivate: true)
    return errSecSuccess
}

/// Imports the identity in a PKCS #12 file (RFC 7292), encrypted as current programs do it by default.
///
/// - Parameters:
///   - pkcs12_data: The contents of the file.
///   - options: The password as `kSecImportExportPassphrase`.
///   - items: One dictionary, with `kSecImportItemIdentity`, `kSecImportItemCertChain`, `kSecImportItemTrust` and
///     `kSecImportItemLabel`.
/// - Returns: `errSecSuccess`, `errSecAuthFailed` if the password is wrong or missing, `errSecDecode` if the file is malformed or
///   not supported, or `errSecItemNotFound` if the file lacks a certificate or its key.
@discardableResult
public func SecPKCS12Import(
    _ pkcs12_data: CFData, _ options: CFDictionary, _ items: UnsafeMutablePointer<CFArray?>
) -> OSStatus {
    let password = options.object(forKey: kSecImportExportPassphrase) as? String
    do {
        let identity = SecIdentity(
            try IdentityReader.identity(pkcs12: Data(referencing: pkcs12_data), password: password)
        )
        let certificates = identity.certificates
        let item: [String: Any] = [
            kSecImportItemIdentity as String: identity,
            kSecImportItemCertChain as String: certificates as NSArray,
            kSecImportItemTrust as String: SecTrust(certificates.map(\.der), policies: [SecPolicyCreateBasicX509()]),
            kSecImportItemLabel as String: (certificates.first?.facts?.subjectSummary ?? "") as NSString,
        ]
        items.pointee = [item as NSDictionary] as NSArray
        return errSecSuccess
    } catch {
        return SecurityFailure.status(of: error)
    }
}
