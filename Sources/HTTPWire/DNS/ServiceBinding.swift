// SPDX-License-Identifier: Apache-2.0

/// The content of one HTTPS record: where a service can be reached, and by which protocols (RFC 9460, sections 2 and 7).
package struct ServiceBinding: Sendable, Hashable {
    /// The maximum number of addresses that are kept of each hint: more could not be tried in a reasonable time.
    package static let maximumHintCount = 16

    private enum Key {
        static let mandatory = 0
        static let alpn = 1
        static let noDefaultALPN = 2
        static let port = 3
        static let ipv4Hint = 4
        static let ipv6Hint = 6
    }

    /// The priority, of which the lowest is preferred; 0 for an alias (AliasMode).
    package var priority: Int
    /// Where the service is; the root means the owner of the record, or, in an alias, that there is no service.
    package var target: DNSName
    /// The ALPN protocol IDs, without the default.
    package var protocols: [[UInt8]] = []
    /// Whether the service also speaks the default protocol, HTTP/1.1.
    package var hasDefaultProtocol = true
    package var port: Int?
    /// The addresses of the target, IPv6 first, as text.
    package var addresses: [String] = []
    /// Whether the record needs no parameter that is unknown here.
    ///
    /// "Clients MUST ignore" other records (section 8).
    package var isCompatible = true

    package var isAlias: Bool { priority == 0 }

    /// Parses the data of a record; nil if it is malformed (section 2.2).
    ///
    /// Encrypted Client Hello and unknown keys are ignored unless they are mandatory, as are all keys of an alias.
    package init?(_ data: ArraySlice<UInt8>) {
        var reader = DNSReader(data)
        guard let priority = reader.number(), let target = DNSName(&reader, isCompressible: false) else { return nil }
        self.priority = priority
        self.target = target
        // "Recipients MUST ignore any SvcParams that are present" in an alias (section 2.4.2).
        guard priority > 0 else { return }
        var keys: [Int] = []
        var mandatory: [Int] = []
        while !reader.isAtEnd {
            guard let key = reader.number(), let length = reader.number(), let value = reader.bytes(length) else { return nil }
            // "SvcParamKeys SHALL appear in increasing numeric order", and each only once.
            guard key > keys.last ?? -1 else { return nil }
            keys.append(key)
            guard take(key, value, &mandatory) else { return nil }
        }
        // A mandatory key must be present, and "no-default-alpn" without "alpn" is not consistent (sections 8 and 7.1.1).
        guard Set(mandatory).isSubset(of: keys), hasDefaultProtocol || !protocols.isEmpty else { return nil }
        isCompatible = mandatory.allSatisfy(Self.isKnown)
    }

    private static func isKnown(_ key: Int) -> Bool {
        switch key {
        case Key.alpn, Key.noDefaultALPN, Key.port, Key.ipv4Hint, Key.ipv6Hint: true
        default: false
        }
    }

    /// Takes a parameter; returns false if the value is malformed.
    private mutating func take(_ key: Int, _ value: ArraySlice<UInt8>, _ mandatory: inout [Int]) -> Bool {
        switch key {
        case Key.mandatory: return Self.readKeys(value, &mandatory)
        case Key.alpn: return readProtocols(value)
        case Key.noDefaultALPN:
            hasDefaultProtocol = false
            return value.isEmpty
        case Key.port:
            var reader = DNSReader(value)
            port = reader.number()
            return port != nil && reader.isAtEnd
        case Key.ipv4Hint: return readHint(value, length: 4)
        case Key.ipv6Hint: return readHint(value, length: 16)
        default: return true
        }
    }

    /// Reads the list of mandatory keys, which are in increasing order and do not include "mandatory" itself (section 8).
    private static func readKeys(_ value: ArraySlice<UInt8>, _ keys: inout [Int]) -> Bool {
        var reader = DNSReader(value)
        while !reader.isAtEnd {
            guard let key = reader.number(), key > keys.last ?? Key.mandatory else { return false }
            keys.append(key)
        }
        return !keys.isEmpty
    }

    /// Reads the protocol IDs, each of which has at least one byte (section 7.1.1).
    private mutating func readProtocols(_ value: ArraySlice<UInt8>) -> Bool {
        var reader = DNSReader(value)
        while !reader.isAtEnd {
            guard let length = reader.byte(), length > 0, let name = reader.bytes(Int(length)) else { return false }
            protocols.append(Array(name))
        }
        return !protocols.isEmpty
    }

    /// Reads a list of at least one address (section 7.3).
    private mutating func readHint(_ value: ArraySlice<UInt8>, length: Int) -> Bool {
        guard !value.isEmpty, value.count % length == 0 else { return false }
        var hint: [String] = []
        var rest = value
        while !rest.isEmpty, hint.count < Self.maximumHintCount {
            hint.append(length == 4 ? Self.text4(rest.prefix(4)) : Self.text6(rest.prefix(16)))
            rest = rest.dropFirst(length)
        }
        addresses = length == 4 ? addresses + hint : hint + addresses
        return true
    }

    private static func text4(_ bytes: ArraySlice<UInt8>) -> String { bytes.map { String($0) }.joined(separator: ".") }

    /// Returns an IPv6 address without abbreviations.
    private static func text6(_ bytes: ArraySlice<UInt8>) -> String {
        var reader = DNSReader(bytes)
        var groups: [String] = []
        while let group = reader.number() { groups.append(String(group, radix: 16)) }
        return groups.joined(separator: ":")
    }
}
