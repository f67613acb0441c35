// SPDX-License-Identifier: Apache-2.0

/// Hand-written HPACK field blocks (RFC 7541), which an encoder would not produce.
package enum HPACKBytes {
    /// Literal fields without indexing and without Huffman coding (section 6.2.2).
    package static func literals(_ fields: [(String, String)]) -> [UInt8] {
        fields.flatMap { [0x00] + string($0.0) + string($0.1) }
    }

    /// Literal fields that are added to the dynamic table (section 6.2.1).
    package static func indexed(_ fields: [(String, String)]) -> [UInt8] {
        fields.flatMap { [0x40] + string($0.0) + string($0.1) }
    }

    /// An indexed field (section 6.1).
    package static func index(_ number: Int) -> [UInt8] { integer(number, prefix: 7, first: 0x80) }

    /// A dynamic table size update (section 6.3).
    package static func tableSize(_ size: Int) -> [UInt8] { integer(size, prefix: 5, first: 0x20) }

    /// A string without Huffman coding (section 5.2); `length` overrides the encoded length.
    package static func string(_ text: String, length: Int? = nil) -> [UInt8] {
        let bytes = text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
        return integer(length ?? bytes.count, prefix: 7, first: 0) + bytes
    }

    /// A string that is marked as Huffman-coded.
    package static func huffman(_ bytes: [UInt8]) -> [UInt8] { integer(bytes.count, prefix: 7, first: 0x80) + bytes }

    /// An integer (section 5.1).
    package static func integer(_ value: Int, prefix: Int, first: UInt8) -> [UInt8] {
        let limit = (1 << prefix) - 1
        guard value >= limit else { return [first | UInt8(value)] }
        var bytes = [first | UInt8(limit)]
        var rest = value - limit
        while rest >= 128 {
            bytes.append(UInt8(rest & 127) | 128)
            rest >>= 7
        }
        return bytes + [UInt8(rest)]
    }
}
