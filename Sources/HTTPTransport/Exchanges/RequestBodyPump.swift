//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import FoundationEssentials
import HTTPWire
import LoadingModel
import NIOCore

/// Sends the body of one request, as fast as the peer takes it and no faster.
///
/// It runs beside the load, on callbacks of the channel: the response may come at any time (RFC 9112, section 9.5 and RFC 9110,
/// section 10.1.1), and an answer that refuses stops it. A body of known length is sent as it is, any other with the chunked coding.
///
/// Confined to the channel's event loop.
final class RequestBodyPump {
    private enum State {
        /// Nothing of the body is sent before 100 (Continue), a final response, or the end of patience.
        case waitingForContinue
        case sending
        case stopped
    }

    private static let pieceSize = 262_144
    /// What sendfile(2) is asked for at once; progress and cancellation are seen in between.
    private static let regionSize = 1_048_576
    private static let fileWatchInterval = TimeAmount.milliseconds(250)
    /// What curl waits for 100 (Continue).
    private static let patience = TimeAmount.seconds(1)

    private let body: OutgoingBody
    private let isChunked: Bool
    private let exchange: Exchange
    private let context: ChannelHandlerContext
    private unowned let connection: HTTP1Connection
    private var state = State.sending
    /// Bytes of the body taken from its source.
    private var taken: Int64 = 0
    private var isAtEnd = false
    private var isFetching = false
    /// A body's file, from when its first part is sent.
    private var source: FileSource?
    private var writesInFlight = 0
    private var patienceTimer: Scheduled<Void>?
    private var fileWatch: Scheduled<Void>?

    init(body: OutgoingBody, exchange: Exchange, context: ChannelHandlerContext, connection: HTTP1Connection) {
        self.body = body
        isChunked = (body.length ?? 0) < 0
        self.exchange = exchange
        self.context = context
        self.connection = connection
    }

    var isStopped: Bool { if case .stopped = state { true } else { false } }

    /// Writes the head, and the body as far as the peer takes it.
    func start(after head: ByteBuffer, waitingForContinue waits: Bool) {
        guard waits else {
            context.write(wrap(head), promise: nil)
            sendMore()
            context.flush()
            return
        }
        state = .waitingForContinue
        context.writeAndFlush(wrap(head), promise: nil)
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        patienceTimer = context.eventLoop.scheduleTask(in: Self.patience) { bound.value.receivedContinue() }
    }

    func receivedContinue() {
        guard case .waitingForContinue = state else { return }
        patienceTimer?.cancel()
        state = .sending
        sendMore()
        context.flush()
    }

    /// A final response came before the body was out: one that refuses, or that did not wait for the body, ends the sending.
    func receivedFinalHead(status: Int) {
        switch state {
        case .waitingForContinue: stop()
        case .sending where status >= 300: stop()
        case .sending, .stopped: break
        }
    }

    func writabilityChanged() {
        guard maySend else { return }
        sendMore()
        context.flush()
    }

    func stop() {
        guard !isStopped else { return }
        state = .stopped
        patienceTimer?.cancel()
        fileWatch?.cancel()
        if case .stream(let stream, _) = body { stream.close() }
    }

    // MARK: Sending

    /// The peer takes more, and the task is not suspended.
    private var maySend: Bool {
        guard case .sending = state else { return false }
        return context.channel.isWritable && !exchange.control.isSuspended
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
            let end = min(start + Self.pieceSize, data.endIndex)
            write(data[start..<end])
            if end == data.endIndex { finish() }
        }
    }

    private func sendFile(_ file: BodyFile) {
        while maySend, !isAtEnd, !isFetching, writesInFlight < 2 {
            let remaining = file.length - taken
            guard remaining > 0 else { return finish() }
            guard let source else { return open(file) }
            let count = Int(min(remaining, Int64(Self.regionSize)))
            if source.usesSendfile, let region = source.region(offset: taken, count: count) {
                taken += Int64(count)
                write(NIOAny(region), counting: count)
                watch(source)
            } else {
                fetch(from: source, count: Int(min(remaining, Int64(Self.pieceSize))))
            }
        }
    }

    private func open(_ file: BodyFile) {
        isFetching = true
        file.open(on: context.eventLoop) { [self] result in
            isFetching = false
            guard case .sending = state else { return }
            switch result {
            case .success(let opened):
                source = opened
                sendMore()
                context.flush()
            case .failure(let error):
                fail(error)
            }
        }
    }

    /// sendfile(2) of what the file no longer has would be tried for ever; so the file is looked at while a part of it is under way.
    private func watch(_ source: FileSource) {
        guard fileWatch == nil else { return }
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        fileWatch = context.eventLoop.scheduleTask(in: Self.fileWatchInterval) {
            let pump = bound.value
            guard pump.writesInFlight > 0, !pump.isStopped else {
                pump.fileWatch = nil
                return
            }
            source.look(sendingUpTo: pump.taken, on: bound.eventLoop) { failure in
                pump.fileWatch = nil
                guard pump.writesInFlight > 0, !pump.isStopped else { return }
                if let failure { pump.fail(failure) } else { pump.watch(source) }
            }
        }
    }

    private func fetch(from source: FileSource, count: Int) {
        isFetching = true
        source.read(offset: taken, count: count, on: context.eventLoop) { [self] result in
            isFetching = false
            guard case .sending = state else { return }
            switch result {
            case .success(let buffer):
                taken += Int64(buffer.readableBytes)
                write(wrap(buffer), counting: buffer.readableBytes)
                sendMore()
                context.flush()
            case .failure(let error):
                fail(error)
            }
        }
    }

    private func fetch(from stream: any BodyStream, length: Int64?) {
        guard maySend, !isAtEnd, !isFetching else { return }
        isFetching = true
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        stream.read(upTo: Self.pieceSize / 4) { result in
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
        context.flush()
    }

    private func write(_ data: Data) {
        taken += Int64(data.count)
        var buffer = context.channel.allocator.buffer(capacity: data.count + 16)
        if isChunked {
            guard !data.isEmpty else { return }
            buffer.writeBytes(ChunkedBody.frameHead(length: data.count))
        }
        data.withUnsafeBytes { _ = buffer.writeBytes($0) }
        if isChunked { buffer.writeBytes(ChunkedBody.frameTail) }
        write(wrap(buffer), counting: data.count)
    }

    private func write(_ bytes: NIOAny, counting count: Int) {
        writesInFlight += 1
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenSuccess { [self] in
            writesInFlight -= 1
            exchange.control.markProgress(.now())
            exchange.sent(Int64(count))
            if isAtEnd, writesInFlight == 0 {
                connection.requestBodyCompleted(exchange)
            } else if case .file = body {
                writabilityChanged()
            }
        }
        context.write(bytes, promise: promise)
    }

    private func finish() {
        guard !isAtEnd else { return }
        isAtEnd = true
        if isChunked {
            var last = context.channel.allocator.buffer(capacity: 8)
            last.writeBytes(ChunkedBody.lastChunk)
            write(wrap(last), counting: 0)
        } else if writesInFlight == 0 {
            write(wrap(ByteBuffer()), counting: 0)
        }
    }

    private func fail(_ error: LoadError) {
        stop()
        connection.requestBodyFailed(error, exchange)
    }

    private func wrap(_ buffer: ByteBuffer) -> NIOAny { NIOAny(buffer) }
}
