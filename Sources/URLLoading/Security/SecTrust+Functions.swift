//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Dispatch
public import Foundation

/// Makes a chain to be judged, not trusted until it is.
///
/// - Parameters:
///   - certificates: A `SecCertificate`, or an array of them with the one in question first.
///   - policies: A `SecPolicy`, or an array of them; nil for the basic one.
///   - trust: The chain.
/// - Returns: `errSecSuccess`, or why there is no chain.
@discardableResult
public func SecTrustCreateWithCertificates(
    _ certificates: CFTypeRef, _ policies: CFTypeRef?, _ trust: UnsafeMutablePointer<SecTrust?>
) -> OSStatus {
    guard let chain: [SecCertificate] = objects(certificates), !chain.isEmpty else { return errSecParam }
    guard let rules: [SecPolicy] = policies.map(objects) ?? [SecPolicyCreateBasicX509()] else { return errSecParam }
    trust.pointee = SecTrust(chain.map(\.der), policies: rules)
    return errSecSuccess
}

/// Replaces the rules: a `SecPolicy`, or an array of them, all of which must be met.
///
/// - Returns: `errSecSuccess`, or `errSecParam` for what is no policy.
@discardableResult
public func SecTrustSetPolicies(_ trust: SecTrust, _ policies: CFTypeRef) -> OSStatus {
    guard let rules: [SecPolicy] = objects(policies), !rules.isEmpty else { return errSecParam }
    trust.set(policies: rules)
    return errSecSuccess
}

/// The rules.
///
/// - Returns: `errSecSuccess`.
@discardableResult
public func SecTrustCopyPolicies(_ trust: SecTrust, _ policies: UnsafeMutablePointer<CFArray?>) -> OSStatus {
    policies.pointee = trust.policies as NSArray
    return errSecSuccess
}

/// Names the roots to trust instead of the usual ones, or beside them after `SecTrustSetAnchorCertificatesOnly(trust, false)`;
/// nil puts the usual ones back.
///
/// A server's own certificate may be among them.
///
/// - Returns: `errSecSuccess`, or `errSecParam` for what is no certificate.
@discardableResult
public func SecTrustSetAnchorCertificates(_ trust: SecTrust, _ anchorCertificates: CFArray?) -> OSStatus {
    guard let anchorCertificates else {
        trust.set(anchors: nil)
        return errSecSuccess
    }
    guard let anchors: [SecCertificate] = objects(anchorCertificates) else { return errSecParam }
    trust.set(anchors: anchors)
    return errSecSuccess
}

/// Says whether only the roots of ``SecTrustSetAnchorCertificates(_:_:)`` are trusted.
///
/// - Returns: `errSecSuccess`.
@discardableResult
public func SecTrustSetAnchorCertificatesOnly(_ trust: SecTrust, _ anchorCertificatesOnly: Bool) -> OSStatus {
    trust.set(trustsOnlyAnchors: anchorCertificatesOnly)
    return errSecSuccess
}

/// The roots of ``SecTrustSetAnchorCertificates(_:_:)``.
///
/// - Returns: `errSecSuccess`.
@discardableResult
public func SecTrustCopyCustomAnchorCertificates(
    _ trust: SecTrust, _ anchors: UnsafeMutablePointer<CFArray?>
) -> OSStatus {
    anchors.pointee = trust.anchors.map { $0 as NSArray }
    return errSecSuccess
}

/// Says when the certificates must be valid, instead of now.
///
/// - Returns: `errSecSuccess`.
@discardableResult
public func SecTrustSetVerifyDate(_ trust: SecTrust, _ verifyDate: CFDate) -> OSStatus {
    trust.set(date: verifyDate as Date)
    return errSecSuccess
}

/// When the certificates must be valid, in seconds since the beginning of 2001.
///
/// - Returns: The seconds.
@discardableResult
public func SecTrustGetVerifyTime(_ trust: SecTrust) -> CFAbsoluteTime { trust.date.timeIntervalSinceReferenceDate }

/// Does nothing: no certificates are fetched, and revocation is not checked.
///
/// - Returns: `errSecSuccess`.
@discardableResult
public func SecTrustSetNetworkFetchAllowed(_ trust: SecTrust, _ allowFetch: Bool) -> OSStatus { errSecSuccess }

