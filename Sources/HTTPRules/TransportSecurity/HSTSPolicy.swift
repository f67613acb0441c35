// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// The policy in a `Strict-Transport-Security` field (RFC 6797, section 6.1).
package struct HSTSPolicy: Hashable, Sendable {
    /// The lifetime in seconds; 0 removes the host (section 6.1.1).
    package let maxAge: Int
    package let includesSubdomains: Bool

    /// "If a cache receives a delta-seconds value greater than the greatest integer it can represent, … the cache MUST consider
    /// the value to be 2147483648" (RFC 9111, section 1.2.2): 68 years are sufficient for HSTS as well.
    package static let greatestMaxAge = 1 << 31

    package init(maxAge: Int, includesSubdomains: Bool) {
        self.maxAge = maxAge
        self.includesSubdomains = includesSubdomains
    }

    /// Parses the value of the first such field of a message; further fields are ignored (section 8.1).
    ///
    /// Returns nil if the field must be ignored: "UAs MUST ignore any STS header field containing directives, or other header field
    /// value data, that does not conform to the syntax", "All directives MUST appear only once", and `max-age` is required. Unknown
    /// directives are skipped.
    package init?(_ fieldValue: String) {
        var reader = Reader(field: FieldReader(fieldValue))
        var names: Set<String> = []
        var maxAge: Int?
        var includesSubdomains = false
        while !reader.isAtEnd {
            guard let directive = reader.readDirective() else { return nil }
            guard let name = directive.name else { continue }
            guard names.insert(name).inserted else { return nil }
            switch name {
            case "max-age":
                guard let seconds = directive.value.flatMap(ASCII.number) else { return nil }
                maxAge = min(Int(seconds), Self.greatestMaxAge)
            case "includesubdomains":
                // A valueless directive (section 6.1.2).
                guard directive.value == nil else { return nil }
                includesSubdomains = true
            default: break
            }
        }
        guard let maxAge else { return nil }
        self.init(maxAge: maxAge, includesSubdomains: includesSubdomains)
    }

    /// Parses `[ directive ] *( ";" [ directive ] )`, with whitespace allowed around every token (RFC 2616, section 2.1).
    private struct Reader {
        var field: FieldReader

        var isAtEnd: Bool { field.isAtEnd }

        /// Reads the next directive, with its name in lowercase, and the semicolon after it.
        ///
        /// Returns nil if the directive is malformed.
        ///
        /// An empty element between two semicolons is a directive without a name.
        mutating func readDirective() -> (name: String?, value: [UInt8]?)? {
            field.skipWhitespace()
            let name = field.readToken()
            var value: [UInt8]?
            if !name.isEmpty {
                field.skipWhitespace()
                if field.skipIfPresent(UInt8(ascii: "=")) {
                    field.skipWhitespace()
                    guard let read = field.readValue() else { return nil }
                    value = read
                }
            }
            field.skipWhitespace()
            guard field.isAtEnd || field.skipIfPresent(UInt8(ascii: ";")) else { return nil }
            return (name.isEmpty ? nil : String(decoding: name.map(ASCII.lowercased), as: UTF8.self), value)
        }
    }
}
