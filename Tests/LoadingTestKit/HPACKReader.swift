// SPDX-License-Identifier: Apache-2.0

/// Decodes the field blocks of requests (RFC 7541), for ``ScriptedHTTP2Connection``.
struct HPACKReader {
    private typealias Field = (name: String, value: String)

    /// The static table (appendix A).
    private static let known: [Field] = """
        :authority|:method=GET|:method=POST|:path=/|:path=/index.html|:scheme=http|:scheme=https|:status=200|:status=204|\
        :status=206|:status=304|:status=400|:status=404|:status=500|accept-charset|accept-encoding=gzip, deflate|\
        accept-language|accept-ranges|accept|access-control-allow-origin|age|allow|authorization|cache-control|\
        content-disposition|content-encoding|content-language|content-length|content-location|content-range|content-type|cookie|\
        date|etag|expect|expires|from|host|if-match|if-modified-since|if-none-match|if-range|if-unmodified-since|last-modified|\
        link|location|max-forwards|proxy-authenticate|proxy-authorization|range|referer|refresh|retry-after|server|set-cookie|\
        strict-transport-security|transfer-encoding|user-agent|vary|via|www-authenticate
        """.split(separator: "|").map { entry in
            let parts = entry.split(separator: "=", maxSplits: 1).map(String.init)
            return (parts[0], parts.count > 1 ? parts[1] : "")
        }

    /// The symbol of each Huffman code (appendix B), by the code below a leading one.
    ///
    /// The code is canonical, so the lengths are sufficient: `a` is 5 bits, `z` is 30.
    private static let symbols: [UInt32: UInt8] = {
        let lengths = """
            isxxxxxxxtzxxzxxxxxxxxzxxxxxxxxx\
            bffhibdgffdgdbbbaaabbbbbbbcdkbhf\
            ibccccccccccccccccccccccdcdioijb\
            kabababbbaccbbbabcbaabccccckgjix\
            prpprrrsrssssststtrstssssqrsrsst\
            rqprrssqsrrtqrssqqrqsrssprrrsrrs\
            vvporsruvvvwwvtuoqvwwvwtqqvvxwww\
            ptpqrqqsrruuttvsvwvvwwwwwxwwwwwv
            """.utf8.map { UInt32($0 - UInt8(ascii: "a")) + 5 }
        var symbols: [UInt32: UInt8] = [:]
        var code: UInt32 = 0
        for length in 5...30 as ClosedRange<UInt32> {
            for (symbol, own) in lengths.enumerated() where own == length {
                symbols[1 << length | code] = UInt8(symbol)
                code += 1
            }
            code <<= 1
        }
        return symbols
    }()

    private var table: [Field] = []
    private var limit = 4096

    /// Decodes a complete block; returns nil if it is malformed.
    mutating func decode(_ block: [UInt8]) -> [(name: String, value: String)]? {
        var rest = block[...]
        var fields: [Field] = []
        while let first = rest.first {
            if first & 0x80 != 0 {
                guard let index = Self.integer(&rest, prefix: 7), let field = entry(index) else { return nil }
                fields.append(field)
            } else if first & 0xE0 == 0x20 {
                guard let size = Self.integer(&rest, prefix: 5) else { return nil }
                limit = size
                shrink()
            } else {
                let isIndexed = first & 0x40 != 0
                guard let index = Self.integer(&rest, prefix: isIndexed ? 6 : 4),
                    let name = index == 0 ? Self.string(&rest) : entry(index)?.name, let value = Self.string(&rest)
                else { return nil }
                fields.append((name, value))
                if isIndexed {
                    table.insert((name, value), at: 0)
                    shrink()
                }
            }
        }
        return fields
    }

    private func entry(_ index: Int) -> Field? {
        guard index > 0, index <= Self.known.count + table.count else { return nil }
        return index <= Self.known.count ? Self.known[index - 1] : table[index - Self.known.count - 1]
    }

    private mutating func shrink() {
        while table.reduce(0, { $0 + $1.name.utf8.count + $1.value.utf8.count + 32 }) > limit { table.removeLast() }
    }

    private static func integer(_ bytes: inout ArraySlice<UInt8>, prefix: Int) -> Int? {
        guard let first = bytes.popFirst() else { return nil }
        var value = Int(first) & (1 << prefix - 1)
        guard value == 1 << prefix - 1 else { return value }
        for shift in stride(from: 0, through: 28, by: 7) {
            guard let next = bytes.popFirst() else { return nil }
            value += Int(next & 0x7F) << shift
            if next & 0x80 == 0 { return value }
        }
        return nil
    }

    private static func string(_ bytes: inout ArraySlice<UInt8>) -> String? {
        let isCoded = (bytes.first ?? 0) & 0x80 != 0
        guard let count = integer(&bytes, prefix: 7), count <= bytes.count else { return nil }
        let text = bytes.prefix(count)
        bytes = bytes.dropFirst(count)
        guard isCoded else { return String(decoding: text, as: UTF8.self) }
        var decoded: [UInt8] = []
        var code: UInt32 = 1
        for byte in text {
            for bit in stride(from: 7, through: 0, by: -1) {
                code = code << 1 | UInt32(byte >> bit & 1)
                guard let symbol = symbols[code] else { continue }
                decoded.append(symbol)
                code = 1
            }
        }
        return String(decoding: decoded, as: UTF8.self)
    }
}
