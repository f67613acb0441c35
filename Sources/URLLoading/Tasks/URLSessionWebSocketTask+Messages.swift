//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import Foundation
internal import Synchronization

extension URLSessionWebSocketTask {
    /// The messages of a WebSocket, in their order, until it is closed.
    ///
    /// Apple does not have it.
    ///
    /// The sequence ends when the closing handshake has taken place; ``URLSessionWebSocketTask/closeCode`` says why. It throws what
    /// ``URLSessionWebSocketTask/receive()`` throws otherwise. Each message goes to one receiver: two loops at once share them.
    public struct Messages: AsyncSequence, Sendable {
        /// A message.
        public typealias Element = Message

        /// Receives one message after another.
        public struct AsyncIterator: AsyncIteratorProtocol {
            fileprivate let task: URLSessionWebSocketTask

            /// The next message, or nil once the connection is closed.
            ///
            /// - Returns: The message, or nil.
            /// - Throws: What ``URLSessionWebSocketTask/receive()`` throws.
            public nonisolated(nonsending) func next() async throws -> Message? {
                do {
                    return try await task.receive()
                } catch {
                    guard !(error is CancellationError), task.calls.withLock({ $0.endedInOrder }) else { throw error }
                    return nil
                }
            }
        }

        fileprivate let task: URLSessionWebSocketTask

        /// An iterator, which shares the messages with others.
        ///
        /// - Returns: The iterator.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(task: task) }
    }

    /// The messages that come, in their order, until the connection is closed.
    ///
    /// Apple does not have it. The task has to be resumed.
    public var messages: Messages { Messages(task: self) }
}
