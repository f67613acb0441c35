// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

/// For any certificates of a server, an app can read all their properties, and the chain is either trusted or rejected.
///
/// The first byte determines how the chain is evaluated, and the length of the first certificate, in sixteenths of the input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzServerCertificate(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    guard let data, size >= 1 else { return 0 }
    let choice = data[0]
    let bytes = Data(UnsafeBufferPointer(start: data + 1, count: size - 1))
    // If the low bits are zero, all bytes are one certificate, because the fuzzer rarely finds two complete ones.
    let cut = choice & 15 == 0 ? bytes.count : bytes.count * Int(choice & 15) / 16
    let chain = [bytes.prefix(cut), bytes.dropFirst(cut)].compactMap { SecCertificateCreateWithData(nil, Data($0) as NSData) }
    for certificate in chain { look(at: certificate) }
    guard !chain.isEmpty else { return 0 }
    let policy = choice & 16 == 0 ? SecPolicyCreateSSL(true, "localhost" as NSString) : SecPolicyCreateBasicX509()
    var trust: SecTrust?
    guard SecTrustCreateWithCertificates(chain as NSArray, policy, &trust) == errSecSuccess, let trust else { return 0 }
    // The anchors are those of an app that pins, or none, because reading the system's roots takes long.
    let anchors = choice & 32 == 0 ? [] : [chain[chain.count - 1]]
    SecTrustSetAnchorCertificates(trust, anchors as NSArray)
    SecTrustSetVerifyDate(trust, Date(timeIntervalSince1970: 1_800_000_000) as NSDate)
    var error: CFError?
    let isTrusted = SecTrustEvaluateWithError(trust, &error)
    precondition(isTrusted == (error == nil), "neither trusted nor rejected")
    precondition(!isTrusted || !anchors.isEmpty, "trusted without anchors")
    if let error { precondition(!error.localizedDescription.isEmpty, "an error without a description") }
    precondition((SecTrustCopyCertificateChain(trust) as? [SecCertificate])?.isEmpty == false, "a chain without its leaf")
    _ = SecTrustCopyKey(trust)
    return 0
}

private func look(at certificate: SecCertificate) {
    let der = SecCertificateCopyData(certificate)
    precondition(SecCertificateCreateWithData(nil, der) == certificate, "it cannot be read again")
    _ = SecCertificateCopySubjectSummary(certificate)
    var name: CFString?
    _ = SecCertificateCopyCommonName(certificate, &name)
    _ = SecCertificateCopySerialNumberData(certificate, nil)
    _ = SecCertificateCopyNormalizedIssuerSequence(certificate)
    _ = SecCertificateCopyNormalizedSubjectSequence(certificate)
    _ = SecCertificateCopyNotValidBeforeDate(certificate)
    _ = SecCertificateCopyNotValidAfterDate(certificate)
    if let key = SecCertificateCopyKey(certificate) {
        _ = SecKeyGetBlockSize(key)
        _ = SecKeyCopyAttributes(key)
        _ = SecKeyCopyExternalRepresentation(key, nil)
    }
    precondition(!"\(certificate)".isEmpty, "an empty description")
}
