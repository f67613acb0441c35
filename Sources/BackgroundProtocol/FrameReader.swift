// SPDX-License-Identifier: Apache-2.0

/// Why a connection's bytes are not a valid frame; no later frame can be read.
package enum FrameFailure: Error, Hashable, Sendable {
    /// An empty frame.
    case empty
    /// The length of the frame exceeds the limit.
    case tooLong(Int)
}

/// Splits the bytes of a connection into frames: a length of four bytes, big-endian, followed by the payload.
///
/// An invalid length is detected as soon as its four bytes are present, and no bytes are stored from then on.
package struct FrameReader: Sendable {
    /// The longest frame that the daemon accepts.
    package static let limit = 8 << 20
    /// The longest frame that a program accepts from the daemon: a collected response body is sent in one frame.
    package static let programLimit = 256 << 20

    private static let headLength = 4
    /// The capacity that is kept for further bytes.
    private static let keptCapacity = 64 << 10

    private let limit: Int
    private var buffer: [UInt8] = []
    /// A long frame, without its length, of which a part has arrived; the frame precedes the bytes in `buffer`.
    private var partial: PartialFrame?
    /// The offset of the first frame that has not been returned yet.
    private var start = 0
    private var failure: FrameFailure?

    package init(limit: Int = FrameReader.limit) {
        self.limit = limit
    }

    /// The number of bytes of incomplete frames, which is about the memory used for them.
    package var pendingBytes: Int { (partial?.count ?? 0) + buffer.count - start }

    /// Adds bytes from the connection.
    package mutating func append(_ bytes: some Collection<UInt8>) {
        guard failure == nil else { return }
        guard partial != nil else { return appendToBuffer(bytes) }
        let taken = partial?.append(bytes) ?? 0
        if taken < bytes.count { appendToBuffer(bytes.dropFirst(taken)) }
    }

    private mutating func appendToBuffer(_ bytes: some Collection<UInt8>) {
        if bytes.withContiguousStorageIfAvailable({ buffer.append(contentsOf: $0) }) == nil { buffer.append(contentsOf: bytes) }
        readNextLength()
    }

    /// The next frame's payload, or nil if it is incomplete.
    package mutating func next() throws(FrameFailure) -> [UInt8]? {
        if let known = partial {
            guard known.isWhole else { return nil }
            partial = nil
            readNextLength()
            return known.payload
        }
        if let failure { throw failure }
        guard let length = nextLength, buffer.count - start - Self.headLength >= length else { return nil }
        let from = start + Self.headLength
        let payload = Array(buffer[from..<from + length])
        start = from + length
        dropRead()
        readNextLength()
        return payload
    }

    /// Encodes a payload as a frame.
    package static func frame(_ payload: [UInt8]) -> [UInt8] {
        let length = UInt32(truncatingIfNeeded: payload.count)
        var frame: [UInt8] = []
        frame.reserveCapacity(headLength + payload.count)
        for shift in [24, 16, 8, 0] as [UInt32] { frame.append(UInt8(truncatingIfNeeded: length >> shift)) }
        frame.append(contentsOf: payload)
        return frame
    }

    private var nextLength: Int? {
        guard buffer.count - start >= Self.headLength else { return nil }
        return buffer[start..<start + Self.headLength].reduce(0) { $0 << 8 | Int($1) }
    }

    private mutating func readNextLength() {
        guard partial == nil, let length = nextLength else { return }
        if length == 0 || length > limit {
            failure = length == 0 ? .empty : .tooLong(length)
        } else if length > Self.keptCapacity, buffer.count - start - Self.headLength < length {
            var begun = PartialFrame(length: length)
            _ = begun.append(buffer[(start + Self.headLength)...])
            partial = begun
        } else {
            return
        }
        buffer = []
        start = 0
    }

    /// Moves the remaining bytes to the front if they are fewer than the bytes already read, so that at most one byte is moved for
    /// each byte read.
    private mutating func dropRead() {
        if start == buffer.count {
            if buffer.capacity > Self.keptCapacity { buffer = [] } else { buffer.removeAll(keepingCapacity: true) }
            start = 0
        } else if start > buffer.count / 2 {
            buffer = Array(buffer[start...])
            start = 0
        }
    }
}

/// A long frame that is arriving, stored in pieces of equal size: the memory grows with the bytes that have arrived.
private struct PartialFrame: Sendable {
    private static let pieceSize = 64 << 10

    private let length: Int
    private var pieces: [[UInt8]] = []
    private(set) var count = 0

    init(length: Int) { self.length = length }

    var isWhole: Bool { count == length }

    var payload: [UInt8] {
        var payload: [UInt8] = []
        payload.reserveCapacity(length)
        for piece in pieces { payload += piece }
        return payload
    }

    /// - Returns: The number of bytes, from the front, that belong to the frame.
    mutating func append(_ bytes: some Collection<UInt8>) -> Int {
        let taken = min(length - count, bytes.count)
        var rest = bytes.prefix(taken)
        while !rest.isEmpty {
            if pieces.last.map({ $0.count == Self.pieceSize }) ?? true {
                pieces.append([])
                pieces[pieces.count - 1].reserveCapacity(min(Self.pieceSize, length - count))
            }
            let last = pieces.count - 1
            let part = rest.prefix(Self.pieceSize - pieces[last].count)
            pieces[last].append(contentsOf: part)
            count += part.count
            rest = rest.dropFirst(part.count)
        }
        return taken
    }
}
