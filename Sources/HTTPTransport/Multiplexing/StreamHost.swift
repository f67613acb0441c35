// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import LoadingModel
import NIOCore
import TransportMachines

/// A violation of the protocol on one stream, which ends the stream and not its connection.
struct StreamViolation {
    enum Fault {
        case malformed
        /// The server sends more than this side accepts.
        case excessive
        case flowControl
    }

    var fault: Fault
    var message: String
    var kind: LoadError.Kind

    /// Creates a violation; a malformed message counts as a response that cannot be parsed, as in HTTP/1.1.
    init(_ fault: Fault, _ message: String, kind: LoadError.Kind? = nil) {
        self.fault = fault
        self.message = message
        self.kind = kind ?? (fault == .malformed ? .cannotParseResponse : .badServerResponse)
    }
}

/// A connection that carries many exchanges, as their streams see it.
///
/// Confined to its loop, like its streams.
protocol StreamHost: AnyObject, SendableMetatype {
    associatedtype StreamID: Hashable & Sendable
    /// What the connection keeps with each stream for sending.
    associatedtype Sending
    associatedtype Outlet: StreamOutlet

    static var version: HTTPVersions { get }
    /// The initial receive window of a stream, in bytes; it grows if the load reads fast enough.
    static var streamWindow: Int { get }
    static var largestStreamWindow: Int { get }

    var loop: any EventLoop { get }
    var isOpen: Bool { get }
    var loan: WindowLoan { get set }
    var buffers: RecycledBuffers { get set }
    var bulk: BulkReading? { get }
    /// When the server last sent something, in nanoseconds.
    var lastRead: Int64 { get }
    /// An upper bound of the round-trip time, in nanoseconds.
    var roundTrip: Int64 { get }

    func makeOutlet(for stream: CarriedStream<Self>) -> Outlet
    func abandon(_ stream: CarriedStream<Self>, isLate: Bool)
    func requestCompleted(_ stream: CarriedStream<Self>)
    func priorityChanged(_ priority: Float, of stream: CarriedStream<Self>)
    /// Queues a stream that has something to send.
    func queue(_ stream: CarriedStream<Self>)
    func widenWindow(by change: Int, of stream: CarriedStream<Self>)
    /// Notes a large read of a stream's content; returns whether the next read will be large, too.
    func noteLargeRead(received: Int64, missing: Int64, now: NIODeadline) -> Bool
}

extension StreamHost {
    static var largestStreamWindow: Int { 33_554_432 }

    /// The receive window of a stream with bulk data.
    var windowOfBulk: Int { FlowControl.window(roundTrip: roundTrip, within: Self.streamWindow...Self.largestStreamWindow) }
}

/// The outlet of a stream, which holds at most one piece.
protocol StreamOutlet: BodyOutlet {
    var hasPiece: Bool { get }
    /// Sends as much of the piece as is allowed now.
    func sendMore()
    /// Drops the unsent piece.
    func discard()
    /// Notes that the piece was sent, if the connection and not the outlet sends it.
    func pieceWasSent()
}

extension StreamOutlet {
    func pieceWasSent() {}
}
