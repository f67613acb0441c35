// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import LoadingModel
import NIOCore

@testable import HTTPTransport

/// A load of a history: leases a connection, begins its exchange, and takes what arrives.
///
/// Confined to the thread of its loop.
final class HTTP3HistoryLoad {
    let number: Int
    let control: LoadControl
    private let message: OutgoingMessage
    private let body: HistoryBody?
    private let network: FakeQUICNetwork
    private var lease: ConnectionPool.Lease?
    private(set) var exchange: Exchange?
    private(set) var connection: HTTP3Connection?
    private(set) var stream: Int64?
    /// Released when all of the body's writes were answered.
    private(set) weak var pump: RequestBodyPump?
    /// How the exchange ended: "complete", or the kind of its error; nil while it is not over, or not all was taken.
    private(set) var outcome: String?
    private var content = 0
    private var hasWrongContent = false
    private var headCount = 0
    /// The number of writes of a switched exchange, and of those that were answered.
    private var writeCount = 0
    private var answerCount = 0

    init(_ number: Int, _ message: OutgoingMessage, _ body: HistoryBody?, _ network: FakeQUICNetwork) {
        self.number = number
        self.message = message
        self.body = body
        self.network = network
        let (lease, control) = network.lease()
        self.lease = lease
        self.control = control
    }

    /// What the load still waits for.
    var need: String? {
        if let lease { return lease.isAnswered ? "to take its connection" : "a connection" }
        return exchange?.isOver == false ? "its exchange" : nil
    }

    /// Begins the exchange if there is a connection; returns whether it has begun.
    @discardableResult
    func proceed() -> Bool {
        guard let lease, !control.isSuspended || control.failure != nil else { return false }
        guard lease.isAnswered else {
            // While it was suspended, the load has left the queue.
            if control.queuePosition == nil { queue() }
            return false
        }
        self.lease = nil
        do throws(LoadError) {
            let leased = try network.pool.take(lease)
            guard leased.allowsExchange else {
                network.pool.giveBack(leased)
                // The load waits for a place again.
                queue()
                return false
            }
            guard !message.asksToSwitch || leased.allowsExtendedConnect else {
                network.pool.giveBack(leased)
                return false
            }
            do throws(LoadError) {
                let exchange = try leased.begin(message, control: control)
                control.enter(.exchanging(exchange))
                self.exchange = exchange
                connection = leased as? HTTP3Connection
                pump = (exchange.carrier as? HTTP3Stream)?.pump
                stream = (exchange.carrier as? HTTP3Stream)?.id ?? connection.map { ($0.quic.requestCount - 1) * 4 }
                return true
            } catch {
                network.pool.giveBack(leased)
                return false
            }
        } catch {
            return false
        }
    }

    private func queue() { lease = network.pool.acquire(FakeQUICNetwork.route, priority: 0.5, control: control) }

    func write(_ count: Int) {
        guard let exchange, exchange.hasSwitched, !exchange.isOver else { return }
        writeCount += 1
        exchange.write(ByteBuffer(repeating: 1, count: count)) { [self] _ in answerCount += 1 }
    }

    func linger() {
        if let exchange, exchange.hasSwitched { exchange.linger(.seconds(1)) }
    }

    /// Takes what has arrived.
    func take() {
        guard let exchange, outcome == nil, !control.isSuspended else { return }
        events: while let event = exchange.takeEvent() {
            if case .head = event { break events }
        }
        while let piece = exchange.takeBuffered() {
            if let stream {
                let expected = FakeQUIC.content(stream, at: content, count: piece.readableBytes)
                if piece != ByteBuffer(bytes: expected) { hasWrongContent = true }
            }
            content += piece.readableBytes
            exchange.updateReading()
        }
        if exchange.isOver { outcome = Self.outcome(of: exchange) }
    }

    private static func outcome(of exchange: Exchange) -> String {
        let carrier = Carrier(exchange)
        Task.immediate {
            do throws(LoadError) {
                carrier.outcome = try await carrier.exchange.next() == nil ? "complete" : "a piece was left"
            } catch {
                carrier.outcome = "\(error.kind)"
            }
        }
        return carrier.outcome ?? "it waits although the exchange is over"
    }

    /// Passes an exchange to a task that ends before the function that creates the task returns.
    //
    // `@unchecked`: both run on the same thread.
    private final class Carrier: @unchecked Sendable {
        let exchange: Exchange
        var outcome: String?

        init(_ exchange: Exchange) { self.exchange = exchange }
    }

    /// Checks what must hold at any time.
    func check(_ fake: FakeQUIC?, _ fault: (String) -> Void) {
        guard let exchange else { return }
        if answerCount > writeCount { fault("a write was answered twice") }
        if exchange.isOver, answerCount < writeCount, exchange.carrier == nil { fault("a write was not answered") }
        if let body, exchange.isOver, exchange.carrier == nil, !body.isClosed, body.readCount > 0 {
            fault("the body's stream is open")
        }
        guard let outcome else { return }
        if control.failure == nil, !control.isSuspended, Self.outcome(of: exchange) != outcome {
            fault("it ended twice: \(outcome)")
        }
        if hasWrongContent { fault("the content is not the server's") }
        guard outcome == "complete", !exchange.asksToSwitch else { return }
        if let stream, fake?.streams[stream]?.hasResponse == false { fault("complete before the end") }
        guard let head = exchange.head else { return fault("complete without a head") }
        if head.status < 200 { fault("complete with an informational head") }
        if case .length(let length) = exchange.framing, length != Int64(content) {
            fault("\(content) bytes instead of \(length)")
        }
        if exchange.record.responseBodyBytes != Int64(content) { fault("content was not counted") }
        if message.head.method == "HEAD", content > 0 { fault("content of HEAD") }
    }

    /// Drops what refers to each other.
    func release() {
        control.enter(.elsewhere)
        exchange = nil
        connection = nil
    }
}
