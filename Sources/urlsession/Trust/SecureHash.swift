//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// SHA-256 (FIPS 180-4, section 6.2) for public keys and files, because the public API has no hash functions.
struct SecureHash {
    private var state: [UInt32] = [
        0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19,
    ]
    private var schedule = [UInt32](repeating: 0, count: 64)
    /// Bytes of an incomplete block.
    private var rest: [UInt8] = []
    private var length: UInt64 = 0

    static func sha256(_ message: [UInt8]) -> [UInt8] {
        var hash = SecureHash()
        hash.add(message)
        return hash.finish()
    }

    /// Adds bytes to the message.
    mutating func add(_ bytes: [UInt8]) {
        length += UInt64(bytes.count)
        var start = 0
        if !rest.isEmpty {
            start = min(64 - rest.count, bytes.count)
            rest += bytes[..<start]
            guard rest.count == 64 else { return }
            let block = rest
            rest = []
            add(blocksOf: block, from: 0)
        }
        let end = add(blocksOf: bytes, from: start)
        rest += bytes[end...]
    }

    /// Returns the hash of the message; no bytes may be added afterwards.
    mutating func finish() -> [UInt8] {
        // FIPS 180-4, section 5.1.1: a one bit, zeros, and the length in bits pad the message to a multiple of 64 bytes.
        let bits = length * 8
        var padded = rest + [0x80]
        padded += [UInt8](repeating: 0, count: (120 - padded.count % 64) % 64)
        padded += (0..<8).map { UInt8(truncatingIfNeeded: bits >> (56 - 8 * $0)) }
        add(blocksOf: padded, from: 0)
        return state.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * $0)) } }
    }

    /// Processes all complete blocks, and returns the index after them.
    @discardableResult
    private mutating func add(blocksOf bytes: [UInt8], from start: Int) -> Int {
        var start = start
        bytes.withUnsafeBufferPointer { bytes in
            state.withUnsafeMutableBufferPointer { state in
                schedule.withUnsafeMutableBufferPointer { schedule in
                    Self.constants.withUnsafeBufferPointer { constants in
                        while bytes.count - start >= 64 {
                            Self.add(bytes, start, &state, &schedule, constants)
                            start += 64
                        }
                    }
                }
            }
        }
        return start
    }

    /// Processes one block without allocating arrays, because a file may have many blocks.
    private static func add(
        _ bytes: UnsafeBufferPointer<UInt8>, _ start: Int, _ state: inout UnsafeMutableBufferPointer<UInt32>,
        _ schedule: inout UnsafeMutableBufferPointer<UInt32>, _ constants: UnsafeBufferPointer<UInt32>
    ) {
        for index in 0..<16 {
            let at = start + 4 * index
            schedule[index] =
                UInt32(bytes[at]) << 24 | UInt32(bytes[at + 1]) << 16 | UInt32(bytes[at + 2]) << 8 | UInt32(bytes[at + 3])
        }
        for index in 16..<64 {
            let (old, new) = (schedule[index - 15], schedule[index - 2])
            let small = rotatedRight(old, 7) ^ rotatedRight(old, 18) ^ old >> 3
            let large = rotatedRight(new, 17) ^ rotatedRight(new, 19) ^ new >> 10
            schedule[index] = schedule[index - 16] &+ small &+ schedule[index - 7] &+ large
        }
        var (a, b, c, d) = (state[0], state[1], state[2], state[3])
        var (e, f, g, h) = (state[4], state[5], state[6], state[7])
        for index in 0..<64 {
            let mixed = rotatedRight(e, 6) ^ rotatedRight(e, 11) ^ rotatedRight(e, 25)
            let first = h &+ mixed &+ (e & f ^ ~e & g) &+ constants[index] &+ schedule[index]
            let second = (rotatedRight(a, 2) ^ rotatedRight(a, 13) ^ rotatedRight(a, 22)) &+ (a & b ^ a & c ^ b & c)
            (h, g, f, e) = (g, f, e, d &+ first)
            (d, c, b, a) = (c, b, a, first &+ second)
        }
        state[0] &+= a
        state[1] &+= b
        state[2] &+= c
        state[3] &+= d
        state[4] &+= e
        state[5] &+= f
        state[6] &+= g
        state[7] &+= h
    }

    private static func rotatedRight(_ word: UInt32, _ count: UInt32) -> UInt32 { word >> count | word << (32 - count) }

    /// The constants of FIPS 180-4, section 4.2.2.
    private static let constants: [UInt32] = [
        0x428A_2F98, 0x7137_4491, 0xB5C0_FBCF, 0xE9B5_DBA5, 0x3956_C25B, 0x59F1_11F1, 0x923F_82A4, 0xAB1C_5ED5,
        0xD807_AA98, 0x1283_5B01, 0x2431_85BE, 0x550C_7DC3, 0x72BE_5D74, 0x80DE_B1FE, 0x9BDC_06A7, 0xC19B_F174,
        0xE49B_69C1, 0xEFBE_4786, 0x0FC1_9DC6, 0x240C_A1CC, 0x2DE9_2C6F, 0x4A74_84AA, 0x5CB0_A9DC, 0x76F9_88DA,
        0x983E_5152, 0xA831_C66D, 0xB003_27C8, 0xBF59_7FC7, 0xC6E0_0BF3, 0xD5A7_9147, 0x06CA_6351, 0x1429_2967,
        0x27B7_0A85, 0x2E1B_2138, 0x4D2C_6DFC, 0x5338_0D13, 0x650A_7354, 0x766A_0ABB, 0x81C2_C92E, 0x9272_2C85,
        0xA2BF_E8A1, 0xA81A_664B, 0xC24B_8B70, 0xC76C_51A3, 0xD192_E819, 0xD699_0624, 0xF40E_3585, 0x106A_A070,
        0x19A4_C116, 0x1E37_6C08, 0x2748_774C, 0x34B0_BCB5, 0x391C_0CB3, 0x4ED8_AA4A, 0x5B9C_CA4F, 0x682E_6FF3,
        0x748F_82EE, 0x78A5_636F, 0x84C8_7814, 0x8CC7_0208, 0x90BE_FFFA, 0xA450_6CEB, 0xBEF9_A3F7, 0xC671_78F2,
    ]
}
