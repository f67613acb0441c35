// SPDX-License-Identifier: Apache-2.0

public import Dispatch
public import Foundation

/// Creates a trust object from a certificate chain.
///
/// - Parameters:
///   - certificates: A `SecCertificate`, or an array of certificates with the leaf first.
///   - policies: A `SecPolicy`, or an array of policies; nil for the basic policy.
///   - trust: The trust object.
/// - Returns: `errSecSuccess`, or an error code.
@discardableResult
public func SecTrustCreateWithCertificates(
    _ certificates: CFTypeRef, _ policies: CFTypeRef?, _ trust: UnsafeMutablePointer<SecTrust?>
) -> OSStatus {
    guard let chain: [SecCertificate] = objects(certificates), !chain.isEmpty else { return errSecParam }
    guard let rules: [SecPolicy] = policies.map(objects) ?? [SecPolicyCreateBasicX509()] else { return errSecParam }
    trust.pointee = SecTrust(chain.map(\.der), policies: rules)
    return errSecSuccess
}

/// Replaces the policies: a `SecPolicy`, or an array of policies that all apply.
///
/// - Returns: `errSecSuccess`, or `errSecParam` for any other object.
@discardableResult
public func SecTrustSetPolicies(_ trust: SecTrust, _ policies: CFTypeRef) -> OSStatus {
    guard let rules: [SecPolicy] = objects(policies), !rules.isEmpty else { return errSecParam }
    trust.set(policies: rules)
    return errSecSuccess
}

/// Copies the policies.
///
/// - Returns: `errSecSuccess`.
@discardableResult
public func SecTrustCopyPolicies(_ trust: SecTrust, _ policies: UnsafeMutablePointer<CFArray?>) -> OSStatus {
    policies.pointee = trust.policies as NSArray
    return errSecSuccess
}

/// Sets the roots to trust, instead of the default roots; nil restores the default roots.
///
/// After `SecTrustSetAnchorCertificatesOnly(trust, false)`, the default roots are trusted as well.
///
/// The roots can include a server's own certificate.
///
/// - Returns: `errSecSuccess`, or `errSecParam` if an object is not a certificate.
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

/// Sets whether only the roots of ``SecTrustSetAnchorCertificates(_:_:)`` are trusted.
///
/// - Returns: `errSecSuccess`.
@discardableResult
public func SecTrustSetAnchorCertificatesOnly(_ trust: SecTrust, _ anchorCertificatesOnly: Bool) -> OSStatus {
    trust.set(trustsOnlyAnchors: anchorCertificatesOnly)
    return errSecSuccess
}

/// Copies the roots of ``SecTrustSetAnchorCertificates(_:_:)``.
///
/// - Returns: `errSecSuccess`.
@discardableResult
public func SecTrustCopyCustomAnchorCertificates(
    _ trust: SecTrust, _ anchors: UnsafeMutablePointer<CFArray?>
) -> OSStatus {
    anchors.pointee = trust.anchors.map { $0 as NSArray }
    return errSecSuccess
}

/// Sets the time at which the certificates must be valid, instead of the current time.
///
/// - Returns: `errSecSuccess`.
@discardableResult
public func SecTrustSetVerifyDate(_ trust: SecTrust, _ verifyDate: CFDate) -> OSStatus {
    trust.set(date: verifyDate as Date)
    return errSecSuccess
}

/// Returns the time at which the certificates must be valid, in seconds since January 1, 2001.
///
/// - Returns: The seconds.
@discardableResult
public func SecTrustGetVerifyTime(_ trust: SecTrust) -> CFAbsoluteTime { trust.date.timeIntervalSinceReferenceDate }

/// Sets whether an evaluation fetches intermediate certificates that the server did not send; default true.
///
/// Only the trust object of a challenge can fetch, and only as its session does; see
/// ``URLSessionConfiguration/fetchesIntermediateCertificates``. Nothing is fetched if only the roots of
/// ``SecTrustSetAnchorCertificates(_:_:)`` are trusted, nor on a thread that runs loads.
///
/// - Returns: `errSecSuccess`.
@discardableResult
public func SecTrustSetNetworkFetchAllowed(_ trust: SecTrust, _ allowFetch: Bool) -> OSStatus {
    trust.set(allowsFetching: allowFetch)
    return errSecSuccess
}

