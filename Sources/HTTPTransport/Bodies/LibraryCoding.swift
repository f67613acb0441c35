//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import NIOCore

/// A content coding that a C library of the system decodes.
///
/// This module does not know which libraries exist; the creator of a ``ContentDecoder`` passes them.
package struct LibraryCoding: Sendable {
    /// The result of a call.
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

    /// Classifies the first bytes of a frame: frames may be concatenated, like gzip members.
    package enum Start: Sendable {
        /// The bytes are too few to classify.
        case isTooShort
        case frame
        /// The bytes start no frame: an error at the start of a body; ignored after a frame.
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
    /// Called with the start of the body; returns nil if there is no memory.
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
    ///   - makeDecoder: Returns nil if there is no memory.
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
