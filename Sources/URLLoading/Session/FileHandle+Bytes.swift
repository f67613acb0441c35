//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import Dispatch
public import Foundation
internal import Synchronization

extension FileHandle {
    /// The bytes of the file, pipe, socket or terminal, from where it stands, as they can be read.
    ///
    /// Bytes come once: several iterators share them. No thread waits while there are none; cancelling the Swift task ends the sequence
    /// with a `CancellationError`.
    public var bytes: AsyncBytes { AsyncBytes(handle: self) }

    /// The bytes of a file handle.
    public struct AsyncBytes: AsyncSequence, Sendable {
        /// A byte.
        public typealias Element = UInt8
        /// What hands out the bytes.
        public typealias AsyncIterator = Iterator

        let handle: FileHandle

        /// Makes an iterator that reads on from where the handle stands.
        ///
        /// - Returns: The iterator.
        public func makeAsyncIterator() -> Iterator { Iterator(handle: handle) }

        /// Hands out one byte after the other, of up to 16 KiB that were read at once.
        public struct Iterator: AsyncIteratorProtocol {
            private let handle: FileHandle
            private var piece: [UInt8] = []
            private var position = 0
            private var isAtEnd = false

            init(handle: FileHandle) { self.handle = handle }

            /// The next byte, or nil at the end.
            ///
            /// - Returns: The byte, or nil.
            /// - Throws: A `POSIXError` where the descriptor cannot be read, `CancellationError` where the Swift task was cancelled.
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

/// Reads once from a descriptor, when there is something to read.
private final class DescriptorRead: Sendable {
    private enum State {
        case new, cancelled, over
        case waiting(Waiter)
    }

    // `@unchecked`: sources of Dispatch may be used by any thread.
    private struct Waiter: @unchecked Sendable {
        let caller: UnsafeContinuation<[UInt8], any Error>
        let source: any DispatchSourceRead
    }

    private static let length = 16_384
    private static let queue = DispatchQueue(label: "URLLoading.FileHandle", attributes: .concurrent)

    /// Held, so that the descriptor stays open.
    private let handle: FileHandle
    private let state = Mutex(State.new)

    init(_ handle: FileHandle) { self.handle = handle }

    nonisolated(nonsending) func piece() async throws -> [UInt8] {
        try await withTaskCancellationHandler {
            try await withUnsafeThrowingContinuation { begin($0) }
        } onCancel: {
            end(throwing: CancellationError())
        }
    }

    private func begin(_ caller: UnsafeContinuation<[UInt8], any Error>) {
        let source = DispatchSource.makeReadSource(fileDescriptor: handle.fileDescriptor, queue: Self.queue)
        source.setEventHandler { self.takeBytes() }
        let waiter = Waiter(caller: caller, source: source)
        let isCancelled = state.withLock { state in
            guard case .new = state else { return true }
            state = .waiting(waiter)
            return false
        }
        source.activate()
        if isCancelled {
            source.cancel()
            caller.resume(throwing: CancellationError())
        }
    }

    private func takeBytes() {
        var (count, failure) = (0, Int32(0))
        let piece = [UInt8](unsafeUninitializedCapacity: Self.length) { buffer, initialized in
            repeat {
                count = read(handle.fileDescriptor, buffer.baseAddress, buffer.count)
                failure = count < 0 ? errno : 0
            } while failure == EINTR
            initialized = max(0, count)
        }
        // Another reader was quicker.
        guard failure != EAGAIN, let waiter = finish(.over) else { return }
        waiter.source.cancel()
        if failure == 0 {
            waiter.caller.resume(returning: piece)
        } else {
            waiter.caller.resume(throwing: POSIXError(POSIXErrorCode(rawValue: failure) ?? .EIO))
        }
    }

    private func end(throwing error: any Error) {
        guard let waiter = finish(.cancelled) else { return }
        waiter.source.cancel()
        waiter.caller.resume(throwing: error)
    }

    /// What waits, which is to be told by the one who gets it.
    private func finish(_ next: State) -> Waiter? {
        state.withLock { state in
            switch state {
            case .waiting(let waiter):
                state = next
                return waiter
            case .new:
                state = next
                return nil
            case .cancelled, .over: return nil
            }
        }
    }
}
