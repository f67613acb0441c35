// SPDX-License-Identifier: Apache-2.0

/// Writes frames (RFC 9113, sections 4.1 and 6).
///
/// Each function writes at the start of the buffer and returns the number of bytes written. The buffer must have space for the
/// corresponding length.
package enum HTTP2Frames {
    /// The connection preface that a client sends before its SETTINGS (section 3.4).
    package static let preface: StaticString = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    package static let headerLength = 9

    package static let data: UInt8 = 0x0
    package static let headers: UInt8 = 0x1
    package static let priority: UInt8 = 0x2
    package static let reset: UInt8 = 0x3
    package static let settings: UInt8 = 0x4
    package static let pushPromise: UInt8 = 0x5
    package static let ping: UInt8 = 0x6
    package static let goAway: UInt8 = 0x7
    package static let windowUpdate: UInt8 = 0x8
    package static let continuation: UInt8 = 0x9

    /// Flags; their meaning depends on the frame type.
    package enum Flag {
        package static let endStream: UInt8 = 0x1
        package static let ack: UInt8 = 0x1
        package static let endHeaders: UInt8 = 0x4
        package static let padded: UInt8 = 0x8
        package static let priority: UInt8 = 0x20
    }

    package static let settingsAcknowledgementLength = headerLength
    package static let pingLength = headerLength + 8
    package static let resetLength = headerLength + 4
    package static let windowUpdateLength = headerLength + 4

    package static func writeHeader(
        length: Int,
        type: UInt8,
        flags: UInt8,
        stream: UInt32,
        into buffer: UnsafeMutableRawBufferPointer
    ) {
        HTTP2Bytes.put(UInt32(truncatingIfNeeded: length) << 8 | UInt32(type), buffer, 0)
        buffer[4] = flags
        HTTP2Bytes.put(stream & 0x7FFF_FFFF, buffer, 5)
    }

    // MARK: Complete frames

    package static func settingsLength(_ settings: HTTP2Settings) -> Int {
        var length = headerLength
        settings.forEachEntry { _, _ in length += 6 }
        return length
    }

    package static func writeSettings(_ settings: HTTP2Settings, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        var position = headerLength
        settings.forEachEntry { identifier, value in
            HTTP2Bytes.put(identifier, buffer, position)
            HTTP2Bytes.put(value, buffer, position + 2)
            position += 6
        }
        writeHeader(length: position - headerLength, type: Self.settings, flags: 0, stream: 0, into: buffer)
        return position
    }

    package static func writeSettingsAcknowledgement(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        writeHeader(length: 0, type: settings, flags: Flag.ack, stream: 0, into: buffer)
        return settingsAcknowledgementLength
    }

    package static func writePing(
        _ data: UInt64,
        isAcknowledgement: Bool,
        into buffer: UnsafeMutableRawBufferPointer
    ) -> Int {
        writeHeader(length: 8, type: ping, flags: isAcknowledgement ? Flag.ack : 0, stream: 0, into: buffer)
        HTTP2Bytes.put(data, buffer, headerLength)
        return pingLength
    }

    package static func writeReset(stream: UInt32, code: HTTP2ErrorCode, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        writeHeader(length: 4, type: reset, flags: 0, stream: stream, into: buffer)
        HTTP2Bytes.put(code.rawValue, buffer, headerLength)
        return resetLength
    }

    package static func goAwayLength(debug: String) -> Int { headerLength + 8 + debug.utf8.count }

    package static func writeGoAway(
        lastStream: UInt32,
        code: HTTP2ErrorCode,
        debug: String,
        into buffer: UnsafeMutableRawBufferPointer
    ) -> Int {
        var debug = debug
        return debug.withUTF8 { debug in
            writeHeader(length: 8 + debug.count, type: goAway, flags: 0, stream: 0, into: buffer)
            HTTP2Bytes.put(lastStream & 0x7FFF_FFFF, buffer, headerLength)
            HTTP2Bytes.put(code.rawValue, buffer, headerLength + 4)
            UnsafeMutableRawBufferPointer(rebasing: buffer[(headerLength + 8)...]).copyMemory(from: UnsafeRawBufferPointer(debug))
            return headerLength + 8 + debug.count
        }
    }

    package static func writeWindowUpdate(stream: UInt32, increment: UInt32, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        writeHeader(length: 4, type: windowUpdate, flags: 0, stream: stream, into: buffer)
        HTTP2Bytes.put(increment & 0x7FFF_FFFF, buffer, headerLength)
        return windowUpdateLength
    }

    // MARK: Field blocks

    /// Returns the size of a field block including its frame headers: HEADERS, and CONTINUATION for the part that exceeds the first
    /// frame.
    package static func fieldBlockLength(_ block: Int, maximumFrameSize: Int) -> Int {
        block + headerLength * max(1, (block + maximumFrameSize - 1) / maximumFrameSize)
    }

    /// Splits a field block into frames.
    ///
    /// The block starts in the buffer after the space for one frame header.
    ///
    /// The buffer must have space for ``fieldBlockLength(_:maximumFrameSize:)`` bytes: if the block exceeds the maximum frame size,
    /// its later parts are moved back to insert the headers of CONTINUATION frames.
    package static func writeFieldBlockHeaders(
        block: Int,
        maximumFrameSize: Int,
        stream: UInt32,
        endsStream: Bool,
        into buffer: UnsafeMutableRawBufferPointer
    ) -> Int {
        let first = min(block, maximumFrameSize)
        let flags = (endsStream ? Flag.endStream : 0) | (first == block ? Flag.endHeaders : 0)
        let length = fieldBlockLength(block, maximumFrameSize: maximumFrameSize)
        // The loop starts with the last part, so that no part is overwritten before it is moved.
        var end = block
        var target = length
        while end > first {
            let size = (end - first - 1) % maximumFrameSize + 1
            let source = UnsafeRawBufferPointer(rebasing: buffer[headerLength + end - size..<headerLength + end])
            UnsafeMutableRawBufferPointer(rebasing: buffer[target - size..<target]).copyMemory(from: source)
            writeHeader(
                length: size,
                type: continuation,
                flags: end == block ? Flag.endHeaders : 0,
                stream: stream,
                into: UnsafeMutableRawBufferPointer(rebasing: buffer[(target - size - headerLength)...])
            )
            target -= size + headerLength
            end -= size
        }
        writeHeader(length: first, type: headers, flags: flags, stream: stream, into: buffer)
        return length
    }
}
