// SPDX-License-Identifier: Apache-2.0

public import Foundation
import HTTPRules
import HTTPWire

extension HTTPURLResponse {
    /// The delay that the server requests before a retry, in seconds from now, from the response's `Retry-After` field.
    ///
    /// The field is a number of seconds or a date (RFC 9110, section 10.2.3); a date in the past gives 0. Nil if the field is
    /// missing or malformed. Limit the value before you wait: the server may ask for years.
    ///
    /// Not in Apple's API.
    public var retryAfter: TimeInterval? {
        headers.first("Retry-After").flatMap { RetryAfter.seconds($0, now: Date().timeIntervalSince1970) }
    }
}
