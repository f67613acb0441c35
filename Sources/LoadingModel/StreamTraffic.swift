//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import FoundationEssentials

/// What a stream task's load is told before it begins.
package struct StreamOrder: Sendable {
    /// A name or an address; an IPv6 address without brackets.
    package let host: String
    package let port: Int
    /// What the app said before the load began, in its order.
    package var queued: [StreamCommand] = []

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }
}

/// What the app says on a byte stream; reads and writes have numbers of the client's own.
package enum StreamCommand: Sendable {
    /// Reads at least `minimum` bytes, unless the stream ends before, and `maximum` at most; nil `timeout` waits as long as it takes, in
    /// seconds.
    case read(Int, minimum: Int, maximum: Int, timeout: Double?)
    case write(Int, Data, timeout: Double?)
    /// Closes the reading side behind the reads that were asked for before.
    case closeRead
    /// Refuses the reads that wait, and closes the reading side.
    case stopReading
    /// Closes the writing side behind the writes that were asked for before.
    case closeWrite
    /// Begins TLS behind all that was asked for before.
    case secure
    /// Says ``StreamEvent/captured`` when all that was asked for before is done.
    case capture
}

/// What comes of a byte stream, in order.
package enum StreamEvent: Sendable {
    /// What a read came to; nil data at the end of the stream where there was none left.
    case read(Int, Data?, isAtEnd: Bool)
    case wrote(Int)
    /// A read or write came to nothing, and the stream may go on.
    case failed(Int, LoadError)
    /// Nothing more can be read: the peer has ended its side, or the app closed this one.
    case readClosed
    case writeClosed
    /// A network came up by which the peer may be reached better.
    case foundBetterRoute
    case captured
}
