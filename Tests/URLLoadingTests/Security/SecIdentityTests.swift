// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

@Suite struct SecIdentityTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func identity() throws -> SecIdentity {
        try SecIdentity(pem: Data((certificates.client.chainPEM + certificates.client.keyPEM).utf8))
    }

    @Test func `PEM in one file or two yields the same identity`() throws {
        let apart = try SecIdentity(
            pem: Data(certificates.client.chainPEM.utf8), key: Data(certificates.client.keyPEM.utf8), password: nil
        )
        #expect(try identity() == apart)
        var key: SecKey?
        #expect(SecIdentityCopyPrivateKey(apart, &key) == errSecSuccess)
        var error: Unmanaged<CFError>?
        #expect(SecKeyCopyExternalRepresentation(try #require(key), &error) == nil)
        #expect(error?.takeRetainedValue().code == Int(errSecUnimplemented))
        var certificate: SecCertificate?
        #expect(SecIdentityCopyCertificate(apart, &certificate) == errSecSuccess)
        #expect(SecKeyCopyPublicKey(try #require(key)) == certificate.flatMap { SecCertificateCopyKey($0) })
    }

    @Test func `a PKCS 12 identity requires its password`() throws {
        let file = try certificates.client.pkcs12(password: "geheim")
        #expect(try SecIdentity(pkcs12: file, password: "geheim").hash == identity().hash)
        for password in ["x", nil] {
            let error = #expect(throws: NSError.self) { try SecIdentity(pkcs12: file, password: password) }
            #expect(error?.domain == NSOSStatusErrorDomain)
            #expect(error?.code == Int(errSecAuthFailed))
            #expect(error?.localizedDescription.contains("password") == true)
        }
        let strange = Data(certificates.untrustedClient.keyPEM.utf8)
        let error = #expect(throws: NSError.self) {
            try SecIdentity(pem: Data(certificates.client.chainPEM.utf8), key: strange)
        }
        #expect(error?.code == Int(errSecItemNotFound))
    }

    @Test func `a credential holds an identity, a trust or a password`() throws {
        let identity = try identity()
        let issuer = try certificates.certificate(certificates.client, 1)
        let credential = URLCredential(identity: identity, certificates: [issuer], persistence: .forSession)
        #expect(credential.identity == identity)
        #expect(credential.certificates as? [SecCertificate] == [issuer])
        #expect(credential.user == nil && !credential.hasPassword && credential.persistence == .forSession)
        #expect(credential == URLCredential(identity: identity, certificates: [issuer], persistence: .forSession))
        #expect(credential != URLCredential(identity: identity, certificates: nil, persistence: .forSession))
        let trust = try certificates.trust(certificates.valid, host: "localhost")
        #expect(URLCredential(trust: trust) == URLCredential(trust: trust))
        #expect(URLCredential(trust: trust).identity == nil)
        #expect(URLCredential(user: "u", password: "p", persistence: .none).certificates.isEmpty)
    }

    @Test func `descriptions reveal neither keys nor passwords`() throws {
        let identity = try identity()
        let secret = certificates.client.key.map { String($0) }.joined(separator: ", ")
        let credential = URLCredential(identity: identity, certificates: nil, persistence: .none)
        for text in ["\(identity)", "\(credential)", String(reflecting: credential), String(reflecting: identity)] {
            #expect(!text.contains(secret) && !text.contains("bytes"), "\(text)")
            #expect(text.contains("Test Client"), "\(text)")
        }
    }

    @Test func `a protection space made by the app has no trust`() {
        let space = URLProtectionSpace(
            host: "h", port: 443, protocol: "https", realm: nil, authenticationMethod: NSURLAuthenticationMethodServerTrust
        )
        #expect(space.serverTrust == nil)
        #expect(space.distinguishedNames == nil)
    }

    @Test func `an error carries the trust that failed`() throws {
        let trust = try certificates.trust(certificates.expired, host: "localhost")
        let error = URLError(.serverCertificateHasBadDate, userInfo: [NSURLErrorFailingURLPeerTrustErrorKey: trust])
        #expect(error.failureURLPeerTrust === trust)
        #expect(URLError(.timedOut).failureURLPeerTrust == nil)
    }
}
