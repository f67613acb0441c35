//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPWire

/// How long a server asks to wait before the next request (RFC 9110, section 10.2.3).
package enum RetryAfter {
    /// The seconds of a `Retry-After`, which is a number of seconds or a date.
    ///
    /// - Parameters:
    ///   - value: The value of the field.
    ///   - now: The time, in seconds since 1970.
    /// - Returns: Zero for a date that is past; nil for what is neither.
    package static func seconds(_ value: String, now: Double) -> Double? {
        let text = ASCII.trimmed(Array(value.utf8)[...])
        if !text.isEmpty, text.allSatisfy({ $0 &- UInt8(ascii: "0") <= 9 }) {
            return Double(String(decoding: text, as: UTF8.self))
        }
        return HTTPDate.parse(value, now: now).map { max(0, $0 - now) }
    }
}
