// SPDX-License-Identifier: Apache-2.0

/// One field line in a buffer: the positions of its parts, and the error if it is invalid (RFC 9112, section 5).
struct FieldLineScan {
    enum Kind: Equatable {
        /// `name ":" OWS value OWS`, where the value may be empty.
        case field
        /// A continuation of the previous value that starts with whitespace (`obs-fold`, section 5.2).
        case fold
        /// The end of the section.
        case blank
        case invalid(ResponseParser.Failure)
        /// The buffer contains no LF.
        case incomplete
    }

    var kind: Kind
    /// The name, if it is in the table of known names; otherwise ``FieldName/other``.
    var field = FieldName.other
    var nameEnd = 0
    var valueStart = 0
    var valueEnd = 0
    /// The position after the line's LF.
    var next = 0

    /// Scans the line that starts at a position.
    ///
    /// "A recipient MAY recognize a single LF as a line terminator" (section 2.2), and this scanner does. A CR elsewhere and a NUL
    /// anywhere are rejected. Other control characters in a value are kept (RFC 9110, section 5.5).
    @inline(__always)
    static func scan(_ bytes: UnsafeRawBufferPointer, from start: Int, to end: Int) -> FieldLineScan {
        guard start < end else { return FieldLineScan(kind: .incomplete) }
        var line = FieldLineScan(kind: .field)
        var position = start
        line.field = FieldName(leading: bytes, from: start, to: end, &position)
        if line.field == .other {
            if ASCII.isWhitespace(bytes[start]) {
                line.kind = .fold
            } else {
                while position < end, ASCII.isTokenCharacter(bytes[position]) { position &+= 1 }
                guard position < end else { return FieldLineScan(kind: .incomplete) }
                guard bytes[position] == UInt8(ascii: ":"), position > start else {
                    return scanUnusual(bytes, from: start, stoppedAt: position, to: end)
                }
            }
        }
        line.nameEnd = position
        position &+= 1
        while position < end, ASCII.isWhitespace(bytes[position]) { position &+= 1 }
        line.valueStart = position
        while true {
            position = ByteScan.firstControl(bytes, from: position, to: end)
            guard position < end else { return FieldLineScan(kind: .incomplete) }
            switch bytes[position] {
            case UInt8(ascii: "\n"):
                line.next = position &+ 1
            case UInt8(ascii: "\r"):
                guard position &+ 1 < end else { return FieldLineScan(kind: .incomplete) }
                guard bytes[position &+ 1] == UInt8(ascii: "\n") else {
                    return invalid(.bareCarriageReturn, bytes, position, end)
                }
                line.next = position &+ 2
            case 0: return invalid(.nulByte, bytes, position, end)
            default:
                position &+= 1
                continue
            }
            while position > line.valueStart, ASCII.isWhitespace(bytes[position &- 1]) { position &-= 1 }
            line.valueEnd = position
            return line
        }
    }

    /// Handles lines that are neither a field nor a fold: the empty line and invalid lines.
    @inline(never)
    private static func scanUnusual(
        _ bytes: UnsafeRawBufferPointer,
        from start: Int,
        stoppedAt position: Int,
        to end: Int
    ) -> FieldLineScan {
        let isAtStart = position == start
        switch bytes[position] {
        case UInt8(ascii: "\n"):
            return isAtStart ? FieldLineScan(kind: .blank, next: position + 1) : invalid(.missingColon, bytes, position, end)
        case UInt8(ascii: "\r"):
            guard position + 1 < end else { return FieldLineScan(kind: .incomplete) }
            guard bytes[position + 1] == UInt8(ascii: "\n") else { return invalid(.bareCarriageReturn, bytes, position, end) }
            return isAtStart ? FieldLineScan(kind: .blank, next: position + 2) : invalid(.missingColon, bytes, position, end)
        case 0x20, 0x09: return invalid(.whitespaceBeforeColon, bytes, position, end)
        case 0: return invalid(.nulByte, bytes, position, end)
        default: return invalid(.malformedFieldName, bytes, position, end)
        }
    }

    private static func invalid(
        _ failure: ResponseParser.Failure,
        _ bytes: UnsafeRawBufferPointer,
        _ position: Int,
        _ end: Int
    ) -> FieldLineScan {
        let lineFeed = ByteScan.firstLineFeed(bytes, from: position, to: end)
        return lineFeed < end ? FieldLineScan(kind: .invalid(failure), next: lineFeed + 1) : FieldLineScan(kind: .incomplete)
    }
}
