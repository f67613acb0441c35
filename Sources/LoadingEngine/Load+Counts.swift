//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import HTTPTransport
import LoadingModel

/// Bytes of the body that were collected, or are in the file, and all that there will be, or -1.
struct BodyCounts {
    fileprivate(set) var received: Int64 = 0
    fileprivate(set) var expected: Int64 = -1
}

/// How much of the bodies went out and came in, for clients that want to hear of it.
extension Load {
    /// Tells what went out of the request's body since that was last told.
    ///
    /// For the time after the head of the response.
    func tellSent() {
        guard wants(.sentBytes), case .sent(let bytes, let total)? = transaction?.exchange?.takeEvent() else { return }
        tellSent(bytes, total: total)
    }

    func tellSent(_ bytes: Int64, total: Int64) {
        let earlier = transaction?.sentOffset ?? 0
        tell(.sent(bytes: bytes, total: earlier + total, expected: transaction?.sentBodyLength ?? -1))
    }

    /// Counts bytes of a body that is not told itself, and tells the count.
    func received(_ bytes: Int64, total: Int64, expected: Int64) {
        body.received = total
        body.expected = expected
        if wants(.receivedBytes) { tell(.wrote(bytes: bytes, total: total, expected: expected)) }
    }

    /// Counts what a download has from an earlier load, and tells it.
    func resumed(at offset: Int64, expected: Int64) {
        tell(.resumed(offset: offset, expected: expected))
        body.received = offset
        body.expected = expected
    }

    /// Tells the counts from here on, and what was not told of them until now.
    func beginTellingCounts() {
        add([.sentBytes, .receivedBytes])
        if let sent = transaction?.sentBodyBytes, sent > 0 { tellSent(0, total: sent) }
        // Downloads have told it in any case, and streams have asked.
        if collects, let response { tell(.response(response)) }
        if body.received > 0 { tell(.wrote(bytes: 0, total: body.received, expected: body.expected)) }
    }
}
