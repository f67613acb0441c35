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

/// A task that reads and writes bytes over a connection of its own, as Apple's `URLSessionStreamTask`.
///
/// The connection leads to a host and port, or to a service of the local network, or through the session's proxies there (CONNECT, SOCKS), and is made once the
/// task is resumed. Reads
/// are done one after another, and so are writes; neither waits for the other. What the app does not read is left with the peer after
/// some 64 KiB, and what the peer does not read waits with the write. The task ends without an error when both sides are closed and what
/// came was read; when the connection cannot be made or is lost, the task fails, and all calls that wait with it.
///
/// It has no request and no response. Background sessions have no such tasks: there it fails with `unsupportedURL` once it is resumed.
open class URLSessionStreamTask: URLSessionTask, @unchecked Sendable {
    let calls = Mutex(StreamCalls())
    private let queue: OperationQueue?

    /// Makes a task that belongs to no session and does nothing, for programs that put objects of their own in place of tasks.
    public override init() {
        queue = nil
        super.init()
        _ = calls.withLock { $0.end(with: URLError(.cancelled), inOrder: false) }
    }

    init(session: URLSession, identifier: Int, order: StreamOrder) {
        queue = session.delegateQueue
        super.init(session: session, identifier: identifier, request: nil, delivery: .byteStream(order), audience: .delegate)
    }

    /// Takes the place of a data task whose server has switched protocols.
    init(succeeding state: consuming TaskState, identifier: Int, queue: OperationQueue?) {
        self.queue = queue
        super.init(succeeding: state, identifier: identifier)
    }

    private func onDelegateQueue(_ work: @escaping @Sendable () -> Void) {
        if let queue { queue.addOperation(work) } else { work() }
    }

    // MARK: Reading and writing

    /// Reads bytes, behind the reads that were asked for before.
    ///
    /// - Parameters:
    ///   - minBytes: The read waits for so many, and for one at least, unless the stream ends before.
    ///   - maxBytes: It never gives more; what is left is the next read's. Less than 1, or than `minBytes`, fails with
    ///     `dataLengthExceedsMaximum`.
    ///   - timeout: Seconds from this call, or from when the task is first resumed; 0 waits as long as it takes. Time that ends while the task is
    ///     suspended begins again. A read that was late fails with `timedOut`, and no byte is lost.
    ///   - completionHandler: Called on the delegate queue with the data (nil at the end of the stream where there was none left), whether
    ///     that is the end, or why the read failed.
    open func readData(
        ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval,
        completionHandler: @escaping @Sendable (Data?, Bool, (any Error)?) -> Void
    ) {
        ask(.reader(completionHandler)) { .read($0, minimum: minBytes, maximum: maxBytes, timeout: Self.limit(timeout)) }
    }

    /// Reads bytes, behind the reads that were asked for before.
    ///
    /// - Parameters:
    ///   - minBytes: The read waits for so many, and for one at least, unless the stream ends before.
    ///   - maxBytes: It never gives more; what is left is the next read's.
    ///   - timeout: Seconds from this call, or from when the task is first resumed; 0 waits as long as it takes. Time that ends while the task is
    ///     suspended begins again.
    /// - Returns: The data, nil at the end of the stream where there was none left; and whether that is the end.
    /// - Throws: `URLError`: `timedOut` where the read was late, `dataLengthExceedsMaximum` where the lengths make no sense, and what the
    ///   task failed with.
    open nonisolated(nonsending) func readData(
        ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval
    ) async throws -> (Data?, Bool) {
        try await withUnsafeThrowingContinuation { continuation in
            ask(.readCaller(continuation)) { .read($0, minimum: minBytes, maximum: maxBytes, timeout: Self.limit(timeout)) }
        }
    }

    /// Writes all of the data, behind the writes that were asked for before.
    ///
    /// - Parameters:
    ///   - data: What is written.
    ///   - timeout: Seconds from this call, or from when the task is first resumed; 0 waits as long as it takes. Time that ends while the task is
    ///     suspended begins again. A write that was late fails with `timedOut`; where part of it
    ///     may have been sent, the task fails as well.
    ///   - completionHandler: Called on the delegate queue when the system has all of the data, or with the reason why it does not.
    open func write(_ data: Data, timeout: TimeInterval, completionHandler: @escaping @Sendable ((any Error)?) -> Void) {
        ask(.writer(completionHandler)) { .write($0, data, timeout: Self.limit(timeout)) }
    }

