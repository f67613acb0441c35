// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Parses `WWW-Authenticate` and `Proxy-Authenticate`: the authentication schemes that a server offers (RFC 9110, section 11.3).
package enum AuthenticateHeader {
    package struct Parameter: Hashable, Sendable {
        /// The name in lowercase.
        package let name: String
        /// The value without quotation marks.
        package let value: String
    }

    package struct Challenge: Hashable, Sendable {
        /// The scheme as written by the server; schemes are case-insensitive.
        package let scheme: String
        package var token68: String?
        package var parameters: [Parameter] = []

        /// Returns the value of a parameter; the first value if the name is repeated, which section 11.2 forbids.
        package func parameter(_ name: String) -> String? {
            parameters.first { $0.name == name.lowercased() }?.value
        }

        package var realm: String? { parameter("realm") }

        package func isScheme(_ name: String) -> Bool { scheme.lowercased() == name.lowercased() }
    }

    /// Returns all challenges in the given field lines, in order.
    ///
    /// If the lines are texts that preserve octets (``OctetText``), so are the values of the parameters.
    ///
    /// Text that is not a challenge is skipped up to the next comma.
    package static func challenges(in lines: [String]) -> [Challenge] {
        lines.flatMap { line in
            var reader = ChallengeReader(Array(line.utf8)[...])
            return reader.readAll()
        }
    }

    /// Returns the parameters of a field without a scheme, such as `Authentication-Info` (RFC 7615, section 3).
    package static func parameters(in value: String) -> [Parameter] {
        var reader = ChallengeReader(Array(value.utf8)[...])
        return reader.takeParameters()
    }
}
