// SPDX-License-Identifier: Apache-2.0

/// The Huffman code of RFC 7541, appendix B.
///
/// The code is canonical: codes of equal length are consecutive, in the order of their symbols, and the first of them follows the
/// last code that is one bit shorter. The code lengths are therefore sufficient to build the code.
struct HPACKHuffman: Sendable {
    static let code = HPACKHuffman()

    /// The code length of each symbol and of EOS: `a` is 5 bits, `z` is 30.
    private static let lengths: StaticString = """
        isxxxxxxxtzxxzxxxxxxxxzxxxxxxxxx\
        bffhibdgffdgdbbbaaabbbbbbbcdkbhf\
        ibccccccccccccccccccccccdcdioijb\
        kabababbbaccbbbabcbaabccccckgjix\
        prpprrrsrssssststtrstssssqrsrsst\
        rqprrssqsrrtqrssqqrqsrssprrrsrrs\
        vvporsruvvvwwvtuoqvwwvwtqqvvxwww\
        ptpqrqqsrruuttvsvwvvwwwwwxwwwwwvz
        """

    private static let shortest = 5
    private static let longest = 30
    private static let endOfString: UInt16 = 256
    /// The maximum length, in bits, of a code that one table lookup decodes.
    ///
    /// The codes of all letters, digits and characters common in paths are not longer. One lookup decodes two codes if their total
    /// length does not exceed this maximum.
    private static let quickBits = 12

    /// The encoding of each symbol: the code, shifted left by eight bits, with its length in the low byte.
    private let codes: [UInt64]
    /// The lookup table for the next twelve bits.
    private let quick: [Quick]
    /// The symbols in the order of their codes.
    private let symbols: [UInt16]
    /// For each length, the first code, left-aligned in 32 bits, and the index of its symbol in `symbols`.
    private let firsts: [(code: UInt32, index: UInt16)]

    /// The symbols that a bit pattern starts with: one, or two if the second code is complete as well.
    private struct Quick {
        var symbols: (UInt8, UInt8) = (0, 0)
        /// The length of the first code; 0 if the code is longer than twelve bits.
        var firstLength: UInt8 = 0
        /// The total length of both codes, or the length of the only code.
        var length: UInt8 = 0
    }

    private init() {
        var codes = [UInt64](repeating: 0, count: 257)
        var quick = [Quick](repeating: Quick(), count: 1 << Self.quickBits)
        var symbols: [UInt16] = []
        var firsts = [(code: UInt32, index: UInt16)](repeating: (0, 0), count: Self.longest + 1)
        var code: UInt32 = 0
        for length in Self.shortest...Self.longest {
            firsts[length] = (code << UInt32(32 - length), UInt16(symbols.count))
            for symbol in 0...Int(Self.endOfString) where Int(Self.lengths.utf8Start[symbol] - UInt8(ascii: "a")) + 5 == length {
                codes[symbol] = UInt64(code) << 8 | UInt64(length)
                symbols.append(UInt16(symbol))
                if length <= Self.quickBits {
                    let start = Int(code) << (Self.quickBits - length)
                    for index in start..<start + 1 << (Self.quickBits - length) {
                        quick[index].symbols.0 = UInt8(symbol)
                        quick[index].firstLength = UInt8(length)
                        quick[index].length = UInt8(length)
                    }
                }
                code += 1
            }
            code <<= 1
        }
        for index in quick.indices {
            let first = quick[index]
            // The bits after the first code, shifted to the top; the missing low bits are zeros.
            let second = quick[index << Int(first.firstLength) & (1 << Self.quickBits - 1)]
            let both = Int(first.firstLength) + Int(second.firstLength)
            guard first.firstLength != 0, second.firstLength != 0, both <= Self.quickBits else { continue }
            quick[index].symbols.1 = second.symbols.0
            quick[index].length = UInt8(both)
        }
        self.codes = codes
        self.quick = quick
        self.symbols = symbols
        self.firsts = firsts
    }

    // MARK: Decoding

    /// Returns the maximum number of bytes that `count` bytes can decode to (eight for every five), plus one byte that may be
    /// written after them.
    @inline(__always)
    static func maximumDecodedLength(_ count: Int) -> Int { count &* 8 / 5 &+ 2 }

