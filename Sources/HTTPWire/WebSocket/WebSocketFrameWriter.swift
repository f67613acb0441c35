//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Writes what a client sends on a WebSocket connection (RFC 6455, section 5): heads of frames, and masked payloads.
package enum WebSocketFrameWriter {
    /// The longest head: two bytes, eight of length, four of the key.
    package static let maximumHeadLength = 14

    /// Writes the head of a frame.
    ///
    /// - Parameters:
    ///   - opcode: What the frame is.
    ///   - isFinal: Whether its message ends with it; true of a control frame.
    ///   - isCompressed: Whether its message is compressed: for the first frame of a message alone (RFC 7692, section 6).
    ///   - length: Of the payload.
    ///   - key: What the payload is masked with, fresh for each frame and from a strong source of randomness (section 5.3). Its highest byte
    ///     comes first.
    ///   - buffer: At least ``maximumHeadLength`` bytes.
    /// - Returns: How long the head is.
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

    /// A whole control frame, masked.
    ///
    /// What is beyond the 125 bytes that it may carry is left out.
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

    /// Masks bytes in place, or unmasks them (section 5.3).
    ///
    /// - Parameters:
    ///   - bytes: Some of a frame's payload.
    ///   - key: Its highest byte is for the first byte of the payload.
    ///   - offset: Where in the payload they begin.
    package static func mask(_ bytes: UnsafeMutableRawBufferPointer, key: UInt32, at offset: Int = 0) {
        copy(UnsafeRawBufferPointer(bytes), to: bytes, key: key, at: offset)
    }

    /// Masks bytes on their way from one place to another, which is as long at least; it may be the same one.
    package static func copy(
        _ source: UnsafeRawBufferPointer, to target: UnsafeMutableRawBufferPointer, key: UInt32, at offset: Int = 0
    ) {
        precondition(target.count >= source.count, "there is less room than there are bytes")
        // The key as it lies in memory, from the byte that the first of these is masked with.
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
