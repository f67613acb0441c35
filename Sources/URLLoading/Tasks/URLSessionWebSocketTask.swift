// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import LoadingModel
internal import Synchronization

/// A task that exchanges messages over the WebSocket protocol (RFC 6455), like Apple's `URLSessionWebSocketTask`.
///
/// The task is made with a `ws` or `wss` URL, and connects when it is resumed. Messages that the app sends before the opening
/// handshake is complete are queued. Cookies, credentials, redirects and trust work as for `http` and `https`. If the app does not
/// receive messages, the task stops reading after about 1.5 MB. If the server does not read, ``send(_:)`` waits. The request
/// timeout applies to the handshake.
///
/// When the connection ends, waiting calls fail with the task's error, or, after a closing handshake, with `networkConnectionLost`.
/// The error is `badServerResponse` if the server violates the protocol, and `dataLengthExceedsMaximum` if a message is longer than
/// ``maximumMessageSize``.
///
/// Background sessions do not support WebSocket tasks: the task fails with `unsupportedURL` when it is resumed.
open class URLSessionWebSocketTask: URLSessionTask, @unchecked Sendable {
    /// A complete message.
    public enum Message: Sendable {
        /// A binary message.
        case data(Data)
        /// A text message, sent as UTF-8.
        case string(String)
    }

    /// The reason why a connection was closed (RFC 6455, section 7.4).
    ///
    /// Apps and frameworks may define codes from 3000 to 4999. On Apple's platforms these are values without a name; here they are
    /// ``other(_:)``.
    public enum CloseCode: RawRepresentable, Hashable, Sendable {
        /// The connection is not closed.
        case invalid
        /// The purpose of the connection is fulfilled (1000).
        case normalClosure
        /// An endpoint is going away, such as a server that shuts down or a page that was left (1001).
        case goingAway
        /// The peer violated the protocol (1002).
        case protocolError
        /// A message has a type that the endpoint does not accept (1003).
        case unsupportedData
        /// The close frame had no code; never sent.
        case noStatusReceived
        /// The connection ended without a close frame; never sent.
        case abnormalClosure
        /// A message does not match its type, such as text that is not UTF-8 (1007).
        case invalidFramePayloadData
        /// A message violates the endpoint's policy (1008).
        case policyViolation
        /// A message is too large (1009).
        case messageTooBig
        /// The server did not negotiate a required extension (1010).
        case mandatoryExtensionMissing
        /// The server encountered an error (1011).
        case internalServerError
        /// The TLS handshake failed; never sent.
        case tlsHandshakeFailure
        /// Any other code.
        case other(Int)

        private static let named: [Int: CloseCode] = [
            0: .invalid, 1000: .normalClosure, 1001: .goingAway, 1002: .protocolError, 1003: .unsupportedData,
            1005: .noStatusReceived, 1006: .abnormalClosure, 1007: .invalidFramePayloadData, 1008: .policyViolation,
            1009: .messageTooBig, 1010: .mandatoryExtensionMissing, 1011: .internalServerError, 1015: .tlsHandshakeFailure,
        ]

        /// Returns the code with a number; ``other(_:)`` if the number has no name.
        public init?(rawValue: Int) { self = Self.named[rawValue] ?? .other(rawValue) }

        /// The number, as sent in close frames.
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

    /// Makes a task that belongs to no session and does nothing, for programs that mock tasks with their own subclasses.
    public override init() {
        queue = nil
        super.init()
        _ = calls.withLock { $0.end(with: URLError(.cancelled), cleanly: false) }
    }

    init(session: URLSession, identifier: Int, request: URLRequest, protocols: [String]) {
        queue = session.delegateQueue
        super.init(
            session: session, identifier: identifier, request: request,
            delivery: .webSocket(WebSocketOrder(maximumMessageSize: Self.defaultMaximumMessageSize, protocols: protocols)),
            audience: .delegate)
    }

    private static let defaultMaximumMessageSize = 1_048_576

    private func onDelegateQueue(_ work: @escaping @Sendable () -> Void) { call(work, on: queue) }

    /// Calls the handlers of calls that have their result; directly if this is the delegate queue already.
    private func run(_ resumptions: WebSocketCalls.Resumptions, isOnDelegateQueue: Bool) {
        resumptions.run { if isOnDelegateQueue { $0() } else { onDelegateQueue($0) } }
    }

    // MARK: Messages

    /// Queues a message for sending.
    ///
    /// The handler is called on the delegate queue when the system has accepted the message, or when it cannot be sent. The call
    /// does not wait for the server.
    open func send(_ message: Message, completionHandler: @escaping @Sendable ((any Error)?) -> Void) {
        issue(.send(message.traffic)) {
            $0.sends.append(.handler(completionHandler))
        } refused: { error in
            onDelegateQueue { completionHandler(error) }
        }
    }

    /// Queues a message for sending, and returns when the system has accepted it.
    ///
    /// - Throws: A `URLError` if the connection has ended or the task was cancelled.
    open nonisolated(nonsending) func send(_ message: Message) async throws {
        try await withUnsafeThrowingContinuation { (continuation: UnsafeContinuation<Void, any Error>) in
            issue(.send(message.traffic)) {
                $0.sends.append(.caller(continuation))
            } refused: {
                continuation.resume(throwing: $0)
            }
        }
    }

