// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPTransport
import LoadingModel
import NIOCore

/// Delivers a body in memory: whole, or in pieces within the credit window.
enum DataDelivery {
    /// The maximum number of bytes to reserve for the announced length of a body.
    private static let largestReservation: Int64 = 16_777_216

    /// Returns the body if it is collected and has arrived completely; nil otherwise.
    @inline(never)
    static func whole(_ answer: Answer, of load: Load) throws(LoadError) -> TaskOutcome.Body? {
        guard load.collects, let whole = answer.body.takeWhole() else { return nil }
        try announce(answer, load)
        let count = Int64(whole.count)
        try check(count, answer, load.session.policy.maximumCollectedBytes)
        if count > 0 { load.received(count, total: count, expected: answer.response.expectedLength) }
        return .collected(whole)
    }

    @inline(never)
    static func collect(_ answer: Answer, of load: Load) async throws(LoadError) -> TaskOutcome.Body {
        do {
            try announce(answer, load)
            var data = Data()
            while let piece = try await answer.body.next() { try append(piece, to: &data, answer, load) }
            return .collected(data)
        } catch {
            answer.body.cancel()
            throw error
        }
    }

    @inline(never)
    private static func announce(_ answer: Answer, _ load: Load) throws(LoadError) {
        load.take(answer.response)
        if load.wants(.receivedBytes) { load.tell(.response(answer.response)) }
        try check(answer.response.expectedLength, answer, load.session.policy.maximumCollectedBytes)
    }

    @inline(never)
    private static func append(_ piece: ByteBuffer, to data: inout Data, _ answer: Answer, _ load: Load) throws(LoadError) {
        let total = Int64(data.count + piece.readableBytes)
        let expected = answer.response.expectedLength
        try check(total, answer, load.session.policy.maximumCollectedBytes)
        if data.isEmpty {
            data = Data(piece)
            if expected > total { data.reserveCapacity(Int(min(expected, largestReservation))) }
        } else {
            data.append(piece)
        }
        load.received(Int64(piece.readableBytes), total: total, expected: expected)
    }

    @inline(never)
    static func stream(_ answer: Answer, of load: Load) async throws(LoadError) -> TaskOutcome.Body {
        load.take(answer.response)
        do throws(LoadError) {
            guard case .disposition(let disposition) = try await load.ask(.response(answer.response)) else { throw .cancelled }
            let exchange = answer.transaction.exchange
            if exchange?.hasSwitched == true || disposition == .becomeStream, disposition != .cancel {
                try await becomeStream(answer, disposition, load)
                return .none
            }
            switch disposition {
            case .cancel, .becomeStream:
                throw LoadError.cancelled
            case .becomeDownload:
                load.tell(.becameDownload)
                return try await DownloadDelivery.deliver(answer, continuing: nil, of: load)
            case .allow:
                if let whole = answer.body.takeWhole() {
                    if !whole.isEmpty { try await load.tell(data: whole) }
                    return .none
                }
                while let piece = try await answer.body.next() { try await load.tell(data: Data(sharing: piece)) }
                return .none
            }
        } catch {
            answer.body.cancel()
            throw error
        }
    }

    /// Turns the connection of a server that has switched protocols into a byte stream.
    @inline(never)
    private static func becomeStream(
        _ answer: Answer, _ disposition: TaskAnswer.Disposition, _ load: Load
    ) async throws(LoadError) {
        guard disposition == .becomeStream else {
            throw LoadError(.badServerResponse, "the server switched protocols (101), but the task did not become a stream")
        }
        guard let connection = answer.transaction.exchange?.takeConnection() else {
            throw LoadError(
                .unsupportedURL, "a task can become a stream only after its HTTP/1.1 server switched protocols (101)")
        }
        let url = load.transaction?.request.url ?? load.order.request.url
        let isSecure = ["https", "wss"].contains(url?.scheme?.lowercased())
        let stream = StreamLoad(StreamOrder(host: url?.host ?? "", port: url?.port ?? (isSecure ? 443 : 80)))
        load.become(stream)
        load.tell(.becameStream)
        try await stream.run(on: connection, in: load)
    }

    private static func check(_ count: Int64, _ answer: Answer, _ limit: Int64?) throws(LoadError) {
        guard let limit, count > limit else { return }
        throw LoadError(
            .dataLengthExceedsMaximum,
            "the body is larger than the \(limit) bytes that the configuration's maximumResponseBytesInMemory allows",
            url: answer.response.url
        )
    }
}

extension Data {
    /// Copies a buffer's readable bytes.
    init(_ buffer: ByteBuffer) {
        self = buffer.withUnsafeReadableBytes { bytes in
            bytes.baseAddress.map { Data(bytes: $0, count: bytes.count) } ?? Data()
        }
    }

    /// Creates data with a buffer's readable bytes; shares the buffer's memory if there are many of them.
    ///
    /// Other slices of the buffer may also share that memory, so it must not be written to again: a reader uses a new buffer for
    /// its next read while others hold this one.
    init(sharing buffer: ByteBuffer) {
        guard buffer.readableBytes >= Self.smallestShared else {
            self.init(buffer)
            return
        }
        self = buffer.withUnsafeReadableBytesWithStorageManagement { bytes, storage in
            guard let start = bytes.baseAddress else { return Data() }
            _ = storage.retain()
            return Data(
                bytesNoCopy: UnsafeMutableRawPointer(mutating: start), count: bytes.count,
                deallocator: .custom { _, _ in storage.release() }
            )
        }
    }

    /// Below this size, a copy is no more expensive than shared memory.
    private static let smallestShared = 4_096

    mutating func append(_ buffer: ByteBuffer) {
        buffer.withUnsafeReadableBytes { append(contentsOf: $0) }
    }
}