    /// Writes all of the data, behind the writes that were asked for before, and returns when the system has it.
    ///
    /// - Parameters:
    ///   - data: What is written.
    ///   - timeout: Seconds from this call, or from when the task is first resumed; 0 waits as long as it takes. Time that ends while the task is
    ///     suspended begins again.
    /// - Throws: `URLError`: `timedOut` where the write was late, and what the task failed with.
    open nonisolated(nonsending) func write(_ data: Data, timeout: TimeInterval) async throws {
        try await withUnsafeThrowingContinuation { continuation in
            ask(.writeCaller(continuation)) { .write($0, data, timeout: Self.limit(timeout)) }
        }
    }

    private static func limit(_ timeout: TimeInterval) -> Double? { timeout > 0 ? timeout : nil }

    // MARK: The stream as a whole

    /// Hands the connection over as a pair of streams, once the reads and writes that were asked for before are done.
    ///
    /// The delegate gets them, not opened, with
    /// ``URLSessionStreamDelegate/urlSession(_:streamTask:didBecome:outputStream:)``; the task is complete then, and nothing more is told of
    /// it. Calls after this one fail.
    open func captureStreams() { say(.capture, marks: { $0.isCapturing = true }) }

    /// Ends the writing side, once the writes that were asked for before are done: the peer reads to the end of the stream.
    ///
    /// What the peer still sends can be read.
    open func closeWrite() { say(.closeWrite) }

    /// Ends the reading side, once the reads that were asked for before are done: what still comes is dropped.
    open func closeRead() { say(.closeRead, marks: { $0.closesRead = true }) }

    /// Begins TLS, once the reads and writes that were asked for before are done; calls after this one wait for it.
    ///
    /// The server's certificate has to be for the host that the task was made with; challenges are the delegate's, as those of a load of
    /// `https`. What the server sent in clear and was not read by then fails the task with `secureConnectionFailed`: it would be taken for
    /// something that came over TLS.
    open func startSecureConnection() { say(.secure) }

    /// Fails the task: a connection that was secured cannot be used in clear again.
    @available(*, deprecated, message: "TLS cannot be disabled once it is enabled")
    open func stopSecureConnection() { cancel() }

    // MARK: What the load tells

    /// Asks the load for something, in the order in which the calls are made.
    private func ask(_ waiter: StreamCalls.Waiter, _ command: (Int) -> StreamCommand) {
        var asleep: (any LoadingService)?
        var over: StreamCalls.Result?
        let refusal: (any Error)? = calls.withLock { calls in
            guard !calls.isCapturing else { return captured() }
            if let end = calls.end {
                over = calls.readsEnd(for: waiter, inOrder: calls.endedInOrder)
                return end
            }
            let number = calls.next
            guard mutex.withLock({ $0.say(command(number), for: identity, waking: &asleep) }) else {
                // The task may be over, and its calls not told yet.
                let (isOver, error) = mutex.withLock { ($0.lifecycle.isOver, $0.error) }
                if isOver, error == nil { over = calls.readsEnd(for: waiter, inOrder: true) }
                return error ?? (isOver ? closed() : ErrorTranslation.appError(.cancelled, url: nil))
            }
            calls.add(waiter)
            return nil
        }
        asleep?.wake()
        if let refusal {
            let result = over ?? .failed(refusal)
            onDelegateQueue { waiter.tell(result) }
        }
    }

    private func say(_ command: StreamCommand, marks: (inout StreamCalls) -> Void = { _ in }) {
        var asleep: (any LoadingService)?
        calls.withLock { calls in
            guard calls.end == nil, !calls.isCapturing else { return }
            if mutex.withLock({ $0.say(command, for: identity, waking: &asleep) }) { marks(&calls) }
        }
        asleep?.wake()
    }

    /// What calls are told that come when both sides are closed.
    private func closed() -> any Error {
        ErrorTranslation.appError(LoadError(.connectionLost, "the stream is closed", cause: POSIXError(.ENOTCONN)), url: nil)
    }

    private func captured() -> any Error {
        ErrorTranslation.appError(
            LoadError(.connectionLost, "the streams were captured: read and write by them", cause: POSIXError(.ENOTCONN)),
            url: nil)
    }

    override func heard(_ event: StreamEvent, isOnDelegateQueue: Bool) {
        if let streams = calls.withLock({ $0.captured }) { return streams.heard(event) }
        // With a delegate, its bridge takes the streams to it.
        if case .captured = event, !isOnDelegateQueue {
            _ = becomeStreams().map { $0.session.registry.forget(identity) }
            return
        }
        let waiter: (StreamCalls.Waiter, StreamCalls.Result)? = calls.withLock { $0.heard(event) }
        guard let (waiter, result) = waiter else { return }
        if isOnDelegateQueue { waiter.tell(result) } else { onDelegateQueue { waiter.tell(result) } }
    }

