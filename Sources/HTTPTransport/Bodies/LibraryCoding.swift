//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// A content coding that a C library of the system undoes.
///
/// Which libraries there are is not for this room to know: whoever makes a ``ContentDecoder`` says it.
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

    /// As `Content-Encoding` and `Accept-Encoding` have it, in lower case.
    package let name: String
    /// Whether a frame begins with these four bytes, the first in the lowest place; nil where a body is one stream and not told by its
    /// beginning.
    ///
    /// Frames may follow each other, as members of gzip do.
    let isFrame: (@Sendable (UInt32) -> Bool)?
    /// Whether calls may take longer than a turn of an event loop, all the same, for a body that begins with this byte.
    let isSlow: @Sendable (UInt8) -> Bool
    /// Nil where there is no memory.
    let makeDecoder: @Sendable () -> Decode?

    package init(
        name: String, isFrame: (@Sendable (UInt32) -> Bool)? = nil, isSlow: @escaping @Sendable (UInt8) -> Bool = { _ in false },
        makeDecoder: @escaping @Sendable () -> Decode?
    ) {
        self.name = name
        self.isFrame = isFrame
        self.isSlow = isSlow
        self.makeDecoder = makeDecoder
    }
}
