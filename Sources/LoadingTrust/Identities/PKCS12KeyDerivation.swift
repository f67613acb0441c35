//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
/// Derives keys from passwords as defined by PKCS #12 (RFC 7292, appendix B.2).
enum PKCS12KeyDerivation {
    /// The purpose of a key (appendix B.3).
    enum Use: UInt8 {
        case encryption = 1
        case initialization = 2
        case integrity = 3
    }

    static func key(
        _ password: [UInt8], salt: [UInt8], rounds: Int, use: Use, count: Int, hash: DigestKind
    ) -> [UInt8] {
        let block = hash.blockByteCount
        let diversifier = [UInt8](repeating: use.rawValue, count: block)
        var input = fill(salt, block) + fill(password, block)
        var key: [UInt8] = []
        while key.count < count {
            var digest = hash.hash(diversifier + input)
            for _ in 1..<max(rounds, 1) { digest = hash.hash(digest) }
            key += digest
            let addend = fill(digest, block, count: block)
            for start in stride(from: 0, to: input.count, by: block) { add(addend, to: &input[start..<(start + block)]) }
        }
        return Array(key.prefix(count))
    }

    /// Repeats bytes up to a whole number of blocks.
    ///
    /// The result is empty if there are no bytes.
    private static func fill(_ bytes: [UInt8], _ block: Int, count: Int? = nil) -> [UInt8] {
        if bytes.isEmpty { return [] }
        let length = count ?? (bytes.count + block - 1) / block * block
        return (0..<length).map { bytes[$0 % bytes.count] }
    }

    /// Adds `addend` and 1 to `value`, as big-endian numbers modulo the size of the value.
    private static func add(_ addend: [UInt8], to value: inout ArraySlice<UInt8>) {
        var carry = 1
        for offset in stride(from: addend.count - 1, through: 0, by: -1) {
            let index = value.startIndex + offset
            carry += Int(value[index]) + Int(addend[offset])
            value[index] = UInt8(truncatingIfNeeded: carry)
            carry >>= 8
        }
    }
}
