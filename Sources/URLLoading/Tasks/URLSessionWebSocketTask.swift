//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation
internal import LoadingModel
internal import Synchronization

/// A task that exchanges messages over the WebSocket protocol (RFC 6455), as Apple's `URLSessionWebSocketTask`.
///
/// The task is made with a `ws` or `wss` URL, and connects once it is resumed; what is sent before waits for the handshake. Its cookies,
/// credentials, redirects and trust are those of a load of `http` or `https`. Messages that the app does not receive are left with the
/// server after about 1.5 MB, and what the server does not read waits with ``send(_:)``. The request's timeout is that of the handshake.
///
/// When the connection is over, calls that wait fail: with the task's error where it has one, and with `networkConnectionLost` where the
/// closing handshake took place. A server that breaks the protocol is `badServerResponse`, a message beyond ``maximumMessageSize``
/// `dataLengthExceedsMaximum`.
///
/// Background sessions have no such tasks: there it fails with `unsupportedURL` once it is resumed.
open class URLSessionWebSocketTask: URLSessionTask, @unchecked Sendable {
    /// What one side sends to the other, whole.
    public enum Message: Sendable {
        /// Bytes, in a binary message.
        case data(Data)
        /// A text, in UTF-8 on the wire.
        case string(String)
    }

    /// Why a connection was closed (RFC 6455, section 7.4).
    ///
    /// On Apple's platforms, the type also takes numbers that have no name, as those from 3000 to 4999 are for apps and frameworks to give a
    /// meaning to; here these are ``other(_:)``.
    public enum CloseCode: RawRepresentable, Hashable, Sendable {
        /// The connection is not closed.
        case invalid
        /// What the connection was for is done (1000).
        case normalClosure
        /// One side goes away: a server that stops, a page that is left (1001).
        case goingAway
        /// The other side broke the protocol (1002).
        case protocolError
        /// A message is of a kind that is not taken (1003).
        case unsupportedData
        /// The close frame had no code; never sent.
        case noStatusReceived
        /// The connection ended without a close frame; never sent.
        case abnormalClosure
        /// A message is not what its kind says: text that is not UTF-8 (1007).
        case invalidFramePayloadData
        /// A message breaks a rule of the one that closes (1008).
        case policyViolation
        /// A message is larger than is taken (1009).
        case messageTooBig
        /// The server did not agree to an extension that was needed (1010).
        case mandatoryExtensionMissing
        /// Something went wrong in the server (1011).
        case internalServerError
        /// Never sent.
        case tlsHandshakeFailure
        /// A code that has no name above.
        case other(Int)

        private static let named: [Int: CloseCode] = [
            0: .invalid, 1000: .normalClosure, 1001: .goingAway, 1002: .protocolError, 1003: .unsupportedData,
            1005: .noStatusReceived, 1006: .abnormalClosure, 1007: .invalidFramePayloadData, 1008: .policyViolation,
            1009: .messageTooBig, 1010: .mandatoryExtensionMissing, 1011: .internalServerError, 1015: .tlsHandshakeFailure,
        ]

        /// The code that stands for a number; ``other(_:)`` where it has no name.
        public init?(rawValue: Int) { self = Self.named[rawValue] ?? .other(rawValue) }

        /// The number, as it is in close frames.
        public var rawValue: Int {
            switch self {
            case .invalid: 0
            case .normalClosure: 1000
            case .goingAway: 1001
            case .protocolError: 1002
            case .unsupportedData: 1003
            case .noStatusReceived: 1005
            case .abnormalClosure: 1006
            case .invalidFramePayloadData: 1007
            case .policyViolation: 1008
            case .messageTooBig: 1009
            case .mandatoryExtensionMissing: 1010
            case .internalServerError: 1011
            case .tlsHandshakeFailure: 1015
            case .other(let code): code
            }
        }
    }

    let calls = Mutex(WebSocketCalls())
    private let queue: OperationQueue?

    /// Makes a task that belongs to no session and does nothing, for programs that put objects of their own in place of tasks.
    public override init() {
        queue = nil
        super.init()
        _ = calls.withLock { $0.end(with: URLError(.cancelled), inOrder: false) }
    }

    init(session: URLSession, identifier: Int, request: URLRequest, protocols: [String]) {
        queue = session.delegateQueue
        super.init(
            session: session, identifier: identifier, request: request,
            delivery: .webSocket(WebSocketOrder(maximumMessageSize: Self.defaultMaximumMessageSize, protocols: protocols)),
            audience: .delegate)
    }

    private static let defaultMaximumMessageSize = 1_048_576

    private func onDelegateQueue(_ work: @escaping @Sendable () -> Void) {
        if let queue { queue.addOperation(work) } else { work() }
    }

    // MARK: Messages

    /// Sends a message behind those that were sent before.
    ///
    /// The handler is called on the delegate queue, once the message was handed to the system, or could not be sent; no answer of the
    /// server's is waited for.
    open func send(_ message: Message, completionHandler: @escaping @Sendable ((any Error)?) -> Void) {
        say(.send(message.traffic)) {
            $0.sends.append(.handler(completionHandler))
        } refused: { error in
            onDelegateQueue { completionHandler(error) }
        }
    }

