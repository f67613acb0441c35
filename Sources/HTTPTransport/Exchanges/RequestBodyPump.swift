// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPWire
import LoadingModel
import NIOCore
import SystemThreads

/// Sends the body of one request as fast as the peer accepts it.
///
/// The pump runs beside the load, on callbacks of the channel: the response may arrive at any time (RFC 9112, section 9.5 and RFC
/// 9110, section 10.1.1), and a response that refuses the request stops the pump. Its ``BodyOutlet`` frames the body.
///
/// Confined to the channel's event loop.
final class RequestBodyPump {
    private enum State {
        /// No content is sent before 100 (Continue), a final response, or the timeout.
        case waitingForContinue
        case sending
        case stopped
    }

    /// The size of one sendfile(2) call; progress and cancellation are processed between calls.
    private static let regionSize = 1_048_576
    private static let fileWatchInterval = TimeAmount.milliseconds(250)
    /// How long to wait for 100 (Continue), the same as in curl.
    private static let patience = TimeAmount.seconds(1)
    /// The delay before the pump checks again whether the system has a descriptor for a file.
    private static let moment = TimeAmount.milliseconds(250)

    private let body: OutgoingBody
    private let exchange: Exchange
    private let outlet: any BodyOutlet
    private var state = State.sending
    /// The number of body bytes taken from the source.
    private var taken: Int64 = 0
    private var isAtEnd = false
    private var isFetching = false
    /// The body's file, while it is open.
    private var source: FileSource?
    /// Whether the kernel was given parts of the file to send.
    private var hasSharedFile = false
    /// The body's position in the queue for a file descriptor.
    private var line: FileBudget.Ticket?
    private var writesInFlight = 0
    private var patienceTimer: Scheduled<Void>?
    private var fileWatch: Scheduled<Void>?

    init(body: OutgoingBody, exchange: Exchange, outlet: any BodyOutlet) {
        self.body = body
        self.exchange = exchange
        self.outlet = outlet
    }

    var isStopped: Bool { if case .stopped = state { true } else { false } }

    /// Starts to send the body; call it after the head was written.
    func start(waitingForContinue waits: Bool) {
        guard waits else {
            sendMore()
            return outlet.flush()
        }
        state = .waitingForContinue
        outlet.flush()
        let bound = NIOLoopBound(self, eventLoop: outlet.loop)
        patienceTimer = outlet.loop.scheduleTask(in: Self.patience) { bound.value.receivedContinue() }
    }

    func receivedContinue() {
        guard case .waitingForContinue = state else { return }
        patienceTimer?.cancel()
        state = .sending
        sendMore()
        outlet.flush()
    }

    /// Handles a final response that arrived before the body was sent: a redirect or an error stops the sending.
    ///
    /// After a success the server may still be reading the rest of the body.
    func receivedFinalHead(status: Int) {
        if status >= 300 { stop() } else { receivedContinue() }
    }

    func writabilityChanged() {
        guard maySend else { return }
        sendMore()
        outlet.flush()
    }

    func stop() {
        guard !isStopped else { return }
        state = .stopped
        leaveQueue()
        patienceTimer?.cancel()
        fileWatch?.cancel()
        if case .stream(let stream, _) = body { stream.close() }
        // A success that arrives before the whole body was sent is a response to the part that has been sent.
        if exchange.hasHead, exchange.receivedHead.status < 300 { fileWasSent() }
        releaseFile()
    }

    /// Releases the file, unless the kernel may still be sending from it.
    private func releaseFile() {
        if isStopped, writesInFlight == 0 { source = nil }
    }

    /// Requests that the file be checked for changes before the exchange ends.
    private func fileWasSent() {
        if let source { exchange.sent(source, isShared: hasSharedFile) }
    }

    // MARK: Sending

    /// Whether the peer accepts more, and the task is not suspended.
    private var maySend: Bool {
        guard case .sending = state else { return false }
        return outlet.isReady && !exchange.control.isSuspended
    }

    private func sendMore() {
        switch body {
        case .none: finish()
        case .data(let data): sendData(data)
        case .file(let file): sendFile(file)
        case .stream(let stream, let length): fetch(from: stream, length: length)
        }
    }

    private func sendData(_ data: Data) {
        while maySend, !isAtEnd {
            let start = data.startIndex + Int(taken)
            let end = min(start + outlet.pieceSize, data.endIndex)
            write(data[start..<end], isLast: end == data.endIndex)
        }
    }

    private func sendFile(_ file: BodyFile) {
        while maySend, !isAtEnd, !isFetching, writesInFlight < 2 {
            guard let source else { return open(file) }
            let remaining = file.length - taken
            guard remaining > 0 else { return finish() }
            let count = Int(min(remaining, Int64(Self.regionSize)))
            if outlet.takesRegions, source.usesSendfile, let region = source.region(offset: file.start + taken, count: count) {
                taken += Int64(count)
                if taken == file.length { isAtEnd = true }
                hasSharedFile = true
                outlet.write(region, promise: promise(counting: count))
                watch(source, from: file.start)
            } else {
                fetch(from: source, at: file.start + taken, count: Int(min(remaining, Int64(outlet.pieceSize))))
            }
        }
    }

