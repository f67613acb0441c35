// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import Testing

/// The rules of RFC 9113 about field sections.
@Suite struct `HTTP/2 field sections` {
    private typealias Fault = FieldSection.Fault

    /// A literal that is not indexed.
    private static func literal(_ name: String, _ value: String) -> [UInt8] {
        [0] + PlainHPACK.string(name, isHuffman: false) + PlainHPACK.string(value, isHuffman: false)
    }

    private static func section(
        _ blocks: [UInt8]..., limits: HTTP2FrameReader.Limits = HTTP2FrameReader.Limits()
    ) throws
        -> FieldSection
    {
        var reader = HTTP2FrameReader(limits: limits)
        var last: FieldSection?
        let bytes = ServerFrames.settings + blocks.flatMap { ServerFrames.headers($0) }
        try bytes.withUnsafeBytes { bytes in
            var offset = 0
            while let event = try reader.next(bytes, &offset) {
                if case .headers(_, let section, _) = event { last = section }
            }
        }
        return try #require(last)
    }

    @Test(arguments: [
        (
            "8.2: a field name MUST NOT contain characters in the ranges 0x41-0x5a", "Server", "x",
            FieldSection.Fault.upperCaseName
        ),
        ("8.2.1: … 0x00-0x20", "a b", "x", .invalidName),
        ("8.2.1: … NUL", "a\0", "x", .invalidName),
        ("8.2.1: … 0x7f-0xff", "a\u{7F}", "x", .invalidName),
        ("8.2.1: … 0x7f-0xff", "caf\u{E9}", "x", .invalidName),
        ("8.2.1: field names MUST NOT include a colon", "a:b", "x", .invalidName),
        ("9110, 5.1: a field name is a token", "a(b", "x", .invalidName),
        ("9110, 5.1: a field name is not empty", "", "x", .emptyName),
        ("8.2.1: a field value MUST NOT contain the zero value at any position", "a", "1\0", .invalidValue),
        ("8.2.1: … line feed", "a", "0123456789\n0123", .invalidValue),
        ("8.2.1: … carriage return", "a", "\r", .invalidValue),
        ("8.2.1: a field value MUST NOT start with an ASCII whitespace character", "a", " b", .whitespaceAroundValue),
        ("8.2.1: … tab", "a", "\tb", .whitespaceAroundValue),
        ("8.2.1: … or end", "a", "b ", .whitespaceAroundValue),
        ("8.2.1: … alone", "a", "\t", .whitespaceAroundValue),
        ("8.2.2: connection-specific header fields: Connection", "connection", "close", .connectionField),
        ("8.2.2: … Proxy-Connection", "proxy-connection", "close", .connectionField),
        ("8.2.2: … Keep-Alive", "keep-alive", "timeout=1", .connectionField),
        ("8.2.2: … Transfer-Encoding", "transfer-encoding", "chunked", .connectionField),
        ("8.2.2: … Upgrade", "upgrade", "h2c", .connectionField),
        ("8.2.2: TE is of requests", "te", "trailers", .connectionField),
        (
            "8.3: endpoints MUST treat a request or response that contains undefined pseudo-header fields as malformed", ":x",
            "y",
            .unknownPseudoField
        ),
        ("8.3: … their names are lower case", ":Status", "200", .unknownPseudoField),
        ("8.3: pseudo-header fields defined for requests MUST NOT appear in responses", ":method", "GET", .unknownPseudoField),
        ("8.3: … :protocol", ":protocol", "websocket", .unknownPseudoField),
        ("8.3: … the colon alone", ":", "", .unknownPseudoField),
        ("8.3: the same pseudo-header field name MUST NOT appear more than once", ":status", "200", .repeatedStatus),
    ])
    func `a malformed field is detected in any representation, and earlier fields are kept`(
        sentence: String, name: String, value: String, fault: FieldSection.Fault
    ) throws {
        let isPseudo = name.hasPrefix(":")
        let before = [0x88] + (isPseudo ? [] : Self.literal("a", "1"))
        let kept = HeaderBlock(isPseudo ? [] : [("a", "1")])
        let plain = try Self.section(before + Self.literal(name, value) + Self.literal("z", "2"))
        #expect(plain.fault == fault, "\(sentence)")
        #expect(plain.status == 200)
        #expect(plain.headers == kept)
        // The field is added to the table, and then referenced as a whole, and by its name together with a literal value.
        let added = [0x40] + PlainHPACK.string(name, isHuffman: true) + PlainHPACK.string(value, isHuffman: true)
        let indexed = try Self.section(added, before + [0xBE] + Self.literal("z", "2"))
        #expect(indexed.fault == fault, "\(sentence)")
        #expect(indexed.headers == kept)
        let named = try Self.section(added, before + [0x0F, 0x2F] + PlainHPACK.string(value, isHuffman: true))
        #expect(named.fault == fault, "\(sentence)")
        #expect(!plain.mayBeTrailers)
    }

