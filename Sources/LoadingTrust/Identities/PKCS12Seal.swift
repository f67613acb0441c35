// SPDX-License-Identifier: Apache-2.0

import Crypto
import SwiftASN1

/// The MAC of a PKCS #12 file, which verifies its integrity and the password (RFC 7292, section 4 and appendix A).
struct PKCS12Seal {
    private let rounds: Int
    private let isValid: (_ content: [UInt8], _ password: [UInt8]) -> Bool

    init?(_ node: ASN1Node) {
        guard let parts = node.children(), parts.count >= 2, let info = parts[0].children(), info.count == 2,
            let name = info[0].children()?.first?.name, let digest = info[1].octets, let salt = parts[1].octets,
            let rounds = parts.count > 2 ? (try? Int(derEncoded: parts[2])) : 1, RoundBudget.isReasonable(rounds)
        else { return nil }
        self.rounds = rounds
        func check<Hash: HashFunction>(_: Hash.Type) -> ([UInt8], [UInt8]) -> Bool {
            { content, password in
                let key = Hash.key(password, salt: salt, rounds: rounds, use: .integrity, count: Hash.Digest.byteCount)
                return HMAC<Hash>.isValidAuthenticationCode(digest, authenticating: content, using: SymmetricKey(data: key))
            }
        }
        switch name {
        case [1, 3, 14, 3, 2, 26]: isValid = check(Insecure.SHA1.self)
        case [2, 16, 840, 1, 101, 3, 4, 2, 1]: isValid = check(SHA256.self)
        case [2, 16, 840, 1, 101, 3, 4, 2, 2]: isValid = check(SHA384.self)
        case [2, 16, 840, 1, 101, 3, 4, 2, 3]: isValid = check(SHA512.self)
        default: return nil
        }
    }

    func matches(
        _ content: [UInt8], _ password: PasswordBytes, _ budget: inout RoundBudget
    ) throws(IdentityFailure) -> Bool {
        try budget.spend(rounds, times: 1)
        return isValid(content, password.utf16)
    }
}