    /// Receives the next complete message; the handler is called on the delegate queue.
    ///
    /// Each call receives one message, in the order of the calls.
    open func receive(completionHandler: @escaping @Sendable (Result<Message, any Error>) -> Void) {
        switch calls.withLock({ $0.receive(.handler(completionHandler)) }) {
        case nil: break
        case .message(let message, let credit):
            consumed(credit)
            onDelegateQueue { completionHandler(.success(Message(message))) }
        case .ended(let error): onDelegateQueue { completionHandler(.failure(error)) }
        }
    }

    /// Receives the next complete message.
    ///
    /// If the calling Swift task is cancelled, the call throws `CancellationError`; no message is lost.
    ///
    /// - Returns: The message.
    /// - Throws: A `URLError` if the connection has ended or the task was cancelled.
    open nonisolated(nonsending) func receive() async throws -> Message {
        // No cancellation handler is needed if a message has already arrived.
        if !Task.isCancelled, let received = calls.withLock({ $0.receive() }) {
            switch received {
            case .message(let message, let credit):
                consumed(credit)
                return Message(message)
            case .ended(let error): throw error
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
                case .ended(let error): continuation.resume(throwing: error)
                }
            }
        } onCancel: {
            calls.withLock { $0.withdraw(ticket) }?.resume(throwing: CancellationError())
        }
        return Message(message)
    }

    /// Sends a ping.
    ///
    /// The handler is called on the delegate queue when the pong arrives, or with an error if the connection ends first.
    ///
    /// Handlers are called in the order of the pings.
    open func sendPing(pongReceiveHandler: @escaping @Sendable ((any Error)?) -> Void) {
        issue(.ping) {
            $0.pings.append(.handler(pongReceiveHandler))
        } refused: { error in
            onDelegateQueue { pongReceiveHandler(error) }
        }
    }

    // MARK: Closing

    /// Sends a close frame after the queued messages; the task completes when the server has replied, or after five seconds.
    ///
    /// Before the opening handshake is complete, the task is cancelled, unless messages are queued: then the handshake and the
    /// messages have five seconds.
    ///
    /// - Parameters:
    ///   - closeCode: The reason. If the code must not be sent (`invalid`, 1004, 1005, 1006, 1015, or an undefined code), the frame
    ///     has no code.
    ///   - reason: A UTF-8 text, of which at most 123 bytes are sent.
    open func cancel(with closeCode: CloseCode, reason: Data?) {
        closeLoad(code: UInt16(exactly: closeCode.rawValue), reason: reason ?? Data())
    }

    /// The close code of the connection; `invalid` while it is open.
    open var closeCode: CloseCode { calls.withLock { CloseCode(rawValue: Int($0.closeCode)) ?? .invalid } }

    /// The reason in the server's close frame, in UTF-8; nil if there is no reason, or the server has not closed the connection.
    open var closeReason: Data? { calls.withLock { $0.closeReason } }

    // MARK: Options

    /// The maximum size of a received message, in bytes after decoding; default 1,048,576 (1 MiB).
    ///
    /// A larger message fails the task and all waiting calls with `dataLengthExceedsMaximum`; the server receives close code 1009.
    open var maximumMessageSize: Int {
        get { mutex.withLock { $0.webSocket?.maximumMessageSize ?? 0 } }
        set { setMaximumMessageSize(max(newValue, 0)) }
    }

    /// Whether the task offers message compression (permessage-deflate, RFC 7692); default false.
    ///
    /// Not in Apple's API. Set it before the task is first resumed. Compression takes up to 300 KiB of memory per connection. If a
    /// message contains both a secret and text chosen by an attacker, an attacker who sees the message lengths may be able to
    /// recover the secret.
    open var offersCompression: Bool {
        get { mutex.withLock { $0.webSocket?.offersCompression ?? false } }
        set { changeOrder { $0.offersCompression = newValue } }
    }

    /// The interval between automatic pings in seconds; default nil: no pings.
    ///
    /// Not in Apple's API. Set it before the task is first resumed. If the server has not replied to a ping when the next one is
    /// due, the task fails with `timedOut`. A value that is not a positive finite number counts as nil.
    open var pingInterval: TimeInterval? {
        get { mutex.withLock { $0.webSocket?.pingInterval } }
        set { changeOrder { $0.pingInterval = newValue.flatMap { $0.isFinite && $0 > 0 ? $0 : nil } } }
    }

    // MARK: Events of the load

    override func handle(_ event: WebSocketEvent, isOnDelegateQueue: Bool) {
        let resumptions = calls.withLock { $0.handle(event) }
        run(resumptions, isOnDelegateQueue: isOnDelegateQueue)
        // No messages follow the close frame, even if the connection stays open for a while.
        if case .closed = event {
            run(calls.withLock { $0.end(with: closed(), cleanly: true) }, isOnDelegateQueue: isOnDelegateQueue)
        }
        consumed(resumptions.credit)
    }

    override func loadEnded(_ error: (any Error)?, isOnDelegateQueue: Bool) {
        run(calls.withLock { $0.end(with: error ?? closed(), cleanly: error == nil) }, isOnDelegateQueue: isOnDelegateQueue)
    }
}
