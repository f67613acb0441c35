// SPDX-License-Identifier: Apache-2.0

/// The characters of a sequence of UTF-8 bytes: extended grapheme clusters, as in `String`.
///
/// A character is delivered when the next scalar has arrived, because only the next scalar shows that the character is complete.
/// Ill-formed UTF-8 becomes U+FFFD.
@frozen
public struct AsyncCharacterSequence<Base: AsyncSequence>: AsyncSequence where Base.Element == UInt8 {
    /// A character.
    public typealias Element = Character
    /// The error that the byte sequence throws.
    public typealias Failure = Base.Failure

    @usableFromInline
    let scalars: AsyncUnicodeScalarSequence<Base>

    /// Makes a sequence of the characters in a sequence of bytes.
    @inlinable
    public init(_ base: Base) { scalars = AsyncUnicodeScalarSequence(base) }

    /// Makes an iterator over the characters.
    ///
    /// - Returns: The iterator.
    @inlinable
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(scalars.makeAsyncIterator()) }

    /// Reads scalars up to the end of a character.
    @frozen
    public struct AsyncIterator: AsyncIteratorProtocol {
        @usableFromInline
        var scalars: AsyncUnicodeScalarSequence<Base>.AsyncIterator
        /// The scalars of the current character.
        @usableFromInline
        var cluster = String.UnicodeScalarView()
        /// Determines in constant time whether a scalar begins a character.
        @usableFromInline
        var recognizer = Unicode._CharacterRecognizer()

        @inlinable
        init(_ scalars: AsyncUnicodeScalarSequence<Base>.AsyncIterator) { self.scalars = scalars }

        /// The next character, or nil at the end.
        ///
        /// - Returns: The character, or nil.
        /// - Throws: The error that the byte sequence throws.
        @inlinable
        public nonisolated(nonsending) mutating func next() async throws(Base.Failure) -> Character? {
            try await next(isolation: #isolation)
        }

        /// The next character, or nil at the end.
        ///
        /// - Returns: The character, or nil.
        /// - Throws: The error that the byte sequence throws.
        @inlinable
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(Base.Failure) -> Character? {
            while let scalar = try await scalars.next(isolation: actor) {
                guard recognizer.hasBreak(before: scalar), !cluster.isEmpty else {
                    cluster.append(scalar)
                    continue
                }
                let finished = cluster
                cluster = String.UnicodeScalarView()
                cluster.append(scalar)
                return Character(String(finished))
            }
            guard !cluster.isEmpty else { return nil }
            defer { cluster = String.UnicodeScalarView() }
            return Character(String(cluster))
        }
    }
}

extension AsyncCharacterSequence: Sendable where Base: Sendable {}

extension AsyncSequence where Element == UInt8 {
    /// The bytes as characters.
    @inlinable
    public var characters: AsyncCharacterSequence<Self> { AsyncCharacterSequence(self) }
}
