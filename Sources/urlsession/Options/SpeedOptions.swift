// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation

/// The options for the maximum and the minimum speed of a load.
struct SpeedOptions: ParsableArguments {
    @Option("--limit-rate <bytes>", "The maximum rate in each direction, in bytes per second; k, M or G may follow.")
    var limit: ByteCount?

    @Option("-Y --speed-limit <bytes>", "Exit with 28 if a load is slower than this many bytes per second for --speed-time.")
    var least: ByteCount?

    @Option(
        "-y --speed-time <seconds>", "How long a load may be slower than --speed-limit, which is 1 if not given; 30 by default.")
    var leastTime: Double?

    func validate() throws {
        try refuse(if: leastTime.map({ !($0 > 0) }) ?? false, "--speed-time must be greater than 0.")
    }

    /// The limit in bytes per second; nil for no limit.
    var rate: Int64? { limit.flatMap { $0.bytes > 0 ? $0.bytes : nil } }

    var slowest: SpeedMonitor.Limit? {
        guard least != nil || leastTime != nil else { return nil }
        return SpeedMonitor.Limit(bytes: least?.bytes ?? 1, seconds: leastTime ?? 30)
    }
}
