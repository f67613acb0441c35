// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import LoadingModel
import NIOCore
import TransportMachines

/// The byte stream of a stream task's load: its connection, and the app's reads and writes.
///
/// ``StreamMachine`` decides the order of the steps. Confined to the session's event loop.
final class StreamLoad: LoadKind {
    /// The number of bytes of a write that are passed to the connection at a time.
    private static let pieceSize = 131_072
    /// How long to wait for the peer to end the connection once both sides are closed.
    private static let patience = TimeAmount.seconds(5)
    /// The minimum time by which the timeout of a read or write is extended, in seconds.
    ///
    /// If the timeout passes while the task is suspended, the same timeout starts again.
    private static let shortestExtension = 1.0

    private var order: StreamOrder
    private var machine = StreamMachine()
    private var connection: ByteStreamConnection?
    /// Commands and timeouts that the load has not processed yet, in order.
    private var pendingInputs = CircularBuffer<PendingInput>()
    private var results = CircularBuffer<StreamMachine.Event>()
    /// The data to be written, by the number of the write.
    private var payloads: [Int: Data] = [:]
    private var timers: [Int: Scheduled<Void>] = [:]
    /// The number of bytes of the current write that were passed to the connection.
    private var written = 0
    private var isWriting = false
    /// The number of the connection's unread bytes that were reported to the machine.
    private var known = 0
    private var isHeld = false
    /// Whether there is no connection yet, or TLS is being negotiated.
    ///
    /// In both cases, only timeouts are processed.
    private var waits = true

    private enum PendingInput {
        case command(StreamCommand)
        /// The timeout of a read or write has passed.
        case late(Int)
    }

    init(_ order: StreamOrder) {
        self.order = order
        pendingInputs.append(contentsOf: order.queued.map { .command($0) })
    }

    override var runsItself: Bool { true }
    override var allowsAppRetries: Bool { false }

    // MARK: The app

    override func take(_ command: TaskCommand, for load: Load) {
        guard case .stream(let command) = command else { return }
        pendingInputs.append(.command(command))
        limit(command, of: load)
        load.control.wake()
    }

    /// Starts the timeout of a read or write, which begins when the app makes the call.
    private func limit(_ command: StreamCommand, of load: Load) {
        switch command {
        case .read(let number, _, _, let timeout?), .write(let number, _, let timeout?): startTimer(number, timeout, of: load)
        default: break
        }
    }

    private func startTimer(_ number: Int, _ timeout: Double, of load: Load) {
        let bound = NIOLoopBound((stream: self, load: load), eventLoop: load.session.loop)
        timers[number] = load.session.loop.scheduleTask(in: .nanoseconds(Int64(min(timeout, 1e9) * 1e9))) {
            let (stream, load) = bound.value
            guard stream.timers[number] != nil else { return }
            guard !load.control.isSuspended else {
                return stream.startTimer(number, max(timeout, Self.shortestExtension), of: load)
            }
            stream.timers[number] = nil
            stream.pendingInputs.append(.late(number))
            if stream.waits { stream.refuseLate(of: load) } else { load.control.wake() }
        }
    }

    private func refuseLate(of load: Load) {
        while let event = nextEvent() {
            for case .refuse(let number, let refusal) in machine.handle(event) { refuse(number, refusal, of: load) }
        }
    }

    private func refuse(_ number: Int, _ refusal: StreamMachine.Refusal, of load: Load) {
        stopTimer(number)
        payloads[number] = nil
        load.tell(.stream(.failed(number, Self.error(refusal))))
    }

    // MARK: The load

    /// Connects, then reads and writes until both sides are closed.
    override func run(by stages: any HopStages, in load: Load) async throws(LoadError) -> TaskOutcome.Body {
        for command in order.queued { limit(command, of: load) }
        order = try await order.located(in: load)
        let (target, url) = try order.target()
        load.begin(Transaction(request: LoadRequest(url: nil), now: load.control.lastProgress))
        load.transaction?.sentBodyLength = -1
        let connection = try await StreamConnecting(target: target, url: url, pool: stages.pool, addresses: order.addresses)
            .connect(in: load)
        load.transaction?.connection = connection.facts
        try await run(on: connection, in: load)
        return .none
    }

