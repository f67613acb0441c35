// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// A content coding that a C library of the system decodes.
///
/// This module does not know which libraries exist; the creator of a ``ContentDecoder`` passes them.
package struct LibraryCoding: Sendable {
    /// The result of one call of a ``Decode`` function.
    package struct Step: Sendable, Hashable {
        package enum Outcome: Sendable, Hashable {
            case continues
            /// The stream, or the frame, has ended.
            case isOver
            case failed(DecodingFailure)
        }

        package var read: Int
        package var written: Int
        package var outcome: Outcome

        package init(read: Int, written: Int, outcome: Outcome) {
            self.read = read
            self.written = written
            self.outcome = outcome
        }
    }

    /// Decodes one body: reads enough input to fill the output space, or all of the input.
    ///
    /// If a call fills the space, there may be more output even without more input. If a call does not fill the space, it may still
    /// leave input for the next call, because it stops when decoding takes a long time.
    package typealias Decode = (_ input: UnsafeRawBufferPointer, _ room: UnsafeMutableRawBufferPointer) -> Step

    /// What the bytes are at a place where a frame may start; frames can be concatenated, like gzip members.
    package enum Start: Sendable {
        /// The bytes are too few to classify.
        case isTooShort
        case frame
        /// The bytes start no frame: at the start of a body this is an error; after a frame they are ignored.
        case other
    }

    /// The name in `Content-Encoding` and `Accept-Encoding`, in lower case.
    package let name: String
    /// Classifies the start of a body; called with at least one byte.
    let first: @Sendable (ByteBufferView) -> Start
    /// Classifies the bytes after a frame.
    let next: @Sendable (ByteBufferView) -> Start
    /// Whether calls may take longer than a turn of an event loop, for a body that starts with this byte.
    let isSlow: @Sendable (UInt8) -> Bool
    /// Makes the decoder for a body from the body's first bytes; returns nil if there is not enough memory.
    let makeDecoder: @Sendable (ByteBufferView) -> Decode?

    init(
        name: String, first: @escaping @Sendable (ByteBufferView) -> Start, next: @escaping @Sendable (ByteBufferView) -> Start,
        isSlow: @escaping @Sendable (UInt8) -> Bool = { _ in false },
        makeDecoder: @escaping @Sendable (ByteBufferView) -> Decode?
    ) {
        self.name = name
        self.first = first
        self.next = next
        self.isSlow = isSlow
        self.makeDecoder = makeDecoder
    }

    /// - Parameters:
    ///   - name: The coding's name.
    ///   - isFrame: Whether these four bytes, in little-endian order, start a frame; nil if a body is one stream that cannot be
    ///     recognized by its start.
    ///   - isSlow: Whether calls may take longer than a turn of an event loop, for a body that starts with this byte.
    ///   - makeDecoder: Makes the decoder for one body; returns nil if there is not enough memory.
    package init(
        name: String, isFrame: (@Sendable (UInt32) -> Bool)? = nil, isSlow: @escaping @Sendable (UInt8) -> Bool = { _ in false },
        makeDecoder: @escaping @Sendable () -> Decode?
    ) {
        let read = isFrame.map { isFrame in
            { @Sendable (bytes: ByteBufferView) -> Start in
                guard bytes.count >= 4 else { return .isTooShort }
                return isFrame(bytes.prefix(4).reversed().reduce(0) { $0 << 8 | UInt32($1) }) ? .frame : .other
            }
        }
        self.init(name: name, first: read ?? { _ in .frame }, next: read ?? { _ in .other }, isSlow: isSlow) { _ in makeDecoder()
        }
    }
}
