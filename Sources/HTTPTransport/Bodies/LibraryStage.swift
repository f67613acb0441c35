//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import NIOCore

/// Undoes one content coding with a library of the system: brotli, or zstd.
final class LibraryStage: CodingStage {
    private enum State {
        /// Too few bytes yet to tell that it is the coding.
        case unopened
        case decoding(LibraryCoding.Decode)
        /// A frame is over; another may follow.
        case betweenFrames(LibraryCoding.Decode)
        case over
        /// What came before the damage was given out; next comes the failure.
        case damaged(DecodingFailure)
    }

    private let coding: LibraryCoding
    private var state = State.unopened
    private var input = CodedInput()
    private(set) var isSlow = false

    var consumed: Int64 { input.count }
    private(set) var produced: Int64 = 0

    init(_ coding: LibraryCoding) { self.coding = coding }

    var isOver: Bool { if case .over = state { true } else { false } }

    var mayEndHere: Bool {
        switch state {
        case .unopened: consumed == 0
        case .decoding, .damaged: false
        case .betweenFrames, .over: true
        }
    }

    func feed(_ more: ByteBuffer) { input.add(more) }

    func produce(upTo count: Int) throws(DecodingFailure) -> ByteBuffer? {
        while true {
            switch state {
            case .unopened:
                guard try open() else { return nil }
                // Whoever asks sees now where to ask for more.
                if isSlow { return ByteBuffer() }
            case .betweenFrames(let decode):
                guard startNextFrame(decode) else { return nil }
            case .over:
                return nil
            case .damaged(let failure):
                throw failure
            case .decoding(let decode):
                guard !input.isSpent else { return nil }
                let piece = self.decode(decode, upTo: count)
                if piece.readableBytes > 0 { return piece }
                // The library gave up for now.
                if case .decoding = state, input.bytes.readableBytes > 0 { return piece }
            }
        }
    }

    private func open() throws(DecodingFailure) -> Bool {
        guard input.bytes.readableBytes > 0 else { return false }
        if let isFrame = coding.isFrame {
            guard let start = input.bytes.getInteger(at: input.bytes.readerIndex, endianness: .little, as: UInt32.self) else {
                return false
            }
            guard isFrame(start) else { throw .corrupt("it does not begin as \(coding.name) does") }
        }
        guard let decode = coding.makeDecoder() else { throw .outOfMemory }
        if let first = input.bytes.getInteger(at: input.bytes.readerIndex, as: UInt8.self) { isSlow = coding.isSlow(first) }
        state = .decoding(decode)
        return true
    }

    /// What follows a frame and is none is ignored, as behind a member of gzip.
    private func startNextFrame(_ decode: @escaping LibraryCoding.Decode) -> Bool {
        guard let isFrame = coding.isFrame else { return end() }
        guard let start = input.bytes.getInteger(at: input.bytes.readerIndex, endianness: .little, as: UInt32.self) else {
            return false
        }
        guard isFrame(start) else { return end() }
        state = .decoding(decode)
        return true
    }

    private func end() -> Bool {
        state = .over
        input.bytes.clear()
        return true
    }

    private func decode(_ decode: @escaping LibraryCoding.Decode, upTo count: Int) -> ByteBuffer {
        let capacity = input.room(upTo: count)
        var output = ByteBufferAllocator().buffer(capacity: capacity)
        var step = LibraryCoding.Step(read: 0, written: 0, outcome: .goesOn)
        output.writeWithUnsafeMutableBytes(minimumWritableBytes: capacity) { room in
            let room = UnsafeMutableRawBufferPointer(rebasing: room.prefix(count))
            input.bytes.readWithUnsafeReadableBytes { source in
                step = decode(source, room)
                return step.read
            }
            input.hasMore = step.written == room.count
            return step.written
        }
        produced += Int64(output.readableBytes)
        switch step.outcome {
        case .goesOn: break
        case .isOver:
            input.hasMore = false
            state = .betweenFrames(decode)
        // However the body was cut, it comes after what was decoded before.
        case .failed(let failure): state = .damaged(failure)
        }
        return output
    }
}
