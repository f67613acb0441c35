//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPWire

/// Another way to reach an origin, as the origin says (RFC 7838, section 2).
package struct AlternativeService: Hashable, Sendable {
    /// As TLS has it, such as `h3`; not always text.
    package let protocolID: [UInt8]
    /// In lower case, an IPv6 address without brackets; nil stands for the origin's own.
    package let host: String?
    package let port: Int

    package init(protocolID: [UInt8], host: String?, port: Int) {
        self.protocolID = protocolID
        self.host = host
        self.port = port
    }

    /// Reads `alt-authority`: an optional host, and a port (section 3).
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

/// What an `Alt-Svc` field says (RFC 7838, section 3).
package enum AlternativeServiceField: Hashable, Sendable {
    package struct Member: Hashable, Sendable {
        package let service: AlternativeService
        /// For how many seconds it holds, from when the response was made.
        package var maxAge = 86_400
        /// Whether it holds when the network changes, too.
        package var persists = false

        package init(_ service: AlternativeService, maxAge: Int = 86_400, persists: Bool = false) {
            self.service = service
            self.maxAge = maxAge
            self.persists = persists
        }
    }

    /// What was said before does not hold any more.
    case clear
    /// At least one, in the order of the server's preference.
    case services([Member])

    /// Reads the values of all such fields of a message, joined by commas.
    ///
    /// Nil asks to ignore them: they do not conform to the syntax. As in Chromium, no part is picked out of such a field; curl keeps what
    /// stands before the fault. Protocols and parameters that are not known are no fault ("Unknown parameters MUST be ignored"); of
    /// a parameter that stands twice the last counts, as in both. `clear` beside alternatives is `clear`, "in case of an invalid reply
    /// containing both".
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
                // It is case-sensitive.
                guard name.elementsEqual("clear".utf8) else { return nil }
                clears = true
            }
            reader.skipWhitespace()
            if reader.isAtEnd { break }
            guard reader.takes(UInt8(ascii: ",")) else { return nil }
        }
        guard clears || !members.isEmpty else { return nil }
        self = clears ? .clear : .services(members)
    }

    /// `protocol-id "=" alt-authority *( OWS ";" OWS parameter )`.
    private static func readMember(_ name: ArraySlice<UInt8>, _ reader: inout FieldReader) -> Member? {
        guard let protocolID = PercentEncoding.strictBytes(name), protocolID.count <= 255, reader.takes(UInt8(ascii: "=")),
            let authority = reader.readQuoted(), let service = AlternativeService(protocolID: protocolID, authority: authority)
        else { return nil }
        var member = Member(service)
        while true {
            reader.skipWhitespace()
            guard reader.takes(UInt8(ascii: ";")) else { return member }
            reader.skipWhitespace()
            let name = reader.readToken()
            // RFC 9110, section 5.6.6: `*( OWS ";" OWS [ parameter ] )`.
            if name.isEmpty { continue }
            guard reader.takes(UInt8(ascii: "=")), let value = reader.readValue() else { return nil }
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
