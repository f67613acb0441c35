// SPDX-License-Identifier: Apache-2.0

/// The table that the client's field blocks refer to (RFC 7541, section 2.3.2), with a hash index of its fields.
struct HPACKEncodingTable: Sendable {
    /// The initial table size in the protocol, which is also the maximum size that this encoder uses.
    static let largestSize = 4_096

    private struct Entry: Sendable {
        /// The number of entries added before this one.
        var number = -1
        /// The start of the lowercase name; the value follows it.
        var start = 0
        var nameLength = 0
        var valueLength = 0
        var nameHash: UInt32 = 0
        var fieldHash: UInt32 = 0

        var count: Int { nameLength &+ valueLength }
        var size: Int { count &+ 32 }
    }

    /// A field to look up or add.
    struct Field {
        let name: UnsafeRawBufferPointer
        let value: UnsafeRawBufferPointer
        let nameHash: UInt32
        let fieldHash: UInt32

        @inline(__always)
        init(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer, nameHash: UInt32) {
            self.name = name
            self.value = value
            self.nameHash = nameHash
            fieldHash = nameHash &* 31 ^ HPACKHash.value(value)
        }

        var size: Int { name.count &+ value.count &+ 32 }
    }

    /// The maximum number of entries: each entry has a size of at least 32.
    private static let places = largestSize / 32
    private static let nowhere = UInt8.max
    private static let slotMask = 255

    private(set) var maximumSize = largestSize
    private var size = 0
    /// A ring buffer, indexed by the entry number.
    private var entries = [Entry](repeating: Entry(), count: places)
    private var oldest = 0
    private var added = 0
    private var text: [UInt8] = []
    private var textEnd = 0
    /// For each hash, the position of the last entry that was added with this hash; the entry may have been evicted.
    private var fieldSlots = [UInt8](repeating: nowhere, count: slotMask + 1)
    private var nameSlots = [UInt8](repeating: nowhere, count: slotMask + 1)

    /// Returns the index of a field, or nil if the table does not contain the field.
    @inline(__always)
    func index(of field: Field) -> Int? {
        let place = fieldSlots[Int(field.fieldHash) & Self.slotMask]
        guard place != Self.nowhere else { return nil }
        let entry = entries[Int(place)]
        guard entry.number >= oldest, entry.fieldHash == field.fieldHash, entry.valueLength == field.value.count,
            isName(field.name, of: entry), isValue(field.value, of: entry)
        else { return nil }
        return index(entry)
    }

    /// Returns the index of an entry that has the field's name.
    func index(ofNameOf field: Field) -> Int? {
        let place = nameSlots[Int(field.nameHash) & Self.slotMask]
        guard place != Self.nowhere else { return nil }
        let entry = entries[Int(place)]
        guard entry.number >= oldest, entry.nameHash == field.nameHash, isName(field.name, of: entry) else { return nil }
        return index(entry)
    }

    /// Returns the index of an entry; the newest entry follows the static entries.
    private func index(_ entry: Entry) -> Int { HPACKStaticTable.count &+ added &- entry.number }

    @inline(__always)
    private func isName(_ name: UnsafeRawBufferPointer, of entry: Entry) -> Bool {
        guard entry.nameLength == name.count else { return false }
        return text.withUnsafeBytes { text in
            for index in 0..<name.count where ASCII.lowercased(name[index]) != text[entry.start &+ index] { return false }
            return true
        }
    }

    @inline(__always)
    private func isValue(_ value: UnsafeRawBufferPointer, of entry: Entry) -> Bool {
        text.withUnsafeBytes { text in
            let start = entry.start &+ entry.nameLength
            var position = 0
            while position &+ 8 <= value.count {
                guard HTTP2Bytes.uint64(value, position) == HTTP2Bytes.uint64(text, start &+ position) else { return false }
                position &+= 8
            }
            while position < value.count {
                guard value[position] == text[start &+ position] else { return false }
                position &+= 1
            }
            return true
        }
    }

    /// Adds a field and evicts as many entries as necessary.
    ///
    /// The field must not be larger than the table.
    mutating func add(_ field: Field) {
        evict(toFit: maximumSize - field.size)
        makeRoom(field.name.count + field.value.count)
        let start = textEnd
        text.withUnsafeMutableBytes { text in
            for index in 0..<field.name.count { text[start &+ index] = ASCII.lowercased(field.name[index]) }
            UnsafeMutableRawBufferPointer(rebasing: text[(start + field.name.count)...]).copyMemory(from: field.value)
        }
        let place = added % Self.places
        entries[place] = Entry(
            number: added, start: start, nameLength: field.name.count, valueLength: field.value.count,
            nameHash: field.nameHash, fieldHash: field.fieldHash)
        fieldSlots[Int(field.fieldHash) & Self.slotMask] = UInt8(place)
        nameSlots[Int(field.nameHash) & Self.slotMask] = UInt8(place)
        added += 1
        size += field.size
        textEnd += field.name.count + field.value.count
    }

    mutating func resize(to maximumSize: Int) {
        self.maximumSize = maximumSize
        evict(toFit: maximumSize)
    }

    private mutating func evict(toFit limit: Int) {
        while size > limit, oldest < added {
            size -= entries[oldest % Self.places].size
            oldest += 1
        }
        if oldest == added { textEnd = 0 }
    }

    /// Moves the live text to the front if the buffer is full.
    private mutating func makeRoom(_ count: Int) {
        guard textEnd + count > text.count else { return }
        let start = oldest < added ? entries[oldest % Self.places].start : textEnd
        let living = textEnd - start
        if start > 0 {
            text.withUnsafeMutableBytes { text in
                UnsafeMutableRawBufferPointer(rebasing: text[0..<living])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: text[start..<start + living]))
            }
            for number in oldest..<added { entries[number % Self.places].start -= start }
            textEnd = living
        }
        let wanted = 2 * (living + count)
        if text.count < wanted { text.append(contentsOf: repeatElement(0, count: wanted - text.count)) }
    }
}
