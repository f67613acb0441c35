// SPDX-License-Identifier: Apache-2.0

import Crypto
import CryptoExtras
import FoundationEssentials
import SwiftASN1

/// A block cipher in CBC mode with the padding of RFC 5652, section 6.3; decryption only.
enum BlockCipher {
    case aes(key: [UInt8], start: [UInt8])
    case tripleDES(key: [UInt8], start: [UInt8])
    case rc2(key: [UInt8], start: [UInt8])

    typealias Maker = (_ key: [UInt8], _ start: [UInt8]) -> BlockCipher

    /// Returns the cipher's initializer, and the lengths of its key and initialization vector in bytes.
    static func named(_ name: ASN1ObjectIdentifier) -> (make: Maker, keyCount: Int, startCount: Int)? {
        switch name {
        case [2, 16, 840, 1, 101, 3, 4, 1, 2]: ({ .aes(key: $0, start: $1) }, 16, 16)
        case [2, 16, 840, 1, 101, 3, 4, 1, 22]: ({ .aes(key: $0, start: $1) }, 24, 16)
        case [2, 16, 840, 1, 101, 3, 4, 1, 42]: ({ .aes(key: $0, start: $1) }, 32, 16)
        case [1, 2, 840, 113_549, 3, 7]: ({ .tripleDES(key: $0, start: $1) }, 24, 8)
        default: nil
        }
    }

    /// Decrypts bytes; wrong padding means a wrong password or damaged data, which cannot be distinguished.
    func decrypt(_ bytes: [UInt8]) throws(IdentityFailure) -> [UInt8] {
        switch self {
        case .aes(let key, let start):
            guard let vector = try? AES._CBC.IV(ivBytes: start),
                let clear = try? AES._CBC.decrypt(bytes, using: SymmetricKey(data: key), iv: vector)
            else { throw .wrongPassword }
            return Array(clear)
        case .tripleDES(let key, let start): return try Self.chain(bytes, start, TripleDES(key: key).decrypt)
        case .rc2(let key, let start): return try Self.chain(bytes, start, RC2(key: key).decrypt)
        }
    }

    private static func chain(
        _ bytes: [UInt8], _ start: [UInt8], _ decrypt: (UInt64) -> UInt64
    ) throws(IdentityFailure) -> [UInt8] {
        guard !bytes.isEmpty, bytes.count % 8 == 0, start.count == 8 else { throw .wrongPassword }
        func word(_ bytes: some Sequence<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
        var previous = word(start)
        var clear: [UInt8] = []
        clear.reserveCapacity(bytes.count)
        for index in stride(from: 0, to: bytes.count, by: 8) {
            let block = word(bytes[index..<(index + 8)])
            let plain = decrypt(block) ^ previous
            previous = block
            for shift in stride(from: 56, through: 0, by: -8) { clear.append(UInt8(truncatingIfNeeded: plain >> UInt64(shift))) }
        }
        guard let count = clear.last, (1...8).contains(count), clear.suffix(Int(count)).allSatisfy({ $0 == count })
        else { throw .wrongPassword }
        return Array(clear.dropLast(Int(count)))
    }
}
