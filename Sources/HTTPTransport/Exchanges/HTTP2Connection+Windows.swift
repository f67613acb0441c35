//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import LoadingModel
import NIOCore
import TransportMachines

/// How large the windows of streams are: as large as the way is long, and no larger.
extension HTTP2Connection {
    static let largestStreamWindow = 33_554_432

    func settingsWereAcknowledged(_ now: NIODeadline) {
        if measuredRoundTrip == nil { measuredRoundTrip = now - began }
    }

    /// At most so long does the server's answer to what is written take.
    var roundTrip: TimeAmount { measuredRoundTrip ?? max(lastRead - began, handshake) }

    /// What the handshake took is a round trip and more, and all that is known at first.
    private var handshake: TimeAmount {
        guard let end = facts.connectEnd, let start = facts.secureConnectionStart ?? facts.connectStart else { return .zero }
        return .nanoseconds(Int64(max(0, min(end - start, 1)) * 1e9))
    }

    /// The window of a stream that much comes on.
    var windowOfBulk: Int {
        FlowControl.window(roundTrip: roundTrip.nanoseconds, within: Self.streamWindow...Self.largestStreamWindow)
    }

    /// A larger window for a stream, as far as all streams together may have that.
    func lend(_ count: Int) -> Int {
        let lent = max(0, min(count, lendable))
        lendable -= lent
        return lent
    }
}
