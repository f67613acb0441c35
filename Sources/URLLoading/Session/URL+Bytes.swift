//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation

extension URL {
    /// The bytes of what is at the URL, on the network or in a file, fetched by the shared session as they are read.
    public var resourceBytes: AsyncBytes { AsyncBytes(url: self) }

    /// The lines of what is at the URL, as text in UTF-8; see ``AsyncLineSequence``.
    public var lines: AsyncLineSequence<AsyncBytes> { resourceBytes.lines }

    /// The bytes of what is at a URL: each iterator loads them anew, when it is asked for the first.
    ///
    /// Throws what the load fails with, a `URLError` as a rule. Which status a server answers with does not matter, as on Apple's
    /// platforms: use ``URLSession/bytes(from:delegate:)`` where it does.
    public struct AsyncBytes: AsyncSequence, Sendable {
        /// A byte.
        public typealias Element = UInt8

        let url: URL

        /// Makes an iterator that loads the URL.
        ///
        /// - Returns: The iterator.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(url: url) }

        /// Hands out one byte after the other.
        public struct AsyncIterator: AsyncIteratorProtocol {
            private let url: URL
            private var hasBegun = false
            private var bytes: URLSession.AsyncBytes.Iterator?

            init(url: URL) { self.url = url }

            /// The next byte, or nil at the end.
            ///
            /// - Returns: The byte, or nil.
            /// - Throws: What kept the URL from being loaded, or the file from being read.
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
