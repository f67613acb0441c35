// SPDX-License-Identifier: Apache-2.0

import CZlib
import NIOCore

extension LibraryCoding {
    static let gzip = LibraryCoding(
        name: "gzip", first: { _ in .frame }, next: Inflater.memberStart, makeDecoder: { _ in Inflater.decoder(bits: 15 + 16) })

    /// The "deflate" coding with the zlib wrapper (RFC 1950), or without it (RFC 1951), as many servers send it.
    ///
    /// The first two bytes tell whether there is a wrapper.
    static let deflate = LibraryCoding(
        name: "deflate", first: { $0.count < 2 ? .isTooShort : .frame }, next: { _ in .other },
        makeDecoder: { Inflater.decoder(bits: Inflater.hasZlibHeader($0) ? 15 : -15) })
}

/// Decodes one body with zlib.
private final class Inflater {
    /// The stream is on the heap, because zlib keeps a pointer to it.
    private let stream: UnsafeMutablePointer<z_stream>
    /// Whether a gzip member has ended (RFC 1952, section 2.2).
    private var isBetweenMembers = false

    private init?(bits: CInt) {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        guard inflateInit2_(stream, bits, zlibVersion(), CInt(MemoryLayout<z_stream>.size)) == Z_OK else { return nil }
    }

    deinit {
        inflateEnd(stream)
        stream.deinitialize(count: 1)
        stream.deallocate()
    }

    static func decoder(bits: CInt) -> LibraryCoding.Decode? {
        Inflater(bits: bits).map { inflater in { inflater.decode($0, into: $1) } }
    }

    /// Whether the bytes are a zlib header (RFC 1950, section 2.2) without a preset dictionary; HTTP has no way to agree on one.
    static func hasZlibHeader(_ bytes: ByteBufferView) -> Bool {
        let start = bytes.prefix(2).reduce(0) { $0 << 8 | UInt16($1) }
        return start >> 8 & 0x0F == 8 && start >> 12 <= 7 && start % 31 == 0 && start & 0x20 == 0
    }

    static func memberStart(_ bytes: ByteBufferView) -> LibraryCoding.Start {
        let start = bytes.prefix(2)
        guard [0x1F, 0x8B].starts(with: start) else { return .other }
        return start.count < 2 ? .isTooShort : .frame
    }

    private func decode(_ source: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer) -> LibraryCoding.Step {
        if isBetweenMembers {
            guard inflateReset(stream) == Z_OK else {
                return .init(read: 0, written: 0, outcome: .failed(.corrupt("zlib cannot be reset")))
            }
            isBetweenMembers = false
        }
        let (available, limit) = (min(source.count, Int(CInt.max)), min(room.count, Int(CInt.max)))
        // zlib only reads from next_in; its header lacks the const.
        stream.pointee.next_in = UnsafeMutablePointer(mutating: source.baseAddress?.assumingMemoryBound(to: Bytef.self))
        stream.pointee.avail_in = UInt32(available)
        stream.pointee.next_out = room.baseAddress?.assumingMemoryBound(to: Bytef.self)
        stream.pointee.avail_out = UInt32(limit)
        let status = inflate(stream, Z_NO_FLUSH)
        let outcome: LibraryCoding.Step.Outcome
        switch status {
        case Z_OK, Z_BUF_ERROR: outcome = .continues
        case Z_STREAM_END:
            isBetweenMembers = true
            outcome = .isOver
        case Z_MEM_ERROR: outcome = .failed(.outOfMemory)
        default: outcome = .failed(.corrupt(stream.pointee.msg.map { String(cString: $0) } ?? "zlib says \(status)"))
        }
        defer {
            stream.pointee.next_in = nil
            stream.pointee.next_out = nil
        }
        return .init(
            read: available - Int(stream.pointee.avail_in), written: limit - Int(stream.pointee.avail_out), outcome: outcome)
    }
}
