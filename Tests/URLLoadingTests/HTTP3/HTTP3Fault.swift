// SPDX-License-Identifier: Apache-2.0

import LoadingTestKit

/// A violation of RFC 9114 or RFC 9204 by a server, in response to a GET, and how the client must react.
struct HTTP3Fault: Sendable {
    let name: String
    /// The error codes with which the client closes the connection, or resets the stream.
    let codes: Set<UInt64>
    let steps: [HTTP3Step]

    init(_ name: String, _ codes: Set<UInt64>, _ steps: HTTP3Step...) {
        self.name = name
        self.codes = codes
        self.steps = steps
    }

    init(_ name: String, _ code: HTTP3Code, _ steps: HTTP3Step...) {
        self.name = name
        codes = [code.rawValue]
        self.steps = steps
    }
}

private let head = HTTP3Step.head(200, [("content-length", "5")])
private func integer(_ value: UInt64) -> [UInt8] { HTTP3Bytes.integer(value) }

extension HTTP3Fault {
    /// Frames that are not permitted on the stream of a request (RFC 9114, section 7).
    static let frames: [HTTP3Fault] = [
        // Section 4.1.
        .init("DATA before HEADERS", .frameUnexpected, .data("hello")),
        .init("no frame", .frameUnexpected, .finish),
        .init("only an unknown frame", .frameUnexpected, .frame(0x21, [1, 2, 3], ends: true)),
        // Section 7.2.3.
        .init("CANCEL_PUSH on a request's stream", .frameUnexpected, .frame(.cancelPush, integer(0))),
        // Section 7.2.4.
        .init("SETTINGS on a request's stream", .frameUnexpected, .write(HTTP3Bytes.settings())),
        // Section 7.2.5; no push was allowed.
        .init(
            "a push", [HTTP3Code.frameUnexpected.rawValue, HTTP3Code.idError.rawValue],
            .frame(.pushPromise, integer(0) + HTTP3Bytes.section([(":method", "GET")]))),
        // Section 7.2.6.
        .init("GOAWAY on a request's stream", .frameUnexpected, .write(HTTP3Bytes.goAway(0))),
        // Section 7.2.7.
        .init("MAX_PUSH_ID on a request's stream", .frameUnexpected, .frame(.maxPushID, integer(0))),
        // Section 7.2.8: types of HTTP/2.
        .init("PRIORITY of HTTP/2", .frameUnexpected, .frame(0x02, [0, 0, 0, 0, 1])),
        .init("PING of HTTP/2", .frameUnexpected, .frame(0x06, [1, 2, 3, 4, 5, 6, 7, 8])),
        .init("WINDOW_UPDATE of HTTP/2", .frameUnexpected, .frame(0x08, [0, 0, 0, 1])),
        .init("CONTINUATION of HTTP/2", .frameUnexpected, head, .frame(0x09, [0])),
        // Section 7.1.
        .init("DATA cut off by the end", .frameError, .head(), .frame(.data, [1, 2, 3], length: 10, ends: true)),
        .init("HEADERS cut off by the end", .frameError, .frame(.headers, [0, 0], length: 10, ends: true)),
        .init("a length cut off by the end", .frameError, .head(), .write([0x00, 0x40], ends: true)),
        .init("a type cut off by the end", [0x101, 0x106], .head(), .write([0xC0, 0x01], ends: true)),
        .init("an unknown frame cut off by the end", .frameError, .head(), .frame(0x21, [1], length: 10, ends: true)),
    ]

    /// Violations on the control stream and other streams of the server (RFC 9114, section 6.2).
    static let streams: [HTTP3Fault] = [
        .init("SETTINGS twice", .frameUnexpected, .write(HTTP3Bytes.settings(), on: .control)),
        .init("DATA on the control stream", .frameUnexpected, .frame(.data, [1], on: .control)),
        .init("HEADERS on the control stream", .frameUnexpected, .frame(.headers, [0, 0], on: .control)),
        .init("a push on the control stream", .frameUnexpected, .frame(.pushPromise, [0, 0, 0], on: .control)),
        .init("MAX_PUSH_ID of a server", .frameUnexpected, .frame(.maxPushID, integer(0), on: .control)),
        .init("PING of HTTP/2 on the control stream", .frameUnexpected, .frame(0x06, [1, 2, 3, 4, 5, 6, 7, 8], on: .control)),
        .init("the end of the control stream", .closedCriticalStream, .write([], on: .control, ends: true)),
        .init("the reset of the control stream", .closedCriticalStream, .reset(0x100, on: .control)),
        .init("a second control stream", .streamCreationError, .write([0] + HTTP3Bytes.settings(), on: .uni(0))),
        .init("a second encoder stream", .streamCreationError, .write([2], on: .encoder), .write([2], on: .uni(0))),
        .init("a second decoder stream", .streamCreationError, .write([3], on: .decoder), .write([3], on: .uni(0))),
        .init(
            "the end of the encoder stream", .closedCriticalStream, .write([2], on: .encoder), .awaitDelivery(1, on: .encoder),
            .write([], on: .encoder, ends: true)),
        .init("the reset of the decoder stream", .closedCriticalStream, .write([3], on: .decoder), .reset(0x100, on: .decoder)),
        .init(
            "a push stream", [HTTP3Code.idError.rawValue, HTTP3Code.streamCreationError.rawValue],
            .write([1, 0] + HTTP3Bytes.headers([(":status", "200")]), on: .uni(0))),
        .init("a GOAWAY whose ID goes up", .idError, .goAway(40), .goAway(44)),
        .init("a GOAWAY with the ID of another kind of stream", .idError, .goAway(41)),
        .init("a GOAWAY without an ID", .frameError, .frame(.goAway, on: .control)),
    ]

