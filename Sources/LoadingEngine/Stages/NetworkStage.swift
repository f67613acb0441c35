//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore

/// Sends the message over a connection of the pool and waits for the head of the response.
struct NetworkStage: LoadStage {
    /// Decoded bytes that are let through whatever they expand from.
    static let decodingFloor: Int64 = 67_108_864

    let pool: ConnectionPool

    func answer(_ hop: Hop, in load: Load, then next: ArraySlice<any LoadStage>) async throws(LoadError) -> Answer {
        guard let message = hop.message, let url = hop.request.url else {
            throw LoadError(.badURL, "the request has no message", url: hop.request.url)
        }
        let transaction = Transaction(request: hop.request, now: .now())
        load.transactions.append(transaction)
        load.lastAttempt = Load.Attempt()
        try await load.control.waitWhileSuspended()
        let connection = try await pool.lease(message.route, priority: load.order.priority, control: load.control)
        let exchange: Exchange
        do {
            exchange = try connection.begin(
                message.head, body: message.body, expectsContinue: message.expectsContinue, control: load.control
            )
        } catch {
            load.lastAttempt.connectionWasReused = true
            pool.giveBack(connection)
            throw error
        }
        transaction.exchange = exchange
        exchange.reportsProgress = load.wants(.sentBytes) || load.wants(.informational)
        load.control.suspensionChanged = { [weak exchange] in exchange?.suspensionChanged() }
        do {
            let head = try await head(of: exchange, sending: message.body, url: url, in: load)
            let response = try response(url: url, head: head, exchange: exchange, method: message.head.method, in: load)
            transaction.response = response.0
            return Answer(
                response: response.0,
                body: ExchangeBody(exchange, decoder: response.1, transaction: transaction),
                transaction: transaction
            )
        } catch {
            load.lastAttempt = Load.Attempt(
                connectionWasReused: exchange.isReused, receivedAnyBytes: exchange.hasReceivedBytes
            )
            exchange.cancel()
            throw error
        }
    }

    /// Waits for the final head, and tells meanwhile what the client wants to hear.
    private func head(
        of exchange: Exchange, sending body: OutgoingBody, url: URL, in load: Load
    ) async throws(LoadError) -> ResponseHead {
        var sent: Int64 = 0
        while true {
            switch try await exchange.nextEvent() {
            case .sent(let bytes):
                sent += bytes
                if bytes > 0, load.wants(.sentBytes) { load.tell(.sent(bytes: bytes, total: sent, expected: body.length ?? 0)) }
            case .informational(let head):
                if load.wants(.informational) { load.tell(.informational(head, url: url)) }
            case .head(let head):
                return head
            }
        }
    }

    private func response(
        url: URL, head: ResponseHead, exchange: Exchange, method: String, in load: Load
    ) throws(LoadError) -> (LoadResponse, ContentDecoder?) {
        var expected: Int64 = -1
        if case .length(let length) = exchange.framing { expected = length }
        if case .none = exchange.framing { expected = method == "HEAD" ? declaredLength(head) : 0 }
        var decoder: ContentDecoder?
        if exchange.framing != .none, head.headers.contains("Content-Encoding") {
            let limit = ContentDecoder.Limit(ratio: load.session.policy.maximumDecodingRatio, floor: Self.decodingFloor)
            do {
                decoder = try ContentDecoder(encodings: head.headers.all("Content-Encoding"), limit: limit)
            } catch {
                throw error.loadError
            }
            if decoder != nil { expected = -1 }
        }
        return (LoadResponse(url: url, kind: .http(head), expectedLength: expected), decoder)
    }

    private func declaredLength(_ head: ResponseHead) -> Int64 {
        head.headers.first("Content-Length").flatMap { Int64($0) } ?? -1
    }
}
