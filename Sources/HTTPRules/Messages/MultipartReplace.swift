// SPDX-License-Identifier: Apache-2.0

package import HTTPWire

/// Splits a `multipart/x-mixed-replace` body into its parts as it arrives (RFC 2046, section 5.1.1), for servers that push a
/// sequence of images in one response.
///
/// The input may be split at any byte. Only a possible delimiter or the header section of a part is buffered. The sequence ends at
/// the close delimiter or at the end of the body. A header section that exceeds ``headerLimit`` bytes or ``lineLimit`` lines is not
/// parsed: it and the rest of the body are the data of a last part without header fields.
package struct MultipartReplace: Sendable {
    package enum Event: Hashable, Sendable {
        case part(HeaderBlock)
        case data([UInt8])
        case partEnd
    }

    package enum Malformed: Error, Hashable, Sendable {
        /// The boundary has an invalid length. RFC 2046 allows 1 to 70 characters; up to 200 are accepted here.
        case badBoundary
    }

    package static let headerLimit = 65536
    package static let lineLimit = 1_000
    /// The maximum amount of whitespace at the end of a delimiter line.
    ///
    /// A line with more whitespace is data.
    private static let paddingLimit = 128

    private enum State {
        /// Before the first delimiter; the content is ignored.
        case preamble
        case headers
        case body
        /// After the start of a header section that exceeds the limits; everything is data.
        case rest
        /// After the close delimiter; the content is ignored.
        case epilogue
    }

    /// The interpretation of the bytes at a position.
    private enum Match {
        /// A delimiter line, with the start of the next line.
        case delimiter(end: Int)
        case close
        case undecided
        case none
    }

    /// The progress in the current header section, relative to its start: no byte is scanned twice, regardless of how the input is
    /// split.
    private struct Head {
        var scanned = 0
        var lineStart = 0
        var lineCount = 0
    }

    private var delimiter: [UInt8]
    private var state = State.preamble
    private var head = Head()
    private var pending: [UInt8] = []
    /// Whether the next bytes are at the start of a line and may be a delimiter.
    private var isAtLineStart = true

    package init(boundary: String) throws(Malformed) {
        guard (1...200).contains(boundary.utf8.count), ASCII.isFieldValue(boundary) else { throw .badBoundary }
        delimiter = Array("--\(boundary)".utf8)
    }

    package mutating func feed(_ bytes: some Sequence<UInt8>) -> [Event] {
        pending.append(contentsOf: bytes)
        var events: [Event] = []
        var position = 0
        while step(&position, &events) {}
        pending.removeFirst(position)
        return events
    }

    /// Processes the end of the body and returns the remaining events.
    ///
    /// An unterminated part ends here and keeps its data.
    package mutating func finish() -> [Event] {
        defer {
            state = .epilogue
            pending = []
        }
        if case .rest = state { return [.partEnd] }
        guard case .body = state else { return [] }
        // If the body stops after a delimiter without a line break, the part has ended.
        let isDelimiter = pending.drop { $0 == 0x0D || $0 == 0x0A } == delimiter[...]
        return pending.isEmpty || isDelimiter ? [.partEnd] : [.data(pending), .partEnd]
    }

    /// Performs one step at a position in the buffer.
    ///
    /// Returns false if more bytes are needed.
    private mutating func step(_ position: inout Int, _ events: inout [Event]) -> Bool {
        switch state {
        case .preamble: return skipPreamble(&position)
        case .headers: return takeHeaders(&position, &events)
        case .body: return takeBody(&position, &events)
        case .rest:
            if position < pending.count { events.append(.data(Array(pending[position...]))) }
            position = pending.count
            return false
        case .epilogue:
            position = pending.count
            return false
        }
    }

    private mutating func skipPreamble(_ position: inout Int) -> Bool {
        if isAtLineStart {
            guard adoptsBareDelimiter(at: position) else { return false }
            switch match(at: position) {
            case .delimiter(let end):
                position = end
                state = .headers
                return true
            case .close:
                state = .epilogue
                return true
            case .undecided: return false
            case .none: isAtLineStart = false
            }
        }
        guard let newline = pending[position...].firstIndex(of: 0x0A) else {
            position = pending.count
            return false
        }
        position = newline + 1
        isAtLineStart = true
        return true
    }

    /// Adopts the delimiter `--name` of cameras that declare `boundary=--name` and then omit the two leading dashes.
    ///
    /// Returns false if more bytes are needed to decide.
    private mutating func adoptsBareDelimiter(at position: Int) -> Bool {
        let bare = delimiter.dropFirst(2)
        let rest = pending[position...]
        guard bare.starts(with: "--".utf8), !delimiter.starts(with: rest.prefix(delimiter.count)) else { return true }
        if rest.starts(with: bare) {
            delimiter = Array(bare)
            return true
        }
        return !bare.starts(with: rest)
    }

    private mutating func takeHeaders(_ position: inout Int, _ events: inout [Event]) -> Bool {
        while let newline = pending[(position + head.scanned)...].firstIndex(of: 0x0A) {
            let line = pending[(position + head.lineStart)..<newline]
            if line.isEmpty || line.elementsEqual([0x0D]) {
                guard newline - position <= Self.headerLimit else { return endSplitting(&events) }
                events.append(.part(Self.fields(pending[position..<position + head.lineStart])))
                position = newline + 1
                head = Head()
                state = .body
                isAtLineStart = true
                return true
            }
            head.lineCount += 1
            head.lineStart = newline + 1 - position
            head.scanned = head.lineStart
            guard head.lineCount <= Self.lineLimit else { return endSplitting(&events) }
        }
        head.scanned = pending.count - position
        guard head.scanned <= Self.headerLimit else { return endSplitting(&events) }
        return false
    }

    /// Begins the last part at a header section that exceeds the limits.
    private mutating func endSplitting(_ events: inout [Event]) -> Bool {
        events.append(.part(HeaderBlock()))
        state = .rest
        return true
    }

    private mutating func takeBody(_ position: inout Int, _ events: inout [Event]) -> Bool {
        let start = position
        if isAtLineStart {
            switch match(at: position) {
            case .undecided: return false
            case .none: isAtLineStart = false
            case .delimiter, .close: return end(at: position, &position, &events)
            }
        }
        var search = position
        while let newline = pending[search...].firstIndex(of: 0x0A) {
            // The line break before a delimiter is part of the delimiter.
            let lineEnd = newline > start && pending[newline - 1] == 0x0D ? newline - 1 : newline
            switch match(at: newline + 1) {
            case .delimiter, .close:
                if start < lineEnd { events.append(.data(Array(pending[start..<lineEnd]))) }
                return end(at: newline + 1, &position, &events)
            case .undecided:
                if start < lineEnd { events.append(.data(Array(pending[start..<lineEnd]))) }
                position = lineEnd
                return false
            case .none: search = newline + 1
            }
        }
        let end = pending.last == 0x0D && pending.count > start ? pending.count - 1 : pending.count
        if start < end { events.append(.data(Array(pending[start..<end]))) }
        position = end
        return false
    }

    private mutating func end(at index: Int, _ position: inout Int, _ events: inout [Event]) -> Bool {
        events.append(.partEnd)
        if case .delimiter(let end) = match(at: index) {
            position = end
            state = .headers
        } else {
            state = .epilogue
        }
        return true
    }

    private func match(at index: Int) -> Match {
        let rest = pending[index...]
        guard rest.count >= delimiter.count else { return delimiter.starts(with: rest) ? .undecided : .none }
        guard rest.starts(with: delimiter) else { return .none }
        let tail = rest.dropFirst(delimiter.count)
        if tail.starts(with: "--".utf8) { return .close }
        if tail.elementsEqual("-".utf8) { return .undecided }
        let padding = tail.prefix { ASCII.isWhitespace($0) }
        guard padding.count <= Self.paddingLimit else { return .none }
        let after = tail.dropFirst(padding.count)
        switch after.first {
        case nil: return .undecided
        case 0x0A: return .delimiter(end: after.startIndex + 1)
        case 0x0D:
            guard let second = after.dropFirst().first else { return .undecided }
            return second == 0x0A ? .delimiter(end: after.startIndex + 2) : .none
        default: return .none
        }
    }

    /// Parses the fields of a part (RFC 5322): folded lines are joined, and invalid lines are skipped.
    private static func fields(_ bytes: ArraySlice<UInt8>) -> HeaderBlock {
        var lines: [[UInt8]] = []
        for raw in bytes.split(separator: 0x0A) {
            let line = raw.last == 0x0D ? raw.dropLast() : raw
            if let first = line.first, ASCII.isWhitespace(first), !lines.isEmpty {
                lines[lines.endIndex - 1] += [0x20] + ASCII.trimmed(line)
            } else {
                lines.append(Array(line))
            }
        }
        var block = HeaderBlock()
        for line in lines {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
            let name = line[..<colon]
            let value = ASCII.trimmed(line[(colon + 1)...])
            guard !name.isEmpty, name.allSatisfy(ASCII.isTokenCharacter), !value.contains(0), !value.contains(0x0D) else {
                continue
            }
            name.withUnsafeBytes { name in value.withUnsafeBytes { block.append(name: name, value: $0) } }
        }
        return block
    }
}
