//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import ArgumentParser
import Foundation

/// The options for the maximum and the minimum speed of a load.
struct PaceOptions: ParsableArguments {
    @Option(
        name: .customLong("limit-rate"),
        help: ArgumentHelp("Send and receive no more than so many bytes in a second; k, M and G may follow.", valueName: "bytes"))
    var limit: ByteCount?

    @Option(
        name: [.customShort("Y"), .customLong("speed-limit")],
        help: ArgumentHelp(
            "Exit with 28 where a load is slower than so many bytes in a second for --speed-time.", valueName: "bytes"))
    var least: ByteCount?

    @Option(
        name: [.customShort("y"), .customLong("speed-time")],
        help: ArgumentHelp(
            "How long a load may be slower than --speed-limit, 1 byte where that is not given; 30.", valueName: "seconds"))
    var leastTime: Double?

    func validate() throws {
        if leastTime.map({ !($0 > 0) }) ?? false { throw ValidationError("--speed-time begins above 0.") }
    }

    /// The limit in bytes per second; nil for no limit.
    var rate: Int64? { limit.flatMap { $0.bytes > 0 ? $0.bytes : nil } }

    var slowest: SpeedWatch.Limit? {
        guard least != nil || leastTime != nil else { return nil }
        return SpeedWatch.Limit(bytes: least?.bytes ?? 1, seconds: leastTime ?? 30)
    }
}
