// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
import Synchronization

/// A stored body that is too large for memory, read in pieces.
///
/// Reading from the beginning to the end verifies the checksum: a damaged entry is removed from the cache, and the reader gets an
/// error instead of the last piece. The body stays readable even if its entry is removed or replaced meanwhile.
package final class CacheBodyFile: Sendable {
    /// The bytes are missing, or differ from the stored ones.
    package struct Damaged: Error {
        package init() {}
    }

    private struct State {
        /// Nil only during deinitialization.
        var file: CacheFile?
        /// The end of the contiguous part that was read from the beginning.
        var position: Int64 = 0
        var checksum = ContentChecksum()
    }

    package let length: Int64
    private let expected: UInt64
    private let queue: DiskQueue
    private let onDamage: @Sendable () -> Void
    private let state: Mutex<State>

    init(_ file: CacheFile, _ preamble: CacheEntryFile.Preamble, queue: DiskQueue, onDamage: @escaping @Sendable () -> Void) {
        state = Mutex(State(file: file))
        length = preamble.bodyLength
        expected = preamble.bodyChecksum
        self.queue = queue
        self.onDamage = onDamage
    }

    deinit {
        // Closing the last descriptor of a deleted file frees its blocks, which takes time, so the queue releases the last
        // reference.
        let file = state.withLock { state in
            defer { state.file = nil }
            return state.file.map { Unmanaged.passRetained($0) }
        }
        if let file { queue.run(on: .answers) { file.release() } }
    }

    /// Reads `count` bytes, fewer at the end of the body, none past it.
    ///
    /// May wait for the disk.
    package func read(at offset: Int64, count: Int) throws(Damaged) -> Data {
        guard offset >= 0, offset < length, count > 0 else { return Data() }
        let count = Int(min(Int64(count), length - offset))
        guard let file = state.withLock({ $0.file }), let start = UnsafeMutableRawBufferPointer.allocated(count) else {
            throw Damaged()
        }
        guard (try? file.read(into: start, at: Int64(CacheEntryFile.preambleLength) + offset, waiting: true)) != nil,
            isSound(UnsafeRawBufferPointer(start), at: offset)
        else {
            start.deallocateAllocated()
            onDamage()
            throw Damaged()
        }
        return start.takenData()
    }

    /// Reads on the disk queue, where `done` is called.
    package func read(at offset: Int64, count: Int, _ done: @escaping @Sendable (Result<Data, Damaged>) -> Void) {
        queue.run(on: .answers) {
            done(Result { () throws(Damaged) in try self.read(at: offset, count: count) })
        }
    }

    /// Adds a piece to the checksum if it continues the part read so far.
    ///
    /// Returns false if the piece is the last one and the checksum is wrong.
    private func isSound(_ bytes: UnsafeRawBufferPointer, at offset: Int64) -> Bool {
        state.withLock { state in
            guard offset <= state.position, offset + Int64(bytes.count) > state.position else { return true }
            // Bytes that were read before are already part of the checksum.
            let fresh = UnsafeRawBufferPointer(rebasing: bytes[Int(state.position - offset)...])
            state.checksum.update(fresh)
            state.position += Int64(fresh.count)
            return state.position < length || state.checksum.value == expected
        }
    }
}
