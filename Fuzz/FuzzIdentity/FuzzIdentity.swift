// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import LoadingModel
import LoadingTrust

/// Reading an identity file results in a certificate with the matching key, or in an error.
///
/// The first byte chooses the format of the rest.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzIdentity(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let bytes = Data(UnsafeBufferPointer(start: data, count: size))
    guard let kind = bytes.first else { return 0 }
    let file = Data(bytes.dropFirst())
    if let facts = CertificateFacts(der: file) {
        precondition(facts.spkiSHA256.count == 32 && !facts.tlsServerEndPointHash.isEmpty, "a certificate without a hash")
        precondition(facts.spki.count > facts.publicKey.count, "a key longer than its SubjectPublicKeyInfo")
        precondition(TrustCheck.path(through: [file, file]).first == file, "a chain without its leaf")
    }
    do {
        let identity =
            switch kind & 3 {
            case 0: try IdentityReader.identity(pkcs12: file, password: "geheim")
            case 1: try IdentityReader.identity(pkcs12: file, password: nil)
            case 2: try IdentityReader.identity(pem: file, key: nil, password: "geheim")
            default: try IdentityReader.identity(pem: file, key: file, password: nil)
            }
        guard let leaf = identity.certificates.first else { preconditionFailure("an identity without a certificate") }
        guard let key = IdentityReader.publicKey(of: identity.privateKey) else {
            preconditionFailure("a key that cannot be read")
        }
        precondition(key == CertificateFacts(der: leaf)?.publicKey, "a key that is not the certificate's")
        // The identity can be read again.
        let again = try? IdentityReader.identity(pem: leaf, key: identity.privateKey, password: nil)
        precondition(again?.privateKey == identity.privateKey, "the key of the identity cannot be read")
    } catch {
        precondition(!"\(error)".isEmpty, "an error without a description")
    }
    return 0
}