/// Evaluates the chain, and blocks until the result is known.
///
/// Revocation is not checked.
///
/// - Parameters:
///   - trust: The trust object.
///   - error: Receives the reason if the chain is not trusted: in `NSOSStatusErrorDomain`, with `errSecCertificateExpired`,
///     `errSecHostNameMismatch`, `errSecNotTrusted` and so on, and a message.
/// - Returns: Whether the chain is trusted.
@discardableResult
public func SecTrustEvaluateWithError(_ trust: SecTrust, _ error: UnsafeMutablePointer<CFError?>?) -> Bool {
    guard let failure = trust.evaluate() else { return true }
    error?.pointee = SecurityFailure.error(failure)
    return false
}

/// Evaluates the chain; deprecated by Apple in favor of ``SecTrustEvaluateWithError(_:_:)``.
///
/// - Returns: `errSecSuccess`, whatever the result of the evaluation.
@discardableResult
public func SecTrustEvaluate(_ trust: SecTrust, _ result: UnsafeMutablePointer<SecTrustResultType>) -> OSStatus {
    _ = trust.evaluate()
    result.pointee = trust.result
    return errSecSuccess
}

/// Evaluates the chain and calls `result`, both on a queue.
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

/// Copies the last result; `.invalid` if the chain has not been evaluated, or a setting has changed since the last evaluation.
///
/// - Returns: `errSecSuccess`.
@discardableResult
public func SecTrustGetTrustResult(_ trust: SecTrust, _ result: UnsafeMutablePointer<SecTrustResultType>) -> OSStatus {
    result.pointee = trust.result
    return errSecSuccess
}

/// Returns the chain from the leaf to its root, an array of `SecCertificate`.
///
/// If the chain is not trusted, the result contains those presented certificates that form a path from the leaf to the last known
/// issuer. Unrelated certificates that a server sends are left out, so that they cannot match a pin.
///
/// - Returns: The chain.
@discardableResult
public func SecTrustCopyCertificateChain(_ trust: SecTrust) -> CFArray? { trust.chain as NSArray }

/// Returns the number of certificates in the chain; deprecated by Apple.
///
/// - Returns: The count.
@discardableResult
public func SecTrustGetCertificateCount(_ trust: SecTrust) -> CFIndex { trust.chain.count }

/// Returns one certificate of the chain; deprecated by Apple.
///
/// - Returns: The certificate, or nil if the index is out of range.
@discardableResult
public func SecTrustGetCertificateAtIndex(_ trust: SecTrust, _ ix: CFIndex) -> SecCertificate? {
    let chain = trust.chain
    return chain.indices.contains(ix) ? chain[ix] : nil
}

/// Returns the public key of the leaf certificate, whether it is trusted or not.
///
/// - Returns: The key, or nil if the certificate cannot be parsed.
@discardableResult
public func SecTrustCopyKey(_ trust: SecTrust) -> SecKey? {
    trust.presented.first.flatMap { SecCertificateCopyKey(SecCertificate(presented: $0)) }
}

/// The same as ``SecTrustCopyKey(_:)``; deprecated by Apple.
///
/// - Returns: The key, or nil if the certificate cannot be parsed.
@discardableResult
public func SecTrustCopyPublicKey(_ trust: SecTrust) -> SecKey? { SecTrustCopyKey(trust) }

/// Returns data for ``SecTrustSetExceptions(_:_:)`` that makes this chain trusted despite its current fault.
///
/// - Returns: The exceptions, which apply only to this chain and this fault.
@discardableResult
public func SecTrustCopyExceptions(_ trust: SecTrust) -> CFData? { trust.exceptions.map { $0 as NSData } }

/// Trusts the chain despite the fault that it had when the exceptions were created; nil removes the exceptions.
///
/// - Returns: False if the exceptions are for another chain or another fault.
@discardableResult
public func SecTrustSetExceptions(_ trust: SecTrust, _ exceptions: CFData?) -> Bool {
    trust.set(exceptions: exceptions.map { Data(referencing: $0) })
}

/// Returns the object, or the objects in an array; nil if any of them has another class.
private func objects<Object: AnyObject>(_ value: AnyObject) -> [Object]? {
    if let object = value as? Object { return [object] }
    guard let array = value as? NSArray else { return nil }
    let objects = array.compactMap { $0 as? Object }
    return objects.count == array.count ? objects : nil
}
