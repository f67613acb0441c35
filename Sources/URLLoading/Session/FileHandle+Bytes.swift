// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
public import Foundation
internal import Synchronization

extension FileHandle {
    /// The bytes of the file, pipe, socket or terminal, from the current position, as they become readable.
    ///
    /// Each byte is delivered once: several iterators share the bytes among them. Waiting for bytes does not block a thread.
    /// Canceling the Swift task ends the sequence with a `CancellationError`.
    public var bytes: AsyncBytes { AsyncBytes(handle: self) }

    /// The bytes of a file handle.
    public struct AsyncBytes: AsyncSequence, Sendable {
        /// A byte.
        public typealias Element = UInt8
        /// The type of the iterator.
        public typealias AsyncIterator = Iterator

        let handle: FileHandle

        /// Makes an iterator that reads from the current position of the handle.
        ///
        /// - Returns: The iterator.
        public func makeAsyncIterator() -> Iterator { Iterator(handle: handle) }

        /// Returns one byte at a time, from buffers of up to 16 KiB.
        public struct Iterator: AsyncIteratorProtocol {
            private let handle: FileHandle
            private var piece: [UInt8] = []
            private var position = 0
            private var isAtEnd = false

            init(handle: FileHandle) { self.handle = handle }

            /// The next byte, or nil at the end.
            ///
            /// - Returns: The byte, or nil.
            /// - Throws: A `POSIXError` if the descriptor cannot be read, `CancellationError` if the Swift task was cancelled.
            public nonisolated(nonsending) mutating func next() async throws -> UInt8? {
                if position == piece.count {
                    guard !isAtEnd else { return nil }
                    (piece, position) = (try await DescriptorRead(handle).piece(), 0)
                    isAtEnd = piece.isEmpty
                    guard !isAtEnd else { return nil }
                }
                defer { position += 1 }
                return piece[position]
            }
        }
    }
}

/// Performs one read from a file descriptor when it is readable.
private final class DescriptorRead: Sendable {
    private enum State {
        case new, over
        /// A read is in progress; it cannot be cancelled, so that its bytes are delivered.
        case reading(Waiter)
        case waiting(Waiter)
    }

    // `@unchecked`: Dispatch sources can be used from any thread.
    private struct Waiter: @unchecked Sendable {
        let caller: UnsafeContinuation<[UInt8], any Error>
        /// Nil if the descriptor was already readable; some kinds of file always are.
        let source: (any DispatchSourceRead)?
    }

    private static let length = 16_384
    private static let queue = DispatchQueue(label: "URLLoading.FileHandle", attributes: .concurrent)

    /// Retained to keep the descriptor open.
    private let handle: FileHandle
    private let state = Mutex(State.new)

    init(_ handle: FileHandle) { self.handle = handle }

    nonisolated(nonsending) func piece() async throws -> [UInt8] {
        try await withTaskCancellationHandler {
            try await withUnsafeThrowingContinuation { begin($0) }
        } onCancel: {
            cancel()
        }
    }

    private func begin(_ caller: UnsafeContinuation<[UInt8], any Error>) {
        let descriptor = handle.fileDescriptor
        guard descriptor >= 0 else { return caller.resume(throwing: POSIXError(.EBADF)) }
        // A Dispatch source never fires for files without a wait queue, such as /dev/null; poll(2) always reports those as ready.
        let source = Self.isReady(descriptor) ? nil : DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: Self.queue)
        let waiter = Waiter(caller: caller, source: source)
        let isCancelled = state.withLock { state in
            guard case .new = state else { return true }
            state = .waiting(waiter)
            return false
        }
        guard !isCancelled else {
            source?.activate()
            source?.cancel()
            return caller.resume(throwing: CancellationError())
        }
        if let source {
            source.setEventHandler { self.takeBytes(descriptor) }
            source.activate()
        } else {
            Self.queue.async { self.takeBytes(descriptor) }
        }
    }

    private static func isReady(_ descriptor: Int32) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) != 0
    }

    private func takeBytes(_ descriptor: Int32) {
        let waiter = state.withLock { state -> Waiter? in
            guard case .waiting(let waiter) = state else { return nil }
            // Another reader may have taken the bytes; a read would then block.
            guard waiter.source == nil || Self.isReady(descriptor) else { return nil }
            state = .reading(waiter)
            return waiter
        }
        guard let waiter else { return }
        var (count, failure) = (0, Int32(0))
        let piece = [UInt8](unsafeUninitializedCapacity: Self.length) { buffer, initialized in
            repeat {
                count = read(descriptor, buffer.baseAddress, buffer.count)
                failure = count < 0 ? errno : 0
            } while failure == EINTR
            initialized = max(0, count)
        }
        guard failure != EAGAIN || waiter.source == nil else {
            return state.withLock { $0 = .waiting(waiter) }
        }
        state.withLock { $0 = .over }
        waiter.source?.cancel()
        if failure == 0 {
            waiter.caller.resume(returning: piece)
        } else {
            waiter.caller.resume(throwing: POSIXError(POSIXErrorCode(rawValue: failure) ?? .EIO))
        }
    }

    private func cancel() {
        let waiter = state.withLock { state -> Waiter? in
            switch state {
            case .waiting(let waiter):
                state = .over
                return waiter
            case .new:
                state = .over
                return nil
            case .reading, .over: return nil
            }
        }
        waiter?.source?.cancel()
        waiter?.caller.resume(throwing: CancellationError())
    }
}