    /// Decodes a string and returns the decoded length, or nil if the string is malformed (section 5.2).
    ///
    /// A string is malformed if it contains EOS, or if its padding has more than seven bits or does not match the beginning of EOS.
    /// The target must have space for ``maximumDecodedLength(_:)`` bytes.
    func decode(_ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer) -> Int? {
        quick.withUnsafeBufferPointer { quick in
            var input = BitInput(source)
            var written = 0
            while true {
                input.fill()
                let found = quick[Int(truncatingIfNeeded: input.bits >> UInt64(64 - Self.quickBits))]
                if found.firstLength != 0 {
                    target[written] = found.symbols.0
                    target[written &+ 1] = found.symbols.1
                    var length = Int(found.length)
                    if length <= input.count {
                        written &+= found.length == found.firstLength ? 1 : 2
                    } else {
                        // The second symbol may come from bits beyond the end of the input.
                        length = Int(found.firstLength)
                        guard length <= input.count else { break }
                        written &+= 1
                    }
                    input.drop(length)
                } else {
                    guard let (symbol, length) = longSymbol(input.bits), length <= input.count else { break }
                    guard symbol != Self.endOfString else { return nil }
                    target[written] = UInt8(truncatingIfNeeded: symbol)
                    written &+= 1
                    input.drop(length)
                }
            }
            return input.isPadding ? written : nil
        }
    }

    /// Returns the next symbol if its code has more than twelve bits, and the length of the code.
    private func longSymbol(_ bits: UInt64) -> (symbol: UInt16, length: Int)? {
        let next = UInt32(truncatingIfNeeded: bits >> 32)
        // Finds the greatest length whose first code does not exceed the next bits. For a length without codes, `firsts` contains
        // the first code of the next length.
        var length = Self.quickBits + 1
        while length < Self.longest, firsts[length + 1].code <= next { length += 1 }
        guard next >= firsts[length].code else { return nil }
        let index = Int(firsts[length].index) + Int((next - firsts[length].code) >> UInt32(32 - length))
        return index < symbols.count ? (symbols[index], length) : nil
    }

    /// Reads bits, the most significant bit of each byte first.
    private struct BitInput {
        private let source: UnsafeRawBufferPointer
        private var position = 0
        /// The next bits of the input, left-aligned in 64 bits; zeros follow the end of the input.
        private(set) var bits: UInt64 = 0
        private(set) var count = 0

        init(_ source: UnsafeRawBufferPointer) { self.source = source }

        /// Refills the buffer to hold more bits than the longest code, or all remaining bits.
        @inline(__always)
        mutating func fill() {
            guard count < HPACKHuffman.longest else { return }
            if position &+ 4 <= source.count {
                bits |= UInt64(HTTP2Bytes.uint32(source, position)) << UInt64(32 &- count)
                position &+= 4
                count &+= 32
                return
            }
            while position < source.count {
                bits |= UInt64(source[position]) << UInt64(56 &- count)
                position &+= 1
                count &+= 8
            }
        }

        @inline(__always)
        mutating func drop(_ length: Int) {
            bits <<= UInt64(truncatingIfNeeded: length)
            count &-= length
        }

        /// Whether at most seven bits are left and all of them are ones.
        var isPadding: Bool {
            count <= 7 && bits >> UInt64(57) == (0x7F << UInt64(7 &- count)) & 0x7F
        }
    }

    // MARK: Encoding

    /// Returns the length of the encoded string in bytes.
    @inline(__always)
    func encodedLength(_ source: UnsafeRawBufferPointer) -> Int {
        codes.withUnsafeBufferPointer { codes in
            var bits: UInt64 = 7
            for byte in source { bits &+= codes[Int(byte)] & 0xFF }
            return Int(truncatingIfNeeded: bits >> 3)
        }
    }

    /// Encodes a string, which takes ``encodedLength(_:)`` bytes.
    func encode(_ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer, _ start: Int) {
        codes.withUnsafeBufferPointer { codes in
            var position = start
            var bits: UInt64 = 0
            var count: UInt64 = 0
            for byte in source {
                let code = codes[Int(byte)]
                let length = code & 0xFF
                bits = bits << length | code >> 8
                count &+= length
                if count >= 32 {
                    count &-= 32
                    HTTP2Bytes.put(UInt32(truncatingIfNeeded: bits >> count), target, position)
                    position &+= 4
                }
            }
            while count >= 8 {
                count &-= 8
                target[position] = UInt8(truncatingIfNeeded: bits >> count)
                position &+= 1
            }
            // "Padding with the most-significant bits of the code for EOS", which are ones.
            if count > 0 { target[position] = UInt8(truncatingIfNeeded: bits << (8 &- count) | 0xFF >> count) }
        }
    }
}
