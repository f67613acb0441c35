// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

/// Trusts servers that the system trusts and that have a certain public key.
///
/// A key outlives its certificates. Pin two keys if the key might have to change.
final class KeyPinning: NSObject, URLSessionDelegate {
    private let key: Data

    /// Creates a delegate from a DER certificate with the key, or returns nil if the certificate cannot be parsed.
    init?(certificate: Data) {
        guard let certificate = SecCertificateCreateWithData(nil, certificate as CFData),
            let key = SecCertificateCopyKey(certificate), let bytes = SecKeyCopyExternalRepresentation(key, nil)
        else { return nil }
        self.key = bytes as Data
    }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodServerTrust,
            let trust = challenge.protectionSpace.serverTrust
        else { return (.performDefaultHandling, nil) }
        // First check the chain, the name and the dates, as a session without a delegate does. A pin is an additional check, not
        // a replacement.
        guard SecTrustEvaluateWithError(trust, nil) else { return (.performDefaultHandling, nil) }
        guard let key = SecTrustCopyKey(trust), let bytes = SecKeyCopyExternalRepresentation(key, nil), bytes as Data == self.key
        else { return (.cancelAuthenticationChallenge, nil) }
        return (.useCredential, URLCredential(trust: trust))
    }
}
