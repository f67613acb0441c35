// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import LoadingTrust

/// Makes the errors of the Security framework's functions.
enum SecurityFailure {
    static func error(_ status: OSStatus, _ message: String) -> NSError {
        NSError(domain: NSOSStatusErrorDomain, code: Int(status), userInfo: [NSLocalizedDescriptionKey: message])
    }

    static func error(_ failure: TrustFailure) -> NSError { error(status(of: failure.reason), failure.message) }

    static func status(of reason: TrustFailure.Reason) -> OSStatus {
        switch reason {
        case .expired: errSecCertificateExpired
        case .notYetValid: errSecCertificateNotValidYet
        case .wrongHost: errSecHostNameMismatch
        case .missingIssuer: errSecCreateChainFailed
        case .wrongUse: errSecInvalidExtendedKeyUsage
        case .weakKey: errSecUnsupportedKeySize
        case .malformed: errSecDecode
        case .selfSigned, .unknownRoot, .unreadableRoot, .noRoots, .weakSignature, .unsupported, .pins, .rules, .unchecked:
            errSecNotTrusted
        }
    }

    static func status(of failure: IdentityFailure) -> OSStatus {
        switch failure {
        case .wrongPassword, .passwordRequired: errSecAuthFailed
        case .malformed, .unsupported, .outdatedCipher: errSecDecode
        case .noCertificate, .noKey, .keyDoesNotMatch: errSecItemNotFound
        }
    }
}
