// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import Testing

/// The rules of RFC 9114 about field sections.
@Suite struct `HTTP/3 field sections` {
    private typealias Field = (name: String, value: String)

    private static func add(_ field: (name: String, value: String), to reader: inout HTTP3FieldSectionReader) {
        let (name, value) = (Array(field.name.unicodeScalars.map { UInt8($0.value) }), Array(field.value.utf8))
        name.withUnsafeBytes { name in value.withUnsafeBytes { reader.add(name: name, value: $0) } }
    }

    private static func section(
        _ fields: [(name: String, value: String)], limits: HTTP2FrameReader.Limits = HTTP2FrameReader.Limits()
    ) -> FieldSection {
        var reader = HTTP3FieldSectionReader(limits: limits)
        reader.begin()
        for field in fields { add(field, to: &reader) }
        return reader.end()
    }

    @Test func `fields are kept in order, with the status beside them`() {
        let fields = [("server", "x"), ("set-cookie", "a=b"), ("set-cookie", "c=d; Path=/"), ("empty", "")]
        let section = Self.section([(":status", "200")] + fields)
        #expect(section.status == 200 && section.fault == nil && !section.mayBeTrailers)
        #expect(section.headers.fields.map { "\($0.name): \($0.value)" } == fields.map { "\($0.0): \($0.1)" })
        #expect(section.listBytes == fields.reduce(10 + 32) { $0 + $1.0.utf8.count + $1.1.utf8.count + 32 })
        #expect(Self.section([("trailer", "1")]).mayBeTrailers)
        let empty = Self.section([])
        #expect(empty.status == nil && empty.headers.isEmpty && empty.mayBeTrailers)
    }

    @Test(arguments: [
        ("4.2: characters in field names MUST be converted to lowercase", "Server", "x", FieldSection.Fault.upperCaseName),
        ("10.3: … invalid names", "a b", "x", .invalidName), ("… NUL", "a\0", "x", .invalidName),
        ("… not ASCII", "caf\u{E9}", "x", .invalidName), ("… empty", "", "x", .emptyName),
        ("10.3: a character not permitted in a field value", "a", "1\0", .invalidValue),
        ("10.3: … line feed", "a", "0123456789\n", .invalidValue), ("10.3: … carriage return", "a", "\r", .invalidValue),
        ("9110, 5.5: whitespace is not a part of a value", "a", " b", .whitespaceAroundValue),
        ("… at its end", "a", "b\t", .whitespaceAroundValue),
        ("4.2: connection-specific fields", "connection", "close", .connectionField),
        ("4.2: … Transfer-Encoding", "transfer-encoding", "chunked", .connectionField),
        ("4.2: TE is of requests", "te", "trailers", .connectionField),
        ("4.3: undefined pseudo-header fields", ":x", "y", .unknownPseudoField),
        ("4.3: pseudo-header fields of requests", ":method", "GET", .unknownPseudoField),
        ("4.3.2: one :status", ":status", "200", .repeatedStatus),
    ])
    func `a malformed field is detected, and earlier fields are kept`(
        sentence: String, name: String, value: String, fault: FieldSection.Fault
    ) {
        let isPseudo = name.hasPrefix(":")
        let before = [(name: ":status", value: "200")] + (isPseudo ? [] : [(name: "a", value: "1")])
        let section = Self.section(before + [(name: name, value: value), (name: "z", value: "2")])
        #expect(section.fault == fault, "\(sentence)")
        #expect(section.status == 200 && section.headers == HeaderBlock(isPseudo ? [] : [("a", "1")]))
        #expect(!section.mayBeTrailers)
    }

    @Test(
        arguments: [
            ("4.5: HTTP/3 does not support 101", "101", 101, FieldSection.Fault.switchingProtocols),
            ("three digits", "20", nil, .malformedStatus), ("digits only", "+20", nil, .malformedStatus),
            ("empty", "", nil, .malformedStatus), ("99, for the caller to judge", "099", 99, nil),
        ] as [(String, String, Int?, FieldSection.Fault?)])
    func `the status has three digits`(what: String, value: String, status: Int?, fault: FieldSection.Fault?) {
        let section = Self.section([(":status", value)])
        #expect(section.status == status && section.fault == fault, "\(what)")
    }

    @Test func `the status precedes the fields`() {
        let section = Self.section([("a", "1"), (":status", "200")])
        #expect(section.fault == .pseudoFieldAfterFields && section.status == nil)
    }

    @Test func `a section beyond the limits is noticed at once, and the rest is not kept`() {
        var limits = HTTP2FrameReader.Limits()
        limits.headerListBytes = 100
        limits.headerLines = 2
        var reader = HTTP3FieldSectionReader(limits: limits)
        reader.begin()
        Self.add(("a", "1"), to: &reader)
        Self.add(("b", String(repeating: "x", count: 33)), to: &reader)
        #expect(!reader.isTooLarge)
        Self.add(("", ""), to: &reader)
        #expect(reader.isTooLarge)
        Self.add(("c", "3"), to: &reader)
        let section = reader.end()
        #expect(section.fault == .tooLarge && section.headers.count == 2 && section.listBytes == 166)
        // The next section starts anew.
        reader.begin()
        #expect(!reader.isTooLarge)
        Self.add(("a", "1"), to: &reader)
        #expect(reader.end().fault == nil)
        limits.headerListBytes = 10_000
        #expect(Self.section([(":status", "200"), ("a", "1"), ("b", "2")], limits: limits).fault == nil)
        #expect(Self.section([("a", "1"), ("b", "2"), ("c", "3")], limits: limits).fault == .tooLarge)
    }

    @Test func `a section that is malformed first is also noticed as too large`() {
        var limits = HTTP2FrameReader.Limits()
        limits.headerListBytes = 1_000
        var reader = HTTP3FieldSectionReader(limits: limits)
        reader.begin()
        Self.add(("A", "1"), to: &reader)
        for _ in 0..<40 { Self.add(("b", "2"), to: &reader) }
        #expect(reader.isTooLarge)
        let section = reader.end()
        #expect(section.fault == .upperCaseName && section.headers.isEmpty)
    }

    @Test func `a section that was begun but not ended leaves nothing behind`() {
        var reader = HTTP3FieldSectionReader()
        reader.begin()
        Self.add((":status", "100"), to: &reader)
        Self.add(("old", "1"), to: &reader)
        reader.begin()
        Self.add((":status", "200"), to: &reader)
        Self.add(("new", "2"), to: &reader)
        let section = reader.end()
        #expect(section.status == 200 && section.headers == HeaderBlock([("new", "2")]) && section.fault == nil)
    }
}
