// SPDX-License-Identifier: Apache-2.0

/// Looks up names in a packed set of domain rules, such as the Public Suffix List.
///
/// A lookup works on the packed text without building or copying anything.
///
/// `Scripts/label_table.py` generates the text. The text is a tree of labels, whose root block contains the top-level domains. A
/// block contains the labels below one name, sorted by their bytes, each terminated by a comma. A label without data is a rule
/// without labels below it. Any other label is followed by one letter: "A" plus the sum of the bits of ``Entry``, where 8 means that
/// there is a block below the label. In this case, the start and the length of the block follow, as four letters each.
struct LabelTable {
    /// The entry of one name in the table.
    private struct Entry {
        let bits: UInt8
        let block: Range<Int>

        var isRule: Bool { bits & 1 != 0 }
        /// The name is an exception from the wildcard rule of its parent.
        var isException: Bool { bits & 2 != 0 }
        /// There is a rule for every name directly below this one.
        var hasWildcard: Bool { bits & 4 != 0 }
    }

    private let bytes: UnsafePointer<UInt8>
    private let root: Range<Int>

    init(text: StaticString, root: Range<Int>) {
        bytes = text.utf8Start
        self.root = root
    }

    /// Returns the offset, in a host, of the name that the prevailing rule matches, or nil if no rule matches.
    ///
    /// An exception always prevails, and yields the parent of its name. Otherwise the rule with the most labels prevails
    /// (https://github.com/publicsuffix/list/wiki/Format, "Algorithm"). The host must be in lowercase and must not end in a dot.
    func start(in host: UnsafeBufferPointer<UInt8>) -> Int? {
        var best: Int?
        var block = root
        var isWildcard = false
        var end = host.count
        while true {
            var start = end
            while start > 0, host[start - 1] != UInt8(ascii: ".") { start -= 1 }
            guard start < end else { return best }
            let entry = entry(of: host[start..<end], in: block)
            if let entry, entry.isException { return end + 1 }
            if isWildcard || entry?.isRule == true { best = start }
            guard let entry, start > 0 else { return best }
            isWildcard = entry.hasWildcard
            block = entry.block
            guard isWildcard || !block.isEmpty else { return best }
            end = start - 1
        }
    }

    private func entry(of label: Slice<UnsafeBufferPointer<UInt8>>, in block: Range<Int>) -> Entry? {
        var low = block.lowerBound
        var high = block.upperBound
        while low < high {
            var start = low + (high - low) / 2
            while start > low, bytes[start - 1] != UInt8(ascii: ",") { start -= 1 }
            var position = start
            var index = label.startIndex
            while index < label.endIndex, label[index] == bytes[position], Self.isLabelByte(bytes[position]) {
                index += 1
                position += 1
            }
            let isEnd = !Self.isLabelByte(bytes[position])
            if isEnd, index == label.endIndex { return readEntry(position) }
            if index == label.endIndex || (!isEnd && label[index] < bytes[position]) {
                high = start
            } else {
                while bytes[position] != UInt8(ascii: ",") { position += 1 }
                low = position + 1
            }
        }
        return nil
    }

    private static func isLabelByte(_ byte: UInt8) -> Bool {
        byte >= UInt8(ascii: "a") || byte == UInt8(ascii: "-") || byte &- UInt8(ascii: "0") <= 9 || byte == UInt8(ascii: "_")
    }

    private func readEntry(_ position: Int) -> Entry {
        guard bytes[position] != UInt8(ascii: ",") else { return Entry(bits: 1, block: 0..<0) }
        let bits = bytes[position] - UInt8(ascii: "A")
        guard bits & 8 != 0 else { return Entry(bits: bits, block: 0..<0) }
        let start = readNumber(position + 1)
        return Entry(bits: bits, block: start..<start + readNumber(position + 5))
    }

    private func readNumber(_ position: Int) -> Int {
        (position..<position + 4).reduce(0) { $0 * 26 + Int(bytes[$1] - UInt8(ascii: "A")) }
    }
}
