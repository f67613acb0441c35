// SPDX-License-Identifier: Apache-2.0

/// The known names of request fields: the index of each name in the static table, and how a field with the name is encoded.
struct HPACKRequestNames: Sendable {
    enum Treatment: UInt8, Sendable {
        /// The field is added to the dynamic table.
        case indexed
        /// The field is different in every request: adding it to the table would only evict other entries.
        case notIndexed
        /// The field is a secret, which must not be in a table that others could probe: "Intermediaries MUST use the same
        /// representation" (RFC 7541, section 7.1).
        case neverIndexed
        case cookie
        case te
        /// The field is not sent: it belongs to HTTP/1 connections (RFC 9113, section 8.2.2), or is replaced by a pseudo-header
        /// field.
        case omitted
    }

    struct Known: Sendable {
        var name: StaticString
        /// The first index of the name in the static table, or 0.
        var index: UInt8
        var treatment: Treatment
    }

    static let shared = HPACKRequestNames()

    private static let mask = 255
    private let known: [Known]
    /// For each hash, the position in `known` plus one.
    private let slots: [UInt8]

    private init() {
        var known: [Known] = []
        for (index, entry) in HPACKStaticTable.entries.enumerated() where entry.name.utf8Start[0] != UInt8(ascii: ":") {
            known.append(Known(name: entry.name, index: UInt8(index + 1), treatment: .indexed))
        }
        for (name, treatment) in FieldName.ofConnection.map({ ($0, .omitted) }) + Self.treatments {
            let isName = { (known: Known) in Self.text(known.name) == Self.text(name) }
            if let place = known.firstIndex(where: isName) {
                known[place].treatment = treatment
            } else {
                known.append(Known(name: name, index: 0, treatment: treatment))
            }
        }
        var slots = [UInt8](repeating: 0, count: Self.mask + 1)
        for (place, entry) in known.enumerated() {
            let name = UnsafeRawBufferPointer(start: entry.name.utf8Start, count: entry.name.utf8CodeUnitCount)
            var slot = Int(HPACKHash.name(name)) & Self.mask
            while slots[slot] != 0 { slot = (slot + 1) & Self.mask }
            slots[slot] = UInt8(place + 1)
        }
        self.known = known
        self.slots = slots
    }

    /// The treatments of names, applied after the connection-specific names.
    ///
    /// A treatment in this list replaces an earlier treatment of the same name.
    private static let treatments: [(StaticString, Treatment)] = [
        ("host", .omitted), ("http2-settings", .omitted), ("te", .te), ("cookie", .cookie),
        ("authorization", .neverIndexed), ("proxy-authorization", .neverIndexed),
        ("content-length", .notIndexed), ("content-range", .notIndexed), ("content-md5", .notIndexed),
        ("content-digest", .notIndexed),
        ("repr-digest", .notIndexed), ("date", .notIndexed), ("etag", .notIndexed), ("range", .notIndexed),
        ("if-match", .notIndexed),
        ("if-modified-since", .notIndexed), ("if-none-match", .notIndexed), ("if-range", .notIndexed),
        ("if-unmodified-since", .notIndexed), ("idempotency-key", .notIndexed), ("traceparent", .notIndexed),
        ("x-request-id", .notIndexed),
    ]

    private static func text(_ name: StaticString) -> String { "\(name)" }

    /// Looks up a name, ignoring case.
    @inline(__always)
    func find(_ name: UnsafeRawBufferPointer, hash: UInt32) -> Known? {
        var slot = Int(hash) & Self.mask
        while slots[slot] != 0 {
            let entry = known[Int(slots[slot]) &- 1]
            if entry.name.utf8CodeUnitCount == name.count, ASCII.matches(name, 0, entry.name) { return entry }
            slot = (slot &+ 1) & Self.mask
        }
        return nil
    }
}

/// Hashes for the tables of one connection.
///
/// The hashes need no protection against chosen collisions: an attacker can only slow down its own connection.
enum HPACKHash {
    /// Hashes a name, ignoring the case of letters.
    @inline(__always)
    static func name(_ bytes: UnsafeRawBufferPointer) -> UInt32 { hash(bytes, 0x2020_2020_2020_2020) }

    @inline(__always)
    static func value(_ bytes: UnsafeRawBufferPointer) -> UInt32 { hash(bytes, 0) }

    @inline(__always)
    private static func hash(_ bytes: UnsafeRawBufferPointer, _ bits: UInt64) -> UInt32 {
        var hash = UInt64(truncatingIfNeeded: bytes.count)
        var position = 0
        while position &+ 8 <= bytes.count {
            hash = mixed(hash, HTTP2Bytes.uint64(bytes, position) | bits)
            position &+= 8
        }
        var rest: UInt64 = 0
        while position < bytes.count {
            rest = rest << 8 | UInt64(bytes[position])
            position &+= 1
        }
        hash = mixed(hash, rest | bits)
        return UInt32(truncatingIfNeeded: hash >> 32)
    }

    @inline(__always)
    private static func mixed(_ hash: UInt64, _ word: UInt64) -> UInt64 {
        let product = (hash ^ word) &* 0x9E37_79B9_7F4A_7C15
        return product ^ product >> 32
    }
}
