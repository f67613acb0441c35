//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// An action of a ``ScriptedServer`` on a connection.
///
/// Effects are performed in order, each after the previous one is done.
package enum SocketEffect: Sendable {
    /// Writes bytes and waits until the socket has accepted them.
    case write([UInt8])
    /// Writes bytes one at a time, each in a separate segment.
    case writeSlowly([UInt8])
    /// Writes a chunk repeatedly, each time after the socket has accepted the previous one; `Int.max` means until the client
    /// disconnects.
    case `repeat`([UInt8], count: Int)
    /// Waits until the connection has received this many bytes of any kind.
    case awaitBytes(Int)
    /// Waits until the client has sent this many bytes of the request's body.
    case awaitBody(Int)
    /// Waits until the request is complete.
    case awaitRequestEnd
    /// Waits until the test opens the gate; the test can wait for this point with ``ScriptedServer/reached(_:times:)``.
    case gate(String)
    /// Records that this point was reached, and continues.
    case reach(String)
    /// Waits for the given time, to test timeouts that restart when data arrives.
    case pause(milliseconds: Int64)
    /// Does nothing more until the client closes the connection.
    case stall
    /// Closes the connection, after sending close_notify if it uses TLS.
    case close
    /// Closes the connection, without sending close_notify even if it uses TLS.
    case closeAbruptly
    /// Closes the server's sending side, and continues to read.
    case shutdownOutput
    /// Closes the connection with a TCP reset.
    case reset
    /// Stops reading, so that the client's send buffer fills.
    case stopReading
    case startReading
    /// From now on, parses the client's bytes as WebSocket frames rather than requests; ``ScriptedServer/frames(on:)`` returns
    /// them.
    case readFrames
    /// Waits until this many frames have arrived.
    case awaitFrames(Int)

    package static func write(_ text: String) -> SocketEffect { .write(Array(text.utf8)) }
    package static func writeSlowly(_ text: String) -> SocketEffect { .writeSlowly(Array(text.utf8)) }
    package static func endlessly(_ text: String) -> SocketEffect { .repeat(Array(text.utf8), count: .max) }
}
