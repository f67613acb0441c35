// SPDX-License-Identifier: Apache-2.0

import LoadingModel
import NIOCore
import TransportMachines

extension HTTP2Connection {
    /// An upper bound on the round-trip time in nanoseconds.
    ///
    /// Initially only the duration of the handshake is known; a handshake takes at least one round trip.
    var roundTrip: Int64 {
        guard let end = facts.connectEnd, let start = facts.secureConnectionStart ?? facts.connectStart else {
            return liveness.roundTrip(handshake: 0)
        }
        return liveness.roundTrip(handshake: Int64(max(0, min(end - start, 1)) * 1e9))
    }

    // MARK: Reading

    /// Only a connection with a single stream waits until many bytes have arrived.
    func noteLargeRead(received: Int64, missing: Int64, now: NIODeadline) -> Bool {
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
