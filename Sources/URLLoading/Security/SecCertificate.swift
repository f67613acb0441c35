//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation
internal import LoadingTrust

/// A certificate (X.509).
///
/// Sendable because it never changes once made.
public final class SecCertificate: NSObject, Sendable {
    let der: Data
    /// Nil where the certificate cannot be read, as a server may present one.
    let facts: CertificateFacts?

    /// For what a server presented, whatever it is.
    init(presented der: Data) {
        self.der = der
        facts = CertificateFacts(der: der)
        super.init()
    }

    /// Whether the other object is the same certificate.
    ///
    /// - Returns: Whether they are equal.
    public override func isEqual(_ object: Any?) -> Bool { (object as? SecCertificate)?.der == der }

    /// The hash of its bytes.
    public override var hash: Int { der.hashValue }

    /// The subject and the issuer.
    public override var description: String {
        "<SecCertificate subject: \(facts?.subject ?? "unreadable") issuer: \(facts?.issuer ?? "unreadable")>"
    }
}

/// Reads a certificate in DER.
///
/// - Returns: Nil if it is none, or has a kind of key that is not supported: RSA, P-256, P-384, P-521 and Ed25519 are.
@discardableResult
public func SecCertificateCreateWithData(_ allocator: CFAllocator?, _ data: CFData) -> SecCertificate? {
    let certificate = SecCertificate(presented: Data(referencing: data))
    return certificate.facts == nil ? nil : certificate
}

/// The certificate in DER.
///
/// - Returns: The bytes.
@discardableResult
public func SecCertificateCopyData(_ certificate: SecCertificate) -> CFData { certificate.der as NSData }

/// The most telling part of the subject: its common name, if it has one.
///
/// - Returns: The summary, or nil where the certificate cannot be read.
@discardableResult
public func SecCertificateCopySubjectSummary(_ certificate: SecCertificate) -> CFString? {
    certificate.facts.map { $0.subjectSummary as NSString }
}

/// The common name of the subject.
///
/// - Returns: `errSecSuccess`, or `errSecDecode` where the certificate cannot be read.
@discardableResult
public func SecCertificateCopyCommonName(
    _ certificate: SecCertificate, _ commonName: UnsafeMutablePointer<CFString?>
) -> OSStatus {
    guard let facts = certificate.facts else { return errSecDecode }
    commonName.pointee = facts.commonName.map { $0 as NSString }
    return errSecSuccess
}

/// The public key.
///
/// - Returns: The key, or nil where the certificate cannot be read.
@discardableResult
public func SecCertificateCopyKey(_ certificate: SecCertificate) -> SecKey? {
    certificate.facts.map { SecKey(publicKey: $0.publicKey, $0.key) }
}

/// The serial number as it is encoded.
///
/// - Returns: The number's bytes, or nil, with the error, where the certificate cannot be read.
@discardableResult
public func SecCertificateCopySerialNumberData(
    _ certificate: SecCertificate, _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> CFData? {
    guard let facts = certificate.facts else {
        error?.pointee = .passRetained(SecurityFailure.error(errSecDecode, "the certificate cannot be read"))
        return nil
    }
    return facts.serialNumber as NSData
}

/// The issuer's name in DER; unlike on Apple's platforms as the certificate has it, letters unchanged.
///
/// - Returns: The name, or nil where the certificate cannot be read.
@discardableResult
public func SecCertificateCopyNormalizedIssuerSequence(_ certificate: SecCertificate) -> CFData? {
    certificate.facts.map { $0.issuerDER as NSData }
}

/// The subject's name in DER; unlike on Apple's platforms as the certificate has it, letters unchanged.
///
/// - Returns: The name, or nil where the certificate cannot be read.
@discardableResult
public func SecCertificateCopyNormalizedSubjectSequence(_ certificate: SecCertificate) -> CFData? {
    certificate.facts.map { $0.subjectDER as NSData }
}

/// From when on the certificate is valid.
///
/// - Returns: The date, or nil where the certificate cannot be read.
@discardableResult
public func SecCertificateCopyNotValidBeforeDate(_ certificate: SecCertificate) -> CFDate? {
    certificate.facts.map { $0.notBefore as NSDate }
}

/// Until when the certificate is valid.
///
/// - Returns: The date, or nil where the certificate cannot be read.
@discardableResult
public func SecCertificateCopyNotValidAfterDate(_ certificate: SecCertificate) -> CFDate? {
    certificate.facts.map { $0.notAfter as NSDate }
}
