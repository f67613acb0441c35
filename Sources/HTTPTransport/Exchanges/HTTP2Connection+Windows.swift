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
import Synchronization
import TransportMachines

/// How large the windows of streams are: as large as the way is long, and no larger.
extension HTTP2Connection {
    static let largestStreamWindow = 33_554_432
    /// What all streams of the process together may have beyond their first windows: memory, where nobody takes what comes.
    private static let lendableByAll = 268_435_456
    private static let lentByAll = Atomic<Int>(0)

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

    /// A larger window for a stream, as far as all streams of the connection, and of the process, may have that.
    func lend(_ count: Int) -> Int {
        let wanted = min(count, lendable)
        guard wanted > 0 else { return 0 }
        let before = Self.lentByAll.add(wanted, ordering: .relaxed).oldValue
        let lent = max(0, min(wanted, Self.lendableByAll - before))
        if lent < wanted { Self.lentByAll.subtract(wanted - lent, ordering: .relaxed) }
        lendable -= lent
        return lent
    }

    func takeBack(_ count: Int) {
        guard count > 0 else { return }
        lendable += count
        Self.lentByAll.subtract(count, ordering: .relaxed)
    }
}
