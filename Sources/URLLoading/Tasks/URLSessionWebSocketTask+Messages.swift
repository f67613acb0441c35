// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization

extension URLSessionWebSocketTask {
    /// The messages of a WebSocket in order, until it is closed.
    ///
    /// Not in Apple's API.
    ///
    /// The sequence ends after the closing handshake; ``URLSessionWebSocketTask/closeCode`` then has the reason. If the connection
    /// ends in another way, the iterator throws the error that ``URLSessionWebSocketTask/receive()`` throws. Each message is
    /// delivered once: if several loops run concurrently, each message reaches one of them.
    public struct Messages: AsyncSequence, Sendable {
        /// A message.
        public typealias Element = Message

        /// Receives one message at a time.
        public struct AsyncIterator: AsyncIteratorProtocol {
            fileprivate let task: URLSessionWebSocketTask

            /// Returns the next message, or nil if the WebSocket is closed.
            ///
            /// - Returns: The message, or nil.
            /// - Throws: The error of ``URLSessionWebSocketTask/receive()``.
            public nonisolated(nonsending) func next() async throws -> Message? {
                do {
                    return try await task.receive()
                } catch {
                    guard !(error is CancellationError), task.calls.withLock({ $0.endedCleanly }) else { throw error }
                    return nil
                }
            }
        }

        fileprivate let task: URLSessionWebSocketTask

        /// Makes an iterator, which shares the messages with other iterators.
        ///
        /// - Returns: The iterator.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(task: task) }
    }

    /// The received messages in order, until the connection is closed.
    ///
    /// Not in Apple's API. The task must be resumed.
    public var messages: Messages { Messages(task: self) }
}
