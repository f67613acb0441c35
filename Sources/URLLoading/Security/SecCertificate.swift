// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import LoadingTrust

/// An X.509 certificate.
///
/// Sendable because it is immutable.
public final class SecCertificate: NSObject, Sendable {
    let der: Data
    /// The parsed certificate; nil if parsing failed, as it may for a certificate that a server presented.
    let facts: CertificateFacts?

    /// Makes a certificate from DER that a server presented, even if the DER cannot be parsed.
    init(presented der: Data) {
        self.der = der
        facts = CertificateFacts(der: der)
        super.init()
    }

    /// Whether the other object is an equal certificate.
    ///
    /// - Returns: Whether they are equal.
    public override func isEqual(_ object: Any?) -> Bool { (object as? SecCertificate)?.der == der }

    /// The hash of the DER encoding.
    public override var hash: Int { der.hashValue }

    /// The subject and the issuer.
    public override var description: String {
        "<SecCertificate subject: \(facts?.subject ?? "unreadable") issuer: \(facts?.issuer ?? "unreadable")>"
    }
}

/// Creates a certificate from its DER encoding.
///
/// The algorithms of its key and of its signature need not be supported.
///
/// - Returns: The certificate; nil if it is malformed.
@discardableResult
public func SecCertificateCreateWithData(_ allocator: CFAllocator?, _ data: CFData) -> SecCertificate? {
    let certificate = SecCertificate(presented: Data(referencing: data))
    return certificate.facts == nil ? nil : certificate
}

/// Returns the certificate's DER encoding.
///
/// - Returns: The bytes.
@discardableResult
public func SecCertificateCopyData(_ certificate: SecCertificate) -> CFData { certificate.der as NSData }

/// Returns the most descriptive part of the subject: the common name, if there is one.
///
/// - Returns: The summary, or nil if the certificate cannot be parsed.
@discardableResult
public func SecCertificateCopySubjectSummary(_ certificate: SecCertificate) -> CFString? {
    certificate.facts.map { $0.subjectSummary as NSString }
}

/// Copies the common name of the subject.
///
/// - Returns: `errSecSuccess`, or `errSecDecode` if the certificate cannot be parsed.
@discardableResult
public func SecCertificateCopyCommonName(
    _ certificate: SecCertificate, _ commonName: UnsafeMutablePointer<CFString?>
) -> OSStatus {
    guard let facts = certificate.facts else { return errSecDecode }
    commonName.pointee = facts.commonName.map { $0 as NSString }
    return errSecSuccess
}

/// Returns the public key: RSA, P-256, P-384, P-521 or Ed25519.
///
/// - Returns: The key, or nil if it is of another type or the certificate cannot be parsed.
@discardableResult
public func SecCertificateCopyKey(_ certificate: SecCertificate) -> SecKey? {
    guard let facts = certificate.facts, let key = facts.key else { return nil }
    return SecKey(publicKey: facts.publicKey, key)
}

/// Returns the encoded serial number.
///
/// - Returns: The bytes of the number; nil and an error if the certificate cannot be parsed.
@discardableResult
public func SecCertificateCopySerialNumberData(
    _ certificate: SecCertificate, _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> CFData? {
    guard let facts = certificate.facts else {
        error?.pointee = .passRetained(SecurityFailure.error(errSecDecode, "the certificate cannot be parsed"))
        return nil
    }
    return facts.serialNumber as NSData
}

/// Returns the issuer's name in DER, exactly as in the certificate; on Apple's platforms it is normalized.
///
/// - Returns: The name, or nil if the certificate cannot be parsed.
@discardableResult
public func SecCertificateCopyNormalizedIssuerSequence(_ certificate: SecCertificate) -> CFData? {
    certificate.facts.map { $0.issuerDER as NSData }
}

/// Returns the subject's name in DER, exactly as in the certificate; on Apple's platforms it is normalized.
///
/// - Returns: The name, or nil if the certificate cannot be parsed.
@discardableResult
public func SecCertificateCopyNormalizedSubjectSequence(_ certificate: SecCertificate) -> CFData? {
    certificate.facts.map { $0.subjectDER as NSData }
}

/// Returns the beginning of the certificate's validity.
///
/// - Returns: The date, or nil if the certificate cannot be parsed.
@discardableResult
public func SecCertificateCopyNotValidBeforeDate(_ certificate: SecCertificate) -> CFDate? {
    certificate.facts.map { $0.notBefore as NSDate }
}

/// Returns the end of the certificate's validity.
///
/// - Returns: The date, or nil if the certificate cannot be parsed.
@discardableResult
public func SecCertificateCopyNotValidAfterDate(_ certificate: SecCertificate) -> CFDate? {
    certificate.facts.map { $0.notAfter as NSDate }
}