    /// Reads and writes until both sides are closed.
    func run(on connection: ByteStreamConnection, in load: Load) async throws(LoadError) {
        self.connection = connection
        sentCount = load.transaction?.exchange?.sentBodyBytes ?? 0
        let bound = NIOLoopBound(load, eventLoop: load.session.loop)
        connection.takeOver { bound.value.control.wake() }
        // The request timeout limited connecting; reads and writes have their own timeouts.
        load.control.hold(now: .now())
        defer { load.control.endHold(now: .now()) }
        isHeld = load.control.isSuspended
        results.append(.held(isHeld))
        // Bytes that have already arrived are reported first, because they precede any TLS that the app requests.
        look(at: connection, of: load)
        if connection.facts.tlsVersion != nil { results.append(.secured) }
        results.append(.opened)
        waits = false
        while !machine.isOver {
            try load.control.check()
            look(at: connection, of: load)
            if let event = nextEvent() {
                for action in machine.handle(event) { try await perform(action, on: connection, of: load) }
            } else if let failure = connection.failure, !machine.hasUnread {
                throw failure
            } else if mayWrite(on: connection, of: load) {
                writeMore(on: connection, of: load)
                // A peer that accepts data immediately must not starve other work on the loop.
                if mayWrite(on: connection, of: load) { await load.session.executor.turns.next() }
            } else {
                connection.read(upTo: machine.wanted, isHeld: load.control.isSuspended)
                if !hasPendingWork(connection, of: load) { await load.control.wait() }
            }
        }
        connection.linger(Self.patience)
        self.connection = nil
    }

    /// Releases everything when the load is over.
    override func end() {
        for timer in timers.values { timer.cancel() }
        timers = [:]
        payloads = [:]
        pendingInputs.removeAll()
        connection?.close()
        connection = nil
    }

    /// Whether there is something to process before the load waits.
    private func hasPendingWork(_ connection: ByteStreamConnection, of load: Load) -> Bool {
        !results.isEmpty || !pendingInputs.isEmpty || load.control.failure != nil
            || connection.failure != nil && !machine.hasUnread
            || isHeld != load.control.isSuspended || connection.mayHaveBetterRoute
    }

    /// Turns changes of the connection and the load into events.
    private func look(at connection: ByteStreamConnection, of load: Load) {
        if isHeld != load.control.isSuspended {
            isHeld.toggle()
            results.append(.held(isHeld))
        }
        if connection.mayHaveBetterRoute {
            connection.mayHaveBetterRoute = false
            load.tell(.stream(.foundBetterRoute))
        }
        if connection.readableBytes > known {
            let count = connection.readableBytes - known
            known += count
            load.transaction?.bodyBytes += Int64(count)
            load.transaction?.bodyBytesAfterDecoding += Int64(count)
            load.received(Int64(count), total: load.body.received + Int64(count), expected: -1)
            results.append(.received(count))
        }
        if connection.hasEnded, !hasReportedEnd {
            hasReportedEnd = true
            results.append(.inputEnded)
        }
    }

    private var hasReportedEnd = false

    private func nextEvent() -> StreamMachine.Event? {
        if let result = results.popFirst() { return result }
        switch pendingInputs.popFirst() {
        case nil: return nil
        case .late(let number)?: return .timedOut(number)
        case .command(let command)?: return event(of: command)
        }
    }

    private func event(of command: StreamCommand) -> StreamMachine.Event {
        switch command {
        case .read(let number, let minimum, let maximum, _):
            return .asked(.read(number, minimum: minimum, maximum: maximum))
        case .write(let number, let data, _):
            payloads[number] = data
            return .asked(.write(number))
        case .closeRead: return .asked(.closeRead)
        case .closeWrite: return .asked(.closeWrite)
        case .stopReading: return .asked(.stopReading)
        case .secure: return .asked(.secure)
        case .capture: return .asked(.capture)
        }
    }