    /// Sends a message behind those that were sent before, and returns once it was handed to the system.
    ///
    /// - Throws: A `URLError` where the connection is over, or the task was given up.
    open nonisolated(nonsending) func send(_ message: Message) async throws {
        try await withUnsafeThrowingContinuation { (continuation: UnsafeContinuation<Void, any Error>) in
            say(.send(message.traffic)) {
                $0.sends.append(.caller(continuation))
            } refused: {
                continuation.resume(throwing: $0)
            }
        }
    }

    /// Receives the next message, once it is complete; the handler is called on the delegate queue.
    ///
    /// Each call receives one message, in the order of the calls.
    open func receive(completionHandler: @escaping @Sendable (Result<Message, any Error>) -> Void) {
        switch calls.withLock({ $0.receive(.handler(completionHandler)) }) {
        case nil: break
        case .message(let message, let credit):
            consumed(credit)
            onDelegateQueue { completionHandler(.success(Message(message))) }
        case .over(let error): onDelegateQueue { completionHandler(.failure(error)) }
        }
    }

    /// Receives the next message, once it is complete.
    ///
    /// Where the calling Swift task is cancelled, the call ends with `CancellationError`, and the message is the next call's.
    ///
    /// - Returns: The message.
    /// - Throws: A `URLError` where the connection is over, or the task was given up.
    open nonisolated(nonsending) func receive() async throws -> Message {
        // What is here needs no way to withdraw.
        if !Task.isCancelled, let received = calls.withLock({ $0.receive() }) {
            switch received {
            case .message(let message, let credit):
                consumed(credit)
                return Message(message)
            case .over(let error): throw error
            }
        }
        let ticket = WebSocketCalls.Ticket()
        let message = try await withTaskCancellationHandler {
            try await withUnsafeThrowingContinuation { continuation in
                switch calls.withLock({ $0.receive(.caller(continuation, ticket)) }) {
                case nil: break
                case .message(let message, let credit):
                    consumed(credit)
                    continuation.resume(returning: message)
                case .over(let error): continuation.resume(throwing: error)
                }
            }
        } onCancel: {
            calls.withLock { $0.withdraw(ticket) }?.resume(throwing: CancellationError())
        }
        return Message(message)
    }

    /// Sends a ping; the handler is called on the delegate queue, when its pong came or will not come.
    ///
    /// Handlers are called in the order of the pings.
    open func sendPing(pongReceiveHandler: @escaping @Sendable ((any Error)?) -> Void) {
        say(.ping) {
            $0.pings.append(.handler(pongReceiveHandler))
        } refused: { error in
            onDelegateQueue { pongReceiveHandler(error) }
        }
    }

    // MARK: The end

    /// Sends a close frame behind the messages that were sent before, and ends the task once the server has answered it, or after five
    /// seconds.
    ///
    /// Where the handshake is not over, the task is cancelled.
    ///
    /// - Parameters:
    ///   - closeCode: Why. One that may not be sent (`invalid`, 1004, 1005, 1006, 1015 and those that are not defined) is left out.
    ///   - reason: A text in UTF-8, of which 123 bytes are sent at most.
    open func cancel(with closeCode: CloseCode, reason: Data?) {
        closeLoad(code: UInt16(exactly: closeCode.rawValue), reason: reason ?? Data())
    }

    /// Why the connection was closed: `invalid` until it is.
    open var closeCode: CloseCode { calls.withLock { CloseCode(rawValue: Int($0.closeCode)) ?? .invalid } }

    /// What the server said when it closed the connection, in UTF-8; nil where it said nothing, or has not closed it.
    open var closeReason: Data? { calls.withLock { $0.closeReason } }

    // MARK: Options

    /// The largest message that is received, in bytes after decoding; default 1,048,576 (1 MiB).
    ///
    /// A larger one fails the task, and all calls that wait, with `dataLengthExceedsMaximum`; the server is told so (1009).
    open var maximumMessageSize: Int {
        get { mutex.withLock { $0.webSocket?.maximumMessageSize ?? 0 } }
        set { setMaximumMessageSize(max(newValue, 0)) }
    }

    /// Whether the task offers to compress messages (permessage-deflate, RFC 7692); default false.
    ///
    /// Apple does not have it. A connection that compresses takes up to 300 KiB of memory, and who sees the length of messages that hold both a secret and text of
    /// somebody else's may find the secret out. Takes effect when set before the task is first resumed.
    open var offersCompression: Bool {
        get { mutex.withLock { $0.webSocket?.offersCompression ?? false } }
        set { changeOrder { $0.offersCompression = newValue } }
    }

    /// Seconds between pings of the task's own; nil, the default, sends none.
    ///
    /// Apple does not have it. A server that leaves one unanswered until the next is due is taken for dead, and the task fails with `timedOut`. Takes effect when set
    /// before the task is first resumed.
    open var pingInterval: TimeInterval? {
        get { mutex.withLock { $0.webSocket?.pingInterval } }
        set { changeOrder { $0.pingInterval = newValue } }
    }

    // MARK: What the load tells

    override func heard(_ event: WebSocketEvent, isOnDelegateQueue: Bool) {
        let queue = isOnDelegateQueue ? nil : queue
        let wakes = calls.withLock { $0.heard(event) }
        wakes.run(on: queue)
        // No message follows, though the connection may stand for a while.
        if case .closed = event { calls.withLock { $0.end(with: closed(), inOrder: true) }.run(on: queue) }
        consumed(wakes.credit)
    }

    override func loadEnded(_ error: (any Error)?) {
        calls.withLock { $0.end(with: error ?? closed(), inOrder: error == nil) }.run(on: queue)
    }
}
