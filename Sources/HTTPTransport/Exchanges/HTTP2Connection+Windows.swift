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

extension HTTP2Connection {
    static let largestStreamWindow = 33_554_432

    /// At most so many nanoseconds does the server's answer to what is written take.
    ///
    /// What the handshake took is a round trip and more, and all that is known at first.
    var roundTrip: Int64 {
        guard let end = facts.connectEnd, let start = facts.secureConnectionStart ?? facts.connectStart else {
            return liveness.roundTrip(handshake: 0)
        }
        return liveness.roundTrip(handshake: Int64(max(0, min(end - start, 1)) * 1e9))
    }

    /// The window of a stream that much comes on.
    var windowOfBulk: Int { FlowControl.window(roundTrip: roundTrip, within: Self.streamWindow...Self.largestStreamWindow) }

    // MARK: Reading

    /// Much was read of a stream's content: where no other stream waits for anything, as much is waited for before the next read.
    func readMuch(received: Int64, missing: Int64, now: NIODeadline) -> Bool {
        guard let context, streams.count == 1 else { return false }
        let reading = bulk ?? BulkReading(context.channel, .copied, received: received, now: now)
        bulk = reading
        return reading.noteRead(nil, received: received, missing: missing, now: now)
    }

    @inline(__always)
    func endBulk() {
        guard let reading = bulk.take() else { return }
        reading.stop()
    }
}
