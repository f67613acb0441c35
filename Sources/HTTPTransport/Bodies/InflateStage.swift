//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import CZlib
import NIOCore

/// Undoes one content coding with zlib: deflate in one of its three wrappings.
final class InflateStage: CodingStage {
    enum Coding {
        case gzip
        /// zlib's wrapping (RFC 1950), or none (RFC 1951), as many servers have it. The first two bytes tell.
        case deflate
    }

    private enum State {
        /// Too few bytes yet to tell the wrapping.
        case unopened
        case inflating
        /// A gzip member is over; another may follow (RFC 1952, section 2.2).
        case betweenMembers
        /// Whatever else comes is ignored.
        case over
        /// What came before the damage was given out; next comes the failure.
        case damaged(DecodingFailure)
    }

    private let coding: Coding
    /// zlib keeps a pointer to it, so it has a place of its own.
    private let stream: UnsafeMutablePointer<z_stream>
    private var isOpen = false
    private var state = State.unopened
    private var input = CodedInput()

    var consumed: Int64 { input.count }
    private(set) var produced: Int64 = 0

    init(_ coding: Coding) {
        self.coding = coding
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
    }

    deinit {
        if isOpen { inflateEnd(stream) }
        stream.deinitialize(count: 1)
        stream.deallocate()
    }

    var isOver: Bool { if case .over = state { true } else { false } }

    var mayEndHere: Bool {
        switch state {
        case .unopened: consumed == 0
        case .inflating, .damaged: false
        case .betweenMembers, .over: true
        }
    }

    func feed(_ more: ByteBuffer) { input.add(more) }

    func produce(upTo count: Int) throws(DecodingFailure) -> ByteBuffer? {
        while true {
            switch state {
            case .unopened:
                guard try open() else { return nil }
            case .betweenMembers:
                guard try startNextMember() else { return nil }
            case .over:
                return nil
            case .damaged(let failure):
                throw failure
            case .inflating:
                guard !input.isSpent else { return nil }
                let piece = inflate(upTo: count)
                if piece.readableBytes > 0 { return piece }
            }
        }
    }

    private func open() throws(DecodingFailure) -> Bool {
        let bits: CInt
        switch coding {
        case .gzip:
            guard input.bytes.readableBytes > 0 else { return false }
            bits = 15 + 16
        case .deflate:
            guard let start = input.bytes.getInteger(at: input.bytes.readerIndex, as: UInt16.self) else { return false }
            bits = Self.isZlibHeader(start) ? 15 : -15
        }
        guard inflateInit2_(stream, bits, zlibVersion(), CInt(MemoryLayout<z_stream>.size)) == Z_OK else { throw .outOfMemory }
        isOpen = true
        state = .inflating
        return true
    }

    /// RFC 1950, section 2.2, without a preset dictionary, which HTTP has no way to name.
    private static func isZlibHeader(_ start: UInt16) -> Bool {
        start >> 8 & 0x0F == 8 && start >> 12 <= 7 && start % 31 == 0 && start & 0x20 == 0
    }

    private func startNextMember() throws(DecodingFailure) -> Bool {
        guard let first = input.bytes.getInteger(at: input.bytes.readerIndex, as: UInt8.self) else { return false }
        guard first == 0x1F else { return end() }
        guard let both = input.bytes.getInteger(at: input.bytes.readerIndex, as: UInt16.self) else { return false }
        guard both == 0x1F8B else { return end() }
        guard inflateReset(stream) == Z_OK else { throw .corrupt("zlib cannot start again") }
        state = .inflating
        return true
    }

    private func end() -> Bool {
        state = .over
        input.bytes.clear()
        return true
    }

    private func inflate(upTo count: Int) -> ByteBuffer {
        let capacity = input.room(upTo: count)
        var output = ByteBufferAllocator().buffer(capacity: capacity)
        var status = Z_OK
        var isFull = false
        let target = stream
        output.writeWithUnsafeMutableBytes(minimumWritableBytes: capacity) { room in
            let limit = min(room.count, count)
            input.bytes.readWithUnsafeReadableBytes { source in
                let sourceCount = min(source.count, Int(CInt.max))
                // zlib only reads what next_in points to; its header lacks the const.
                let start = source.baseAddress?.assumingMemoryBound(to: Bytef.self)
                target.pointee.next_in = UnsafeMutablePointer(mutating: start)
                target.pointee.avail_in = UInt32(sourceCount)
                target.pointee.next_out = room.baseAddress?.assumingMemoryBound(to: Bytef.self)
                target.pointee.avail_out = UInt32(limit)
                status = CZlib.inflate(target, Z_NO_FLUSH)
                return sourceCount - Int(target.pointee.avail_in)
            }
            isFull = target.pointee.avail_out == 0
            return limit - Int(target.pointee.avail_out)
        }
        stream.pointee.next_in = nil
        stream.pointee.next_out = nil
        produced += Int64(output.readableBytes)
        do {
            try settle(status, isFull: isFull)
        } catch {
            // However the body was cut, the same of it comes before the failure.
            state = .damaged(error)
        }
        return output
    }

    private func settle(_ status: CInt, isFull: Bool) throws(DecodingFailure) {
        switch status {
        case Z_OK, Z_BUF_ERROR:
            input.hasMore = isFull
        case Z_STREAM_END:
            input.hasMore = false
            switch coding {
            case .gzip: state = .betweenMembers
            case .deflate: _ = end()
            }
        case Z_MEM_ERROR:
            throw .outOfMemory
        default:
            throw .corrupt(stream.pointee.msg.map { String(cString: $0) } ?? "zlib says \(status)")
        }
    }
}
