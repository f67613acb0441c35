//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import FoundationEssentials
import HTTPTransport
import LoadingModel
import NIOCore

/// The body of a network response, its content coding undone.
final class ExchangeBody: ResponseBody {
    private let exchange: Exchange
    private let decoder: ContentDecoder?
    private let transaction: Transaction
    private let load: Load
    /// What is decoded in one turn of the loop, a millisecond's work.
    private static let decodedPerTurn = 262_144
    private var codedIsComplete = false
    private var decodedInTurn = 0

    init(_ exchange: Exchange, decoder: ContentDecoder?, transaction: Transaction, of load: Load) {
        self.load = load
        self.exchange = exchange
        self.decoder = decoder
        self.transaction = transaction
    }

    func next() async throws(LoadError) -> ByteBuffer? {
        guard let decoder else {
            if isStillSending { await tellWhileSending() }
            let piece = try await exchange.next()
            if let piece { transaction.bodyBytesAfterDecoding += Int64(piece.readableBytes) }
            return piece
        }
        return try await next(through: decoder)
    }

    func cancel() { exchange.cancel() }

    func takeWhole() -> Data? {
        guard decoder == nil, exchange.hasSentRequest, let whole = exchange.takeWhole() else { return nil }
        transaction.bodyBytesAfterDecoding += Int64(whole.readableBytes)
        return Data(whole)
    }

    /// Has the body go straight into a file, where that is possible and worth it; answers false where it is to be taken piece by piece.
    func splice(into sink: FileSink, progress: (Int64) -> Void) async throws(LoadError) -> Bool {
        guard decoder == nil, exchange.maySplice else { return false }
        return try await exchange.splice(into: sink) { count in
            transaction.bodyBytesAfterDecoding += count
            load.tellSent()
            progress(count)
        }
    }

    /// The server answers before it has the whole request, and somebody wants to hear how that goes on.
    private var isStillSending: Bool { !exchange.hasSentRequest && load.wants(.sentBytes) }

    /// Tells how the request's body goes out until there is something of the response, or the end.
    private func tellWhileSending() async {
        load.tellSent()
        while !exchange.hasNext, !exchange.hasSentRequest {
            await load.control.wait()
            load.tellSent()
        }
    }

    private func next(through decoder: ContentDecoder) async throws(LoadError) -> ByteBuffer? {
        // Nothing is decoded ahead of demand, so a bomb grows no faster than it is taken.
        while true {
            if decodedInTurn >= Self.decodedPerTurn { try await takeTurn() }
            do {
                if let piece = try decoder.next() {
                    decodedInTurn += piece.readableBytes
                    // Much was decoded, and nothing came of it.
                    guard piece.readableBytes > 0 else {
                        decodedInTurn = Self.decodedPerTurn
                        continue
                    }
                    transaction.bodyBytesAfterDecoding += Int64(piece.readableBytes)
                    return piece
                }
            } catch {
                throw fail(error)
            }
            if codedIsComplete { return nil }
            if isStillSending { await tellWhileSending() }
            if let coded = try await exchange.next() {
                decoder.push(coded)
            } else {
                codedIsComplete = true
                do { try decoder.finish() } catch { throw fail(error) }
            }
        }
    }

    /// Lets others have their turn on the loop; the load may have been cancelled or suspended meanwhile.
    private func takeTurn() async throws(LoadError) {
        decodedInTurn = 0
        await load.session.turns.next()
        try await load.control.waitWhileSuspended()
    }

    private func fail(_ error: DecodingFailure) -> LoadError {
        exchange.cancel()
        return error.loadError
    }
}
