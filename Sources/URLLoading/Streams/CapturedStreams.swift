// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import LoadingModel
internal import Synchronization

/// Connects the load of a captured stream task to the app's two streams.
///
/// Reads from the load while the input stream has space, and sends to the load what the app writes to the output stream. The load
/// ends when the app has closed or released both streams.
final class CapturedStreams: Sendable {
    /// The capacity of either stream in bytes.
    private static let capacity = 65_536

    private struct State {
        var lastNumber = 0
        /// The number of bytes read from the load that the app has not read.
        var unreadCount = 0
        var isReading = false
        var isReadFinished = false
        var isWriting = false
        var isWriteFinished = false
    }

    private let service: any LoadingService
    private let identity: Int
    private let state = Mutex(State())
    /// The pipes from and to the peer; set once, before other code has access to this object.
    private let pipes = Mutex<(input: StreamPipe, output: StreamPipe)?>(nil)

    /// Takes over a load that has reported that its streams are captured.
    init(of service: any LoadingService, _ identity: Int) {
        self.service = service
        self.identity = identity
    }

    /// Makes the two streams, unopened; called once.
    func makeStreams() -> (InputStream, OutputStream) {
        let input = StreamPipe(capacity: Self.capacity, bytesWereRead: { [weak self] in self?.appDidRead($0) })
        let output = StreamPipe(capacity: Self.capacity, bytesWereWritten: { [weak self] in self?.write() })
        pipes.withLock { $0 = (input, output) }
        return (PipeInputStream(input), PipeOutputStream(output))
    }

    /// Starts reading.
    ///
    /// The owner calls this method after the load's events have begun to arrive at this object. If the task was suspended, its load
    /// is resumed.
    func start() {
        if service.command(.resume, for: identity) { service.wake() }
        read()
    }

    // MARK: The load

    func handle(_ event: StreamEvent) {
        guard let (input, output) = pipes.withLock({ $0 }) else { return }
        switch event {
        case .read(_, let data, let isAtEnd):
            state.withLock { state in
                state.isReading = false
                state.unreadCount += data?.count ?? 0
                if isAtEnd { state.isReadFinished = true }
            }
            if let data, !input.append(data) { return stopReading() }
            if isAtEnd { input.closeWriting() } else { read() }
        case .wrote:
            state.withLock { $0.isWriting = false }
            write()
        case .writeClosed: output.closeReading()
        case .failed, .readClosed, .foundBetterRoute, .captured: break
        }
    }

    /// Handles the end of the connection.
    func ended(_ error: (any Error)?) {
        guard let (input, output) = pipes.withLock({ $0 }) else { return }
        state.withLock { ($0.isReadFinished, $0.isWriteFinished) = (true, true) }
        input.closeWriting(error: error)
        output.closeReading(error: error)
    }

    private func issue(_ command: StreamCommand) {
        if service.command(.stream(command), for: identity) { service.wake() }
    }

    // MARK: Reading

    private func read() {
        let number: Int? = state.withLock { state in
            guard !state.isReading, !state.isReadFinished, state.unreadCount < Self.capacity else { return nil }
            state.isReading = true
            state.lastNumber += 1
            return state.lastNumber
        }
        if let number { issue(.read(number, minimum: 1, maximum: Self.capacity, timeout: nil)) }
    }

    private func appDidRead(_ count: Int) {
        state.withLock { $0.unreadCount -= count }
        if let (input, _) = pipes.withLock({ $0 }), case .failure = input.readable { return stopReading() }
        read()
    }

    private func stopReading() {
        let isFirst = state.withLock { state in
            defer { state.isReadFinished = true }
            return !state.isReadFinished
        }
        if isFirst { issue(.stopReading) }
    }

    // MARK: Writing

    private func write() {
        guard let (_, output) = pipes.withLock({ $0 }) else { return }
        repeat {
            let number: Int? = state.withLock { state in
                guard !state.isWriting, !state.isWriteFinished else { return nil }
                state.isWriting = true
                state.lastNumber += 1
                return state.lastNumber
            }
            guard let number else { return }
            // No lock is held here, because the call notifies the output stream.
            let data = output.take(upTo: Self.capacity)
            guard data.isEmpty else { return issue(.write(number, data, timeout: nil)) }
            let isOver = output.isDrainedAndClosed
            state.withLock { ($0.isWriting, $0.isWriteFinished) = (false, isOver) }
            if isOver { return issue(.closeWrite) }
            // Bytes written in the meantime did not start a write, because `isWriting` was set.
        } while output.hasBytes || output.isDrainedAndClosed
    }
}

extension URLSessionStreamTask {
    /// Completes the task without an event, and returns the streams that replace it; nil if the task was completed or cancelled.
    func becomeStreams(isOnDelegateQueue: Bool) -> (streams: (InputStream, OutputStream), session: URLSession)? {
        let found: (session: URLSession, service: any LoadingService)? = mutex.withLock { state in
            guard !state.discardsResult, let session = state.session, let service = state.service,
                state.lifecycle.handle(.finished) == .complete
            else { return nil }
            state.session = nil
            state.recipients.bridge = nil
            state.recipients.ownDelegate = nil
            return (session, service)
        }
        guard let (session, service) = found else { return nil }
        let streams = CapturedStreams(of: service, identity)
        let pair = streams.makeStreams()
        calls.withLock { $0.captured = streams }
        loadEnded(nil, isOnDelegateQueue: isOnDelegateQueue)
        streams.start()
        return (pair, session)
    }
}
