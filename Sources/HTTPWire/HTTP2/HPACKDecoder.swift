// SPDX-License-Identifier: Apache-2.0

/// Decodes field blocks (RFC 7541) and validates the resulting field sections (RFC 9113, sections 8.2 and 8.3).
///
/// A violation of the format is a connection error, because the tables of the two peers then differ. A section that is only
/// malformed or too large is not a connection error: its remaining fields are decoded but not kept, so the table stays
/// synchronized.
struct HPACKDecoder: Sendable {
    typealias Limits = FieldSectionCollector.Limits

    /// Why a block could not be decoded; always a COMPRESSION_ERROR.
    private enum Malformed: Error {
        case truncated
        case integer
        case index
        case huffman
        case tableSize
        case lateTableSize
        case missingTableSize

        var message: String {
            switch self {
            case .truncated: "a field block ends within a field"
            case .integer: "an integer in a field block is too long"
            case .index: "a field block refers to an entry that is not in the table"
            case .huffman: "a string in a field block is not valid Huffman code"
            case .tableSize: "a table size update exceeds the announced size"
            case .lateTableSize: "a table size update is not at the beginning of a field block"
            case .missingTableSize: "the table was not resized to the announced size"
            }
        }
    }

    /// The size of the table before any SETTINGS frame (RFC 9113, section 6.5.2).
    static let initialTableSize = 4_096
    /// The maximum number of table size updates at the beginning of a block (RFC 7541, section 4.2).
    private static let maximumTableSizeUpdates = 2

    private var table: HPACKDecodingTable
    /// The maximum size that the peer may set for the table.
    private var tableLimit: Int
    private var collector: FieldSectionCollector

    /// Creates a decoder with the protocol's initial table size.
    ///
    /// The peer may already use the announced size, because the size applies as soon as the peer receives it.
    init(limits: Limits, announcedTableSize: Int) {
        collector = FieldSectionCollector(limits: limits)
        table = HPACKDecodingTable(maximumSize: Self.initialTableSize)
        tableLimit = max(announcedTableSize, Self.initialTableSize)
    }

    /// Applies the announced table size after the peer has acknowledged it.
    ///
    /// If the size is smaller than the table, the next block must begin with a size update to at most this size (RFC 7541, section
    /// 4.2).
    mutating func limitTable(to size: Int) { tableLimit = size }

    /// Decodes a complete block.
    mutating func decode(_ block: UnsafeRawBufferPointer) throws(HTTP2Failure) -> FieldSection {
        collector.begin()
        do throws(Malformed) {
            var position = 0
            try readTableSizes(block, &position)
            while position < block.count { try readField(block, &position) }
        } catch {
            throw HTTP2Failure(code: .compressionError, message: error.message)
        }
        return collector.end()
    }

    // MARK: Table sizes

    private mutating func readTableSizes(_ block: UnsafeRawBufferPointer, _ position: inout Int) throws(Malformed) {
        var count = 0
        while position < block.count, block[position] & 0xE0 == 0x20 {
            let size = try Self.integer(block, &position, prefix: 5)
            guard size <= tableLimit else { throw .tableSize }
            count += 1
            guard count <= Self.maximumTableSizeUpdates else { throw .lateTableSize }
            table.resize(to: size)
        }
        guard table.maximumSize <= tableLimit else { throw .missingTableSize }
    }

    // MARK: Fields

    @inline(__always)
    private mutating func readField(_ block: UnsafeRawBufferPointer, _ position: inout Int) throws(Malformed) {
        let first = block[position]
        if first & 0x80 != 0 {
            let index = try Self.integer(block, &position, prefix: 7)
            guard let entry = table.entry(at: index) else { throw .index }
            return takeIndexed(entry)
        }
        guard first & 0xE0 != 0x20 else { throw .lateTableSize }
        let isAdded = first & 0x40 != 0
        try readLiteral(block, &position, prefix: isAdded ? 6 : 4, isAdded: isAdded)
    }

