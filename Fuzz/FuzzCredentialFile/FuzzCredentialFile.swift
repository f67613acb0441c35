// SPDX-License-Identifier: Apache-2.0

import LoadingModel
import LoadingStores

/// Loading a file of credentials never traps, and only data sealed with the key can be opened.
///
/// Loaded credentials are the same after they are written and read again.
///
/// The input is used as a file, as sealed data and as unsealed data, so that neither the checksum nor the seal stops the fuzzer.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzCredentialFile(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: data, count: size))
    let key = [UInt8](repeating: 7, count: CredentialSeal.keySize)
    if case .whole(_, let start) = SealedCredentialFile.envelope.open(bytes) {
        precondition(CredentialSeal.open(Array(bytes[start...]), key: key) == nil, "opened without the key")
    }
    precondition(CredentialSeal.open(bytes, key: key) == nil, "opened without the key")
    guard let kept = CredentialFile.decode(bytes) else { return 0 }
    for credential in kept {
        precondition(0...65_535 ~= credential.space.port && !credential.space.host.isEmpty, "invalid: \(credential)")
    }
    let book = CredentialBook(kept)
    let written = CredentialFile.encode(book.kept)
    guard let sealed = CredentialSeal.seal(written, key: key), CredentialSeal.open(sealed, key: key) == written,
        let again = CredentialFile.decode(written)
    else { preconditionFailure("unreadable: \(written)") }
    precondition(again == book.kept, "written differently: \(kept)")
    precondition(CredentialBook(again).kept == again, "changed: \(kept)")
    return 0
}