/// Judges the chain, and waits for the verdict.
///
/// Revocation is not checked.
///
/// - Parameters:
///   - trust: The chain.
///   - error: Why it is not trusted: in `NSOSStatusErrorDomain`, with `errSecCertificateExpired`, `errSecHostNameMismatch`,
///     `errSecNotTrusted` and so on, and a message.
/// - Returns: Whether it is trusted.
@discardableResult
public func SecTrustEvaluateWithError(_ trust: SecTrust, _ error: UnsafeMutablePointer<CFError?>?) -> Bool {
    guard let failure = trust.evaluate() else { return true }
    error?.pointee = SecurityFailure.error(failure)
    return false
}

/// Judges the chain, as older programs ask for it; deprecated by Apple.
///
/// - Returns: `errSecSuccess`, whatever the verdict.
@discardableResult
public func SecTrustEvaluate(_ trust: SecTrust, _ result: UnsafeMutablePointer<SecTrustResultType>) -> OSStatus {
    _ = trust.evaluate()
    result.pointee = trust.result
    return errSecSuccess
}

/// Judges the chain on a queue.
///
/// - Returns: `errSecSuccess`.
@discardableResult
public func SecTrustEvaluateAsyncWithError(
    _ trust: SecTrust, _ queue: DispatchQueue, _ result: @escaping @Sendable (SecTrust, Bool, CFError?) -> Void
) -> OSStatus {
    queue.async {
        var error: CFError?
        let isTrusted = SecTrustEvaluateWithError(trust, &error)
        result(trust, isTrusted, error)
    }
    return errSecSuccess
}

/// The last verdict; `.invalid` if there is none, or the settings have changed since.
///
/// - Returns: `errSecSuccess`.
@discardableResult
public func SecTrustGetTrustResult(_ trust: SecTrust, _ result: UnsafeMutablePointer<SecTrustResultType>) -> OSStatus {
    result.pointee = trust.result
    return errSecSuccess
}

/// The chain from the certificate in question to its root, an array of `SecCertificate`.
///
/// Where it is not trusted, what was presented as far as each certificate signed the one before: what a server merely sends along
/// is not among them, so that it cannot match a pin.
///
/// - Returns: The chain.
@discardableResult
public func SecTrustCopyCertificateChain(_ trust: SecTrust) -> CFArray? { trust.chain as NSArray }

/// How many certificates the chain has; deprecated by Apple.
///
/// - Returns: The count.
@discardableResult
public func SecTrustGetCertificateCount(_ trust: SecTrust) -> CFIndex { trust.chain.count }

/// One certificate of the chain; deprecated by Apple.
///
/// - Returns: The certificate, or nil beyond the end.
@discardableResult
public func SecTrustGetCertificateAtIndex(_ trust: SecTrust, _ ix: CFIndex) -> SecCertificate? {
    let chain = trust.chain
    return chain.indices.contains(ix) ? chain[ix] : nil
}

/// The public key of the certificate in question, whether it is trusted or not.
///
/// - Returns: The key, or nil where the certificate cannot be read.
@discardableResult
public func SecTrustCopyKey(_ trust: SecTrust) -> SecKey? {
    trust.presented.first.flatMap { SecCertificateCopyKey(SecCertificate(presented: $0)) }
}

/// The same as ``SecTrustCopyKey(_:)``; deprecated by Apple.
///
/// - Returns: The key, or nil where the certificate cannot be read.
@discardableResult
public func SecTrustCopyPublicKey(_ trust: SecTrust) -> SecKey? { SecTrustCopyKey(trust) }

/// What, given to ``SecTrustSetExceptions(_:_:)``, makes this chain be trusted in spite of what is wrong with it now.
///
/// - Returns: The exceptions, for this chain and this fault alone.
@discardableResult
public func SecTrustCopyExceptions(_ trust: SecTrust) -> CFData? { trust.exceptions.map { $0 as NSData } }

/// Trusts the chain in spite of what was wrong with it when the exceptions were made; nil takes that back.
///
/// - Returns: False if they are another chain's, or for another fault.
@discardableResult
public func SecTrustSetExceptions(_ trust: SecTrust, _ exceptions: CFData?) -> Bool {
    trust.set(exceptions: exceptions.map { Data(referencing: $0) })
}

/// One object, or the objects of an array; nil where some are of another class.
private func objects<Object: AnyObject>(_ value: AnyObject) -> [Object]? {
    if let object = value as? Object { return [object] }
    guard let array = value as? NSArray else { return nil }
    let objects = array.compactMap { $0 as? Object }
    return objects.count == array.count ? objects : nil
}
