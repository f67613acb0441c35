//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import FoundationEssentials
import LoadingModel
import NIOCore

/// Hands a body over in memory: whole, or piece by piece within the credit window.
enum DataDelivery {
    /// The most that is reserved on the server's word alone.
    private static let largestReservation: Int64 = 16_777_216

    static func collect(_ answer: Answer, of load: Load) async throws(LoadError) -> TaskOutcome.Body {
        load.response = answer.response
        let tellsProgress = load.wants(.receivedBytes)
        if tellsProgress { load.tell(.response(answer.response)) }
        let expected = answer.response.expectedLength
        let limit = load.session.policy.maximumCollectedBytes ?? .max
        guard expected <= limit else { throw tooLarge(limit, answer) }
        var data = Data()
        while let piece = try await answer.body.next() {
            let total = Int64(data.count + piece.readableBytes)
            guard total <= limit else { throw tooLarge(limit, answer) }
            if data.isEmpty {
                data = Data(piece)
                if expected > total { data.reserveCapacity(Int(min(expected, largestReservation))) }
            } else {
                data.append(piece)
            }
            if tellsProgress {
                load.tell(.wrote(bytes: Int64(piece.readableBytes), total: total, expected: expected))
            }
        }
        return .collected(data)
    }

    static func stream(_ answer: Answer, of load: Load) async throws(LoadError) -> TaskOutcome.Body {
        load.response = answer.response
        guard case .disposition(let disposition) = try await load.ask(.response(answer.response)) else {
            throw .cancelled
        }
        switch disposition {
        case .cancel:
            throw .cancelled
        case .becomeDownload:
            load.tell(.becameDownload)
            return try await DownloadDelivery.deliver(answer, continuing: nil, of: load)
        case .allow:
            while let piece = try await answer.body.next() {
                try await load.tell(data: Data(piece))
            }
            return .none
        }
    }

    private static func tooLarge(_ limit: Int64, _ answer: Answer) -> LoadError {
        LoadError(
            .dataLengthExceedsMaximum,
            "the body is larger than the \(limit) bytes that the configuration's maximumResponseBytesInMemory allows",
            url: answer.response.url
        )
    }
}

extension Data {
    /// A copy of a buffer's readable bytes.
    init(_ buffer: ByteBuffer) {
        self = buffer.withUnsafeReadableBytes { bytes in
            bytes.baseAddress.map { Data(bytes: $0, count: bytes.count) } ?? Data()
        }
    }

    mutating func append(_ buffer: ByteBuffer) {
        buffer.withUnsafeReadableBytes { append(contentsOf: $0) }
    }
}
