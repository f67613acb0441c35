// SPDX-License-Identifier: Apache-2.0

/// An action of a ``ScriptedServer`` on a connection.
///
/// Effects are performed in order, each after the previous one is done. Effects that send bytes or read WebSocket frames need
/// HTTP/1.1; all others mean the same over every ``ScriptedVersion``. There, closing means the whole connection, and waiting
/// concerns only the request's own reply.
package enum SocketEffect: Sendable {
    package typealias Fields = [(String, String)]

    /// Sends a response's head, and content at the same time; a response with a 1xx status never ends.
    ///
    /// Over HTTP/1.1, the fields must frame the content as in any message. Over other versions, fields that are specific to
    /// HTTP/1.1's connections are left out.
    case head(Int, Fields, [UInt8], ends: Bool)
    /// Sends content, and sends it again as often as `times` says; `Int.max` means until the client disconnects.
    case content([UInt8], times: Int = 1)
    /// Ends a response.
    case end(trailers: Fields)
    /// Ends the reply before its end: closes a connection of HTTP/1.1, and resets a stream.
    case fail
    /// Sends bytes that are no message.
    case nonsense
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

    package static func head(_ status: Int, _ fields: Fields = [], _ content: String = "", ends: Bool = false) -> SocketEffect {
        .head(status, fields, Array(content.utf8), ends: ends)
    }

    package static func content(_ text: String) -> SocketEffect { .content(Array(text.utf8)) }
    package static func write(_ text: String) -> SocketEffect { .write(Array(text.utf8)) }
    package static func writeSlowly(_ text: String) -> SocketEffect { .writeSlowly(Array(text.utf8)) }
    package static func endlessly(_ text: String) -> SocketEffect { .repeat(Array(text.utf8), count: .max) }

    /// What the effect writes over HTTP/1.1 at once; nil if it writes nothing, or repeatedly.
    package var bytes: [UInt8]? {
        switch self {
        case .write(let bytes): return bytes
        case .nonsense: return Array("nonsense\r\n\r\n".utf8)
        case .head(let status, let fields, let content, let ends):
            let isChunked = ScriptedReply.isChunked(fields)
            let head = ScriptedReply.head(status, fields, reason: status == 100 ? "Continue" : "Scripted")
            return Array(head.utf8) + (content.isEmpty ? [] : ScriptedReply.framed(content, isChunked: isChunked))
                + (ends && isChunked ? ScriptedReply.lastChunk([]) : [])
        default: return nil
        }
    }
}
