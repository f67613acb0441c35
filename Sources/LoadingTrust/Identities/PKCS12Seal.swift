//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import SwiftASN1

/// The MAC of a PKCS #12 file, which verifies its integrity and the password (RFC 7292, section 4 and appendix A).
struct PKCS12Seal {
    private let hash: DigestKind
    private let digest: [UInt8]
    private let salt: [UInt8]
    private let rounds: Int

    init?(_ node: ASN1Node) {
        guard let parts = node.children(), parts.count >= 2, let info = parts[0].children(), info.count == 2,
            let algorithm = info[0].children()?.first, let name = try? ASN1ObjectIdentifier(derEncoded: algorithm),
            let hash = DigestKind(name), let digest = try? ASN1OctetString(berEncoded: info[1]),
            let salt = try? ASN1OctetString(berEncoded: parts[1])
        else { return nil }
        self.hash = hash
        self.digest = Array(digest.bytes)
        self.salt = Array(salt.bytes)
        if parts.count > 2 {
            guard let count = try? Int(derEncoded: parts[2]), RoundBudget.isReasonable(count) else { return nil }
            rounds = count
        } else {
            rounds = 1
        }
    }

    func matches(
        _ content: [UInt8], _ password: PasswordBytes, _ budget: inout RoundBudget
    ) throws(IdentityFailure) -> Bool {
        try budget.spend(rounds, times: 1)
        let key = PKCS12KeyDerivation.key(
            password.utf16, salt: salt, rounds: rounds, use: .integrity, count: hash.byteCount, hash: hash
        )
        let expected = hash.authenticate(content, key: key)
        guard expected.count == digest.count else { return false }
        return zip(expected, digest).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
