// SPDX-License-Identifier: Apache-2.0

import Crypto
import HTTPWire

/// The name of an entry's file: the hash of its key and the number of the variant.
///
/// Variants are the responses that `Vary` distinguishes (RFC 9111, section 4.1). They are numbered, so that all variants of a key
/// can be found by name.
package struct CacheEntryName: Hashable, Sendable {
    /// The maximum number of variants stored for a key.
    package static let slotCount: UInt8 = 8
    private static let hashLength = 64

    private let words: SIMD4<UInt64>
    package var slot: UInt8

    /// The name of a key's first variant.
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

    /// Parses a file name, with or without a slot: 64 lower-case hexadecimal digits, optionally followed by `-1` to `-7`.
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

    /// The name of the same key in another slot.
    func at(slot: UInt8) -> CacheEntryName {
        var name = self
        name.slot = slot
        return name
    }

    /// The name of the first variant, which stands for the key.
    var key: CacheEntryName { at(slot: 0) }

    /// Which of the 256 folders contains the file.
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

    /// The file's path, relative to the cache's directory.
    package var path: String { Self.folderName(folder) + "/" + fileName }
}
