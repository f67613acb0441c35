// SPDX-License-Identifier: Apache-2.0

public import Foundation

// Result codes of the Security framework, with Apple's values.

/// No error.
public let errSecSuccess: OSStatus = 0
/// The function or operation is not implemented.
public let errSecUnimplemented: OSStatus = -4
/// An argument is not valid.
public let errSecParam: OSStatus = -50
/// Memory allocation failed.
public let errSecAllocate: OSStatus = -108
/// The user cancelled.
public let errSecUserCanceled: OSStatus = -128
/// The item already exists.
public let errSecDuplicateItem: OSStatus = -25_299
/// The item does not exist.
public let errSecItemNotFound: OSStatus = -25_300
/// The password is wrong or missing.
public let errSecAuthFailed: OSStatus = -25_293
/// The PKCS #12 file is damaged or was modified.
public let errSecPkcs12VerifyFailure: OSStatus = -25_264
/// A password is required.
public let errSecPassphraseRequired: OSStatus = -25_260
/// No chain leads from the certificate to a root, because an issuer's certificate is missing.
public let errSecCreateChainFailed: OSStatus = -25_318
/// The data cannot be decoded.
public let errSecDecode: OSStatus = -26_275
/// The certificate is for another host.
public let errSecHostNameMismatch: OSStatus = -67_602
/// The certificate is for another use.
public let errSecInvalidExtendedKeyUsage: OSStatus = -67_609
/// The key is too short.
public let errSecUnsupportedKeySize: OSStatus = -67_735
/// A check failed.
public let errSecVerifyFailed: OSStatus = -67_808
/// The certificate has expired.
public let errSecCertificateExpired: OSStatus = -67_818
/// The certificate is not valid yet.
public let errSecCertificateNotValidYet: OSStatus = -67_819
/// The certificate was revoked; never returned here, because revocation is not checked.
public let errSecCertificateRevoked: OSStatus = -67_820
/// The certificate is not trusted.
public let errSecNotTrusted: OSStatus = -67_843

/// The result of a trust evaluation.
///
/// Raw values are Apple's.
public enum SecTrustResultType: UInt32, Sendable {
    /// The chain has not been evaluated, or a setting has changed since the last evaluation.
    case invalid = 0
    /// The chain is trusted because of a decision of the user, or because of an exception that the app set.
    case proceed = 1
    /// The user does not trust the chain; never returned here.
    case deny = 3
    /// The chain is trusted without a decision by the user, which is the usual result for a valid chain.
    case unspecified = 4
    /// The chain is not trusted, but the app could make an exception: for example, the certificate has expired, is for another
    /// host, or is from an unknown authority.
    case recoverableTrustFailure = 5
    /// The chain is malformed, and cannot be trusted.
    case fatalTrustFailure = 6
    /// Another error occurred.
    case otherError = 7
}

/// Returns the message for a status; nil for an unknown status.
///
/// - Returns: The text, or nil.
@discardableResult
public func SecCopyErrorMessageString(_ status: OSStatus, _ reserved: UnsafeMutableRawPointer?) -> CFString? {
    let text: String? =
        switch status {
        case errSecSuccess: "No error."
        case errSecUnimplemented: "Function or operation not implemented."
        case errSecParam: "One or more parameters passed to a function were not valid."
        case errSecAuthFailed: "The password is not correct."
        case errSecPassphraseRequired: "A password is required."
        case errSecPkcs12VerifyFailure: "The PKCS #12 data could not be verified."
        case errSecDecode: "The data could not be decoded."
        case errSecItemNotFound: "The specified item could not be found."
        case errSecCreateChainFailed: "One or more certificates required to validate this certificate cannot be found."
        case errSecHostNameMismatch: "Host name mismatch."
        case errSecInvalidExtendedKeyUsage: "The extended key usage is not valid."
        case errSecUnsupportedKeySize: "The key size is not supported."
        case errSecVerifyFailed: "A verification failure occurred."
        case errSecCertificateExpired: "An expired certificate was detected."
        case errSecCertificateNotValidYet: "The certificate is not yet valid."
        case errSecNotTrusted: "The certificate is not trusted."
        default: nil
        }
    return text.map { $0 as NSString }
}
