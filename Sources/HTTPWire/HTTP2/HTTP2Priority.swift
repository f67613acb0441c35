// SPDX-License-Identifier: Apache-2.0

/// The priority of a task as signaled to the server (RFC 9218): the urgency of its response, from 0 to 7.
package enum HTTP2Priority {
    /// The default urgency if no priority is sent.
    package static let ordinary: StaticString = "u=3"
    /// The type of a PRIORITY_UPDATE frame.
    static let update: UInt8 = 0x10

    /// Returns the `Priority` field for a task priority from 0 to 1, where 0.5 is the default; nil if the urgency is the default.
    package static func field(_ priority: Float) -> StaticString? {
        guard priority.isFinite else { return nil }
        return switch Int(((1 - min(max(priority, 0), 1)) * 6).rounded()) {
        case 0: "u=0"
        case 1: "u=1"
        case 2: "u=2"
        case 4: "u=4"
        case 5: "u=5"
        case 6: "u=6"
        default: nil
        }
    }

    /// Writes a PRIORITY_UPDATE frame (section 7.1).
    package static func writeUpdate(stream: UInt32, _ field: StaticString, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let length = 4 + field.utf8CodeUnitCount
        HTTP2Frames.writeHeader(length: length, type: update, flags: 0, stream: 0, into: buffer)
        HTTP2Bytes.put(stream & 0x7FFF_FFFF, buffer, HTTP2Frames.headerLength)
        for index in 0..<field.utf8CodeUnitCount { buffer[HTTP2Frames.headerLength + 4 + index] = field.utf8Start[index] }
        return HTTP2Frames.headerLength + length
    }
}
