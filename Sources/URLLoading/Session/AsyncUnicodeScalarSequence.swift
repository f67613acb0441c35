// SPDX-License-Identifier: Apache-2.0

/// The Unicode scalars of a sequence of UTF-8 bytes.
///
/// Each maximal subpart of ill-formed UTF-8 becomes one U+FFFD (The Unicode Standard, section 3.9).
@frozen
public struct AsyncUnicodeScalarSequence<Base: AsyncSequence>: AsyncSequence where Base.Element == UInt8 {
    /// A scalar.
    public typealias Element = UnicodeScalar
    /// The error that the byte sequence throws.
    public typealias Failure = Base.Failure

    @usableFromInline
    let base: Base

    /// Makes a sequence of the scalars in a sequence of bytes.
    @inlinable
    public init(_ base: Base) { self.base = base }

    /// Makes an iterator over the scalars.
    ///
    /// - Returns: The iterator.
    @inlinable
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base.makeAsyncIterator()) }

    /// Reads the bytes of one scalar.
    @frozen
    public struct AsyncIterator: AsyncIteratorProtocol {
        @usableFromInline
        var base: Base.AsyncIterator
        /// The byte that ended an ill-formed sequence and starts the next scalar.
        @usableFromInline
        var leftover: UInt8?

        @inlinable
        init(_ base: Base.AsyncIterator) { self.base = base }

        /// The next scalar, or nil at the end.
        ///
        /// - Returns: The scalar, or nil.
        /// - Throws: The error that the byte sequence throws.
        @inlinable
        public nonisolated(nonsending) mutating func next() async throws(Base.Failure) -> UnicodeScalar? {
            try await next(isolation: #isolation)
        }

        /// The next scalar, or nil at the end.
        ///
        /// - Returns: The scalar, or nil.
        /// - Throws: The error that the byte sequence throws.
        @inlinable
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(Base.Failure) -> UnicodeScalar? {
            let first: UInt8
            if let leftover {
                first = leftover
                self.leftover = nil
            } else if let byte = try await base.next(isolation: actor) {
                first = byte
            } else {
                return nil
            }
            guard first >= 0x80 else { return UnicodeScalar(first) }
            // The number of bytes that follow, and the valid range of the first of them: table 3-7 of The Unicode Standard.
            let (length, range): (Int, ClosedRange<UInt8>) =
                switch first {
                case 0xC2...0xDF: (1, 0x80...0xBF)
                case 0xE0: (2, 0xA0...0xBF)
                case 0xED: (2, 0x80...0x9F)
                case 0xE1...0xEF: (2, 0x80...0xBF)
                case 0xF0: (3, 0x90...0xBF)
                case 0xF1...0xF3: (3, 0x80...0xBF)
                case 0xF4: (3, 0x80...0x8F)
                default: (0, 0x80...0xBF)
                }
            guard length > 0 else { return "\u{FFFD}" }
            var value = UInt32(first) & (0x3F >> UInt32(length))
            for position in 0..<length {
                guard let byte = try await base.next(isolation: actor) else { return "\u{FFFD}" }
                guard (position == 0 ? range : 0x80...0xBF).contains(byte) else {
                    leftover = byte
                    return "\u{FFFD}"
                }
                value = value << 6 | UInt32(byte & 0x3F)
            }
            return UnicodeScalar(value) ?? "\u{FFFD}"
        }
    }
}

extension AsyncUnicodeScalarSequence: Sendable where Base: Sendable {}

extension AsyncSequence where Element == UInt8 {
    /// The bytes as Unicode scalars.
    @inlinable
    public var unicodeScalars: AsyncUnicodeScalarSequence<Self> { AsyncUnicodeScalarSequence(self) }
}