    override func loadEnded(_ error: (any Error)?) {
        let told = calls.withLock { $0.end(with: error ?? closed(), inOrder: error == nil) }
        for (waiter, result) in told { onDelegateQueue { waiter.tell(result) } }
    }

    override var isCaptured: Bool { calls.withLock { $0.captured != nil } }

    override func loadEndedLate(_ outcome: TaskOutcome) {
        var error: (any Error)?
        if case .failure(let failure) = outcome.result { error = ErrorTranslation.appError(failure, url: nil) }
        calls.withLock { $0.captured }?.ended(error)
    }
}

/// The calls of an app that wait for something of its byte stream.
struct StreamCalls: Sendable {
    enum Waiter: Sendable {
        case reader(@Sendable (Data?, Bool, (any Error)?) -> Void)
        case readCaller(UnsafeContinuation<(Data?, Bool), any Error>)
        case writer(@Sendable ((any Error)?) -> Void)
        case writeCaller(UnsafeContinuation<Void, any Error>)

        func tell(_ result: Result) {
            switch (self, result) {
            case (.reader(let handler), .read(let data, let isAtEnd)): handler(data, isAtEnd, nil)
            case (.readCaller(let continuation), .read(let data, let isAtEnd)): continuation.resume(returning: (data, isAtEnd))
            case (.writer(let handler), .wrote): handler(nil)
            case (.writeCaller(let continuation), .wrote): continuation.resume()
            case (_, .failed(let error)): fail(error)
            case (.reader, .wrote), (.readCaller, .wrote), (.writer, .read), (.writeCaller, .read): break
            }
        }

        func fail(_ error: any Error) {
            switch self {
            case .reader(let handler): handler(nil, false, error)
            case .readCaller(let continuation): continuation.resume(throwing: error)
            case .writer(let handler): handler(error)
            case .writeCaller(let continuation): continuation.resume(throwing: error)
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
    /// The app has closed the reading side, or is about to.
    var closesRead = false
    /// Both sides were closed.
    private(set) var endedInOrder = false
    var captured: CapturedStreams?
    private(set) var end: (any Error)?

    /// Under the number ``next``.
    mutating func add(_ waiter: Waiter) {
        waiting[next] = waiter
        next += 1
    }

    mutating func heard(_ event: StreamEvent) -> (Waiter, Result)? {
        switch event {
        case .read(let number, let data, let isAtEnd):
            waiting.removeValue(forKey: number).map { ($0, .read(data, isAtEnd)) }
        case .wrote(let number): waiting.removeValue(forKey: number).map { ($0, .wrote) }
        case .failed(let number, let error):
            waiting.removeValue(forKey: number).map { ($0, .failed(ErrorTranslation.appError(error, url: nil))) }
        case .readClosed, .writeClosed, .foundBetterRoute, .captured: nil
        }
    }

    /// Those that wait, in the order of their calls, and what they are told.
    ///
    /// In order, a stream ends when both sides are closed.
    mutating func end(with error: any Error, inOrder: Bool) -> [(Waiter, Result)] {
        guard end == nil else { return [] }
        end = error
        endedInOrder = inOrder
        defer { waiting = [:] }
        return waiting.sorted { $0.key < $1.key }.map { ($0.value, readsEnd(for: $0.value, inOrder: inOrder) ?? .failed(error)) }
    }

    /// What a read is told when both sides are closed; nil for writes, and where the peer has not ended its own.
    func readsEnd(for waiter: Waiter, inOrder: Bool) -> Result? {
        guard inOrder, !closesRead else { return nil }
        return switch waiter {
        case .reader, .readCaller: .read(nil, true)
        case .writer, .writeCaller: nil
        }
    }
}

extension TaskState {
    /// Sends a command to the load, or queues it until the load starts; false if the task has no load.
    fileprivate mutating func say(
        _ command: StreamCommand, for identity: Int, waking asleep: inout (any LoadingService)?
    ) -> Bool {
        say(.stream(command), for: identity, waking: &asleep) { state in
            guard case .byteStream(var order) = state.delivery else { return }
            // Nothing else refers to it while it changes.
            state.delivery = .stream
            order.queued.append(command)
            state.delivery = .byteStream(order)
        }
    }
}
