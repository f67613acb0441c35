// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Formats sizes, rates and times for display.
enum ByteText {
    static func size(_ bytes: Int64) -> String {
        var value = Double(bytes)
        for unit in ["bytes", "KiB", "MiB", "GiB"] {
            if value < 1024 || unit == "GiB" {
                return unit == "bytes"
                    ? "\(bytes) bytes" : "\(rounded(value, digits: value < 10 ? 2 : value < 100 ? 1 : 0)) \(unit)"
            }
            value /= 1024
        }
        return "\(bytes) bytes"
    }

    static func rate(_ bytesPerSecond: Double) -> String {
        size(Int64(min(max(bytesPerSecond, 0), 1e15))) + "/s"
    }

    static func duration(_ seconds: Double) -> String {
        let whole = Int(min(max(seconds, 0), 1e9).rounded())
        let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60)
        return hours > 0
            ? String(format: "%ld:%02ld:%02ld", hours, minutes, seconds) : String(format: "%ld:%02ld", minutes, seconds)
    }

    static func rounded(_ value: Double, digits: Int) -> String {
        String(format: "%.\(digits)f", value)
    }
}
