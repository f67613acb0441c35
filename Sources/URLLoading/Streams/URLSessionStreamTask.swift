// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import LoadingModel
internal import Synchronization

/// A task that reads and writes bytes over a dedicated connection, like Apple's `URLSessionStreamTask`.
///
/// The connection is made when the task is resumed: to a host and port, or to a service on the local network, directly or through
/// the session's proxies (CONNECT, SOCKS). Reads are performed in the order of the calls, and so are writes; reads and writes do
/// not wait for each other. If the app does not read, the task stops reading from the peer after about 64 KiB; if the peer does not
/// read, writes wait. The task completes without an error when both sides are closed and all received bytes were read. If the
/// connection cannot be made or is lost, the task and all pending calls fail.
///
/// A stream task has no request and no response. Background sessions do not support stream tasks: the task fails with
/// `unsupportedURL` when it is resumed.
open class URLSessionStreamTask: URLSessionTask, @unchecked Sendable {
    let calls = Mutex(StreamCalls())
    private let queue: OperationQueue?

    /// Makes a task that belongs to no session and does nothing, for programs that mock tasks with their own subclasses.
    public override init() {
        queue = nil
        super.init()
        _ = calls.withLock { $0.end(with: URLError(.cancelled), cleanly: false) }
    }

    init(session: URLSession, identifier: Int, order: StreamOrder) {
        queue = session.delegateQueue
        super.init(session: session, identifier: identifier, request: nil, delivery: .byteStream(order), audience: .delegate)
    }

    /// Replaces a data task whose server has switched protocols.
    init(takingOver state: consuming TaskState, identifier: Int, queue: OperationQueue?) {
        self.queue = queue
        super.init(takingOver: state, identifier: identifier)
    }

    // MARK: Reading and writing

    /// Queues a read.
    ///
    /// - Parameters:
    ///   - minBytes: The number of bytes to wait for, at least 1. If the stream ends earlier, the read returns fewer bytes.
    ///   - maxBytes: The maximum number of bytes; further bytes are left for the next read. If it is less than 1, or less than
    ///     `minBytes`, the read fails with `dataLengthExceedsMaximum`.
    ///   - timeout: Seconds from this call, or from the first resumption of the task; 0 means no timeout. If the timeout expires
    ///     while the task is suspended, the timeout starts again. A read that times out fails with `timedOut`, and loses no bytes.
    ///   - completionHandler: Called on the delegate queue with the data (nil if the stream has ended and no data was left),
    ///     whether the stream has ended, and the error.
    open func readData(
        ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval,
        completionHandler: @escaping @Sendable (Data?, Bool, (any Error)?) -> Void
    ) {
        enqueue(.reader(completionHandler)) { .read($0, minimum: minBytes, maximum: maxBytes, timeout: Self.limit(timeout)) }
    }

    /// Queues a read, and returns its result.
    ///
    /// - Parameters:
    ///   - minBytes: The number of bytes to wait for, at least 1. If the stream ends earlier, the read returns fewer bytes.
    ///   - maxBytes: The maximum number of bytes; further bytes are left for the next read.
    ///   - timeout: Seconds from this call, or from the first resumption of the task; 0 means no timeout. If the timeout expires
    ///     while the task is suspended, the timeout starts again.
    /// - Returns: The data, nil if the stream has ended and no data was left; and whether the stream has ended.
    /// - Throws: A `URLError`: `timedOut` if the read timed out, `dataLengthExceedsMaximum` for invalid lengths, or the error of
    ///   the task.
    open nonisolated(nonsending) func readData(
        ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval
    ) async throws -> (Data?, Bool) {
        try await withUnsafeThrowingContinuation { continuation in
            let waiter = StreamCalls.Waiter.reader { data, isAtEnd, error in
                if let error { continuation.resume(throwing: error) } else { continuation.resume(returning: (data, isAtEnd)) }
            }
            enqueue(waiter) { .read($0, minimum: minBytes, maximum: maxBytes, timeout: Self.limit(timeout)) }
        }
    }

    /// Queues a write of all of the data.
    ///
    /// - Parameters:
    ///   - data: The data to write.
    ///   - timeout: Seconds from this call, or from the first resumption of the task; 0 means no timeout. If the timeout expires
    ///     while the task is suspended, the timeout starts again. A write that times out fails with `timedOut`. If part of its data
    ///     may have been sent, the task fails as well.
    ///   - completionHandler: Called on the delegate queue when the system has accepted all of the data, or with the error.
    open func write(_ data: Data, timeout: TimeInterval, completionHandler: @escaping @Sendable ((any Error)?) -> Void) {
        enqueue(.writer(completionHandler)) { .write($0, data, timeout: Self.limit(timeout)) }
    }

