//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// One thing a ``ScriptedServer`` does to a connection.
///
/// Effects are carried out in order, each when the one before is done.
package enum SocketEffect: Sendable {
    /// Writes bytes and waits until the socket took them.
    case write([UInt8])
    /// Writes bytes one at a time, each in a segment of its own.
    case writeSlowly([UInt8])
    /// Writes a chunk many times over, each when the socket took the one before; `Int.max` means until the client goes away.
    case `repeat`([UInt8], count: Int)
    /// Waits until the connection has brought as many bytes, of whatever kind.
    case awaitBytes(Int)
    /// Waits until the client has sent as many bytes of the request's body.
    case awaitBody(Int)
    /// Waits until the request has come in full.
    case awaitRequestEnd
    /// Waits until the test opens the gate; ``ScriptedServer/reached(_:times:)`` tells the test that a connection stands there.
    case gate(String)
    /// Tells the test that this point was reached, and goes on.
    case reach(String)
    /// Waits for a time, for tests of timeouts that data put off.
    case pause(milliseconds: Int64)
    /// Does nothing more until the client closes.
    case stall
    /// Closes; with TLS says so first (close_notify).
    case close
    /// Closes; with TLS without saying so.
    case closeAbruptly
    /// Ends the server's direction and goes on reading.
    case shutdownOutput
    /// Closes with a TCP reset.
    case reset
    /// Reads no more, so that the client's send buffer fills.
    case stopReading
    case startReading
    /// What comes from here on is a client's WebSocket frames, and no request; ``ScriptedServer/frames(on:)`` has them.
    case readFrames
    /// Waits until as many of these have come.
    case awaitFrames(Int)

    package static func write(_ text: String) -> SocketEffect { .write(Array(text.utf8)) }
    package static func writeSlowly(_ text: String) -> SocketEffect { .writeSlowly(Array(text.utf8)) }
    package static func endlessly(_ text: String) -> SocketEffect { .repeat(Array(text.utf8), count: .max) }
}
