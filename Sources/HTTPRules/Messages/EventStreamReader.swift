// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Parses a stream of server-sent events (WHATWG HTML, section 9.2.6, "Interpreting an event stream"), byte by byte.
package struct EventStreamReader: Sendable {
    /// An event, dispatched at a blank line.
    package struct Event: Hashable, Sendable {
        /// `message` if the stream specifies no type.
        package var type: String
        package var data: String
        /// The last identifier in the stream, from this event or an earlier one; empty if there was none.
        package var lastIdentifier: String
    }

    /// An event or a line exceeds the limit.
    package struct TooLong: Error, Hashable {}

    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// The maximum size of an event's data and of a line, in bytes.
    private let limit: Int
    private var line: [UInt8] = []
    private var isAtStart = true
    /// Whether the last byte was a CR that ended a line: an LF after the CR belongs to the same line end.
    private var lastByteWasCR = false
    private var type: [UInt8] = []
    private var data: [UInt8] = []
    private var hasData = false
    /// The value of `Last-Event-ID` for a reconnection.
    package private(set) var lastIdentifier: String
    private var identifier: [UInt8]
    /// The delay before a reconnection in milliseconds, if the stream set one.
    package var retry: Int?

    package init(lastIdentifier: String = "", limit: Int) {
        self.lastIdentifier = lastIdentifier
        identifier = Array(lastIdentifier.utf8)
        self.limit = limit
    }

    /// Processes the next byte.
    ///
    /// - Returns: The event that the byte completes, or nil.
    package mutating func take(_ byte: UInt8) throws(TooLong) -> Event? {
        switch byte {
        case 0x0A where lastByteWasCR:
            lastByteWasCR = false
            return nil
        case 0x0A, 0x0D:
            lastByteWasCR = byte == 0x0D
            defer { line.removeAll(keepingCapacity: true) }
            return try endLine()
        default:
            lastByteWasCR = false
            guard line.count - 16 < limit else { throw TooLong() }
            line.append(byte)
            return nil
        }
    }

    private mutating func endLine() throws(TooLong) -> Event? {
        var text = line[...]
        if isAtStart {
            isAtStart = false
            if text.starts(with: Self.byteOrderMark) { text = text.dropFirst(Self.byteOrderMark.count) }
        }
        guard !text.isEmpty else { return dispatch() }
        let colon = text.firstIndex(of: UInt8(ascii: ":")) ?? text.endIndex
        var value = text[colon...].dropFirst()
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        switch String(decoding: text[..<colon], as: UTF8.self) {
        case "data":
            guard data.count + value.count < limit else { throw TooLong() }
            data += value
            data.append(0x0A)
            hasData = true
        case "event": type = Array(value)
        case "id": if !value.contains(0) { identifier = Array(value) }
        case "retry":
            if let milliseconds = ASCII.number(value) { retry = Int(milliseconds) }
        // Ignores unknown fields and comments. The field name of a comment is empty.
        default: break
        }
        return nil
    }

    private mutating func dispatch() -> Event? {
        lastIdentifier = String(decoding: identifier, as: UTF8.self)
        defer {
            type = []
            data.removeAll(keepingCapacity: true)
            hasData = false
        }
        guard hasData else { return nil }
        return Event(
            type: type.isEmpty ? "message" : String(decoding: type, as: UTF8.self),
            data: String(decoding: data.dropLast(), as: UTF8.self), lastIdentifier: lastIdentifier)
    }
}
