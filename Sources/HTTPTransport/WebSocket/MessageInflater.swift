// SPDX-License-Identifier: Apache-2.0

import CZlib
package import HTTPRules
package import HTTPWire
package import NIOCore

/// Inflates the compressed messages of one WebSocket connection while they arrive (RFC 7692, section 7.2.2).
///
/// ```
/// inflater.begin(limit: maximumMessageSize)
/// while try inflater.inflate(bytes, &offset, into: &message) {}   // for each piece of payload
/// while try inflater.end(into: &message) {}                       // when the message is complete
/// ```
///
/// Each call writes at most ``pieceSize`` bytes, so that the caller can do other work in between.
///
/// After a failure, every later call throws the same failure again. The inflater allocates no memory before the first message.
/// Confined to the connection's event loop.
package final class MessageInflater {
    package static let pieceSize = 65_536
    /// The bytes that a sender removes from the end of each message (section 7.2.1).
    private static let tail: [UInt8] = [0x00, 0x00, 0xFF, 0xFF]

    private let windowBits: Int
    private let usesContextTakeover: Bool
    /// The stream is on the heap, because zlib keeps a pointer to it.
    private var stream: UnsafeMutablePointer<z_stream>?
    private var limit = 0
    /// The number of bytes of this message that have been produced so far.
    package private(set) var produced = 0
    /// The number of bytes of the tail that have been fed back to zlib.
    private var tailOffset = 0
    /// Whether the input so far ended with a final block, at a byte boundary.
    private var isAfterFinalBlock = false
    private var failure: WebSocketFailure?

    /// Creates an inflater for a peer's window.
    ///
    /// A peer that exceeds its window is not always detected, because zlib can look back over the window plus the output of the
    /// current call. In either case, the result is the correct message, or a failure.
    ///
    /// - Parameters:
    ///   - windowBits: The base-2 logarithm of the peer's window size, from 8 to 15.
    ///   - usesContextTakeover: Whether the window spans messages.
    package init(windowBits: Int, usesContextTakeover: Bool) {
        precondition(8...15 ~= windowBits, "a window must have 8 to 15 bits")
        self.windowBits = windowBits
        self.usesContextTakeover = usesContextTakeover
    }

    /// Creates an inflater for messages from a server.
    package convenience init(_ parameters: MessageDeflateParameters) {
        self.init(windowBits: parameters.serverWindowBits, usesContextTakeover: parameters.serverTakesContextOver)
    }

    deinit { freeStream() }

    /// Starts a compressed message, whose inflated size may be at most `limit` bytes.
    package func begin(limit: Int) {
        self.limit = max(limit, 0)
        produced = 0
        tailOffset = 0
    }

    /// Inflates some of `bytes[offset...]`; `offset` moves past the bytes that were read.
    ///
    /// - Returns: Whether to call this method again with the same bytes, because there is more input or output.
    package func inflate(
        _ bytes: UnsafeRawBufferPointer, _ offset: inout Int, into output: inout ByteBuffer
    ) throws(WebSocketFailure) -> Bool {
        if let failure { throw failure }
        do throws(WebSocketFailure) {
            return try step(bytes, &offset, into: &output)
        } catch {
            throw fails(error)
        }
    }

    /// Ends the message.
    ///
    /// - Returns: Whether to call this method again.
    package func end(into output: inout ByteBuffer) throws(WebSocketFailure) -> Bool {
        let hasMore = try Self.tail.span.bytes.withUnsafeBytes { tail throws(WebSocketFailure) in
            try inflate(tail, &tailOffset, into: &output)
        }
        if hasMore { return true }
        guard let stream, isAfterFinalBlock || Self.isAtBoundary(stream.pointee.data_type) else {
            throw fails(Self.corrupt("it ends within a block"))
        }
        if !usesContextTakeover { inflateReset(stream) }
        isAfterFinalBlock = false
        return false
    }

    /// Frees memory that the next message does not need.
    package func releaseMemory() {
        if !usesContextTakeover { freeStream() }
    }

    private func step(
        _ bytes: UnsafeRawBufferPointer, _ offset: inout Int, into output: inout ByteBuffer
    ) throws(WebSocketFailure) -> Bool {
        let stream = try makeStream()
        let input = bytes.count - offset
        // zlib only reads from next_in; its header lacks the const.
        let source = bytes.baseAddress.map { UnsafeMutableRawPointer(mutating: $0 + offset).assumingMemoryBound(to: Bytef.self) }
        stream.pointee.next_in = source
        stream.pointee.avail_in = UInt32(min(input, Int(CInt.max)))
        let given = Int(stream.pointee.avail_in)
        // One byte more than the limit shows that the message exceeds it.
        let room = min(Self.pieceSize, limit - produced < Self.pieceSize ? limit - produced + 1 : Self.pieceSize)
        var status = Z_OK
        let written = output.writeWithUnsafeMutableBytes(minimumWritableBytes: min(room, max(256, 4 * input))) { target in
            let count = min(target.count, room)
            stream.pointee.next_out = target.baseAddress?.assumingMemoryBound(to: Bytef.self)
            stream.pointee.avail_out = UInt32(count)
            status = CZlib.inflate(stream, Z_NO_FLUSH)
            return count - Int(stream.pointee.avail_out)
        }
        let isFull = stream.pointee.avail_out == 0
        let read = given - Int(stream.pointee.avail_in)
        stream.pointee.next_in = nil
        stream.pointee.next_out = nil
        offset += read
        produced += written
        guard produced <= limit else { throw .tooBig("a compressed message is larger than \(limit) bytes") }
        switch status {
        case Z_OK: isAfterFinalBlock = false
        // zlib had no work to do.
        case Z_BUF_ERROR: break
        case Z_STREAM_END:
            // "Both 0 and 1 may be used for BFINAL", and "the next DEFLATE block follows" (section 7.2.1); the window is kept.
            // zlib's manual does not mention this function, but its header does, and the documented way copies the window each
            // time.
            guard inflateResetKeep(stream) == Z_OK else { throw Self.corrupt("zlib cannot be reset") }
            isAfterFinalBlock = true
        case Z_MEM_ERROR: throw WebSocketFailure(code: 1011, message: "there is not enough memory to inflate messages")
        default: throw Self.corrupt(stream.pointee.msg.map { String(cString: $0) } ?? "zlib says \(status)")
        }
        return isFull || offset < bytes.count
    }

    private func fails(_ failure: WebSocketFailure) -> WebSocketFailure {
        self.failure = failure
        freeStream()
        return failure
    }

    private func makeStream() throws(WebSocketFailure) -> UnsafeMutablePointer<z_stream> {
        if let stream { return stream }
        let made = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
        made.initialize(to: z_stream())
        guard inflateInit2_(made, CInt(-windowBits), zlibVersion(), CInt(MemoryLayout<z_stream>.size)) == Z_OK else {
            made.deallocate()
            throw WebSocketFailure(code: 1011, message: "there is not enough memory to inflate messages")
        }
        stream = made
        return made
    }

    private func freeStream() {
        guard let stream else { return }
        inflateEnd(stream)
        stream.deinitialize(count: 1)
        stream.deallocate()
        self.stream = nil
    }

    /// Whether, according to zlib's data_type, the input ends between two blocks and at a byte boundary.
    ///
    /// In data_type, 128 means "between two blocks", 64 means "in the last block", and the lowest bits count the unused bits of the
    /// last byte.
    private static func isAtBoundary(_ place: CInt) -> Bool { place & 0xFF == 128 }

    private static func corrupt(_ reason: String) -> WebSocketFailure {
        .protocolError("a compressed message cannot be inflated: \(reason)")
    }
}