    /// Queues a write of all of the data, and returns when the system has accepted it.
    ///
    /// - Parameters:
    ///   - data: The data to write.
    ///   - timeout: Seconds from this call, or from the first resumption of the task; 0 means no timeout. If the timeout expires
    ///     while the task is suspended, the timeout starts again.
    /// - Throws: A `URLError`: `timedOut` if the write timed out, or the error of the task.
    open nonisolated(nonsending) func write(_ data: Data, timeout: TimeInterval) async throws {
        try await withUnsafeThrowingContinuation { (continuation: UnsafeContinuation<Void, any Error>) in
            let waiter = StreamCalls.Waiter.writer { error in
                if let error { continuation.resume(throwing: error) } else { continuation.resume() }
            }
            enqueue(waiter) { .write($0, data, timeout: Self.limit(timeout)) }
        }
    }

    private static func limit(_ timeout: TimeInterval) -> Double? { timeout > 0 ? timeout : nil }

    // MARK: Stream control

    /// Converts the connection into a pair of streams, after the queued reads and writes.
    ///
    /// The delegate receives the streams, unopened, in
    /// ``URLSessionStreamDelegate/urlSession(_:streamTask:didBecome:outputStream:)``. The task is then complete, and reports no
    /// further events. Later calls to the task fail.
    open func captureStreams() { issue(.capture, ifAccepted: { $0.isCapturing = true }) }

    /// Closes the write side after the queued writes; the peer then reads the end of the stream.
    ///
    /// Bytes that the peer still sends can be read.
    open func closeWrite() { issue(.closeWrite) }

    /// Closes the read side after the queued reads; bytes that still arrive are discarded.
    open func closeRead() { issue(.closeRead, ifAccepted: { $0.hasClosedRead = true }) }

    /// Starts TLS after the queued reads and writes; later calls wait for the handshake.
    ///
    /// The server's certificate must be valid for the host that the task was made with. The delegate receives challenges as it does
    /// for an `https` load. If cleartext bytes from the server have not been read, the task fails with `secureConnectionFailed`,
    /// because they could be mistaken for bytes received over TLS.
    open func startSecureConnection() { issue(.secure) }

    /// Cancels the task, because a secured connection cannot return to cleartext.
    @available(*, deprecated, message: "TLS cannot be disabled once it is enabled")
    open func stopSecureConnection() { cancel() }

    // MARK: Events of the load

    /// Sends a command to the load, and registers the caller that waits for the result; both happen in the order of the calls.
    private func enqueue(_ waiter: StreamCalls.Waiter, _ command: (Int) -> StreamCommand) {
        var toWake: (any LoadingService)?
        var endResult: StreamCalls.Result?
        let refusal: (any Error)? = calls.withLock { calls in
            guard !calls.isCapturing else { return captured() }
            if let end = calls.end {
                endResult = calls.finalRead(for: waiter, cleanly: calls.endedCleanly)
                return end
            }
            let number = calls.next
            guard mutex.withLock({ $0.issue(command(number), for: identity, waking: &toWake) }) else {
                // The task can be complete although its pending calls have not failed yet.
                let (isOver, error) = mutex.withLock { ($0.lifecycle.isOver, $0.messages.error) }
                if isOver, error == nil { endResult = calls.finalRead(for: waiter, cleanly: true) }
                return error ?? (isOver ? closed() : ErrorTranslation.appError(.cancelled, url: nil))
            }
            calls.add(waiter)
            return nil
        }
        toWake?.wake()
        if let refusal {
            let result = endResult ?? .failed(refusal)
            call({ waiter.tell(result) }, on: queue)
        }
    }

    private func issue(_ command: StreamCommand, ifAccepted: (inout StreamCalls) -> Void = { _ in }) {
        var toWake: (any LoadingService)?
        calls.withLock { calls in
            guard calls.end == nil, !calls.isCapturing else { return }
            if mutex.withLock({ $0.issue(command, for: identity, waking: &toWake) }) { ifAccepted(&calls) }
        }
        toWake?.wake()
    }

    /// Returns the error for calls made after both sides were closed.
    private func closed() -> any Error {
        ErrorTranslation.appError(LoadError(.connectionLost, "the stream is closed", cause: POSIXError(.ENOTCONN)), url: nil)
    }

    private func captured() -> any Error {
        ErrorTranslation.appError(
            LoadError(.connectionLost, "the streams were captured; read from and write to them", cause: POSIXError(.ENOTCONN)),
            url: nil)
    }

