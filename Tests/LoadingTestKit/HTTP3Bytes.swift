// SPDX-License-Identifier: Apache-2.0

/// Hand-written HTTP/3 frames (RFC 9114, section 7) and QPACK field sections (RFC 9204), which a library would not produce.
package enum HTTP3Bytes {
    package enum Kind: UInt64, Sendable {
        case data = 0
        case headers = 1
        case cancelPush = 3
        case settings = 4
        case pushPromise = 5
        case goAway = 7
        case maxPushID = 13
    }

    /// Settings (RFC 9114, section 7.2.4.1; RFC 9204, section 5; RFC 9220).
    package enum Setting: UInt64, Sendable {
        case tableCapacity = 1
        case maxFieldSectionSize = 6
        case blockedStreams = 7
        case enableConnectProtocol = 8
    }

    /// An integer of variable length (RFC 9000, section 16), in the shortest form or with `size` bytes.
    package static func integer(_ value: UInt64, size: Int? = nil) -> [UInt8] {
        let size = size ?? (value < 1 << 6 ? 1 : value < 1 << 14 ? 2 : value < 1 << 30 ? 4 : 8)
        let bytes = Array(HTTP2Step.bytes(of: value).suffix(size))
        return [bytes[0] | UInt8(size.trailingZeroBitCount << 6)] + bytes.dropFirst()
    }

    /// A frame; `length` overrides the length in its head.
    package static func frame(_ kind: UInt64, _ content: [UInt8] = [], length: UInt64? = nil) -> [UInt8] {
        integer(kind) + integer(length ?? UInt64(content.count)) + content
    }

    package static func frame(_ kind: Kind, _ content: [UInt8] = [], length: UInt64? = nil) -> [UInt8] {
        frame(kind.rawValue, content, length: length)
    }

    package static func settings(_ values: KeyValuePairs<Setting, UInt64> = [:]) -> [UInt8] {
        frame(.settings, values.flatMap { integer($0.rawValue) + integer($1) })
    }

    package static func goAway(_ id: UInt64) -> [UInt8] { frame(.goAway, integer(id)) }

    /// A HEADERS frame with literal fields.
    package static func headers(_ fields: [(String, String)]) -> [UInt8] { frame(.headers, section(fields)) }

    // MARK: QPACK

    /// A field section of literals with literal names, which needs no table (RFC 9204, section 4.5.6).
    package static func section(_ fields: [(String, String)]) -> [UInt8] { [0, 0] + fields.flatMap { literal($0.0, $0.1) } }

    /// A literal field, in UTF-8.
    package static func literal(_ name: String, _ value: String) -> [UInt8] {
        HPACKBytes.integer(name.utf8.count, prefix: 3, first: 0x20) + name.utf8
            + HPACKBytes.integer(value.utf8.count, prefix: 7, first: 0) + value.utf8
    }

    /// A field section that needs an entry of the dynamic table, which is sent on the encoder stream (RFC 9204, section 4.5.2).
    package static func dynamic(entry: Int, tableCapacity: Int = 4_096) -> [UInt8] {
        let maximum = tableCapacity / 32
        let required = (entry + 1) % (2 * maximum) + 1
        return HPACKBytes.integer(required, prefix: 8, first: 0) + [0] + HPACKBytes.integer(0, prefix: 6, first: 0x80)
    }

    /// Instructions of the encoder stream: the table's capacity, and a literal entry (RFC 9204, sections 4.3.1 and 4.3.3).
    package static func insertion(capacity: Int? = nil, _ name: String, _ value: String) -> [UInt8] {
        (capacity.map { HPACKBytes.integer($0, prefix: 5, first: 0x20) } ?? [])
            + HPACKBytes.integer(name.utf8.count, prefix: 5, first: 0x40) + name.utf8
            + HPACKBytes.integer(value.utf8.count, prefix: 7, first: 0) + value.utf8
    }
}
