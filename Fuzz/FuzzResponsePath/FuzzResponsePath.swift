// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPWire
import LoadingModel
import NIOCore
import NIOEmbedded

@testable import HTTPTransport
@testable import URLLoading

/// Feeds the input to a connection as the response to a request, as a whole and cut at input-dependent positions.
///
/// The head, body, end and decoded body of the exchange must not depend on the cuts.
///
/// The progress that a task would report is checked throughout. The first byte chooses the request, its content, and what happens
/// at the end; the second byte chooses how the rest is cut.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzResponsePath(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let data, count >= 2 else { return 0 }
    let choices = Choices(data[0])
    let bytes = Array(UnsafeBufferPointer(start: data + 2, count: count - 2))
    let whole = Reading(bytes, choices) { bytes.count }
    var state = UInt32(data[1]) &* 2_654_435_761 | 1
    let pieces = Reading(bytes, choices) {
        state = state &* 1_664_525 &+ 1_013_904_223
        return Int(state >> 24) % 48 + 1
    }
    precondition(whole.seen == pieces.seen, "in pieces: \(pieces.seen)\nwhole: \(whole.seen)")
    if let one = whole.decoded, let other = pieces.decoded, !one.isBomb, !other.isBomb {
        precondition(one == other, "decoded in pieces: \(other)\nwhole: \(one)")
    }
    return 0
}

/// The request, and what happens at the end.
private struct Choices {
    let method: String
    let body: OutgoingBody
    let expectsContinue: Bool
    let closes: Bool
    /// Whether pieces are consumed as they arrive, or only at the end.
    let takesEarly: Bool
    let suspends: Bool

    init(_ byte: UInt8) {
        method = byte & 1 != 0 ? "HEAD" : byte & 2 != 0 ? "POST" : "GET"
        body = byte & 2 == 0 ? .none : byte & 64 == 0 ? .data(Data("a body".utf8)) : .data(Data(count: 100_000))
        expectsContinue = byte & 6 == 6
        closes = byte & 8 != 0
        takesEarly = byte & 16 != 0
        suspends = byte & 32 != 0
    }

    var head: RequestHead {
        var headers = HeaderBlock([("Host", "h")])
        if let length = body.length { headers.append("Content-Length", "\(length)") }
        return RequestHead(method: method, target: "/", headers: headers)
    }
}

/// The result of an exchange, independent of how the bytes were cut.
private struct Reading {
    struct Seen: Equatable {
        var informational: [ResponseHead] = []
        var head: ResponseHead?
        var framing = ResponseParser.Framing.none
        var content: [UInt8] = []
        var trailers: HeaderBlock?
        var failure: LoadError.Kind?
        var isComplete = false
        var isReusable = false
    }

    /// The body after decoding its content codings.
    struct Decoded: Equatable {
        var content: [UInt8] = []
        var failure: DecodingFailure?
        var isBomb: Bool { if case .bomb = failure { true } else { false } }
    }

    private(set) var seen = Seen()
    private(set) var decoded: Decoded?
    /// The number of bytes of the request's body that were reported as sent; `receivedCount` counts those of the response's body.
    private var sentCount: Int64 = 0
    private var receivedCount: Int64 = 0
    private var pieces: [ByteBuffer] = []
    private var sentIn: [TransferCodings.Compression] = []
    private let channel = EmbeddedChannel()
    private let connection = HTTP1Connection(id: 1, facts: .inClear)
    private static let limit = ContentDecoder.Limit(ratio: 50, floor: 4_096)