    @Test(
        arguments: [
            ("not there", [], nil, nil), ("of the static table", [0x8D], 404, nil),
            ("three digits", literal(":status", "299"), 299, nil),
            ("99, for the caller to judge", literal(":status", "099"), 99, nil), ("999", literal(":status", "999"), 999, nil),
            ("8.3.2: two digits", literal(":status", "20"), nil, .malformedStatus),
            ("four digits", literal(":status", "2000"), nil, .malformedStatus),
            ("empty", literal(":status", ""), nil, .malformedStatus),
            ("no digit", literal(":status", "2x0"), nil, .malformedStatus),
            ("a sign", literal(":status", "+20"), nil, .malformedStatus),
            (
                "8.6: HTTP/2 removes support for the 101 (Switching Protocols) status code", literal(":status", "101"), 101,
                .switchingProtocols
            ),
            ("8.3: behind a regular field", literal("a", "b") + [0x88], nil, .pseudoFieldAfterFields),
            ("repeated, with the same value", [0x88, 0x88], 200, .repeatedStatus),
            ("repeated, with another", [0x88, 0x8D], 200, .repeatedStatus),
        ] as [(String, [UInt8], Int?, FieldSection.Fault?)])
    func `the status has three digits, precedes the fields and occurs once`(
        what: String, block: [UInt8], status: Int?, fault: FieldSection.Fault?
    ) throws {
        let section = try Self.section(block)
        #expect(section.status == status, "\(what)")
        #expect(section.fault == fault, "\(what)")
        #expect(section.mayBeTrailers == (status == nil && fault == nil), "\(what)")
    }

    @Test func `names similar to connection fields are valid`() throws {
        let names = [
            "connectio", "connection-x", "keep-alivf", "upgrad", "tf", "t", "transfer-encodinf", "proxy-connectioo", "host",
            "trailer",
            "content-length", "!#$%&'*+-.^_`|~09az",
        ]
        let section = try Self.section([0x88] + names.flatMap { Self.literal($0, "x") })
        #expect(section.fault == nil)
        #expect(section.headers.fields.map(\.name) == names)
    }

    @Test func `values may be empty, and contain other control characters and non-ASCII bytes`() throws {
        let section = try Self.section(Self.literal("a", "") + Self.literal("b", "x\u{1}\ty\u{7F}é"))
        #expect(section.fault == nil)
        #expect(section.headers.fields.map(\.value) == ["", "x\u{1}\ty\u{7F}é"])
        #expect(section.mayBeTrailers)
    }

    @Test func `a malformed section still updates the table`() throws {
        let first = [0x88, 0x40, 1, 0x41, 1, 0x62, 0x40, 1, 0x63, 1, 0x64, 0x40, 1, 0x65, 1, 0x66]
        #expect(try Self.section(first.map { UInt8($0) }).fault == .upperCaseName)
        let second = try Self.section(first.map { UInt8($0) }, [0x88, 0xBE, 0xBF])
        #expect(second.fault == nil)
        #expect(second.headers == HeaderBlock([("e", "f"), ("c", "d")]))
    }

    @Test func `the size of a section counts names, values and 32 per field`() throws {
        #expect(try Self.section([0x88] + Self.literal("ab", "cde")).listBytes == 7 + 3 + 32 + 5 + 32)
        #expect(try Self.section([0x88] + Self.literal("A", "") + [0x88]).listBytes == 42 + 33 + 42)
        #expect(try Self.section([]).listBytes == 0)
    }

    @Test func `a section over the limit is counted but not kept, and the next one is read`() throws {
        var limits = HTTP2FrameReader.Limits()
        limits.headerListBytes = 42 + 34 + 34
        let fits = [0x88] + Self.literal("a", "b") + Self.literal("c", "d")
        #expect(try Self.section(fits, limits: limits).fault == nil)
        let over = try Self.section(fits + Self.literal("e", ""), limits: limits)
        #expect(over.fault == .tooLarge)
        #expect(over.headers.count == 2)
        #expect(over.listBytes == 42 + 34 + 34 + 33)
        let added: [UInt8] = [0x40, 1, 0x65, 1, 0x66]
        #expect(try Self.section(fits + added, [0x88, 0xBE], limits: limits).headers == HeaderBlock([("e", "f")]))
        limits.headerLines = 1
        #expect(try Self.section(fits, limits: limits).fault == .tooLarge)
        #expect(try Self.section(fits, [0x88], limits: limits).fault == nil)
    }

    @Test func `a large section from a small block is not kept`() throws {
        // Each byte of the block refers to an entry of 4,000 bytes, which results in almost 400 MB of fields.
        let value = String(repeating: "x", count: 4_000)
        let entry = [0x40] + PlainHPACK.string("a", isHuffman: false) + PlainHPACK.string(value, isHuffman: false)
        let bomb = [UInt8](repeating: 0xBE, count: 16_000)
        var bytes = ServerFrames.settings + ServerFrames.headers(entry) + ServerFrames.frame(1, 0, 3, bomb)
        for _ in 0..<5 { bytes += ServerFrames.frame(9, 0, 3, bomb) }
        bytes += ServerFrames.frame(9, 4, 3, [])
        var reader = HTTP2FrameReader()
        var found: FieldSection?
        try bytes.withUnsafeBytes { bytes in
            var offset = 0
            while let event = try reader.next(bytes, &offset) {
                if case .headers(3, let section, _) = event { found = section }
            }
        }
        let section = try #require(found)
        #expect(section.fault == .tooLarge)
        #expect(section.listBytes == 96_000 * 4_033)
        #expect(section.headers.bytes.count <= 262_144)
    }

    @Test func `each fault has its own message`() {
        #expect(Set(Fault.allCases.map(\.message)).count == Fault.allCases.count)
        #expect(Fault.allCases.allSatisfy { !$0.message.isEmpty })
    }
}
