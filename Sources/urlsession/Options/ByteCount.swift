// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// A number of bytes in curl's syntax: `k`, `M`, `G` and `T` stand for powers of 1024.
struct ByteCount: Sendable, ExpressibleByArgument {
    let bytes: Int64

    init?(argument: String) {
        let units: [Character: Int64] = ["k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "b": 1]
        let unit = argument.last.flatMap { units[Character($0.lowercased())] }
        guard let number = Int64(unit == nil ? argument : String(argument.dropLast())), number >= 0 else { return nil }
        let (bytes, isTooMany) = number.multipliedReportingOverflow(by: unit ?? 1)
        guard !isTooMany else { return nil }
        self.bytes = bytes
    }
}