    init(_ bytes: [UInt8], _ choices: Choices, step: () -> Int) {
        defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
        let control = LoadControl(on: LoopExecutor(channel.eventLoop), now: .now())
        guard (try? channel.pipeline.syncOperations.addHandler(connection)) != nil,
            (try? channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 80)).wait()) != nil,
            let exchange = try? connection.begin(
                OutgoingMessage(head: choices.head, body: choices.body, expectsContinue: choices.expectsContinue),
                control: control
            )
        else { preconditionFailure("the exchange cannot begin") }
        control.enter(.exchanging(exchange))
        // The exchange and the control reference each other until the load is over.
        defer { control.enter(.elsewhere) }

        var start = 0
        while start < bytes.count, channel.isActive {
            let end = min(bytes.count, start + step())
            if choices.suspends { control.suspend() }
            feed(bytes[start..<end])
            if choices.suspends { control.resume(now: .now()) }
            if choices.takesEarly { take(exchange) }
            checkProgress(exchange, choices)
            start = end
        }
        if exchange.isOver {
            take(exchange)
            tryAgain(after: exchange, choices)
        }
        if choices.closes || exchange.isOver {
            channel.close(promise: nil)
            channel.embeddedEventLoop.run()
        } else {
            exchange.cancel()
            channel.embeddedEventLoop.run()
            precondition(!channel.isActive, "a connection was kept after an incomplete message")
        }
        take(exchange)
        conclude(exchange)
        decode()
    }

    private func feed(_ bytes: some Collection<UInt8>) {
        channel.pipeline.fireChannelRead(ByteBuffer(bytes: bytes))
        channel.pipeline.fireChannelReadComplete()
        channel.embeddedEventLoop.run()
        while let sent = try? channel.readOutbound(as: IOData.self) { _ = sent }
    }

    private mutating func take(_ exchange: Exchange) {
        events: while let event = exchange.takeEvent() {
            switch event {
            case .informational(let head):
                precondition(head.status / 100 == 1, "not informational")
                seen.informational.append(head)
            case .sent(_, let total): sentCount = total
            case .head: break events
            }
        }
        while let piece = exchange.takeBuffered() {
            precondition(piece.readableBytes > 0, "an empty piece")
            receivedCount += Int64(piece.readableBytes)
            pieces.append(piece)
        }
    }

    /// Checks the progress that a task would report.
    private func checkProgress(_ exchange: Exchange, _ choices: Choices) {
        var expected: Int64 = -1
        if case .length(let length) = exchange.framing { expected = length }
        let toSend = Int64(choices.body.length ?? 0)
        let counts = ProgressCounts(
            sent: sentCount, expectedToSend: toSend, received: receivedCount, expectedToReceive: expected,
            hasResponse: exchange.hasHead, isComplete: exchange.hasWholeBody)
        precondition(counts.done >= max(sentCount, receivedCount), "less progress than bytes")
        precondition(counts.total == -1 || counts.total >= counts.done, "more progress than the total")
        precondition(
            expected <= 0 || exchange.hasWholeBody || counts.total >= max(expected, toSend), "the total is too small")
    }

    /// Checks that only a reusable connection carries another exchange, which receives no bytes of the first exchange.
    private mutating func tryAgain(after first: Exchange, _ choices: Choices) {
        let control = LoadControl(on: LoopExecutor(channel.eventLoop), now: .now())
        let isReusable = connection.channelIsActive
        // While the task is suspended, the request's body waits. So it depends on the cuts how much of the body was sent when the
        // response ends.
        seen.isReusable = isReusable && choices.body.length == nil
        let head = RequestHead(method: "GET", target: "/2", headers: HeaderBlock([("Host", "h")]))
        let second = try? connection.begin(OutgoingMessage(head: head), control: control)
        precondition((second != nil) == isReusable, "a next exchange: \(second != nil), reusable: \(isReusable)")
        precondition(channel.isActive == isReusable, "not reusable, but not closed")
        guard let second else { return }
        precondition(first.hasWholeBody, "reusable after a failure")
        precondition(
            second.takeEvent() == nil && !second.record.hasReceivedBytes && !second.isOver, "bytes of the first exchange")
        feed("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc".utf8)
        precondition(second.head?.status == 200 && second.hasWholeBody, "the second exchange failed")
        precondition(second.takeBuffered().map { Array($0.readableBytesView) } == Array("abc".utf8), "not the second's body")
        precondition(first.takeBuffered() == nil, "the second's bytes went to the first")
    }

    private mutating func conclude(_ exchange: Exchange) {
        precondition(exchange.isOver, "the connection is closed, but the exchange still waits")
        seen.head = exchange.head
        seen.framing = exchange.framing
        sentIn = exchange.transferCompressions
        seen.content = pieces.flatMap { Array($0.readableBytesView) }
        seen.isComplete = exchange.hasWholeBody
        seen.trailers = exchange.trailers
        seen.failure = exchange.failureKind()
        precondition(seen.isComplete == (seen.failure == nil), "neither complete nor failed")
        // A cancelled exchange drops unread pieces.
        guard seen.failure != .cancelled else {
            seen = Seen(failure: .cancelled)
            return
        }
        precondition(exchange.record.responseBodyBytes == Int64(seen.content.count), "content was not counted")
        guard seen.isComplete else { return }
        precondition(seen.head != nil, "complete without a head")
        switch exchange.framing {
        case .none: precondition(seen.content.isEmpty, "content in a response without content")
        case .length(let length): precondition(length == Int64(seen.content.count), "the length differs from the announced one")
        default: break
        }
    }

    private mutating func decode() {
        guard seen.framing != .none, let head = seen.head else { return }
        var result = Decoded()
        do throws(DecodingFailure) {
            let decoder = try ContentDecoder(encodings: head.headers.all("Content-Encoding"), transfer: sentIn, limit: Self.limit)
            guard let decoder else { return }
            for piece in pieces {
                decoder.push(piece)
                try drain(decoder, &result)
            }
            if seen.isComplete { try decoder.finish() }
        } catch {
            result.failure = error
        }
        decoded = result
    }

    private func drain(_ decoder: ContentDecoder, _ result: inout Decoded) throws(DecodingFailure) {
        while let piece = try decoder.next() {
            precondition(piece.readableBytes <= ContentDecoder.pieceSize, "a piece of \(piece.readableBytes) bytes")
            result.content += piece.readableBytesView
            precondition(Int64(result.content.count) == decoder.decodedBytes, "decoded bytes were not counted")
            let bound = max(Self.limit.floor, Self.limit.ratio * decoder.codedBytes) + Int64(ContentDecoder.pieceSize)
            precondition(decoder.decodedBytes <= bound, "\(decoder.decodedBytes) bytes of \(decoder.codedBytes)")
        }
    }
}

