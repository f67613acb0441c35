//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import NIOCore

/// Frames that wait to be handed to the socket, all at once, and who waits for that.
struct OutgoingFrames {
    /// What may wait before content waits.
    private static let highWaterMark = 262_144

    private var buffer = ByteBuffer()
    private var isSent = false
    /// The end of a turn of the loop has them go to the socket.
    private(set) var areDue = false
    private var isReading = false
    private var promises: [EventLoopPromise<Void>] = []

    var takeContent: Bool { isSent || buffer.readableBytes < Self.highWaterMark }

    /// Writes a frame of so many bytes at most.
    @discardableResult
    mutating func write(_ length: Int, _ frame: (UnsafeMutableRawBufferPointer) throws -> Int) rethrows -> Int {
        prepare()
        return try buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: length, frame)
    }

    mutating func write(_ text: StaticString) {
        prepare()
        buffer.writeStaticString(text)
    }

    /// Writes the payload of a frame.
    mutating func write(_ payload: inout ByteBuffer) { buffer.writeBuffer(&payload) }

    private mutating func prepare() {
        guard isSent else { return }
        isSent = false
        // One buffer serves again and again: it is free as soon as the socket took what is in it, which is at once as a rule.
        if buffer.capacity > Self.highWaterMark * 2 { buffer = ByteBuffer() } else { buffer.clear() }
    }

    mutating func add(_ promise: EventLoopPromise<Void>) { promises.append(promise) }

    /// What is written goes to the socket when all is that belongs to this turn of the loop; false where something sees to that already.
    mutating func areDueNow() -> Bool {
        defer { areDue = true }
        return !areDue && !isReading
    }

    /// What is written while something is read goes when that is done.
    mutating func readingBegan() { isReading = true }

    /// Answers whether something is due.
    mutating func readingEnded() -> Bool {
        isReading = false
        return areDue
    }

    /// What is to go to the socket now.
    mutating func take() -> ByteBuffer? {
        areDue = false
        guard !isSent, buffer.readableBytes > 0 else { return nil }
        isSent = true
        return buffer
    }

    mutating func takePromises() -> [EventLoopPromise<Void>] {
        guard !promises.isEmpty else { return [] }
        defer { promises = [] }
        return promises
    }
}
