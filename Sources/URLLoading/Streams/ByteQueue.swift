//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import Foundation

/// Bytes in a row: added at the back, taken from the front.
struct ByteQueue {
    private var bytes: [UInt8] = []
    /// Those before it were taken.
    private var head = 0

    /// What is kept of the memory once all was taken.
    private static let room = 65_536

    var count: Int { bytes.count - head }
    var isEmpty: Bool { count == 0 }

    mutating func append(_ new: UnsafeBufferPointer<UInt8>) { bytes.append(contentsOf: new) }

    /// As many of the first as fit into `target`.
    ///
    /// - Returns: How many.
    mutating func take(into target: UnsafeMutableRawBufferPointer) -> Int {
        let taken = min(count, target.count)
        bytes.withUnsafeBytes { target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[head..<head + taken])) }
        drop(taken)
        return taken
    }

    /// As many of the first as there are, and `limit` at most.
    mutating func take(upTo limit: Int) -> Data {
        let taken = min(count, max(limit, 0))
        let data = Data(bytes[head..<head + taken])
        drop(taken)
        return data
    }

    mutating func removeAll() {
        bytes.removeAll(keepingCapacity: bytes.capacity <= Self.room)
        head = 0
    }

    private mutating func drop(_ taken: Int) {
        head += taken
        if isEmpty {
            removeAll()
        } else if head >= count {
            // No more bytes are moved than were taken.
            bytes.removeFirst(head)
            head = 0
        }
    }
}
