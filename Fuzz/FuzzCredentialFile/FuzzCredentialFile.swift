//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import LoadingModel
import LoadingStores

/// Whatever is in a credentials' file, loading it never traps, what was not sealed with the key opens to nobody, and what was loaded
/// survives being written.
///
/// The bytes are tried as a file, as what is sealed, and as what was sealed, so that neither checksum nor seal is a wall.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzCredentialFile(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: data, count: size))
    let key = [UInt8](repeating: 7, count: CredentialSeal.keySize)
    if case .whole(_, let start) = SealedCredentialFile.envelope.open(bytes) {
        precondition(CredentialSeal.open(Array(bytes[start...]), key: key) == nil, "opened without its key")
    }
    precondition(CredentialSeal.open(bytes, key: key) == nil, "opened without its key")
    guard let kept = CredentialFile.decode(bytes) else { return 0 }
    for credential in kept {
        precondition(0...65_535 ~= credential.space.port && !credential.space.host.isEmpty, "unsound: \(credential)")
    }
    let book = CredentialBook(kept)
    let written = CredentialFile.encode(book.kept)
    guard let sealed = CredentialSeal.seal(written, key: key), CredentialSeal.open(sealed, key: key) == written,
        let again = CredentialFile.decode(written)
    else { preconditionFailure("unreadable: \(written)") }
    precondition(again == book.kept, "not as written: \(kept)")
    precondition(CredentialBook(again).kept == again, "not as it was: \(kept)")
    return 0
}
