// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

// Session delegates that pin certificates or keys, as guides for Apple's platforms show them: they must compile unchanged.

/// Compares the server's certificate with the app's copy, and cancels if they differ.
final class CertificatePinningDelegate: NSObject, URLSessionDelegate {
    private let pinned: Data

    init(pinned: Data) { self.pinned = pinned }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        if challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodServerTrust {
            if let serverTrust = challenge.protectionSpace.serverTrust {
                var error: CFError?
                let isServerTrusted = SecTrustEvaluateWithError(serverTrust, &error)
                if isServerTrusted {
                    if let serverCertificate = SecTrustGetCertificateAtIndex(serverTrust, 0) {
                        let serverCertificateData = SecCertificateCopyData(serverCertificate) as Data
                        if serverCertificateData == pinned {
                            completionHandler(.useCredential, URLCredential(trust: serverTrust))
                            return
                        }
                    }
                }
            }
        }
        completionHandler(URLSession.AuthChallengeDisposition.cancelAuthenticationChallenge, nil)
    }
}

/// Compares hashes of public keys, and leaves other challenges to the system.
final class KeyPinningDelegate: NSObject, URLSessionTaskDelegate {
    private let hashes: Set<String>

    init(hashes: Set<String>) { self.hashes = hashes }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodServerTrust,
            let trust = challenge.protectionSpace.serverTrust
        else { return (.performDefaultHandling, nil) }
        let policies = [SecPolicyCreateSSL(true, challenge.protectionSpace.host as CFString)]
        SecTrustSetPolicies(trust, policies as CFTypeRef)
        guard SecTrustEvaluateWithError(trust, nil), let chain = SecTrustCopyCertificateChain(trust) as? [SecCertificate],
            chain.contains(where: { PinningSamples.publicKeyHash(of: $0).map(hashes.contains) ?? false })
        else { return (.cancelAuthenticationChallenge, nil) }
        return (.useCredential, URLCredential(trust: trust))
    }
}

/// Presents a client certificate when a server asks for one.
final class IdentityDelegate: NSObject, URLSessionDelegate {
    private let identity: SecIdentity

    init(identity: SecIdentity) { self.identity = identity }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodClientCertificate else {
            return completionHandler(.performDefaultHandling, nil)
        }
        var certificate: SecCertificate?
        SecIdentityCopyCertificate(identity, &certificate)
        let credential = URLCredential(
            identity: identity, certificates: certificate.map { [$0] as [Any] }, persistence: .forSession
        )
        completionHandler(.useCredential, credential)
    }
}
