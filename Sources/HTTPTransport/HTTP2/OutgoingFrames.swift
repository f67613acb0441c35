// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Frames that are passed to the socket together, and the promises that are completed when the socket has the frames.
struct OutgoingFrames {
    /// The number of waiting bytes above which no content is accepted.
    private static let highWaterMark = 262_144

    private var buffer = ByteBuffer()
    private var isSent = false
    /// Whether a flush is due at the end of a turn of the loop.
    private(set) var isDue = false
    private var isReading = false
    private var promises: [EventLoopPromise<Void>] = []

    var takeContent: Bool { isSent || buffer.readableBytes < Self.highWaterMark }

    /// Writes a frame of at most `length` bytes.
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
        // One buffer is reused: it becomes free as soon as the socket has accepted its content, which is usually at once.
        if buffer.capacity > Self.highWaterMark * 2 { buffer = ByteBuffer() } else { buffer.clear() }
    }

    mutating func add(_ promise: EventLoopPromise<Void>) { promises.append(promise) }

    /// Marks the frames as due at the end of this turn of the loop; returns false if a flush is already arranged.
    mutating func markDue() -> Bool {
        defer { isDue = true }
        return !isDue && !isReading
    }

    /// Notes that a read has begun: frames written during the read are flushed after it.
    mutating func readingBegan() { isReading = true }

    /// Notes that the read has ended; returns whether a flush is due.
    mutating func readingEnded() -> Bool {
        isReading = false
        return isDue
    }

    /// Returns the bytes to write to the socket now.
    mutating func take() -> ByteBuffer? {
        isDue = false
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
