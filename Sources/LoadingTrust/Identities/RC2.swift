// SPDX-License-Identifier: Apache-2.0

/// The cipher of RFC 2268; only for decrypting PKCS #12 files.
struct RC2 {
    private let key: [UInt16]

    /// Expands a key all of whose bits count (section 2).
    init(key bytes: [UInt8]) {
        var expanded = bytes + [UInt8](repeating: 0, count: 128 - bytes.count)
        for index in bytes.count..<128 {
            expanded[index] = Self.substitute(expanded[index - 1] &+ expanded[index - bytes.count])
        }
        expanded[128 - bytes.count] = Self.substitute(expanded[128 - bytes.count])
        for index in stride(from: 127 - bytes.count, through: 0, by: -1) {
            expanded[index] = Self.substitute(expanded[index + 1] ^ expanded[index + bytes.count])
        }
        key = (0..<64).map { UInt16(expanded[2 * $0]) | UInt16(expanded[2 * $0 + 1]) << 8 }
    }

    /// Decrypts one block (section 4).
    ///
    /// `block` is a big-endian number here, whereas the words of the cipher are little-endian.
    func decrypt(_ block: UInt64) -> UInt64 {
        var words = (0..<4).map { UInt16(truncatingIfNeeded: block >> UInt64(48 - 16 * $0)).byteSwapped }
        let shifts: [UInt16] = [1, 2, 3, 5]
        var next = 63
        for round in stride(from: 15, through: 0, by: -1) {
            for index in stride(from: 3, through: 0, by: -1) {
                let turned = words[index] >> shifts[index] | words[index] << (16 - shifts[index])
                let before = words[(index + 3) & 3]
                words[index] = turned &- key[next] &- (before & words[(index + 2) & 3]) &- (~before & words[(index + 1) & 3])
                next -= 1
            }
            guard round == 11 || round == 5 else { continue }
            for index in stride(from: 3, through: 0, by: -1) {
                words[index] = words[index] &- key[Int(words[(index + 3) & 3] & 63)]
            }
        }
        return words.reduce(0) { $0 << 16 | UInt64($1.byteSwapped) }
    }

    private static func substitute(_ byte: UInt8) -> UInt8 {
        UInt8(truncatingIfNeeded: table[Int(byte >> 3)] >> UInt64(56 - 8 * (byte & 7)))
    }

    /// Section 2: "PITABLE", eight entries in each number.
    private static let table: [UInt64] = [
        0xD978F9C4_19DDB5ED, 0x28E9FD79_4AA0D89D, 0xC67E3783_2B76538E, 0x624C6488_448BFBA2,
        0x179A59F5_87B34F13, 0x61456D8D_09817D32, 0xBD8F40EB_86B77B0B, 0xF0952122_5C6B4E82,
        0x54D66593_CE60B21C, 0x7356C014_A78CF1DC, 0x1275CA1F_3BBEE4D1, 0x423DD430_A33CB626,
        0x6FBF0EDA_46690757, 0x27F21D9B_BC944303, 0xF811C7F6_90EF3EE7, 0x06C3D52F_C8661ED7,
        0x08E8EADE_8052EEF7, 0x84AA72AC_354D6A2A, 0x961AD271_5A154974, 0x4B9FD05E_0418A4EC,
        0xC2E0416E_0F51CBCC, 0x2491AF50_A1F47039, 0x997C3A85_23B8B47A, 0xFC02365B_25559731,
        0x2D5DFA98_E38A92AE, 0x05DF2910_676CBAC9, 0xD300E6CF_E19EA82C, 0x6316013F_58E289A9,
        0x0D38341B_AB33FFB0, 0xBB480C5F_B9B1CD2E, 0xC5F3DB47_E5A59C77, 0x0AA62068_FE7FC1AD,
    ]
}
