// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import LoadingModel
internal import Synchronization

extension URLSession {
    /// Loads a request and returns its response when the head has arrived, with the body as an asynchronous sequence of bytes.
    ///
    /// The body is fetched only as fast as it is read: a slow reader applies backpressure to the server. To cancel the load, leave
    /// the loop, release the sequence, or cancel the Swift task that reads the sequence.
    ///
    /// - Returns: The bytes and the response, whatever its status.
    /// - Throws: A `URLError`, or the error that a ``URLProtocol`` class of the app reports.
    public nonisolated(nonsending) func bytes(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (AsyncBytes, URLResponse) {
        try await bytes(for: request, delegate: delegate, leftOrigin: false)
    }

    /// Loads a request; `leftOrigin` is true if the request's URL comes from another task's redirect to another origin.
    nonisolated(nonsending) func bytes(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)?, leftOrigin: Bool
    ) async throws -> (AsyncBytes, URLResponse) {
        let stream = ByteStream()
        let task = URLSessionDataTask(
            session: self, identifier: registry.nextIdentifier(), request: request, delivery: .stream,
            audience: .bytes(stream)
        )
        task.mutex.withLock { $0.start.leftOrigin = leftOrigin }
        let lease = ByteLease(announced(task, delegate))
        let response = try await withTaskCancellationHandler {
            try await stream.response { task.resume() }
        } onCancel: {
            task.cancel()
        }
        return (AsyncBytes(task: task, stream: stream, lease: lease), response)
    }

    /// Loads a URL and returns the response when its head has arrived, with the body as an asynchronous sequence of bytes.
    ///
    /// - Returns: The bytes and the response, whatever its status.
    /// - Throws: A `URLError`, or the error that a ``URLProtocol`` class of the app reports.
    public nonisolated(nonsending) func bytes(
        from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (AsyncBytes, URLResponse) {
        try await bytes(for: URLRequest(url: url), delegate: delegate)
    }

    /// The bytes of a response's body, as they arrive.
    ///
    /// Each byte is delivered once: several iterators share the bytes among them.
    public struct AsyncBytes: AsyncSequence, Sendable {
        /// A byte.
        public typealias Element = UInt8
        /// The type of the iterator.
        public typealias AsyncIterator = Iterator

        /// The task that loads the bytes.
        public let task: URLSessionDataTask
        let stream: ByteStream
        let lease: ByteLease

        /// Makes an iterator over the bytes that have not been read.
        ///
        /// - Returns: The iterator.
        public func makeAsyncIterator() -> Iterator {
            Iterator(window: ByteWindow(task: task, stream: stream, lease: lease))
        }

        /// Returns one byte at a time.
        ///
        /// Returning a byte that has already arrived takes only a comparison and a memory access.
        public struct Iterator: AsyncIteratorProtocol {
            @usableFromInline var position: UnsafePointer<UInt8>
            @usableFromInline var end: UnsafePointer<UInt8>
            /// Owns the memory that `position` and `end` point to; this memory is allocated once and never moves.
            @usableFromInline let window: ByteWindow

            init(window: ByteWindow) {
                self.window = window
                position = window.start
                end = window.start
            }

            /// The next byte, or nil at the end of the body.
            ///
            /// - Returns: The byte, or nil.
            /// - Throws: A `URLError` if the load fails before its end.
            @inlinable
            @inline(__always)
            public nonisolated(nonsending) mutating func next() async throws -> UInt8? {
                if position != end {
                    let byte = position.pointee
                    position += 1
                    return byte
                }
                return try await reload()
            }

            /// The next byte, or nil at the end of the body.
            ///
            /// - Returns: The byte, or nil.
            /// - Throws: A `URLError` if the load fails before its end.
            @inlinable
            @inline(__always)
            public mutating func next(isolation actor: isolated (any Actor)?) async throws -> UInt8? {
                if position != end {
                    let byte = position.pointee
                    position += 1
                    return byte
                }
                return try await reload()
            }

            @usableFromInline
            @inline(never)
            nonisolated(nonsending) mutating func reload() async throws -> UInt8? {
                let count = try await window.refill()
                position = window.start
                end = position + count
                guard count > 0 else { return nil }
                defer { position += 1 }
                return position.pointee
            }
        }
    }
}
