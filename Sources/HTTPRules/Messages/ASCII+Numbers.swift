// SPDX-License-Identifier: Apache-2.0

import HTTPWire

extension ASCII {
    static func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") <= 9 }

    /// Parses digits; returns nil for any other text.
    ///
    /// A number that is too large is clamped.
    static func number(_ digits: some Collection<UInt8>) -> Int64? {
        guard !digits.isEmpty, digits.allSatisfy(isDigit) else { return nil }
        return digits.reduce(0) { $0.multipliedSaturating(by: 10).addingSaturating(Int64($1 &- UInt8(ascii: "0"))) }
    }
}
