//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import NIOCore

/// A content coding that a C library of the system undoes.
///
/// Which libraries there are is not for this room to know: who makes a ``ContentDecoder`` says it.
package struct LibraryCoding: Sendable {
    /// What a call came to.
    package struct Step: Sendable, Hashable {
        package enum Outcome: Sendable, Hashable {
            case goesOn
            /// The stream is over, or the frame.
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

    /// Decodes one body: reads what is needed to fill the room, or all there is.
    ///
    /// Where it has filled the room there may be more, without more to read; where not, it may have left something for the next call, as it
    /// gives up for now when that takes long.
    package typealias Decode = (_ input: UnsafeRawBufferPointer, _ room: UnsafeMutableRawBufferPointer) -> Step

    /// What bytes are with which a frame would begin: frames may follow each other, as members of gzip do.
    package enum Start: Sendable {
        /// Too few to tell.
        case isShort
        case frame
        /// Of a body an error; behind a frame it is ignored.
        case other
    }

    /// As `Content-Encoding` and `Accept-Encoding` have it, in lower case.
    package let name: String
    /// What a body begins with; it is asked when there is a byte at least.
    let first: @Sendable (ByteBufferView) -> Start
    /// What follows a frame.
    let next: @Sendable (ByteBufferView) -> Start
    /// Whether calls may take longer than a turn of an event loop, all the same, for a body that begins with this byte.
    let isSlow: @Sendable (UInt8) -> Bool
    /// Given what the body begins with; nil where there is no memory.
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
    ///   - isFrame: Whether a frame begins with these four bytes, the first in the lowest place; nil where a body is one stream and not
    ///     told by its beginning.
    ///   - isSlow: Whether calls may take longer than a turn of an event loop, for a body that begins with this byte.
    ///   - makeDecoder: Nil where there is no memory.
    package init(
        name: String, isFrame: (@Sendable (UInt32) -> Bool)? = nil, isSlow: @escaping @Sendable (UInt8) -> Bool = { _ in false },
        makeDecoder: @escaping @Sendable () -> Decode?
    ) {
        let read = isFrame.map { isFrame in
            { @Sendable (bytes: ByteBufferView) -> Start in
                guard bytes.count >= 4 else { return .isShort }
                return isFrame(bytes.prefix(4).reversed().reduce(0) { $0 << 8 | UInt32($1) }) ? .frame : .other
            }
        }
        self.init(name: name, first: read ?? { _ in .frame }, next: read ?? { _ in .other }, isSlow: isSlow) { _ in makeDecoder()
        }
    }
}
