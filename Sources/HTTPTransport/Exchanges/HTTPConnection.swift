//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import HTTPRules
package import HTTPWire
package import LoadingModel
package import NIOCore

/// A connection that stands, whatever version of HTTP it speaks: what the pool and the loads need of it.
///
/// It carries exchanges: HTTP/1.1 one at a time, HTTP/2 as many as the server allows. A protocol that takes the connection over carries
/// one, and is not kept. Confined to the channel's event loop, which is the session's.
package protocol HTTPConnection: AnyObject {
    var id: Int { get }
    var facts: ConnectionFacts { get }
    /// Told when an exchange is over, and when the connection is; let go then.
    var pool: ConnectionPool? { get set }
    /// How many exchanges it may carry until the server says how many; nil where that is one, and stays so.
    var initialCapacity: Int? { get }
    var channelIsActive: Bool { get }
    /// Carries no exchange.
    var isIdle: Bool { get }
    /// Whether the peer has closed the connection, though its loop was not told yet: asks the socket, for requests that would be lost.
    var isGone: Bool { get }

    /// Whether its peer has said that CONNECT may name a protocol (RFC 8441).
    var allowsExtendedConnect: Bool { get }

    /// What a load is told whose request was not begun here, as the connection is over.
    var evidenceBeforeRequest: RetryEvidence { get }

    /// Starts an exchange on a connection that is leased; nothing is written when the head is refused.
    ///
    /// The fields that frame the message are the connection's to add.
    func begin(_ message: OutgoingMessage, control: LoadControl) throws(LoadError) -> Exchange
    /// The head of a message as it is sent, with the fields that frame it.
    func framedHead(of message: OutgoingMessage) -> RequestHead
    /// Closes a connection that carries no exchange; who has it leased gives it back to the pool all the same.
    func close()
    /// Its peer has closed it: it is for no more exchanges; those that it carries may have their answers yet.
    func giveUp()
    /// The network went away under the connection, or is not to be used any more.
    func networkIsLost(_ error: LoadError)
}

/// What carries one exchange, as the exchange sees it: an HTTP/1.1 connection, or a stream of an HTTP/2 connection.
package protocol ExchangeCarrier: AnyObject {
    /// Lets go of an exchange before its end.
    func abandon(_ exchange: Exchange)
    /// Whether more of the body is to come; told whenever some of it came, or was taken.
    func setReading(_ wanted: Bool, for exchange: Exchange)
    /// Much of a body was read at a time, and the last of it lies in that piece; answers whether the next read brings much, too.
    func readMuch(of exchange: Exchange, endingIn piece: ByteBuffer?) -> Bool
    /// The app suspended or resumed the task: what is being sent stops and goes on as well.
    func suspensionChanged(of exchange: Exchange)
    /// The app gave the task another priority.
    func priorityChanged(_ priority: Float, of exchange: Exchange)
    /// Stops reading, and lends the channel to whoever takes the body from its socket; nil where that cannot be.
    func beginBypass(of exchange: Exchange) -> (any Channel)?
    /// So many bytes of the body went past; the exchange goes on here.
    func endBypass(of exchange: Exchange, moved: Int64)
    /// Whether there can be a bypass.
    var mayBypass: Bool { get }
    /// How many bytes that the socket was given its peer has not acknowledged; zero where that cannot be told.
    var unacknowledgedBytes: Int64 { get }
    /// Whether the peer takes more of what is written once the protocol was switched; its load is woken when that becomes true.
    var isWritable: Bool { get }
    /// Sends bytes of the protocol that was switched to.
    ///
    /// `written` is called on the loop, perhaps at once: with true when the system has all of them.
    func write(_ bytes: ByteBuffer, for exchange: Exchange, written: @escaping (Bool) -> Void)
    /// Hands the connection over to who reads and writes bytes from here on; nil where it is not the exchange's alone.
    func handOver(_ exchange: Exchange) -> ByteStreamConnection?
    /// The protocol that was switched to is over: lets go of the exchange, and leaves it to the peer to end the connection for a while.
    func linger(for exchange: Exchange, _ patience: TimeAmount)
}

extension ExchangeCarrier {
    package func handOver(_ exchange: Exchange) -> ByteStreamConnection? { nil }
}

/// A request as a connection is given it: what is the same in each version of HTTP.
package struct OutgoingMessage {
    /// Without fields that frame the message or govern the connection.
    package var head: RequestHead
    package var body: OutgoingBody
    /// Whether the body waits for 100 (Continue), for a while.
    package var expectsContinue: Bool
    /// The task's, from 0 to 1.
    package var priority: Float
    /// It asks to switch to WebSocket: by `Upgrade` (RFC 9110, section 7.8), after which the connection is the exchange's until its end, or
    /// by a CONNECT that names the protocol (RFC 8441), after which the stream is.
    package var asksToSwitch: Bool

    /// The `:protocol` of a CONNECT that names one.
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

/// Which version of HTTP an exchange went by.
package enum HTTPVersion: Sendable, Hashable {
    case http1
    case http2

    /// As ALPN names it, and metrics do.
    package var name: String {
        switch self {
        case .http1: "http/1.1"
        case .http2: "h2"
        }
    }
}
