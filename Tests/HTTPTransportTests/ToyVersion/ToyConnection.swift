// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import LoadingModel
import NIOCore

@testable import HTTPTransport

/// A connection that answers each request with its method and target, in the loop's next turn.
final class ToyConnection: HTTPConnection {
    let id: Int
    let facts: ConnectionFacts
    var keptChain: KeptChain? { nil }
    var pool: ConnectionPool?
    let initialCapacity: Int?
    private(set) var channelIsActive = true
    private(set) var hasAnswered = false
    private var openCount = 0
    private let loop: any EventLoop
    private let server: ToyServer
    private let closed: EventLoopPromise<Void>

    init(_ facts: ConnectionFacts, _ seed: ConnectionSeed, _ server: ToyServer, _ closed: EventLoopPromise<Void>) {
        id = seed.id
        self.facts = facts
        pool = seed.pool
        loop = seed.pool.loop
        initialCapacity = seed.capacity ?? 2
        self.server = server
        self.closed = closed
    }

    var isIdle: Bool { openCount == 0 }
    var isGone: Bool { !channelIsActive }
    var allowsExtendedConnect: Bool { false }
    var evidenceBeforeRequest: RetryEvidence { .notProcessed(.init(endsConnection: true)) }

    func framedHead(of message: OutgoingMessage) -> RequestHead { message.head }

    func begin(_ message: OutgoingMessage, control: LoadControl) throws(LoadError) -> Exchange {
        guard channelIsActive else { throw LoadError(.connectionLost, "the toy is closed") }
        let exchange = Exchange(
            control: control, carrier: ToyStream(self), facts: facts, version: .toy, isReused: hasAnswered, now: .now())
        openCount += 1
        loop.assumeIsolated().execute { [self] in answer(message.head, exchange) }
        return exchange
    }

    private func answer(_ head: RequestHead, _ exchange: Exchange) {
        guard !exchange.isOver else { return }
        hasAnswered = true
        exchange.receivedHead(ResponseHead(majorVersion: 8, minorVersion: 0, status: 200), .untilClose)
        exchange.received(ByteBuffer(string: "\(head.method) \(head.target)"))
        exchange.end(isComplete: true)
        ended()
    }

    func ended() {
        openCount -= 1
        pool?.exchangeEnded(on: self, reusable: true, keepAlive: nil, now: .now())
    }

    func close() {
        guard channelIsActive else { return }
        channelIsActive = false
        server.note("closed")
        closed.succeed()
        pool = nil
    }

    func giveUp() { if isIdle { close() } else { pool?.drains(self) } }

    func networkIsLost(_ error: LoadError) {
        pool?.connectionClosed(self)
        close()
    }
}

/// Carries one exchange of a toy connection.
private final class ToyStream: ExchangeCarrier {
    private let connection: ToyConnection

    init(_ connection: ToyConnection) { self.connection = connection }

    let mayBypass = false
    let unacknowledgedBytes: Int64 = 0
    let isWritable = false

    func abandon(_ exchange: Exchange) { connection.ended() }
    func setReading(_ wanted: Bool, for exchange: Exchange) {}
    func noteLargeRead(of exchange: Exchange, endingIn piece: ByteBuffer?) -> Bool { false }
    func suspensionChanged(of exchange: Exchange) {}
    func priorityChanged(_ priority: Float, of exchange: Exchange) {}
    func beginBypass(of exchange: Exchange) -> (any Channel)? { nil }
    func endBypass(of exchange: Exchange, moved: Int64) {}
    func write(_ bytes: ByteBuffer, for exchange: Exchange, written: @escaping (Bool) -> Void) { written(false) }
    func linger(for exchange: Exchange, _ patience: TimeAmount) {}
}
