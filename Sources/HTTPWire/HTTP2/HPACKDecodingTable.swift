// SPDX-License-Identifier: Apache-2.0

/// The table that the peer's field blocks refer to (RFC 7541, section 2.3): the static entries, followed by the entries that the
/// peer added.
///
/// All text is in one buffer, with the static entries first. New text is appended. When the buffer is full, the live text of the
/// dynamic entries moves to the front. The buffer is twice as large as that text, so moves are rare.
struct HPACKDecodingTable: Sendable {
    struct Entry: Sendable {
        /// The start of the name; the value follows it.
        var start: Int
        var nameLength: UInt32
        var valueLength: UInt32
        var verdict: HPACKFieldVerdict

        var count: Int { Int(nameLength) &+ Int(valueLength) }
        var name: Range<Int> { start..<start &+ Int(nameLength) }
        var value: Range<Int> { start &+ Int(nameLength)..<start &+ count }
        /// "The sum of its name's length in octets, its value's length in octets, and 32" (section 4.1).
        var size: Int { count &+ 32 }
    }

    /// A table without dynamic entries, built once and copied for each decoder.
    private static let prototype = HPACKDecodingTable()

    private(set) var text: [UInt8]
    private var textEnd: Int
    private let staticTextEnd: Int
    private var entries: [Entry]
    private let staticCount: Int
    /// The entry that is evicted next.
    private var oldest: Int
    /// The size of the entries that the peer added.
    private(set) var size = 0
    /// The maximum of ``size``, as the peer has last set it.
    private(set) var maximumSize: Int

    init(maximumSize: Int) {
        self = Self.prototype
        self.maximumSize = maximumSize
    }

    private init() {
        var text: [UInt8] = []
        var entries: [Entry] = []
        for (name, value) in HPACKStaticTable.entries {
            var entry = Entry(
                start: text.count, nameLength: UInt32(name.utf8CodeUnitCount), valueLength: UInt32(value.utf8CodeUnitCount),
                verdict: HPACKFieldVerdict())
            text.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
            text.append(contentsOf: UnsafeBufferPointer(start: value.utf8Start, count: value.utf8CodeUnitCount))
            text.withUnsafeBytes {
                entry.verdict.validateName($0, entry.name)
                entry.verdict.validateValue($0, entry.value)
            }
            entries.append(entry)
        }
        self.text = text
        self.entries = entries
        textEnd = text.count
        staticTextEnd = text.count
        staticCount = entries.count
        oldest = entries.count
        maximumSize = 0
    }

    /// The number of entries that the peer added.
    var dynamicCount: Int { entries.count - oldest }

    /// Returns the entry at an index in a field block: static entries start at 1, followed by the dynamic entries, newest first.
    ///
    /// Returns nil if there is no such entry.
    @inline(__always)
    func entry(at index: Int) -> Entry? {
        if index &- 1 < staticCount { return index > 0 ? entries[index &- 1] : nil }
        let place = entries.count &- 1 &- (index &- staticCount &- 1)
        return place >= oldest ? entries[place] : nil
    }

    /// Adds a field and evicts as many entries as necessary (section 4.4).
    ///
    /// "An attempt to add an entry larger than the maximum size causes the table to be emptied of all existing entries", and is not
    /// an error.
    mutating func add(_ field: UnsafeRawBufferPointer, nameLength: Int, _ verdict: HPACKFieldVerdict) {
        let needed = field.count + 32
        evict(toFit: maximumSize - needed)
        guard needed <= maximumSize else { return }
        makeRoom(field.count)
        text.withUnsafeMutableBytes { text in
            UnsafeMutableRawBufferPointer(rebasing: text[textEnd..<textEnd &+ field.count]).copyMemory(from: field)
        }
        entries.append(
            Entry(
                start: textEnd, nameLength: UInt32(truncatingIfNeeded: nameLength),
                valueLength: UInt32(truncatingIfNeeded: field.count - nameLength), verdict: verdict))
        textEnd += field.count
        size += needed
    }

    /// Changes the maximum size of the table (section 4.3).
    mutating func resize(to maximumSize: Int) {
        self.maximumSize = maximumSize
        evict(toFit: maximumSize)
    }

    private mutating func evict(toFit limit: Int) {
        while size > limit, oldest < entries.count {
            size -= entries[oldest].size
            oldest += 1
        }
        guard oldest == entries.count else { return }
        entries.removeSubrange(staticCount...)
        oldest = staticCount
        textEnd = staticTextEnd
    }

    private mutating func makeRoom(_ count: Int) {
        if oldest - staticCount > max(32, dynamicCount) {
            entries.removeSubrange(staticCount..<oldest)
            oldest = staticCount
        }
        guard textEnd + count > text.count else { return }
        let living = oldest < entries.count ? entries[oldest].start..<textEnd : textEnd..<textEnd
        let distance = living.lowerBound - staticTextEnd
        if distance > 0 {
            text.withUnsafeMutableBytes { text in
                UnsafeMutableRawBufferPointer(rebasing: text[staticTextEnd..<staticTextEnd + living.count])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: text[living]))
            }
            for index in oldest..<entries.count { entries[index].start -= distance }
            textEnd -= distance
        }
        // The buffer gets twice the size of the live text, so that moves are rare. The table's maximum size limits the live text.
        let wanted = staticTextEnd + 2 * (living.count + count)
        if text.count < wanted { text.append(contentsOf: repeatElement(0, count: wanted - text.count)) }
    }
}