    override func handle(_ event: StreamEvent, isOnDelegateQueue: Bool) {
        if let streams = calls.withLock({ $0.captured }) { return streams.handle(event) }
        // If there is a delegate, its bridge makes the streams and delivers them.
        if case .captured = event, !isOnDelegateQueue {
            _ = becomeStreams(isOnDelegateQueue: false).map { $0.session.registry.forget(identity) }
            return
        }
        let waiter: (StreamCalls.Waiter, StreamCalls.Result)? = calls.withLock { $0.handle(event) }
        guard let (waiter, result) = waiter else { return }
        if isOnDelegateQueue { waiter.tell(result) } else { call({ waiter.tell(result) }, on: queue) }
    }

    override func loadEnded(_ error: (any Error)?, isOnDelegateQueue: Bool) {
        let results = calls.withLock { $0.end(with: error ?? closed(), cleanly: error == nil) }
        for (waiter, result) in results {
            if isOnDelegateQueue { waiter.tell(result) } else { call({ waiter.tell(result) }, on: queue) }
        }
    }

    override var isCaptured: Bool { calls.withLock { $0.captured != nil } }

    override func loadEndedAfterCompletion(_ outcome: TaskOutcome) {
        var error: (any Error)?
        if case .failure(let failure) = outcome.result { error = ErrorTranslation.appError(failure, url: nil) }
        calls.withLock { $0.captured }?.ended(error)
    }
}

/// The pending calls of a stream task.
struct StreamCalls: Sendable {
    enum Waiter: Sendable {
        case reader(@Sendable (Data?, Bool, (any Error)?) -> Void)
        case writer(@Sendable ((any Error)?) -> Void)

        func tell(_ result: Result) {
            switch (self, result) {
            case (.reader(let handler), .read(let data, let isAtEnd)): handler(data, isAtEnd, nil)
            case (.reader(let handler), .failed(let error)): handler(nil, false, error)
            case (.writer(let handler), .wrote): handler(nil)
            case (.writer(let handler), .failed(let error)): handler(error)
            case (.reader, .wrote), (.writer, .read): break
            }
        }
    }

    enum Result: Sendable {
        case read(Data?, Bool)
        case wrote
        case failed(any Error)
    }

    private var waiting: [Int: Waiter] = [:]
    private(set) var next = 1
    var isCapturing = false
    /// Whether the app has closed the read side, or has queued the command to close it.
    var hasClosedRead = false
    /// Whether both sides were closed.
    private(set) var endedCleanly = false
    var captured: CapturedStreams?
    private(set) var end: (any Error)?

    /// Adds a call under the number ``next``.
    mutating func add(_ waiter: Waiter) {
        waiting[next] = waiter
        next += 1
    }

    mutating func handle(_ event: StreamEvent) -> (Waiter, Result)? {
        switch event {
        case .read(let number, let data, let isAtEnd):
            waiting.removeValue(forKey: number).map { ($0, .read(data, isAtEnd)) }
        case .wrote(let number): waiting.removeValue(forKey: number).map { ($0, .wrote) }
        case .failed(let number, let error):
            waiting.removeValue(forKey: number).map { ($0, .failed(ErrorTranslation.appError(error, url: nil))) }
        case .readClosed, .writeClosed, .foundBetterRoute, .captured: nil
        }
    }

    /// Removes all pending calls, and returns them in order with their results.
    ///
    /// `cleanly` means that the connection ended because both sides were closed.
    mutating func end(with error: any Error, cleanly: Bool) -> [(Waiter, Result)] {
        guard end == nil else { return [] }
        end = error
        endedCleanly = cleanly
        defer { waiting = [:] }
        return waiting.sorted { $0.key < $1.key }.map { ($0.value, finalRead(for: $0.value, cleanly: cleanly) ?? .failed(error)) }
    }

    /// Returns the result of a read after both sides were closed; nil for a write, and if the app closed the read side itself.
    func finalRead(for waiter: Waiter, cleanly: Bool) -> Result? {
        guard cleanly, !hasClosedRead else { return nil }
        return switch waiter {
        case .reader: .read(nil, true)
        case .writer: nil
        }
    }
}

extension TaskState {
    /// Sends a command to the load, or queues it until the load starts; returns false if the task has no load.
    fileprivate mutating func issue(
        _ command: StreamCommand, for identity: Int, waking toWake: inout (any LoadingService)?
    ) -> Bool {
        issue(.stream(command), for: identity, waking: &toWake) { state in
            guard case .byteStream(var order) = state.delivery else { return }
            // Releases the second reference to the order, so that the change does not copy it.
            state.delivery = .stream
            order.queued.append(command)
            state.delivery = .byteStream(order)
        }
    }
}
