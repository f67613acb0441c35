// SPDX-License-Identifier: Apache-2.0

/// Detects accidental damage of a cache file, fast: XXH64 by Yann Collet with the seed 0.
///
/// It does not authenticate the file. Cache files belong to the user, and a process that can write them can also read the user's
/// other files.
package struct ContentChecksum: Sendable {
    private static let prime1: UInt64 = 0x9E37_79B1_85EB_CA87
    private static let prime2: UInt64 = 0xC2B2_AE3D_27D4_EB4F
    private static let prime3: UInt64 = 0x1656_67B1_9E37_79F9
    private static let prime4: UInt64 = 0x85EB_CA77_C2B2_AE63
    private static let prime5: UInt64 = 0x27D4_EB2F_1656_67C5
    private static let stripe = 32

    private var lanes = SIMD4<UInt64>(prime1 &+ prime2, prime2, 0, 0 &- prime1)
    private var total: UInt64 = 0
    /// Bytes that do not fill a stripe yet.
    private var rest: [UInt8] = []

    package init() {}

    package static func of(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        var checksum = ContentChecksum()
        checksum.update(bytes)
        return checksum.value
    }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        total &+= UInt64(bytes.count)
        var bytes = bytes[...]
        if !rest.isEmpty {
            let missing = bytes.prefix(Self.stripe - rest.count)
            rest.append(contentsOf: missing)
            bytes = bytes.dropFirst(missing.count)
            guard rest.count == Self.stripe else { return }
            rest.withUnsafeBytes { consume($0) }
            rest.removeAll(keepingCapacity: true)
        }
        let whole = bytes.count - bytes.count % Self.stripe
        consume(UnsafeRawBufferPointer(rebasing: bytes.prefix(whole)))
        rest.append(contentsOf: bytes.dropFirst(whole))
    }

    package var value: UInt64 {
        var hash: UInt64
        if total >= UInt64(Self.stripe) {
            hash = Self.rotated(lanes[0], 1) &+ Self.rotated(lanes[1], 7) &+ Self.rotated(lanes[2], 12)
            hash = hash &+ Self.rotated(lanes[3], 18)
            for lane in 0..<4 { hash = (hash ^ Self.round(0, lanes[lane])) &* Self.prime1 &+ Self.prime4 }
        } else {
            hash = Self.prime5
        }
        hash = hash &+ total
        rest.withUnsafeBytes { bytes in
            var position = 0
            while position + 8 <= bytes.count {
                let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self))
                hash = Self.rotated(hash ^ Self.round(0, word), 27) &* Self.prime1 &+ Self.prime4
                position += 8
            }
            if position + 4 <= bytes.count {
                let word = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt32.self))
                hash = Self.rotated(hash ^ UInt64(word) &* Self.prime1, 23) &* Self.prime2 &+ Self.prime3
                position += 4
            }
            for byte in bytes[position...] { hash = Self.rotated(hash ^ UInt64(byte) &* Self.prime5, 11) &* Self.prime1 }
        }
        hash = (hash ^ hash >> 33) &* Self.prime2
        hash = (hash ^ hash >> 29) &* Self.prime3
        return hash ^ hash >> 32
    }

    /// Processes whole stripes.
    private mutating func consume(_ bytes: UnsafeRawBufferPointer) {
        var (a, b, c, d) = (lanes[0], lanes[1], lanes[2], lanes[3])
        guard let start = bytes.baseAddress else { return }
        var position = 0
        while position < bytes.count {
            a = Self.round(a, Self.word(start, position))
            b = Self.round(b, Self.word(start, position &+ 8))
            c = Self.round(c, Self.word(start, position &+ 16))
            d = Self.round(d, Self.word(start, position &+ 24))
            position &+= Self.stripe
        }
        lanes = SIMD4(a, b, c, d)
    }

    @inline(__always)
    private static func word(_ start: UnsafeRawPointer, _ position: Int) -> UInt64 {
        UInt64(littleEndian: start.loadUnaligned(fromByteOffset: position, as: UInt64.self))
    }

    @inline(__always)
    private static func round(_ lane: UInt64, _ word: UInt64) -> UInt64 {
        rotated(lane &+ word &* prime2, 31) &* prime1
    }

    @inline(__always)
    private static func rotated(_ value: UInt64, _ count: UInt64) -> UInt64 {
        value &<< count | value &>> (64 &- count)
    }
}
