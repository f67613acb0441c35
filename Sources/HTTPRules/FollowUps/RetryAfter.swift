// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// The delay that a server requests before the next request (RFC 9110, section 10.2.3).
package enum RetryAfter {
    /// Parses the value of `Retry-After`, which is a number of seconds or a date.
    ///
    /// - Parameters:
    ///   - value: The value of the field.
    ///   - now: The current time, in seconds since 1970.
    /// - Returns: The delay in seconds. Zero for a date in the past; nil if the value is invalid.
    package static func seconds(_ value: String, now: Double) -> Double? {
        let text = ASCII.trimmed(Array(value.utf8)[...])
        if !text.isEmpty, text.allSatisfy(ASCII.isDigit) { return Double(String(decoding: text, as: UTF8.self)) }
        return HTTPDate.parse(value, now: now).map { max(0, $0 - now) }
    }
}
