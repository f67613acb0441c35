// SPDX-License-Identifier: Apache-2.0

/// Writes the frames of a WebSocket client (RFC 6455, section 5): frame headers and masked payloads.
package enum WebSocketFrameWriter {
    /// The maximum length of a frame header: two bytes, eight bytes of length, four bytes of masking key.
    package static let maximumHeadLength = 14

    /// Writes the header of a frame.
    ///
    /// - Parameters:
    ///   - opcode: The opcode of the frame.
    ///   - isFinal: Whether the frame is the last one of its message; true for a control frame.
    ///   - isCompressed: Whether the message is compressed. Set only for the first frame of a message (RFC 7692, section 6).
    ///   - length: The length of the payload.
    ///   - key: The masking key, new for each frame and from a strong source of entropy (section 5.3). The most significant byte
    ///     comes first.
    ///   - buffer: A buffer of at least ``maximumHeadLength`` bytes.
    /// - Returns: The length of the header.
    @inline(__always)
    package static func writeHead(
        _ opcode: WebSocketOpcode, isFinal: Bool = true, isCompressed: Bool = false, length: Int, key: UInt32,
        into buffer: UnsafeMutableRawBufferPointer
    ) -> Int {
        buffer[0] = opcode.rawValue | (isFinal ? 0x80 : 0) | (isCompressed ? 0x40 : 0)
        var count = 2
        switch length {
        case ..<126: buffer[1] = 0x80 | UInt8(truncatingIfNeeded: length)
        case ..<65_536:
            buffer[1] = 0x80 | 126
            HTTP2Bytes.put(UInt16(truncatingIfNeeded: length), buffer, count)
            count = 4
        default:
            buffer[1] = 0x80 | 127
            HTTP2Bytes.put(UInt64(truncatingIfNeeded: length), buffer, count)
            count = 10
        }
        HTTP2Bytes.put(key, buffer, count)
        return count &+ 4
    }

    /// Returns a complete masked control frame.
    ///
    /// A payload of more than 125 bytes is truncated.
    package static func controlFrame(_ opcode: WebSocketOpcode, _ payload: [UInt8], key: UInt32) -> [UInt8] {
        let payload = payload.prefix(WebSocketClose.maximumBodyLength)
        return [UInt8](unsafeUninitializedCapacity: maximumHeadLength + payload.count) { buffer, count in
            let buffer = UnsafeMutableRawBufferPointer(buffer)
            let head = writeHead(opcode, length: payload.count, key: key, into: buffer)
            count = head + payload.count
            let body = UnsafeMutableRawBufferPointer(rebasing: buffer[head..<count])
            body.copyBytes(from: payload)
            mask(body, key: key)
        }
    }

    /// Masks or unmasks bytes in place (section 5.3).
    ///
    /// - Parameters:
    ///   - bytes: A part of a frame's payload.
    ///   - key: The masking key. The most significant byte of the key applies to the first byte of the payload.
    ///   - offset: The position of the bytes in the payload.
    package static func mask(_ bytes: UnsafeMutableRawBufferPointer, key: UInt32, at offset: Int = 0) {
        copy(UnsafeRawBufferPointer(bytes), to: bytes, key: key, at: offset)
    }

    /// Masks bytes while copying them to a buffer that is at least as long.
    ///
    /// Source and target may be the same memory.
    package static func copy(
        _ source: UnsafeRawBufferPointer, to target: UnsafeMutableRawBufferPointer, key: UInt32, at offset: Int = 0
    ) {
        precondition(target.count >= source.count, "the target is smaller than the source")
        // The key in memory order, rotated to start with the byte for the first source byte.
        let turned = (key << UInt32(8 &* (offset & 3)) | key >> UInt32((32 &- 8 &* (offset & 3)) & 31)).bigEndian
        let word = UInt64(turned) << 32 | UInt64(turned)
        let block = SIMD4<UInt64>(repeating: word)
        let count = source.count
        var position = 0
        while position &+ 32 <= count {
            let masked = source.loadUnaligned(fromByteOffset: position, as: SIMD4<UInt64>.self) ^ block
            target.storeBytes(of: masked, toByteOffset: position, as: SIMD4<UInt64>.self)
            position &+= 32
        }
        while position &+ 8 <= count {
            let masked = source.loadUnaligned(fromByteOffset: position, as: UInt64.self) ^ word
            target.storeBytes(of: masked, toByteOffset: position, as: UInt64.self)
            position &+= 8
        }
        var rest = UInt64(littleEndian: word)
        while position < count {
            target[position] = source[position] ^ UInt8(truncatingIfNeeded: rest)
            rest >>= 8
            position &+= 1
        }
    }
}