    /// Streams and settings with which a connection begins (RFC 9114, sections 6.2.1 and 7.2.4).
    static let beginnings: [HTTP3Fault] = [
        .init("a control stream without SETTINGS", .missingSettings, .write([0] + HTTP3Bytes.goAway(0), on: .control)),
        .init("an unknown frame before SETTINGS", .missingSettings, .write([0] + HTTP3Bytes.frame(0x21, [1]), on: .control)),
        .init("a setting of HTTP/2", .settingsError, .write([0] + HTTP3Bytes.frame(.settings, [0x04, 0x00]), on: .control)),
        .init("a setting without a value", .frameError, .write([0] + HTTP3Bytes.frame(.settings, [0x06]), on: .control)),
        .init("a setting cut off", .frameError, .write([0] + HTTP3Bytes.frame(.settings, [0x06, 0xC0, 0x01]), on: .control)),
        .init(
            "an unexpected table capacity", .encoderStreamError, .settings(),
            .write([2] + [0x3F, 0xFF, 0xFF, 0x03], on: .encoder)),
        .init(
            "an entry larger than the table", .encoderStreamError, .settings(),
            .write([2, 0x20, 0x41, 0x61, 0x01, 0x62], on: .encoder)),
        .init(
            "the copy of an entry that is not there", .encoderStreamError, .settings(),
            .write([2, 0x3F, 0xE1, 0x1F, 0x05], on: .encoder)),
        .init(
            "an entry with a name beyond the static table", .encoderStreamError, .settings(),
            .write([2, 0x3F, 0xE1, 0x1F, 0xFF, 0x40, 0x00], on: .encoder)),
        .init(
            "an acknowledgment of a section that was not sent", .decoderStreamError, .settings(), .write([3, 0xC0], on: .decoder)),
        .init(
            "an acknowledgment of entries that were not sent", .decoderStreamError, .settings(), .write([3, 0x05], on: .decoder)),
        .init("an acknowledgment of no entries", .decoderStreamError, .settings(), .write([3, 0x00], on: .decoder)),
    ]

    private static func undecodable(_ name: String, _ section: [UInt8]) -> HTTP3Fault {
        HTTP3Fault(name, .decompressionFailed, .section(section, ends: true))
    }

    /// Field sections that cannot be decoded (RFC 9204, section 2.2).
    static let compression: [HTTP3Fault] = [
        undecodable("a section without its base", [0]),
        undecodable("an index beyond the static table", [0, 0, 0xFF, 0x40]),
        undecodable("an index far beyond the static table", [0, 0] + HPACKBytes.integer(1 << 40, prefix: 6, first: 0xC0)),
        undecodable("a name beyond the static table", [0, 0, 0x5F, 0x7F, 0x01, 0x61]),
        undecodable("an index into an empty table", [0, 0, 0x80]),
        undecodable("a base below zero", [1, 0x81, 0x80]),
        undecodable("more entries than the table can have", HPACKBytes.integer(100_000, prefix: 8, first: 0) + [0, 0xD9]),
        undecodable("an integer cut off", [0, 0, 0xFF, 0x80]),
        undecodable("an integer above 2^62", [0, 0, 0xFF] + [UInt8](repeating: 0xFF, count: 12) + [0x01]),
        undecodable("a string cut off", [0, 0, 0x51, 0x05, 0x61]),
        undecodable("a name without a value", [0, 0, 0x22, 0x61, 0x62]),
        undecodable("a Huffman string with EOS", [0, 0, 0x5F, 0x09, 0x84, 0xFF, 0xFF, 0xFF, 0xFF]),
        undecodable("Huffman padding of more than seven bits", [0, 0, 0x5F, 0x09, 0x83, 0x10, 0x01, 0xFF]),
    ]
}
