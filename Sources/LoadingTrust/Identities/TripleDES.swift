// SPDX-License-Identifier: Apache-2.0

/// Triple DES (FIPS 46-3); only for decrypting PKCS #12 files and keys.
struct TripleDES {
    private let first: [UInt64]
    private let second: [UInt64]
    private let third: [UInt64]

    init(key: [UInt8]) {
        let keys = (0..<3).map { part in Self.schedule(key[(part * 8)..<(part * 8 + 8)].reduce(0) { $0 << 8 | UInt64($1) }) }
        (first, second, third) = (keys[0], keys[1], keys[2])
    }

    func decrypt(_ block: UInt64) -> UInt64 {
        Self.run(Self.run(Self.run(block, third.reversed()), second), first.reversed())
    }

    /// Returns the sixteen round keys of 48 bits.
    private static func schedule(_ key: UInt64) -> [UInt64] {
        let chosen = permute(key, 64, keyChoice)
        var left = chosen >> 28
        var right = chosen & 0xFFF_FFFF
        return (0..<16).map { round in
            for _ in 0..<([0, 1, 8, 15].contains(round) ? 1 : 2) {
                left = (left << 1 | left >> 27) & 0xFFF_FFFF
                right = (right << 1 | right >> 27) & 0xFFF_FFFF
            }
            return permute(left << 28 | right, 56, roundChoice)
        }
    }

    private static func run(_ block: UInt64, _ keys: [UInt64]) -> UInt64 {
        let start = permute(block, 64, initial)
        var left = start >> 32
        var right = start & 0xFFFF_FFFF
        for key in keys { (left, right) = (right, left ^ roundFunction(right, key)) }
        return permute(right << 32 | left, 64, final)
    }

    private static func roundFunction(_ half: UInt64, _ key: UInt64) -> UInt64 {
        let mixed = permute(half, 32, expansion) ^ key
        var out: UInt64 = 0
        for (index, box) in boxes.enumerated() {
            let six = Int(mixed >> UInt64(42 - 6 * index) & 0x3F)
            let row = six >> 4 & 2 | six & 1
            out = out << 4 | box[row] >> UInt64(60 - 4 * (six >> 1 & 15)) & 15
        }
        return permute(out, 32, mixing)
    }

    /// Permutes the bits of a value; bits are counted from 1, starting with the highest, as in the standard.
    private static func permute(_ value: UInt64, _ width: UInt64, _ table: [UInt8]) -> UInt64 {
        table.reduce(0) { $0 << 1 | value >> (width - UInt64($1)) & 1 }
    }

    private static let initial: [UInt8] = [
        58, 50, 42, 34, 26, 18, 10, 2, 60, 52, 44, 36, 28, 20, 12, 4, 62, 54, 46, 38, 30, 22, 14, 6,
        64, 56, 48, 40, 32, 24, 16, 8, 57, 49, 41, 33, 25, 17, 9, 1, 59, 51, 43, 35, 27, 19, 11, 3,
        61, 53, 45, 37, 29, 21, 13, 5, 63, 55, 47, 39, 31, 23, 15, 7,
    ]
    private static let final: [UInt8] = [
        40, 8, 48, 16, 56, 24, 64, 32, 39, 7, 47, 15, 55, 23, 63, 31, 38, 6, 46, 14, 54, 22, 62, 30,
        37, 5, 45, 13, 53, 21, 61, 29, 36, 4, 44, 12, 52, 20, 60, 28, 35, 3, 43, 11, 51, 19, 59, 27,
        34, 2, 42, 10, 50, 18, 58, 26, 33, 1, 41, 9, 49, 17, 57, 25,
    ]
    private static let expansion: [UInt8] = [
        32, 1, 2, 3, 4, 5, 4, 5, 6, 7, 8, 9, 8, 9, 10, 11, 12, 13, 12, 13, 14, 15, 16, 17,
        16, 17, 18, 19, 20, 21, 20, 21, 22, 23, 24, 25, 24, 25, 26, 27, 28, 29, 28, 29, 30, 31, 32, 1,
    ]
    private static let mixing: [UInt8] = [
        16, 7, 20, 21, 29, 12, 28, 17, 1, 15, 23, 26, 5, 18, 31, 10, 2, 8, 24, 14, 32, 27, 3, 9,
        19, 13, 30, 6, 22, 11, 4, 25,
    ]
    private static let keyChoice: [UInt8] = [
        57, 49, 41, 33, 25, 17, 9, 1, 58, 50, 42, 34, 26, 18, 10, 2, 59, 51, 43, 35, 27, 19, 11, 3, 60, 52, 44, 36,
        63, 55, 47, 39, 31, 23, 15, 7, 62, 54, 46, 38, 30, 22, 14, 6, 61, 53, 45, 37, 29, 21, 13, 5, 28, 20, 12, 4,
    ]
    private static let roundChoice: [UInt8] = [
        14, 17, 11, 24, 1, 5, 3, 28, 15, 6, 21, 10, 23, 19, 12, 4, 26, 8, 16, 7, 27, 20, 13, 2,
        41, 52, 31, 37, 47, 55, 30, 40, 51, 45, 33, 48, 44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32,
    ]
    /// The four rows of each box, a hexadecimal digit for each column.
    private static let boxes: [[UInt64]] = [
        [0xE4D1_2FB8_3A6C_5907, 0x0F74_E2D1_A6CB_9538, 0x41E8_D62B_FC97_3A50, 0xFC82_4917_5B3E_A06D],
        [0xF18E_6B34_972D_C05A, 0x3D47_F28E_C01A_69B5, 0x0E7B_A4D1_58C6_932F, 0xD8A1_3F42_B67C_05E9],
        [0xA09E_63F5_1DC7_B428, 0xD709_346A_285E_CBF1, 0xD649_8F30_B12C_5AE7, 0x1AD0_6987_4FE3_B52C],
        [0x7DE3_069A_1285_BC4F, 0xD8B5_6F03_472C_1AE9, 0xA690_CB7D_F13E_5284, 0x3F06_A1D8_945B_C72E],
        [0x2C41_7AB6_853F_D0E9, 0xEB2C_47D1_50FA_3986, 0x421B_AD78_F9C5_630E, 0xB8C7_1E2D_6F09_A453],
        [0xC1AF_9268_0D34_E75B, 0xAF42_7C95_61DE_0B38, 0x9EF5_28C3_704A_1DB6, 0x432C_95FA_BE17_608D],
        [0x4B2E_F08D_3C97_5A61, 0xD0B7_491A_E35C_2F86, 0x14BD_C37E_AF68_0592, 0x6BD8_14A7_950F_E23C],
        [0xD284_6FB1_A93E_50C7, 0x1FD8_A374_C56B_0E92, 0x7B41_9CE2_06AD_F358, 0x21E7_4A8D_FC90_356B],
    ]
}
