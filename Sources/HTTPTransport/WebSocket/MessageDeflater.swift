// SPDX-License-Identifier: Apache-2.0

import CZlib
import HTTPRules
package import NIOCore

/// Compresses the messages of one WebSocket connection (RFC 7692, section 7.2.1).
///
/// The deflater allocates no memory before the first message. Confined to the connection's event loop.
package final class MessageDeflater {
    private static let step = 16_384

    private let windowBits: Int
    private let usesContextTakeover: Bool
    private let level: CInt
    /// The stream is on the heap, because zlib keeps a pointer to it.
    private var stream: UnsafeMutablePointer<z_stream>?
    /// Whether the message has any bytes so far.
    private var hasContent = false

    /// - Parameters:
    ///   - windowBits: The base-2 logarithm of the window size, from 9 to 15; at most the negotiated value.
    ///   - usesContextTakeover: Whether the window spans messages; if context takeover was negotiated, both values are allowed.
    ///   - level: The compression level, from 1 (the fastest) to 9; -1 is zlib's default.
    package init(windowBits: Int, usesContextTakeover: Bool, level: Int = -1) {
        precondition(9...15 ~= windowBits, "zlib supports compression windows of 9 to 15 bits")
        self.windowBits = windowBits
        self.usesContextTakeover = usesContextTakeover
        self.level = CInt(level)
    }

    deinit { freeStream() }

    /// Starts a message.
    ///
    /// - Returns: False if there is not enough memory; the message is then sent uncompressed, which is always allowed (section 6).
    package func begin() -> Bool {
        hasContent = false
        return makeStream() != nil
    }

    /// Compresses a piece of the message, and writes the output so far.
    ///
    /// The end of the message is written with its last piece, which may be empty.
    package func deflate(_ bytes: UnsafeRawBufferPointer, endsMessage: Bool, into output: inout ByteBuffer) {
        guard let stream else { preconditionFailure("deflate(_:endsMessage:into:) was called before begin()") }
        if !bytes.isEmpty { hasContent = true }
        guard hasContent else {
            // "If the next … message is empty, … the 1 octet 0x00" (section 7.2.3.6).
            if endsMessage { output.writeInteger(0 as UInt8) }
            return
        }
        var rest = bytes
        repeat {
            // zlib's counter is limited, so larger input is split.
            let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(Int(CInt.max)))
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(piece.count))
            // zlib only reads from next_in; its header lacks the const.
            stream.pointee.next_in = UnsafeMutablePointer(mutating: piece.baseAddress?.assumingMemoryBound(to: Bytef.self))
            stream.pointee.avail_in = UInt32(piece.count)
            write(stream, endsMessage && rest.isEmpty ? Z_SYNC_FLUSH : Z_NO_FLUSH, into: &output)
        } while !rest.isEmpty
        stream.pointee.next_in = nil
        stream.pointee.next_out = nil
        if endsMessage { end(stream, &output) }
    }

    /// Frees memory that the next message does not need.
    package func releaseMemory() {
        if !usesContextTakeover { freeStream() }
    }

    private func write(_ stream: UnsafeMutablePointer<z_stream>, _ flush: CInt, into output: inout ByteBuffer) {
        // zlib has written everything when it leaves output space unused.
        repeat {
            let wanted = min(Self.step, Int(stream.pointee.avail_in) / 2 + 64)
            output.writeWithUnsafeMutableBytes(minimumWritableBytes: wanted) { target in
                let count = min(target.count, Int(CInt.max))
                stream.pointee.next_out = target.baseAddress?.assumingMemoryBound(to: Bytef.self)
                stream.pointee.avail_out = UInt32(count)
                _ = CZlib.deflate(stream, flush)
                return count - Int(stream.pointee.avail_out)
            }
        } while stream.pointee.avail_out == 0
    }

    /// "Remove 4 octets (that are 0x00 0x00 0xff 0xff) from the tail end" (section 7.2.1).
    private func end(_ stream: UnsafeMutablePointer<z_stream>, _ output: inout ByteBuffer) {
        let place = output.writerIndex - 4
        precondition(
            output.getInteger(at: place, as: UInt32.self) == 0x0000_FFFF, "zlib did not end the message with an empty block")
        output.moveWriterIndex(to: place)
        if !usesContextTakeover { deflateReset(stream) }
    }

    private func makeStream() -> UnsafeMutablePointer<z_stream>? {
        if let stream { return stream }
        let made = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
        made.initialize(to: z_stream())
        // A small window needs no large table; for 15 bits, zlib recommends 8.
        let memoryLevel = CInt(max(1, windowBits - 7))
        let status = deflateInit2_(
            made, level, Z_DEFLATED, CInt(-windowBits), memoryLevel, Z_DEFAULT_STRATEGY, zlibVersion(),
            CInt(MemoryLayout<z_stream>.size))
        guard status == Z_OK else {
            made.deallocate()
            return nil
        }
        stream = made
        return made
    }

    private func freeStream() {
        guard let stream else { return }
        deflateEnd(stream)
        stream.deinitialize(count: 1)
        stream.deallocate()
        self.stream = nil
    }
}
