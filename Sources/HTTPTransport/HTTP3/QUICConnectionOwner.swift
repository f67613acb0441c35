// SPDX-License-Identifier: Apache-2.0

import CQUIC
import NIOCore

/// What the owner of a ``QUICConnection`` is told, on the loop.
///
/// Between `received` calls the owner may send anything; within a report it must not destroy the connection.
protocol QUICConnectionOwner: AnyObject {
    /// The handshake is complete; the server's chain is not judged yet.
    func handshakeCompleted()
    /// The limit on requests, or the server's SETTINGS, have changed.
    func limitsChanged()
    func sectionBegan(_ stream: Int64, isTrailers: Bool)
    func field(_ stream: Int64, _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer)
    func sectionEnded(_ stream: Int64, endsStream: Bool)
    func content(_ stream: Int64, _ bytes: UnsafeRawBufferPointer)
    func responseEnded(_ stream: Int64)
    func bodySent(_ stream: Int64)
    func stopped(_ stream: Int64, _ code: HTTP3ErrorCode)
    func reset(_ stream: Int64, _ code: HTTP3ErrorCode)
    func closed(_ stream: Int64, _ code: HTTP3ErrorCode)
    func goingAway(firstUnprocessed: Int64)
    /// A datagram arrives; what it contains is reported next.
    func willReceive(now: NIODeadline)
    /// The server has not acknowledged what was sent, and the time for that is over.
    func isUnanswered()
    /// All datagrams that have arrived were reported.
    func received()
    /// The connection is over; nothing follows.
    func ended(_ failure: QUICFailure)
    /// The socket reports that no program receives datagrams at the server's port (ICMP), which may be forged.
    func wasRefused(_ error: any Error)
}

/// Why a connection is over.
struct QUICFailure: Error {
    let end: cquic_end
    let code: UInt64
    /// The stream of a malformed message.
    let stream: Int64?
    let text: String

    init(_ failure: cquic_failure) {
        end = failure.end
        code = failure.code
        stream = failure.stream >= 0 ? failure.stream : nil
        var failure = failure
        text = withUnsafeBytes(of: &failure.text) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    init(_ end: cquic_end, _ text: String) {
        self.end = end
        code = 0
        stream = nil
        self.text = text
    }
}
