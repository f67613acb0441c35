// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// A queue of bytes, appended at the end and taken from the front.
struct ByteQueue {
    private var bytes: [UInt8] = []
    /// The index of the first byte that has not been taken.
    private var head = 0

    /// The maximum capacity that an empty queue keeps.
    private static let retainedCapacity = 65_536

    var count: Int { bytes.count - head }
    var isEmpty: Bool { count == 0 }

    mutating func append(_ new: UnsafeBufferPointer<UInt8>) { bytes.append(contentsOf: new) }

    /// Moves as many bytes as fit from the front into `target`.
    ///
    /// - Returns: The number of bytes.
    mutating func take(into target: UnsafeMutableRawBufferPointer) -> Int {
        let taken = min(count, target.count)
        bytes.withUnsafeBytes { target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[head..<head + taken])) }
        drop(taken)
        return taken
    }

    /// Takes up to `limit` bytes from the front.
    mutating func take(upTo limit: Int) -> Data {
        let taken = min(count, max(limit, 0))
        let data = Data(bytes[head..<head + taken])
        drop(taken)
        return data
    }

    mutating func removeAll() {
        bytes.removeAll(keepingCapacity: bytes.capacity <= Self.retainedCapacity)
        head = 0
    }

    private mutating func drop(_ taken: Int) {
        head += taken
        if isEmpty {
            removeAll()
        } else if head >= count {
            // Bytes are moved only after at least half were taken, so the cost of moving is proportional to the number of bytes
            // taken.
            bytes.removeFirst(head)
            head = 0
        }
    }
}
