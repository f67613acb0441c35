// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// Cancels the load when its bytes have no readers left.
final class ByteLease: Sendable {
    private let task: URLSessionTask

    init(_ task: URLSessionTask) { self.task = task }

    deinit { task.cancel() }
}

/// The buffer that an iterator reads from.
///
/// Bytes are copied out of the received chunks, so that the iterator can hold a stable pointer.
@usableFromInline
final class ByteWindow {
    private static let capacity = 64 * 1024

    private let memory = UnsafeMutablePointer<UInt8>.allocate(capacity: ByteWindow.capacity)
    private let task: URLSessionDataTask
    private let stream: ByteStream
    private let lease: ByteLease
    private var chunks: ArraySlice<Data> = []
    /// The number of bytes already copied from the first chunk.
    private var offset = 0
    /// The number of bytes that were taken from the stream and are not yet reported to flow control as consumed.
    private var credit = 0
    private var isAtEnd = false
    private var hasBegun = false

    init(task: URLSessionDataTask, stream: ByteStream, lease: ByteLease) {
        self.task = task
        self.stream = stream
        self.lease = lease
    }

    deinit {
        memory.deallocate()
        // The iterator was released before the end of the body. The bytes it holds are lost, so no other reader could continue.
        if hasBegun, !isAtEnd { task.cancel() }
    }

    var start: UnsafePointer<UInt8> { UnsafePointer(memory) }

    /// Fills the buffer from its start and returns the number of bytes; 0 at the end of the body.
    nonisolated(nonsending) func refill() async throws -> Int {
        guard !isAtEnd else { return 0 }
        hasBegun = true
        if Task.isCancelled { task.cancel() }
        while chunks.isEmpty {
            task.consumed(credit)
            credit = 0
            let task = task
            let stream = stream
            chunks = try await withTaskCancellationHandler {
                try await stream.takeChunks()[...]
            } onCancel: {
                task.cancel()
            }
            if chunks.isEmpty {
                isAtEnd = true
                return 0
            }
            credit = chunks.reduce(0) { $0 + $1.count }
        }
        return fill()
    }

    private func fill() -> Int {
        var filled = 0
        while filled < Self.capacity, let chunk = chunks.first {
            let count = min(chunk.count - offset, Self.capacity - filled)
            chunk.withUnsafeBytes { bytes in
                guard let base = bytes.baseAddress else { return }
                UnsafeMutableRawPointer(memory + filled).copyMemory(from: base + offset, byteCount: count)
            }
            filled += count
            offset += count
            if offset == chunk.count {
                chunks.removeFirst()
                offset = 0
            }
        }
        return filled
    }
}
