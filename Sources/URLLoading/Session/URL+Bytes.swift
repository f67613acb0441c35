// SPDX-License-Identifier: Apache-2.0

public import Foundation

extension URL {
    /// The bytes of the resource at the URL, on the network or in a file, fetched by the shared session as they are read.
    public var resourceBytes: AsyncBytes { AsyncBytes(url: self) }

    /// The lines of the resource at the URL, as UTF-8 text; see ``AsyncLineSequence``.
    public var lines: AsyncLineSequence<AsyncBytes> { resourceBytes.lines }

    /// The bytes of the resource at a URL; each iterator loads the resource anew, when its first byte is requested.
    ///
    /// The iterator throws the error of the load, usually a `URLError`. As on Apple's platforms, the status code is not checked:
    /// use ``URLSession/bytes(from:delegate:)`` if the status code matters.
    public struct AsyncBytes: AsyncSequence, Sendable {
        /// A byte.
        public typealias Element = UInt8

        let url: URL

        /// Makes an iterator that loads the URL.
        ///
        /// - Returns: The iterator.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(url: url) }

        /// Returns one byte at a time.
        public struct AsyncIterator: AsyncIteratorProtocol {
            private let url: URL
            private var hasBegun = false
            private var bytes: URLSession.AsyncBytes.Iterator?

            init(url: URL) { self.url = url }

            /// The next byte, or nil at the end.
            ///
            /// - Returns: The byte, or nil.
            /// - Throws: The error of the load, or of reading the file.
            public nonisolated(nonsending) mutating func next() async throws -> UInt8? {
                if !hasBegun {
                    hasBegun = true
                    bytes = try await URLSession.shared.bytes(from: url).0.makeAsyncIterator()
                }
                return try await bytes?.next()
            }
        }
    }
}
