// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// The subprotocols that a client offers, in order of preference (RFC 6455, section 1.9).
package struct WebSocketSubprotocols: Hashable, Sendable {
    package enum Fault: Error, Hashable, Sendable {
        /// The name is not a token (RFC 9110, section 5.6.2).
        case malformed(String)
        case repeated(String)

        package var message: String {
            switch self {
            case .malformed(let name): "\(String(reflecting: name)) is not a valid name of a subprotocol"
            case .repeated(let name): "the subprotocol \(name) is offered twice"
            }
        }
    }

    package let names: [String]

    /// Offers no subprotocols.
    package init() { names = [] }

    /// Validates the names: they "MUST be non-empty strings with characters in the range U+0021 to U+007E not including separator
    /// characters […] and MUST all be unique strings" (RFC 6455, section 4.1).
    package init(_ names: [String]) throws(Fault) {
        var known: Set<String> = []
        for name in names {
            guard ASCII.isToken(name) else { throw .malformed(name) }
            guard known.insert(name).inserted else { throw .repeated(name) }
        }
        self.names = names
    }

    /// Parses one or more `Sec-WebSocket-Protocol` fields of a request, joined by commas.
    package init(fieldValue: String) throws(Fault) {
        let elements = fieldValue.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
        let names = elements.map { String(decoding: ASCII.trimmed(Array($0)[...]), as: UTF8.self) }
        // "A recipient MUST parse and ignore a reasonable number of empty list elements" (RFC 9110, section 5.6.1.2).
        try self.init(names.filter { !$0.isEmpty })
        guard !self.names.isEmpty else { throw .malformed(fieldValue) }
    }

    /// The value of `Sec-WebSocket-Protocol`, or nil if no subprotocol is offered.
    package var fieldValue: String? { names.isEmpty ? nil : names.joined(separator: ", ") }
}
