// SPDX-License-Identifier: Apache-2.0

import CLoadingSystem
package import HTTPRules
package import HTTPWire
package import LoadingModel
package import NIOCore

/// An established connection of any version of HTTP, as the pool and the loads see it.
///
/// HTTP/1.1 carries one exchange at a time, HTTP/2 as many as the server allows. After a protocol switch, an HTTP/1.1 connection
/// belongs to one exchange, and is not reused. Confined to the channel's event loop, which is the session's.
package protocol HTTPConnection: AnyObject {
    var id: Int { get }
    var facts: ConnectionFacts { get }
    /// Nil if the connection does not use TLS with the server.
    var keptChain: KeptChain? { get }
    /// The pool, which is notified when an exchange or the connection ends; released when the connection ends.
    var pool: ConnectionPool? { get set }
    /// The number of concurrent exchanges until the server announces a limit; nil if the connection carries one exchange at a time.
    var initialCapacity: Int? { get }
    var channelIsActive: Bool { get }
    /// Whether the connection carries no exchange.
    var isIdle: Bool { get }
    /// Whether the peer has closed the connection, even if the loop has not noticed that yet.
    ///
    /// Reading the property polls the socket; it is meant for requests that must not be lost.
    var isGone: Bool { get }
    /// Whether the server's limit allows another exchange: it may have been lowered since the connection was leased.
    var allowsExchange: Bool { get }

    /// Whether requests to other hosts for which the server's certificate is valid may use the connection (RFC 9113, section
    /// 9.1.1).
    var servesOtherHosts: Bool { get }

    /// Whether the server has answered a request on this connection, if the connection is shared.
    var hasAnswered: Bool { get }

    /// Whether the peer has announced support for extended CONNECT (RFC 8441).
    var allowsExtendedConnect: Bool { get }

    /// The evidence for a load whose request was not started on this connection because the connection has ended.
    var evidenceBeforeRequest: RetryEvidence { get }

    /// Starts an exchange on a leased connection, or throws without having written anything.
    ///
    /// The connection adds the fields that frame the message.
    func begin(_ message: OutgoingMessage, control: LoadControl) throws(LoadError) -> Exchange
    /// Returns the head of a message as it is sent, with the fields that frame the message.
    func framedHead(of message: OutgoingMessage) -> RequestHead
    /// Closes a connection without exchanges; a leased connection must still be returned to the pool.
    func close()
    /// Stops new exchanges because the peer has closed the connection; current exchanges may still get their responses.
    func giveUp()
    /// Handles a new network address, which may lead to the peer on a better route than this connection, which is in use.
    func findBetterRoute()
    /// Ends the connection because its network is gone, or may no longer be used.
    func networkIsLost(_ error: LoadError)
}

extension HTTPConnection {
    package var allowsExchange: Bool { true }
    package var servesOtherHosts: Bool { false }
    package var hasAnswered: Bool { false }
    package func findBetterRoute() {}
}

/// The carrier of one exchange: an HTTP/1.1 connection, or a stream of an HTTP/2 connection.
package protocol ExchangeCarrier: AnyObject {
    /// Abandons an exchange before its end.
    func abandon(_ exchange: Exchange)
    /// Sets whether bytes that are not sent when the exchange is abandoned are dropped, instead of being sent before the connection
    /// ends.
    func dropUnsent(_ drops: Bool, of exchange: Exchange)
    /// Sets whether to read more of the body; called whenever some of the body arrived, or was taken.
    func setReading(_ wanted: Bool, for exchange: Exchange)
    /// Notes a large read of a body, whose last bytes so far are in `piece`; returns whether the next read will be large, too.
    func noteLargeRead(of exchange: Exchange, endingIn piece: ByteBuffer?) -> Bool
    /// Stops or resumes sending after the app suspended or resumed the task.
    func suspensionChanged(of exchange: Exchange)
    /// Applies the task's new priority.
    func priorityChanged(_ priority: Float, of exchange: Exchange)
    /// Stops reading, and lends the channel to a pump, which reads the body from the channel's socket; returns nil if that is
    /// impossible.
    func beginBypass(of exchange: Exchange) -> (any Channel)?
    /// Continues the exchange on this connection after a pump has moved `moved` bytes of the body.
    func endBypass(of exchange: Exchange, moved: Int64)
    /// Whether a bypass is possible.
    var mayBypass: Bool { get }
    /// The number of bytes that were sent on the socket but that the peer has not acknowledged yet; zero if unknown.
    var unacknowledgedBytes: Int64 { get }
    /// Whether more bytes can be written after a protocol switch; the load is woken when that becomes true.
    var isWritable: Bool { get }
    /// Sends bytes of the protocol that was switched to.
    ///
    /// `written` is called on the loop, possibly before this method returns: with true after the system has accepted all bytes, and
    /// with false if they cannot be sent.
    func write(_ bytes: ByteBuffer, for exchange: Exchange, written: @escaping (Bool) -> Void)
    /// Hands the connection over as a byte stream; returns nil if that is impossible, as with a shared connection.
    func handOver(_ exchange: Exchange) -> ByteStreamConnection?
    /// Ends the switched protocol, and closes the connection or stream if the peer does not do so within `patience`.
    func linger(for exchange: Exchange, _ patience: TimeAmount)
}

extension ExchangeCarrier {
    package func handOver(_ exchange: Exchange) -> ByteStreamConnection? { nil }
    /// Has no effect on a stream, whose reset drops them.
    package func dropUnsent(_ drops: Bool, of exchange: Exchange) {}
}

/// A request as passed to a connection, independent of the HTTP version.
package struct OutgoingMessage {
    /// The head, without fields that frame the message or govern the connection.
    package var head: RequestHead
    package var body: OutgoingBody
    /// Whether to wait for 100 (Continue) before sending the body, with a timeout.
    package var expectsContinue: Bool
    /// The priority of the task, from 0 to 1.
    package var priority: Float
    /// Whether the request asks to switch to WebSocket.
    ///
    /// An HTTP/1.1 request asks with `Upgrade` (RFC 9110, section 7.8); the connection then belongs to the exchange until the
    /// connection ends. An HTTP/2 request asks with a CONNECT that names the protocol (RFC 8441); the stream then belongs to the
    /// exchange.
    package var asksToSwitch: Bool

    /// The value of `:protocol` in an extended CONNECT request (RFC 8441); nil for other requests.
    var protocolName: StaticString? { isExtendedConnect ? "websocket" : nil }
    package var isExtendedConnect: Bool { asksToSwitch && head.method == "CONNECT" }

    package init(
        head: RequestHead, body: OutgoingBody = .none, expectsContinue: Bool = false, priority: Float = 0.5,
        asksToSwitch: Bool = false
    ) {
        self.head = head
        self.body = body
        self.expectsContinue = expectsContinue
        self.priority = priority
        self.asksToSwitch = asksToSwitch
    }
}

/// What the kernel knows of a connection's socket at this moment.
struct SocketState: OptionSet {
    let rawValue: CInt

    static let isReadable = SocketState(rawValue: CInt(cls_is_readable))
    /// The peer has closed or reset the connection.
    static let hasEnded = SocketState(rawValue: CInt(cls_has_ended))

    init(rawValue: CInt) { self.rawValue = rawValue }

    /// Polls the socket; the state is empty if there is no socket, or it cannot be polled.
    init(of context: ChannelHandlerContext) {
        let found = try? context.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
            cls_look($0)
        }
        rawValue = max(0, found.flatMap { $0 } ?? 0)
    }
}
