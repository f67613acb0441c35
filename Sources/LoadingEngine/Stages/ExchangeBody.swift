// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPTransport
import LoadingModel
import NIOCore

/// The body of a network response, with its content coding decoded.
final class ExchangeBody: ResponseBody {
    private let exchange: Exchange
    private let decoder: ContentDecoder?
    private let transaction: Transaction
    private let load: Load
    /// The number of bytes to decode in one turn of the loop, about a millisecond's work.
    ///
    /// Decoding stops earlier after ``timePerTurn``, because some input expands slowly.
    private static let decodedPerTurn = 262_144
    private static let timePerTurn = TimeAmount.milliseconds(2)
    private var codedIsComplete = false
    private var decodedInTurn = 0
    private var timeInTurn = TimeAmount.zero
    /// Pieces that another thread has decoded and that have not been returned yet.
    ///
    /// Nil for most bodies, because an empty buffer also takes memory.
    private var decodedOnThread: CircularBuffer<ByteBuffer>?

    init(_ exchange: Exchange, decoder: ContentDecoder?, transaction: Transaction, of load: Load) {
        self.load = load
        self.exchange = exchange
        self.decoder = decoder
        self.transaction = transaction
    }

    func next() async throws(LoadError) -> ByteBuffer? {
        guard let decoder else {
            if isStillSending { await reportWhileSending() }
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

    /// Transfers the body directly into a file, if that is possible and worthwhile.
    ///
    /// Returns false if the body has to be read in pieces.
    func splice(into sink: FileSink, progress: (Int64) -> Void) async throws(LoadError) -> Bool {
        guard decoder == nil, exchange.maySplice else { return false }
        return try await exchange.splice(into: sink) { count in
            transaction.bodyBytesAfterDecoding += count
            load.tellSent()
            progress(count)
        }
    }

    /// Whether the server responds before it has received the whole request, and the client wants progress reports.
    private var isStillSending: Bool { !exchange.hasSentRequest && load.wants(.sentBytes) }

    /// Reports the progress of the request's body until the response's body or its end arrives.
    private func reportWhileSending() async {
        load.tellSent()
        while !exchange.hasNext, !exchange.hasSentRequest {
            await load.control.wait()
            load.tellSent()
        }
    }

    private func next(through decoder: ContentDecoder) async throws(LoadError) -> ByteBuffer? {
        // The body is decoded only on demand, so a decompression bomb grows only as fast as it is read.
        while true {
            if let piece = decodedOnThread?.popFirst() { return count(piece) }
            if decodedInTurn >= Self.decodedPerTurn { try await takeTurn() }
            do {
                if decoder.isSlow {
                    if try await decodeOnThread(by: decoder) { continue }
                } else if let piece = try decode(by: decoder) {
                    // Much input may be processed without producing output.
                    guard piece.readableBytes > 0 else {
                        decodedInTurn = Self.decodedPerTurn
                        continue
                    }
                    return count(piece)
                }
            } catch let error as DecodingFailure {
                throw fail(error)
            } catch let error as LoadError {
                throw error
            } catch {
                throw LoadError(.cannotDecodeContentData, "\(error)")
            }
            if codedIsComplete { return nil }
            if isStillSending { await reportWhileSending() }
            if let coded = try await exchange.next() {
                decoder.push(coded)
            } else {
                codedIsComplete = true
                do { try decoder.finish() } catch { throw fail(error) }
            }
        }
    }

    private func count(_ piece: ByteBuffer) -> ByteBuffer {
        transaction.bodyBytesAfterDecoding += Int64(piece.readableBytes)
        return piece
    }

    private func decode(by decoder: ContentDecoder) throws(DecodingFailure) -> ByteBuffer? {
        let begin = NIODeadline.now()
        let piece = try decoder.next()
        timeInTurn = timeInTurn + (.now() - begin)
        decodedInTurn = timeInTurn < Self.timePerTurn ? decodedInTurn + (piece?.readableBytes ?? 0) : Self.decodedPerTurn
        return piece
    }

    /// Decodes on another thread as much as is decoded in one turn; returns false if the decoder needs more input first.
    private func decodeOnThread(by decoder: ContentDecoder) async throws -> Bool {
        let work = ThreadDecoder(decoder)
        let slot = LoopSlot<Result<ThreadDecoder.Found, DecodingFailure>>(load.control)
        let isUnderWay = WorkerThreads.computing.run { slot.fill(work.decode(upTo: Self.decodedPerTurn)) }
        // No thread is available, so the decoder runs here, slowly.
        guard isUnderWay else {
            decodedOnThread = CircularBuffer(try work.decode(upTo: 1).get().pieces)
            decodedInTurn = Self.decodedPerTurn
            return true
        }
        load.control.hold(now: .now())
        defer { load.control.endHold(now: .now()) }
        let found = try await slot.wait().get()
        try await load.control.waitWhileSuspended()
        decodedOnThread = CircularBuffer(found.pieces)
        return !found.pieces.isEmpty || !found.isSpent
    }

    /// Carries the decoder to another thread.
    ///
    /// Sendable because the load waits on its event loop until the thread is done. If the load ends earlier, it does not use the
    /// decoder again.
    private struct ThreadDecoder: @unchecked Sendable {
        struct Found: Sendable {
            var pieces: [ByteBuffer] = []
            /// Whether more output requires more input.
            var isSpent = false
        }

        private let decoder: ContentDecoder

        init(_ decoder: ContentDecoder) { self.decoder = decoder }

        func decode(upTo count: Int) -> Result<Found, DecodingFailure> {
            var found = Found()
            var left = count
            do throws(DecodingFailure) {
                while left > 0 {
                    guard let piece = try decoder.next() else {
                        found.isSpent = true
                        break
                    }
                    guard piece.readableBytes > 0 else { break }
                    found.pieces.append(piece)
                    left -= piece.readableBytes
                }
            } catch {
                // Output decoded before the damage is delivered first. The decoder then fails again on the next call.
                if found.pieces.isEmpty { return .failure(error) }
            }
            return .success(found)
        }
    }

    /// Lets other work on the loop run.
    ///
    /// Then waits while the load is suspended; throws if the load was canceled.
    private func takeTurn() async throws(LoadError) {
        decodedInTurn = 0
        timeInTurn = .zero
        await load.session.turns.next()
        try await load.control.waitWhileSuspended()
    }

    private func fail(_ error: DecodingFailure) -> LoadError {
        exchange.cancel()
        return error.loadError
    }
}
