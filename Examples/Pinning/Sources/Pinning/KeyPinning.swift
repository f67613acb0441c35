//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import URLLoading

/// Trusts servers that the system trusts, and that have one public key.
///
/// A key outlives the certificates that are made for it. Whoever may have to change it pins two.
final class KeyPinning: NSObject, URLSessionDelegate {
    private let key: Data

    /// Makes a delegate from a certificate in DER that has the key; nil where it cannot be read.
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
        // First the chain, the name and the dates, as without a delegate. A pin comes on top of that, not in its place.
        guard SecTrustEvaluateWithError(trust, nil) else { return (.performDefaultHandling, nil) }
        guard let key = SecTrustCopyKey(trust), let bytes = SecKeyCopyExternalRepresentation(key, nil), bytes as Data == self.key
        else { return (.cancelAuthenticationChallenge, nil) }
        return (.useCredential, URLCredential(trust: trust))
    }
}
