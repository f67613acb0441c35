//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Crypto
import HTTPWire

/// The name of one entry's file: the hash of its key, and which of the key's variants it is.
///
/// Variants are what `Vary` tells apart (RFC 9111, section 4.1); they are numbered, so that all that can be there for a key can
/// be looked for by name.
package struct CacheEntryName: Hashable, Sendable {
    /// The variants kept of one key.
    package static let slotCount: UInt8 = 8
    private static let hashLength = 64

    private let words: SIMD4<UInt64>
    package var slot: UInt8

    /// Names a key's first variant.
    package init(key: String) {
        var hash = SHA256()
        var key = key
        key.withUTF8 { hash.update(bufferPointer: UnsafeRawBufferPointer($0)) }
        words = hash.finalize().withUnsafeBytes { bytes in
            var words = SIMD4<UInt64>()
            for index in 0..<min(4, bytes.count / 8) {
                words[index] = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self))
            }
            return words
        }
        slot = 0
    }

    /// Takes a file name, with or without a slot: 64 lower-case hexadecimal digits, then nothing or `-1` to `-7`.
    package init?(_ fileName: String) {
        var fileName = fileName
        guard let name = fileName.withUTF8({ Self(UnsafeRawBufferPointer($0)) }) else { return nil }
        self = name
    }

    package init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Self.hashLength || bytes.count == Self.hashLength + 2 else { return nil }
        var words = SIMD4<UInt64>()
        for index in 0..<Self.hashLength {
            let byte = bytes[index]
            let digit: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
            default: return nil
            }
            words[index / 16] = words[index / 16] &<< 4 | UInt64(digit)
        }
        self.words = words
        slot = 0
        guard bytes.count > Self.hashLength else { return }
        let number = bytes[Self.hashLength + 1] &- UInt8(ascii: "0")
        guard bytes[Self.hashLength] == UInt8(ascii: "-"), (1..<Self.slotCount).contains(number) else { return nil }
        slot = number
    }

    /// The same key's name in another slot.
    func at(slot: UInt8) -> CacheEntryName {
        var name = self
        name.slot = slot
        return name
    }

    /// Where the first variant is; all of a key have it in common.
    var key: CacheEntryName { at(slot: 0) }

    /// Which of the 256 folders it is in.
    package var folder: UInt8 { UInt8(truncatingIfNeeded: words[0] >> 56) }

    package static func folderName(_ folder: UInt8) -> String { ASCII.hexadecimal(folder) }

    package var fileName: String {
        var text = String(unsafeUninitializedCapacity: Self.hashLength + 2) { target in
            for index in 0..<Self.hashLength {
                let digit = UInt8(truncatingIfNeeded: words[index / 16] >> UInt64(60 - index % 16 * 4)) & 15
                target[index] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
            }
            return Self.hashLength
        }
        if slot > 0 { text += "-\(slot)" }
        return text
    }

    /// Below the cache's directory.
    package var path: String { Self.folderName(folder) + "/" + fileName }
}