    @inline(__always)
    private mutating func takeIndexed(_ entry: HPACKDecodingTable.Entry) {
        collector.count(entry.count)
        guard collector.mayKeep(entry.verdict) else { return }
        if entry.verdict.name == .status {
            return collector.takeStatus(table.text.withUnsafeBytes { HPACKFieldVerdict.status($0, entry.value) })
        }
        collector.reserveText(entry.count)
        table.text.withUnsafeBytes { source in
            let field = UnsafeRawBufferPointer(rebasing: source[entry.start..<entry.start &+ entry.count])
            collector.copy(field, to: collector.textEnd)
        }
        collector.keep(nameLength: Int(entry.nameLength), valueLength: Int(entry.valueLength))
    }

    private mutating func readLiteral(
        _ block: UnsafeRawBufferPointer,
        _ position: inout Int,
        prefix: UInt8,
        isAdded: Bool
    ) throws(Malformed) {
        let index = try Self.integer(block, &position, prefix: prefix)
        let start = collector.textEnd
        var verdict = HPACKFieldVerdict()
        var end = start
        if index != 0 {
            guard let entry = table.entry(at: index) else { throw .index }
            verdict = entry.verdict
            copyName(entry)
            end += Int(entry.nameLength)
        } else {
            try readString(block, &position, &end)
            collector.text.withUnsafeBytes { verdict.validateName($0, start..<end) }
        }
        let nameEnd = end
        try readString(block, &position, &end)
        collector.text.withUnsafeBytes { text in
            verdict.validateValue(text, nameEnd..<end)
            if isAdded {
                let field = UnsafeRawBufferPointer(rebasing: text[start..<end])
                table.add(field, nameLength: nameEnd - start, verdict)
            }
        }
        collector.count(end - start)
        guard collector.mayKeep(verdict) else { return }
        if verdict.name == .status {
            let value = collector.text.withUnsafeBytes { HPACKFieldVerdict.status($0, nameEnd..<end) }
            return collector.takeStatus(value)
        }
        collector.keep(nameLength: nameEnd - start, valueLength: end - nameEnd)
    }

    private mutating func copyName(_ entry: HPACKDecodingTable.Entry) {
        collector.reserveText(Int(entry.nameLength))
        table.text.withUnsafeBytes { source in
            collector.copy(UnsafeRawBufferPointer(rebasing: source[entry.name]), to: collector.textEnd)
        }
    }

    // MARK: Primitives

    /// Reads a string (section 5.2) into the buffer after the part of the field that has already been read, and advances `end`.
    @inline(__always)
    private mutating func readString(
        _ block: UnsafeRawBufferPointer,
        _ position: inout Int,
        _ end: inout Int
    ) throws(Malformed) {
        guard position < block.count else { throw .truncated }
        let isHuffman = block[position] & 0x80 != 0
        let count = try Self.integer(block, &position, prefix: 7)
        guard count <= block.count &- position else { throw .truncated }
        let source = UnsafeRawBufferPointer(rebasing: block[position..<position &+ count])
        position &+= count
        let room = isHuffman ? HPACKHuffman.maximumDecodedLength(count) : count
        collector.reserveText(room, from: end)
        let start = end
        let written = collector.text.withUnsafeMutableBytes { text in
            let target = UnsafeMutableRawBufferPointer(rebasing: text[start..<start &+ room])
            guard !isHuffman else { return HPACKHuffman.code.decode(source, into: target) }
            target.copyMemory(from: source)
            return count
        }
        guard let written else { throw .huffman }
        end = start &+ written
    }

    /// Reads an integer (section 5.1) of at most five bytes, which is enough for any index, length or size.
    @inline(__always)
    private static func integer(
        _ block: UnsafeRawBufferPointer,
        _ position: inout Int,
        prefix: UInt8
    ) throws(Malformed) -> Int {
        let mask: UInt8 = 0xFF >> (8 &- prefix)
        let first = block[position] & mask
        position &+= 1
        return first < mask ? Int(first) : try longInteger(block, &position, Int(mask))
    }

    @inline(never)
    private static func longInteger(
        _ block: UnsafeRawBufferPointer, _ position: inout Int, _ prefix: Int
    ) throws(Malformed) -> Int {
        var value = prefix
        for shift in stride(from: 0, to: 28, by: 7) {
            guard position < block.count else { throw .truncated }
            let byte = block[position]
            position &+= 1
            value += Int(byte & 0x7F) << shift
            if byte & 0x80 == 0 { return value }
        }
        throw .integer
    }
}
