// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// An alternative service for an origin, as announced by the origin (RFC 7838, section 2).
package struct AlternativeService: Hashable, Sendable {
    /// The ALPN protocol ID, such as `h3`; its bytes are not necessarily text.
    package let protocolID: [UInt8]
    /// The host in lowercase; an IPv6 address has no brackets.
    ///
    /// Nil means the origin's own host.
    package let host: String?
    package let port: Int

    package init(protocolID: [UInt8], host: String?, port: Int) {
        self.protocolID = protocolID
        self.host = host
        self.port = port
    }

    /// Parses `alt-authority`: an optional host and a port (section 3).
    init?(protocolID: [UInt8], authority: [UInt8]) {
        guard let colon = authority.lastIndex(of: UInt8(ascii: ":")), let port = Self.port(authority[(colon + 1)...]) else {
            return nil
        }
        self.protocolID = protocolID
        self.port = port
        let text = authority[..<colon].map(ASCII.lowercased)
        guard let first = text.first else {
            host = nil
            return
        }
        if first == UInt8(ascii: "[") {
            let address = text.dropFirst().dropLast()
            guard text.last == UInt8(ascii: "]"), address.contains(UInt8(ascii: ":")), address.count < 46,
                address.allSatisfy({ ":.0123456789abcdef".utf8.contains($0) })
            else { return nil }
            host = String(decoding: address, as: UTF8.self)
        } else {
            guard text.count <= 255, text.allSatisfy({ "-._0123456789abcdefghijklmnopqrstuvwxyz".utf8.contains($0) }) else {
                return nil
            }
            host = String(decoding: text, as: UTF8.self)
        }
    }

    private static func port(_ digits: ArraySlice<UInt8>) -> Int? {
        guard let port = CacheControl.seconds(digits), 1...65_535 ~= port else { return nil }
        return port
    }
}

/// The content of an `Alt-Svc` field (RFC 7838, section 3).
package enum AlternativeServiceField: Hashable, Sendable {
    package struct Member: Hashable, Sendable {
        package let service: AlternativeService
        /// The lifetime in seconds, counted from the generation of the response.
        package var maxAge = 86_400
        /// Whether the alternative stays valid when the network changes.
        package var persists = false
    }

    /// All earlier alternatives of the origin are invalid.
    case clear
    /// At least one alternative, in the order of the server's preference.
    case services([Member])

    /// Parses the values of all `Alt-Svc` fields of a message, joined by commas.
    ///
    /// Returns nil if the syntax is invalid; the field is then ignored as a whole, as in Chromium. curl uses the alternatives before
    /// the error instead. Unknown protocols and parameters are not errors ("Unknown parameters MUST be ignored"). The last value of a
    /// repeated parameter counts, as in Chromium and curl. If a field contains both `clear` and alternatives, `clear` takes
    /// precedence (section 3).
    package init?(_ fieldValue: String) {
        var reader = FieldReader(fieldValue)
        var members: [Member] = []
        var clears = false
        while true {
            reader.skipWhitespace()
            let name = reader.readToken()
            if name.isEmpty {
                // "A recipient MUST parse and ignore a reasonable number of empty list elements" (RFC 9110, section 5.6.1.2).
                guard reader.isAtEnd || reader.next == UInt8(ascii: ",") else { return nil }
            } else if reader.next == UInt8(ascii: "=") {
                guard let member = Self.readMember(name, &reader) else { return nil }
                members.append(member)
            } else {
                // `clear` is case-sensitive.
                guard name.elementsEqual("clear".utf8) else { return nil }
                clears = true
            }
            reader.skipWhitespace()
            if reader.isAtEnd { break }
            guard reader.skipIfPresent(UInt8(ascii: ",")) else { return nil }
        }
        guard clears || !members.isEmpty else { return nil }
        self = clears ? .clear : .services(members)
    }

    /// Reads `protocol-id "=" alt-authority *( OWS ";" OWS parameter )`.
    private static func readMember(_ name: ArraySlice<UInt8>, _ reader: inout FieldReader) -> Member? {
        guard let protocolID = PercentEncoding.strictBytes(name), protocolID.count <= 255,
            reader.skipIfPresent(UInt8(ascii: "=")),
            let authority = reader.readQuoted(), let service = AlternativeService(protocolID: protocolID, authority: authority)
        else { return nil }
        var member = Member(service: service)
        while true {
            reader.skipWhitespace()
            guard reader.skipIfPresent(UInt8(ascii: ";")) else { return member }
            reader.skipWhitespace()
            let name = reader.readToken()
            // RFC 9110, section 5.6.6: `*( OWS ";" OWS [ parameter ] )`.
            if name.isEmpty { continue }
            guard reader.skipIfPresent(UInt8(ascii: "=")), let value = reader.readValue() else { return nil }
            switch String(decoding: name.map(ASCII.lowercased), as: UTF8.self) {
            case "ma":
                guard let seconds = CacheControl.seconds(value) else { return nil }
                member.maxAge = seconds
            case "persist":
                // "Clients MUST ignore 'persist' parameters with values other than '1'."
                member.persists = value.elementsEqual("1".utf8)
            default: break
            }
        }
    }
}
