// SPDX-License-Identifier: Apache-2.0

/// A simple and slow coder of RFC 7541, with which the module's encoder and decoder are compared.
struct PlainHPACK {
    struct Field: Equatable, CustomStringConvertible {
        var name: String
        var value: String
        /// The representation, which `==` ignores.
        var form: Form

        enum Form { case indexed, added, notAdded, neverAdded }

        init(_ name: String, _ value: String, _ form: Form = .added) {
            self.name = name
            self.value = value
            self.form = form
        }

        static func == (left: Field, right: Field) -> Bool { left.name == right.name && left.value == right.value }

        var description: String { "\(name): \(value)" }
    }

    struct Malformed: Error {}

    /// The dynamic table, with the newest entry first.
    private(set) var table: [(name: String, value: String)] = []
    private(set) var maximumSize = 4_096

    var size: Int { table.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 32 } }

    mutating func resize(to size: Int) {
        maximumSize = size
        shrink()
    }

    private mutating func shrink() {
        while size > maximumSize { table.removeLast() }
    }

    mutating func add(_ name: String, _ value: String) {
        table.insert((name, value), at: 0)
        shrink()
    }

    func entry(_ index: Int) throws -> (name: String, value: String) {
        guard index > 0, index <= Self.staticTable.count + table.count else { throw Malformed() }
        return index <= Self.staticTable.count ? Self.staticTable[index - 1] : table[index - Self.staticTable.count - 1]
    }

    // MARK: Decoding

    /// Decodes a block into its fields and the table sizes that the block sets.
    mutating func decode(_ block: [UInt8]) throws -> (fields: [Field], sizes: [Int]) {
        var rest = block[...]
        var fields: [Field] = []
        var sizes: [Int] = []
        while let first = rest.first {
            if first & 0x80 != 0 {
                let found = try entry(try Self.integer(&rest, 7))
                fields.append(Field(found.name, found.value, .indexed))
            } else if first & 0xE0 == 0x20 {
                sizes.append(try Self.integer(&rest, 5))
                resize(to: sizes[sizes.count - 1])
            } else {
                let isAdded = first & 0x40 != 0
                let index = try Self.integer(&rest, isAdded ? 6 : 4)
                let name = index == 0 ? try Self.string(&rest) : try entry(index).name
                let value = try Self.string(&rest)
                if isAdded { add(name, value) }
                fields.append(Field(name, value, isAdded ? .added : first & 0x10 != 0 ? .neverAdded : .notAdded))
            }
        }
        return (fields, sizes)
    }

    private static func integer(_ rest: inout ArraySlice<UInt8>, _ prefix: Int) throws -> Int {
        guard let first = rest.popFirst() else { throw Malformed() }
        let mask = 1 << prefix - 1
        var value = Int(first) & mask
        guard value == mask else { return value }
        var shift = 0
        while let byte = rest.popFirst() {
            value += Int(byte & 0x7F) << shift
            shift += 7
            if byte & 0x80 == 0 { return value }
        }
        throw Malformed()
    }

    private static func string(_ rest: inout ArraySlice<UInt8>) throws -> String {
        let isHuffman = (rest.first ?? 0) & 0x80 != 0
        let count = try integer(&rest, 7)
        guard count <= rest.count else { throw Malformed() }
        let bytes = Array(rest.prefix(count))
        rest = rest.dropFirst(count)
        return String(decoding: isHuffman ? try decodeHuffman(bytes) : bytes, as: UTF8.self)
    }

    private static func decodeHuffman(_ bytes: [UInt8]) throws -> [UInt8] {
        var found: [UInt8] = []
        var code = Code()
        for byte in bytes {
            for bit in stride(from: 7, through: 0, by: -1) {
                code.append(Int(byte) >> bit & 1)
                guard let symbol = symbols[code] else { continue }
                guard symbol < 256 else { throw Malformed() }
                found.append(UInt8(symbol))
                code = Code()
            }
        }
        guard code.length < 8, code.bits == 1 << code.length - 1 else { throw Malformed() }
        return found
    }

    // MARK: Encoding

    /// Encodes a field in a random representation.
    mutating func encode(_ field: Field, using numbers: inout some RandomNumberGenerator) -> [UInt8] {
        let all = Self.staticTable + table
        if let index = all.firstIndex(where: { $0.name == field.name && $0.value == field.value }), Bool.random(using: &numbers) {
            return Self.integer(index + 1, 7, 0x80)
        }
        let named = Bool.random(using: &numbers) ? all.lastIndex { $0.name == field.name } : nil
        let form = Int.random(in: 0...3, using: &numbers)
        var bytes: [UInt8] =
            switch form {
            case 0: Self.integer(named.map { $0 + 1 } ?? 0, 4, 0)
            case 1: Self.integer(named.map { $0 + 1 } ?? 0, 4, 0x10)
            default: Self.integer(named.map { $0 + 1 } ?? 0, 6, 0x40)
            }
        if named == nil { bytes += Self.string(field.name, isHuffman: Bool.random(using: &numbers)) }
        bytes += Self.string(field.value, isHuffman: Bool.random(using: &numbers))
        if form > 1 { add(field.name, field.value) }
        return bytes
    }

    static func integer(_ value: Int, _ prefix: Int, _ pattern: UInt8) -> [UInt8] {
        let mask = 1 << prefix - 1
        guard value >= mask else { return [pattern | UInt8(value)] }
        var bytes = [pattern | UInt8(mask)]
        var rest = value - mask
        while rest >= 128 {
            bytes.append(UInt8(rest & 0x7F) | 0x80)
            rest >>= 7
        }
        return bytes + [UInt8(rest)]
    }

    static func string(_ text: String, isHuffman: Bool) -> [UInt8] {
        guard isHuffman else { return integer(text.utf8.count, 7, 0) + Array(text.utf8) }
        let bytes = huffman(Array(text.utf8))
        return integer(bytes.count, 7, 0x80) + bytes
    }

    static func huffman(_ text: [UInt8]) -> [UInt8] {
        var bits: [Int] = []
        for byte in text {
            let code = codes[Int(byte)]
            bits += (0..<code.length).map { code.bits >> (code.length - 1 - $0) & 1 }
        }
        while bits.count % 8 != 0 { bits.append(1) }
        return stride(from: 0, to: bits.count, by: 8).map { start in UInt8(bits[start..<start + 8].reduce(0) { $0 << 1 | $1 }) }
    }

    // MARK: Tables

    struct Code: Hashable {
        var bits = 0
        var length = 0

        mutating func append(_ bit: Int) {
            bits = bits << 1 | bit
            length += 1
        }
    }

    /// The Huffman codes, derived from their lengths in RFC 7541, appendix B.
    static let codes: [Code] = {
        let lengths = """
            13 23 28 28 28 28 28 28 28 24 30 28 28 30 28 28 28 28 28 28 28 28 30 28 28 28 28 28 28 28 28 28 6 10 10 12 13 6 8 11 10 \
            10 8 11 8 6 6 6 5 5 5 6 6 6 6 6 6 6 7 8 15 6 12 10 13 6 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 8 7 8 13 19 13 14 6 \
            15 5 6 5 6 5 6 6 6 5 7 7 6 6 6 5 6 7 6 5 5 6 7 7 7 7 7 15 11 14 13 28 20 22 20 20 22 22 22 23 22 23 23 23 23 23 24 23 24 \
            24 22 23 24 23 23 23 23 21 22 23 22 23 23 24 22 21 20 22 22 23 23 21 23 22 22 24 21 22 23 23 21 21 22 21 23 22 23 23 20 \
            22 22 22 23 22 22 23 26 26 20 19 22 23 22 25 26 26 26 27 27 26 24 25 19 21 26 27 27 26 27 24 21 21 26 26 28 27 27 27 20 \
            24 20 21 22 21 21 23 22 22 25 25 24 24 26 23 26 27 26 26 27 27 27 27 27 28 27 27 27 27 27 26 30
            """.split(separator: " ").compactMap { Int($0) }
        var codes = [Code](repeating: Code(), count: lengths.count)
        var bits = 0
        for length in 1...30 {
            bits <<= 1
            for symbol in lengths.indices where lengths[symbol] == length {
                codes[symbol] = Code(bits: bits, length: length)
                bits += 1
            }
        }
        return codes
    }()

    private static let symbols = Dictionary(uniqueKeysWithValues: codes.enumerated().map { ($1, $0) })

    static let staticTable: [(name: String, value: String)] = """
        :authority|:method=GET|:method=POST|:path=/|:path=/index.html|:scheme=http|:scheme=https|:status=200|:status=204|:status=206|\
        :status=304|:status=400|:status=404|:status=500|accept-charset|accept-encoding=gzip, deflate|accept-language|accept-ranges|accept|\
        access-control-allow-origin|age|allow|authorization|cache-control|content-disposition|content-encoding|content-language|\
        content-length|content-location|content-range|content-type|cookie|date|etag|expect|expires|from|host|if-match|if-modified-since|\
        if-none-match|if-range|if-unmodified-since|last-modified|link|location|max-forwards|proxy-authenticate|proxy-authorization|range|\
        referer|refresh|retry-after|server|set-cookie|strict-transport-security|transfer-encoding|user-agent|vary|via|www-authenticate
        """.split(separator: "|").map { entry in
            let parts = entry.split(separator: "=", maxSplits: 1)
            return (String(parts[0]), parts.count > 1 ? String(parts[1]) : "")
        }
}
