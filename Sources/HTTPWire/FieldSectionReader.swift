// SPDX-License-Identifier: Apache-2.0

/// Reads the field lines of a header or trailer section, including the empty line at its end (RFC 9112, section 5).
///
/// A section that lies entirely in one buffer is scanned once and copied once. Any other section is collected line by line in a
/// separate buffer, so the work stays proportional to the section's length no matter how the section is split. A line is validated
/// only when it is complete, so the result does not depend on how the bytes were split.
struct FieldSectionReader: Sendable {
    /// The number of bytes consumed, counted as received.
    private(set) var received = 0

    private var lines: [HeaderBlock.Line] = []
    /// The set of known names among the lines.
    private var names: UInt64 = 0
    /// The unfolded bytes from earlier calls.
    ///
    /// The last line may be incomplete.
    private var pending: [UInt8] = []
    private var lineStart = 0
    private var isGathering = false

    mutating func reset() {
        self = FieldSectionReader()
    }

    /// Returns the section once it is complete; `offset` moves past the consumed bytes.
    mutating func read(
        _ bytes: UnsafeRawBufferPointer,
        _ offset: inout Int,
        byteLimit: Int,
        lineLimit: Int
    ) throws(ResponseParser.Failure) -> HeaderBlock? {
        if !isGathering {
            guard offset < bytes.count else { return nil }
            if let block = try readWhole(bytes, &offset, byteLimit, lineLimit) { return block }
        }
        return try gather(bytes, &offset, byteLimit, lineLimit)
    }

    // MARK: In one buffer

    private mutating func readWhole(
        _ bytes: UnsafeRawBufferPointer,
        _ offset: inout Int,
        _ byteLimit: Int,
        _ lineLimit: Int
    ) throws(ResponseParser.Failure) -> HeaderBlock? {
        let start = offset
        let end = bytes.count
        var position = start
        lines.reserveCapacity(16)
        while true {
            let line = FieldLineScan.scan(bytes, from: position, to: end)
            guard (line.kind == .incomplete ? end : line.next) - start <= byteLimit else { throw .headTooLarge }
            switch line.kind {
            case .field:
                guard lines.count < lineLimit else { throw .tooManyFieldLines }
                add(line, name: position, origin: start)
                position = line.next
            case .blank:
                offset = line.next
                received = line.next - start
                return makeBlock(Self.copy(bytes, start, position))
            case .invalid(let failure): throw failure
            case .fold, .incomplete:
                // From here on, the section is collected in the separate buffer, because unfolding needs a mutable buffer.
                pending = Self.copy(bytes, start, position)
                lineStart = pending.count
                received = position - start
                isGathering = true
                offset = position
                return nil
            }
        }
    }

    // MARK: Line by line

    private mutating func gather(
        _ bytes: UnsafeRawBufferPointer,
        _ offset: inout Int,
        _ byteLimit: Int,
        _ lineLimit: Int
    ) throws(ResponseParser.Failure) -> HeaderBlock? {
        while offset < bytes.count {
            let lineFeed = ByteScan.firstLineFeed(bytes, from: offset, to: bytes.count)
            let isComplete = lineFeed < bytes.count
            let end = isComplete ? lineFeed + 1 : lineFeed
            pending.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[offset..<end]))
            received += end - offset
            offset = end
            guard received <= byteLimit else { throw .headTooLarge }
            guard isComplete else { return nil }
            if try takeGatheredLine(lineLimit) {
                return makeBlock(pending)
            }
        }
        return nil
    }

    /// Returns whether the line that was just completed is the empty line.
    private mutating func takeGatheredLine(_ lineLimit: Int) throws(ResponseParser.Failure) -> Bool {
        let start = lineStart
        let line = pending.withUnsafeBytes { FieldLineScan.scan($0, from: start, to: $0.count) }
        switch line.kind {
        case .blank: return true
        case .field:
            guard lines.count < lineLimit else { throw .tooManyFieldLines }
            add(line, name: start, origin: 0)
        case .fold:
            guard let last = lines.indices.last else { throw .orphanedFold }
            unfold(line.valueStart..<line.valueEnd, into: last)
        case .invalid(let failure): throw failure
        case .incomplete: break  // A line that ends in LF is complete.
        }
        lineStart = pending.count
        return false
    }

    /// Joins a folded line to the line before it: "A user agent that receives an obs-fold … MUST replace each received obs-fold
    /// with one or more SP octets" (section 5.2).
    private mutating func unfold(_ continuation: Range<Int>, into index: Int) {
        let valueEnd = lines[index].value.upperBound
        guard !continuation.isEmpty else { return pending.removeSubrange(valueEnd...) }
        let text = Array(pending[continuation])
        pending.removeSubrange(valueEnd...)
        if lines[index].valueLength > 0 { pending.append(UInt8(ascii: " ")) }
        pending.append(contentsOf: text)
        lines[index].valueLength = UInt32(truncatingIfNeeded: pending.count - Int(lines[index].valueStart))
    }

    // MARK: Lines

    /// Creates the block and keeps no reference to its storage, so that the new owner can modify it in place.
    private mutating func makeBlock(_ bytes: [UInt8]) -> HeaderBlock {
        let block = HeaderBlock(bytes: bytes, recognized: lines, names: names)
        lines = []
        pending = []
        return block
    }

    @inline(__always)
    private mutating func add(_ line: FieldLineScan, name: Int, origin: Int) {
        var added = HeaderBlock.Line(
            nameStart: name &- origin,
            nameLength: line.nameEnd &- name,
            valueStart: line.valueStart &- origin,
            valueLength: line.valueEnd &- line.valueStart
        )
        added.field = line.field
        names |= line.field.bit
        lines.append(added)
    }

    private static func copy(_ bytes: UnsafeRawBufferPointer, _ start: Int, _ end: Int) -> [UInt8] {
        [UInt8](UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
    }
}
