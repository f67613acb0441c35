// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import LoadingModel

/// The number of body bytes that were collected or written to the file, and the expected total (-1 if it is unknown).
struct BodyCounts {
    fileprivate(set) var received: Int64 = 0
    fileprivate(set) var expected: Int64 = -1
}

/// Counts the bytes of request and response bodies, for clients that want to be notified.
extension Load {
    /// Reports the bytes of the request's body that were sent since the last report.
    ///
    /// Called after the response head has arrived.
    func tellSent() {
        guard wants(.sentBytes), case .sent(let bytes, let total)? = transaction?.exchange?.takeEvent() else { return }
        tellSent(bytes, total: total)
    }

    func tellSent(_ bytes: Int64, total: Int64) {
        let earlier = transaction?.sentOffset ?? 0
        tell(.sent(bytes: bytes, total: earlier + total, expected: transaction?.sentBodyLength ?? -1))
    }

    /// Counts bytes of a body that is not delivered in pieces, and reports the count.
    func received(_ bytes: Int64, total: Int64, expected: Int64) {
        body.received = total
        body.expected = expected
        if wants(.receivedBytes) { tell(.wrote(bytes: bytes, total: total, expected: expected)) }
    }

    /// Counts and reports the bytes of a download that an earlier load has received.
    func resumed(at offset: Int64, expected: Int64) {
        tell(.resumed(offset: offset, expected: expected))
        body.received = offset
        body.expected = expected
    }

    /// Starts reporting counts, beginning with those that were not reported before.
    func beginTellingCounts() {
        add([.sentBytes, .receivedBytes])
        if let sent = transaction?.sentBodyBytes, sent > 0 { tellSent(0, total: sent) }
        // The clients of downloads and streamed loads already know the response.
        if collects, let response { tell(.response(response)) }
        if body.received > 0 { tell(.wrote(bytes: 0, total: body.received, expected: body.expected)) }
    }
}