    /// Opens the body's file when the budget permits another open file.
    ///
    /// The request timeout does not run while the body waits in the queue.
    private func open(_ file: BodyFile) {
        isFetching = true
        let bound = NIOLoopBound(self, eventLoop: outlet.loop)
        let answer = FileBudget.shared.ask(.whole) { room in
            bound.eventLoop.execute { bound.value.gotReservation(room, for: file) }
        }
        switch answer {
        case .room(let room): open(file, room)
        case .queued(let place):
            line = place
            exchange.control.hold(now: .now())
        }
    }

    /// Opens the file when its turn has come; a suspended load releases the reservation, and requests a new one later.
    private func gotReservation(_ room: FileReservation, for file: BodyFile) {
        guard line != nil else { return }
        leaveQueue()
        isFetching = false
        guard maySend else { return }
        isFetching = true
        open(file, room)
    }

    private func leaveQueue() {
        guard let place = line.take() else { return }
        FileBudget.shared.leave(place)
        exchange.control.endHold(now: .now())
    }

    private func open(_ file: BodyFile, _ room: FileReservation) {
        file.open(room, on: outlet.loop) { [self] result in
            switch result {
            case .success(let opened):
                source = opened
                releaseFile()
                resumeSending()
            case .failure(let error) where error.isOutOfDescriptors:
                // The app uses all descriptors: the pump retries after a moment, until the load times out.
                outlet.loop.assumeIsolated().scheduleTask(in: Self.moment) { [self] in resumeSending() }
            case .failure(let error):
                isFetching = false
                if case .sending = state { fail(error) }
            }
        }
    }

    private func resumeSending() {
        isFetching = false
        guard case .sending = state else { return }
        sendMore()
        outlet.flush()
    }

    /// Checks the file while a part is in flight, because sendfile(2) of bytes that the file no longer contains would be retried
    /// forever.
    private func watch(_ source: FileSource, from start: Int64) {
        guard fileWatch == nil else { return }
        let bound = NIOLoopBound(self, eventLoop: outlet.loop)
        fileWatch = outlet.loop.scheduleTask(in: Self.fileWatchInterval) {
            let pump = bound.value
            guard pump.writesInFlight > 0, !pump.isStopped else {
                pump.fileWatch = nil
                return
            }
            source.look(sendingUpTo: start + pump.taken, on: bound.eventLoop) { failure in
                pump.fileWatch = nil
                guard pump.writesInFlight > 0, !pump.isStopped else { return }
                if let failure { pump.fail(failure) } else { pump.watch(source, from: start) }
            }
        }
    }

    private func fetch(from source: FileSource, at offset: Int64, count: Int) {
        isFetching = true
        source.read(offset: offset, count: count, on: outlet.loop) { [self] result in
            isFetching = false
            guard case .sending = state else { return }
            switch result {
            case .success(let buffer):
                taken += Int64(buffer.readableBytes)
                isAtEnd = taken == body.length
                outlet.write(buffer, isLast: isAtEnd, promise: promise(counting: buffer.readableBytes))
                sendMore()
                outlet.flush()
            case .failure(let error):
                fail(error)
            }
        }
    }

    private func fetch(from stream: any BodyStream, length: Int64?) {
        guard maySend, !isAtEnd, !isFetching else { return }
        isFetching = true
        let bound = NIOLoopBound(self, eventLoop: outlet.loop)
        stream.read(upTo: min(65_536, outlet.pieceSize)) { result in
            bound.eventLoop.execute { bound.value.fetched(result, length: length) }
        }
    }

    private func fetched(_ result: Result<Data, any Error>, length: Int64?) {
        isFetching = false
        guard case .sending = state else { return }
        switch result {
        case .success(let data) where data.isEmpty:
            guard length == nil || length == taken else {
                return fail(
                    LoadError(.requestBodyStreamExhausted, "the body stream ended after \(taken) of \(length ?? 0) bytes"))
            }
            finish()
        case .success(let data):
            if let length, taken + Int64(data.count) > length {
                return fail(LoadError(.requestBodyStreamExhausted, "the body stream has more than the \(length) bytes announced"))
            }
            write(data)
            sendMore()
        case .failure(let error):
            return fail(LoadError(.application, "reading the body stream failed", cause: error))
        }
        outlet.flush()
    }

    private func write(_ data: Data, isLast: Bool = false) {
        taken += Int64(data.count)
        isAtEnd = isLast
        outlet.write(data, isLast: isLast, promise: promise(counting: data.count))
    }

    private func promise(counting count: Int) -> EventLoopPromise<Void> {
        writesInFlight += 1
        exchange.submittedBody(Int64(count))
        let promise = outlet.loop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenFailure { [self] _ in
            writesInFlight -= 1
            releaseFile()
        }
        promise.futureResult.assumeIsolated().whenSuccess { [self] in
            writesInFlight -= 1
            exchange.control.markProgress(.now())
            exchange.sent(Int64(count))
            releaseFile()
            if isAtEnd, writesInFlight == 0 {
                fileWasSent()
                source = nil
                outlet.completed(exchange)
            } else if case .file = body {
                writabilityChanged()
            }
        }
        return promise
    }

    private func finish() {
        guard !isAtEnd else { return }
        isAtEnd = true
        outlet.end(promise: promise(counting: 0))
    }

    private func fail(_ error: LoadError) {
        stop()
        outlet.failed(error, exchange)
    }
}
