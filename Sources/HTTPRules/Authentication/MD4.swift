// SPDX-License-Identifier: Apache-2.0

/// The MD4 hash (RFC 1320).
///
/// This hash is implemented here only for NTLM: it is broken, and libraries no longer include it.
package enum MD4 {
    package static func hash(_ bytes: [UInt8]) -> [UInt8] {
        var message = bytes + [0x80]
        message += [UInt8](repeating: 0, count: (120 - message.count % 64) % 64)
        let length = UInt64(bytes.count) &* 8
        message += (0..<8).map { UInt8(truncatingIfNeeded: length >> ($0 * 8)) }
        var state: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476]
        for start in stride(from: 0, to: message.count, by: 64) {
            let words = (0..<16).map { word in
                (0..<4).reduce(UInt32(0)) { $0 | UInt32(message[start + word * 4 + $1]) << UInt32($1 * 8) }
            }
            add(words, to: &state)
        }
        return state.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> UInt32($0 * 8)) } }
    }

    /// Adds one block to the state (section 3.4): three rounds of sixteen steps each.
    private static func add(_ words: [UInt32], to state: inout [UInt32]) {
        var (a, b, c, d) = (state[0], state[1], state[2], state[3])
        for step in 0..<48 {
            let mixed: UInt32
            switch step / 16 {
            case 0: mixed = (b & c | ~b & d)
            case 1: mixed = (b & c | b & d | c & d) &+ 0x5A82_7999
            default: mixed = (b ^ c ^ d) &+ 0x6ED9_EBA1
            }
            let sum = a &+ mixed &+ words[order[step / 16][step % 16]]
            let shift = UInt32(shifts[step / 16][step % 4])
            (a, d, c, b) = (d, c, b, sum << shift | sum >> (32 - shift))
        }
        state = [state[0] &+ a, state[1] &+ b, state[2] &+ c, state[3] &+ d]
    }

    private static let shifts = [[3, 7, 11, 19], [3, 5, 9, 13], [3, 9, 11, 15]]
    private static let order = [
        Array(0..<16),
        [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15],
        [0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15],
    ]
}