    private func perform(
        _ action: StreamMachine.Action, on connection: ByteStreamConnection, of load: Load
    ) async throws(LoadError) {
        switch action {
        case .deliver(let number, let count, let isAtEnd):
            stopTimer(number)
            known -= count
            load.tell(.stream(.read(number, count == 0 ? nil : Data(sharing: connection.take(count)), isAtEnd: isAtEnd)))
        case .write(let number):
            writing = number
            written = 0
            writeMore(on: connection, of: load)
        case .refuse(let number, let refusal): refuse(number, refusal, of: load)
        case .closeOutput:
            connection.closeOutput { [self] in
                results.append(.outputClosed)
                load.control.wake()
            }
        case .discardInput:
            known = 0
            connection.discardInput()
        case .tellReadClosed: load.tell(.stream(.readClosed))
        case .tellWriteClosed: load.tell(.stream(.writeClosed))
        case .capture: load.tell(.stream(.captured))
        case .secure: try await secure(connection, of: load)
        case .end: break
        case .fail(let failure): throw failure.loadError
        }
    }

    private func stopTimer(_ number: Int) { timers.removeValue(forKey: number)?.cancel() }

    private static func error(_ refusal: StreamMachine.Refusal) -> LoadError {
        switch refusal {
        case .lengths:
            LoadError(
                .dataLengthExceedsMaximum,
                "minBytes must not be negative, maxBytes must be at least 1, and minBytes must not exceed maxBytes")
        case .closed: LoadError(.connectionLost, "that side of the stream is closed")
        case .timeout: LoadError(.timedOut, "the read or write did not complete within its timeout")
        }
    }

    // MARK: Writing

    /// The number of the write in progress.
    private var writing: Int?
    private var sentCount: Int64 = 0

    /// Whether there is a piece to write, and the connection accepts it.
    private func mayWrite(on connection: ByteStreamConnection, of load: Load) -> Bool {
        writing != nil && !isWriting && !load.control.isSuspended && connection.isWritable
    }

    /// Passes the next piece of the write to the connection.
    ///
    /// The load's run loop continues with the piece after it.
    private func writeMore(on connection: ByteStreamConnection, of load: Load) {
        guard mayWrite(on: connection, of: load), let number = writing, let data = payloads[number] else { return }
        let piece = data.dropFirst(written).prefix(Self.pieceSize)
        written += piece.count
        isWriting = true
        let bytes = ByteBuffer(bytes: piece)
        connection.write(bytes) { [self] isTaken in
            isWriting = false
            // A connection that did not accept the piece is lost, and reports the loss itself.
            guard isTaken, writing == number else { return }
            sentCount += Int64(bytes.readableBytes)
            if load.wants(.sentBytes) { load.tellSent(Int64(bytes.readableBytes), total: sentCount) }
            if written == data.count { wrote(number, of: load) } else { load.control.wake() }
        }
    }

    private func wrote(_ number: Int, of load: Load) {
        writing = nil
        payloads[number] = nil
        stopTimer(number)
        load.tell(.stream(.wrote(number)))
        results.append(.written)
        load.control.wake()
    }

    // MARK: TLS

    private func secure(_ connection: ByteStreamConnection, of load: Load) async throws(LoadError) {
        guard connection.readableBytes == 0 else { throw StreamMachine.Failure.unreadBytes.loadError }
        // The host name in the form that certificates use.
        let origin = try order.target().0.origin
        waits = true
        // The request timeout limits the TLS handshake.
        load.control.endHold(now: .now())
        load.control.markProgress(.now())
        defer {
            load.control.hold(now: .now())
            waits = false
        }
        try await connection.secure(to: ServerName(host: origin.host, port: origin.port), in: load)
        results.append(.secured)
        load.transaction?.connection = connection.facts
    }
}