extension ConnectionFacts {
    fileprivate static var inClear: ConnectionFacts {
        ConnectionFacts(
            localAddress: nil, localPort: nil, remoteAddress: "127.0.0.1", remotePort: 80, tlsVersion: nil, tlsCipherSuite: nil,
            domainLookupStart: nil, domainLookupEnd: nil, connectStart: nil, secureConnectionStart: nil, secureConnectionEnd: nil,
            connectEnd: nil
        )
    }
}

/// Passes an exchange to a task that ends before the function that creates the task returns.
///
/// Sendable because both run on the same thread, that of the event loop.
private final class Carrier: @unchecked Sendable {
    let exchange: Exchange
    var answer: LoadError.Kind??

    init(_ exchange: Exchange) { self.exchange = exchange }
}

extension Exchange {
    /// The kind of the error that `next()` throws when the exchange is over and its pieces were consumed.
    fileprivate func failureKind() -> LoadError.Kind? {
        let carrier = Carrier(self)
        Task.immediate {
            do throws(LoadError) {
                let piece = try await carrier.exchange.next()
                precondition(piece == nil, "a piece was left")
                carrier.answer = .some(nil)
            } catch {
                carrier.answer = .some(error.kind)
            }
        }
        guard let answer = carrier.answer else { preconditionFailure("next() waits although the exchange is over") }
        return answer
    }
}
