// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import LoadingTestKit
import Testing
import URLLoading

@Suite(.timeLimit(.minutes(1)))
struct SecTrustTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func trust(_ identity: TestCertificates.Identity, host: String? = "localhost") throws -> SecTrust {
        try certificates.trust(identity, host: host)
    }

    @Test func `each bad certificate has its own status and message`() throws {
        let rows: [(String, TestCertificates.Identity, OSStatus)] = [
            ("expired", certificates.expired, errSecCertificateExpired),
            ("not yet valid", certificates.notYetValid, errSecCertificateNotValidYet),
            ("wrong host", certificates.wrongHost, errSecHostNameMismatch),
            ("self-signed", certificates.selfSigned, errSecNotTrusted),
            ("unknown authority", certificates.unknownAuthority, errSecNotTrusted),
            ("missing intermediate", certificates.missingIntermediate, errSecCreateChainFailed),
            ("broken name constraint", certificates.nameConstraintViolated, errSecNotTrusted),
            ("for clients only", certificates.clientOnly, errSecInvalidExtendedKeyUsage),
        ]
        for (name, identity, status) in rows {
            let trust = try trust(identity)
            var result = SecTrustResultType.otherError
            #expect(SecTrustGetTrustResult(trust, &result) == errSecSuccess)
            #expect(result == .invalid)
            var error: CFError?
            #expect(!SecTrustEvaluateWithError(trust, &error), "\(name)")
            let failure = try #require(error)
            #expect(failure.domain == NSOSStatusErrorDomain)
            #expect(CFErrorGetCode(failure) == Int(status), "\(name): \(failure)")
            #expect(!failure.localizedDescription.isEmpty)
            #expect(SecTrustGetTrustResult(trust, &result) == errSecSuccess)
            #expect(result == .recoverableTrustFailure, "\(name)")
        }
    }

    @Test func `a valid chain is trusted, and ends in its root`() throws {
        let trust = try trust(certificates.valid)
        #expect(SecTrustEvaluateWithError(trust, nil))
        var result = SecTrustResultType.invalid
        #expect(SecTrustGetTrustResult(trust, &result) == errSecSuccess && result == .unspecified)
        #expect(SecTrustGetCertificateCount(trust) == 3)
        let chain = try #require(SecTrustCopyCertificateChain(trust) as? [SecCertificate])
        let summaries = chain.map { SecCertificateCopySubjectSummary($0) as String? }
        #expect(summaries == ["Test Server", "Test Intermediate", "Test Root"])
        #expect(chain.last.map { SecCertificateCopyData($0) as Data } == certificates.root)
        #expect(SecTrustGetCertificateAtIndex(trust, 3) == nil)
        #expect(SecTrustGetCertificateAtIndex(trust, -1) == nil)
    }

    @Test func `changing the settings discards the verdict`() throws {
        let trust = try trust(certificates.valid)
        #expect(SecTrustEvaluateWithError(trust, nil))
        #expect(SecTrustSetPolicies(trust, SecPolicyCreateSSL(true, "other.example" as CFString)) == errSecSuccess)
        var result = SecTrustResultType.unspecified
        #expect(SecTrustGetTrustResult(trust, &result) == errSecSuccess && result == .invalid)
        #expect(!SecTrustEvaluateWithError(trust, nil))
        let both = [SecPolicyCreateSSL(true, nil), SecPolicyCreateSSL(true, "localhost" as CFString)]
        #expect(SecTrustSetPolicies(trust, both as CFArray) == errSecSuccess)
        #expect(SecTrustEvaluateWithError(trust, nil))
        #expect(SecTrustSetPolicies(trust, "no policy" as CFString) == errSecParam)
        #expect(SecTrustSetVerifyDate(trust, Date(timeIntervalSinceNow: 86_400 * 800) as CFDate) == errSecSuccess)
        #expect(!SecTrustEvaluateWithError(trust, nil))
    }

    @Test func `anchors replace the system's roots, unless both are allowed`() throws {
        let trust = try trust(certificates.unknownAuthority)
        #expect(!SecTrustEvaluateWithError(trust, nil))
        let stranger = try certificates.certificate(certificates.unknownAuthority, 1)
        #expect(SecTrustSetAnchorCertificates(trust, [stranger] as CFArray) == errSecSuccess)
        #expect(SecTrustSetAnchorCertificatesOnly(trust, false) == errSecSuccess)
        #expect(SecTrustEvaluateWithError(trust, nil))
        #expect(SecTrustSetAnchorCertificates(trust, nil) == errSecSuccess)
        #expect(!SecTrustEvaluateWithError(trust, nil))
        #expect(SecTrustSetAnchorCertificates(trust, ["no certificate"] as CFArray) == errSecParam)
    }

    @Test func `exceptions apply only to the same fault of the same chain`() throws {
        let expired = try trust(certificates.expired)
        let exceptions = try #require(SecTrustCopyExceptions(expired))
        #expect(SecTrustSetExceptions(expired, exceptions))
        #expect(SecTrustEvaluateWithError(expired, nil))
        var result = SecTrustResultType.invalid
        #expect(SecTrustGetTrustResult(expired, &result) == errSecSuccess && result == .proceed)
        #expect(SecTrustSetPolicies(expired, SecPolicyCreateSSL(true, "other" as CFString)) == errSecSuccess)
        #expect(SecTrustSetExceptions(expired, nil))
        #expect(!SecTrustEvaluateWithError(expired, nil))
        #expect(!SecTrustSetExceptions(try trust(certificates.selfSigned), exceptions))
    }

    @Test func `evaluation works while every thread of the cooperative pool waits for a verdict`() async throws {
        let verdicts = try await withThrowingTaskGroup(of: Bool.self) { group in
            for index in 0..<64 {
                let trust = try trust(index % 2 == 0 ? certificates.valid : certificates.expired)
                group.addTask { SecTrustEvaluateWithError(trust, nil) == (index % 2 == 0) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(verdicts == Array(repeating: true, count: 64))
    }

    @Test @MainActor func `evaluation works on the main actor`() async throws {
        #expect(SecTrustEvaluateWithError(try trust(certificates.valid), nil))
        await Task.yield()
        MainActor.assertIsolated()
        #expect(!SecTrustEvaluateWithError(try trust(certificates.valid, host: "other"), nil))
    }

    @Test func `one trust can be evaluated on many threads at once, and on a queue`() async throws {
        let trust = try trust(certificates.valid)
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<32 {
                group.addTask {
                    _ = SecTrustSetPolicies(trust, SecPolicyCreateSSL(true, index % 2 == 0 ? nil : "localhost" as CFString))
                    #expect(SecTrustEvaluateWithError(trust, nil))
                }
            }
        }
        let (isTrusted, code) = await withCheckedContinuation { continuation in
            let queue = DispatchQueue(label: "verdicts")
            _ = SecTrustSetPolicies(trust, SecPolicyCreateSSL(true, "other" as CFString))
            let status = SecTrustEvaluateAsyncWithError(trust, queue) { _, isTrusted, error in
                dispatchPrecondition(condition: .onQueue(queue))
                continuation.resume(returning: (isTrusted, error?.code))
            }
            #expect(status == errSecSuccess)
        }
        #expect(!isTrusted)
        #expect(code == Int(errSecHostNameMismatch))
    }

    @Test func `certificates and keys expose their properties`() throws {
        let certificate = try certificates.certificate(certificates.valid, 0)
        #expect(certificate == (try certificates.certificate(certificates.valid, 0)))
        #expect(Set([certificate, try certificates.certificate(certificates.valid, 0)]).count == 1)
        #expect(SecCertificateCreateWithData(nil, Data([1, 2, 3]) as CFData) == nil)
        var name: CFString?
        #expect(SecCertificateCopyCommonName(certificate, &name) == errSecSuccess)
        #expect(name as String? == "Test Server")
        #expect(SecCertificateCopySerialNumberData(certificate, nil).map { $0.length > 0 } == true)
        #expect(SecCertificateCopyNotValidAfterDate(certificate).map { $0 as Date > Date() } == true)
        let issuer = SecCertificateCopyNormalizedIssuerSequence(certificate)
        #expect(issuer != nil && issuer != SecCertificateCopyNormalizedSubjectSequence(certificate))
        let key = try #require(SecCertificateCopyKey(certificate))
        let bytes = try #require(SecKeyCopyExternalRepresentation(key, nil))
        let attributes = [kSecAttrKeyType: kSecAttrKeyTypeECSECPrimeRandom, kSecAttrKeyClass: kSecAttrKeyClassPublic]
        #expect(SecKeyCreateWithData(bytes, attributes as CFDictionary, nil) == key)
        var error: Unmanaged<CFError>?
        #expect(SecKeyCreateWithData(Data([4]) as CFData, attributes as CFDictionary, &error) == nil)
        #expect(error?.takeRetainedValue().code == Int(errSecDecode))
        #expect(SecCopyErrorMessageString(errSecHostNameMismatch, nil) != nil)
    }

    @Test func `a certificate with an old signature or an unknown key is shown, but not trusted`() throws {
        /// Self-signed with ECDSA and SHA-1, for localhost; made with `openssl ca`, valid from 2020 to 2120.
        let text = """
            MIIBXTCCAQOgAwIBAgIBBDAJBgcqhkjOPQQBMBQxEjAQBgNVBAMMCWxvY2FsaG9zdDAgFw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEw
            MTAwMDAwMFowFDESMBAGA1UEAwwJbG9jYWxob3N0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE4efoNkqwrrVC321piCrBkrgR
            mqR5tx7D9JfMV0kiKjLEbjJKFSsQauzMbX63dQPpd5lno3/u7CZjCLSD7WCxMKNFMEMwDAYDVR0TAQH/BAIwADAUBgNVHREEDTAL
            gglsb2NhbGhvc3QwHQYDVR0OBBYEFDb3162RYfjAulJ964fdhzxg4INGMAkGByqGSM49BAEDSQAwRgIhAOmtJSwd0TgMrkUTDrAA
            EsWYwl9hqnuITxPkcG7OpPXvAiEA03dE74+ocRzNqvZb/8oJA0RfkbJyi0kvO5HJJ/rPZbE=
            """
        let old = try #require(Data(base64Encoded: text, options: .ignoreUnknownCharacters))
        // The second one has another number in place of that of EC keys.
        var unknown = old
        let kind = try #require(old.firstRange(of: [0x2A, 0x86, 0x48, 0xCE, 0x3D, 2, 1] as [UInt8]))
        unknown[kind.upperBound - 1] = 126
        for (bytes, hasKey) in [(old, true), (unknown, false)] {
            let certificate = try #require(SecCertificateCreateWithData(nil, bytes as CFData))
            #expect(SecCertificateCopyData(certificate) as Data == bytes)
            #expect(SecCertificateCopySubjectSummary(certificate) as String? == "localhost")
            #expect(SecCertificateCopyNotValidBeforeDate(certificate) as Date? == Date(timeIntervalSince1970: 1_577_836_800))
            #expect((SecCertificateCopyKey(certificate) != nil) == hasKey)
            var made: SecTrust?
            #expect(
                SecTrustCreateWithCertificates(certificate, SecPolicyCreateSSL(true, "localhost" as CFString), &made)
                    == errSecSuccess)
            let trust = try #require(made)
            #expect(SecTrustCopyCertificateChain(trust) as? [SecCertificate] == [certificate])
            var error: CFError?
            #expect(!SecTrustEvaluateWithError(trust, &error))
            #expect(error?.localizedDescription.contains("SHA-1, which is not supported") == true)
            var result = SecTrustResultType.invalid
            #expect(SecTrustGetTrustResult(trust, &result) == errSecSuccess)
            #expect(result == .recoverableTrustFailure)
        }
    }

    @Test func `an exported Ed25519 key is created again`() throws {
        let bytes = Data(1...32)
        let key = try #require(SecKeyCreateWithData(bytes as CFData, [kSecAttrKeyType: "Ed25519"] as CFDictionary, nil))
        let exported = try #require(SecKeyCopyExternalRepresentation(key, nil))
        let attributes = try #require(SecKeyCopyAttributes(key))
        #expect(exported as Data == bytes)
        #expect(SecKeyCreateWithData(exported, attributes, nil) == key)
        var error: Unmanaged<CFError>?
        #expect(SecKeyCreateWithData(bytes.dropLast() as CFData, attributes, &error) == nil)
        #expect(error?.takeRetainedValue().code == Int(errSecDecode))
    }
}
