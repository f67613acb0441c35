// SPDX-License-Identifier: Apache-2.0

import Crypto

/// The purpose of a key that is derived from a password (RFC 7292, appendix B.3).
enum PasswordKeyUse: UInt8 {
    case encryption = 1
    case initialization, integrity
}

extension HashFunction {
    /// Derives a key from a password as defined by PKCS #12 (RFC 7292, appendix B.2).
    static func key(_ password: [UInt8], salt: [UInt8], rounds: Int, use: PasswordKeyUse, count: Int) -> [UInt8] {
        let block = blockByteCount
        /// Repeats bytes up to a whole number of blocks.
        func filled(_ bytes: [UInt8]) -> [UInt8] {
            (0..<(bytes.count + block - 1) / block * block).map { bytes[$0 % bytes.count] }
        }
        var input = filled(salt) + filled(password)
        var key: [UInt8] = []
        while key.count < count {
            var digest = hash(data: [UInt8](repeating: use.rawValue, count: block) + input)
            for _ in 1..<max(rounds, 1) { digest = hash(data: Array(digest)) }
            key += digest
            let addend = filled(Array(digest))
            // Adds the hash and 1 to each block, as big-endian numbers modulo the size of a block.
            for start in stride(from: 0, to: input.count, by: block) {
                var carry = 1
                for offset in (0..<block).reversed() {
                    carry += Int(input[start + offset]) + Int(addend[offset])
                    input[start + offset] = UInt8(truncatingIfNeeded: carry)
                    carry >>= 8
                }
            }
        }
        return Array(key.prefix(count))
    }
}
