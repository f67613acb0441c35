// SPDX-License-Identifier: Apache-2.0

/// The lines of a sequence of bytes.
///
/// A line ends at LF, VT, FF, CR, CR LF, U+0085, U+2028 or U+2029, or with the last byte. Empty lines are skipped, as in Apple's
/// sequence. Ill-formed UTF-8 becomes U+FFFD.
@frozen
public struct AsyncLineSequence<Base: AsyncSequence>: AsyncSequence where Base.Element == UInt8 {
    /// A line without its terminator.
    public typealias Element = String
    /// The error that the byte sequence throws.
    public typealias Failure = Base.Failure

    @usableFromInline
    let base: Base

    /// Makes a sequence of the lines in a sequence of bytes.
    @inlinable
    public init(_ base: Base) { self.base = base }

    /// Makes an iterator over the lines.
    ///
    /// - Returns: The iterator.
    @inlinable
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base.makeAsyncIterator()) }

    /// Reads bytes up to the end of a line.
    @frozen
    public struct AsyncIterator: AsyncIteratorProtocol {
        @usableFromInline
        var base: Base.AsyncIterator
        @usableFromInline
        var buffer: [UInt8] = []

        @inlinable
        init(_ base: Base.AsyncIterator) { self.base = base }

        /// The next line, or nil at the end.
        ///
        /// - Returns: The line without its terminator, or nil.
        /// - Throws: The error that the byte sequence throws.
        @inlinable
        public nonisolated(nonsending) mutating func next() async throws(Base.Failure) -> String? {
            try await next(isolation: #isolation)
        }

        /// The next line, or nil at the end.
        ///
        /// - Returns: The line without its terminator, or nil.
        /// - Throws: The error that the byte sequence throws.
        @inlinable
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(Base.Failure) -> String? {
            buffer.removeAll(keepingCapacity: true)
            while let byte = try await base.next(isolation: actor) {
                switch byte {
                case 0x0A...0x0D:
                    if !buffer.isEmpty { return String(decoding: buffer, as: UTF8.self) }
                case 0x85 where buffer.last == 0xC2:
                    buffer.removeLast()
                    if !buffer.isEmpty { return String(decoding: buffer, as: UTF8.self) }
                case 0xA8, 0xA9:
                    guard buffer.suffix(2).elementsEqual([0xE2, 0x80]) else {
                        buffer.append(byte)
                        continue
                    }
                    buffer.removeLast(2)
                    if !buffer.isEmpty { return String(decoding: buffer, as: UTF8.self) }
                default: buffer.append(byte)
                }
            }
            return buffer.isEmpty ? nil : String(decoding: buffer, as: UTF8.self)
        }
    }
}

extension AsyncLineSequence: Sendable where Base: Sendable {}

extension AsyncSequence where Element == UInt8 {
    /// The bytes as lines, without empty ones.
    @inlinable
    public var lines: AsyncLineSequence<Self> { AsyncLineSequence(self) }
}
