//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import NIOCore

/// Undoes one coding of a body, a piece at a time.
protocol CodingStage: AnyObject {
    /// Whatever else comes is ignored.
    var isOver: Bool { get }
    /// Whether the body may end after what was fed.
    var mayEndHere: Bool { get }
    var consumed: Int64 { get }
    var produced: Int64 { get }

    /// Whether ``produce(upTo:)`` may take longer than a turn of an event loop.
    var isSlow: Bool { get }

    /// Gives it more to decode; only when ``produce(upTo:)`` answered nil.
    func feed(_ more: ByteBuffer)

    /// Decodes up to `count` bytes; nil when it needs more input, or none.
    ///
    /// Nothing, where that took long and nothing came of it so far.
    func produce(upTo count: Int) throws(DecodingFailure) -> ByteBuffer?
}

extension CodingStage {
    var isSlow: Bool { false }
}
