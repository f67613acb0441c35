// SPDX-License-Identifier: Apache-2.0

import LoadingTestKit

/// A violation of RFC 9113 or RFC 7541 by a server, in response to a GET, and how the client must react.
struct HTTP2Fault: Sendable {
    /// What the client ends: the stream with RST_STREAM, or the connection with GOAWAY.
    ///
    /// A stream error may be treated as a connection error (RFC 9113, section 5.4.2).
    enum Scope: Sendable { case stream, connection }

    let name: String
    let scope: Scope
    let codes: Set<HTTP2Frame.ErrorCode>
    let steps: [HTTP2Step]
    /// The error codes that nghttp2 reports, if they differ from `codes`.
    let peerCodes: Set<HTTP2Frame.ErrorCode>?

    init(
        _ name: String, _ scope: Scope, _ codes: Set<HTTP2Frame.ErrorCode>, peer: Set<HTTP2Frame.ErrorCode>? = nil,
        _ steps: HTTP2Step...
    ) {
        self.name = name
        self.scope = scope
        self.codes = codes
        self.steps = steps
        peerCodes = peer
    }
}

private let head = HTTP2Step.head(200, [("content-length", "5")])
private let large: UInt32 = 0x7FFF_FFFF
/// The largest length that a frame header can declare; the server does not send that much payload.
private let longest = 0xFF_FFFF

extension HTTP2Fault {
    /// Frames that are malformed, whatever the state of the stream.
    static let frames: [HTTP2Fault] = [
        // Section 4.2.
        .init("a frame larger than SETTINGS_MAX_FRAME_SIZE", .stream, [.frameSizeError], head, .frame(.data, length: longest)),
        .init(
            "HEADERS larger than SETTINGS_MAX_FRAME_SIZE", .connection, [.frameSizeError],
            .frame(.headers, flags: .endHeaders, length: longest)),
        // Section 6.1.
        .init("DATA on stream 0", .connection, [.protocolError], head, .frame(.data, stream: 0, Array("hello".utf8))),
        .init(
            "DATA with more padding than payload", .connection, [.protocolError], head,
            .frame(.data, flags: .padded, [5, 0, 0, 0, 0])),
        .init(
            "padded DATA without a payload", .connection, [.frameSizeError, .protocolError], head,
            .frame(.data, flags: .padded)),
        // Section 6.2.
        .init(
            "HEADERS on stream 0", .connection, [.protocolError],
            .frame(.headers, flags: .endHeaders, stream: 0, HPACKBytes.index(8))),
        .init(
            "HEADERS with more padding than payload", .connection, [.protocolError],
            .frame(.headers, flags: [.endHeaders, .padded], [9] + HPACKBytes.index(8))),
        .init(
            "HEADERS too short for their priority", .connection, [.frameSizeError, .protocolError],
            .frame(.headers, flags: [.endHeaders, .priority], [0, 0, 0])),
        // Section 6.3.
        .init("PRIORITY on stream 0", .connection, [.protocolError], .frame(.priority, stream: 0, [0, 0, 0, 0, 1])),
        .init("PRIORITY of 4 bytes", .stream, [.frameSizeError], .frame(.priority, [0, 0, 0, 0])),
        // Section 6.4.
        .init("RST_STREAM on stream 0", .connection, [.protocolError], .resetStream(.cancel, stream: 0)),
        .init("RST_STREAM of 3 bytes", .connection, [.frameSizeError], .frame(.resetStream, [0, 0, 0])),
        .init("RST_STREAM of 5 bytes", .connection, [.frameSizeError], .frame(.resetStream, [0, 0, 0, 0, 0])),
        .init("RST_STREAM on an idle stream", .connection, [.protocolError], .resetStream(.cancel, stream: 1001)),
        // Section 6.5.
        .init("SETTINGS on a stream", .connection, [.protocolError], .frame(.settings)),
        .init("SETTINGS of 7 bytes", .connection, [.frameSizeError], .frame(.settings, stream: 0, [0, 1, 0, 0, 0, 0, 0])),
        .init(
            "SETTINGS acknowledged with a value", .connection, [.frameSizeError],
            .frame(.settings, flags: .ack, stream: 0, [0, 3, 0, 0, 0, 9])),
        .init("SETTINGS_ENABLE_PUSH of 1", .connection, [.protocolError], .settings([.enablePush: 1])),
        .init("SETTINGS_ENABLE_PUSH of 2", .connection, [.protocolError], .settings([.enablePush: 2])),
        .init(
            "SETTINGS_INITIAL_WINDOW_SIZE of 2^31", .connection, [.flowControlError], .settings([.initialWindowSize: large + 1])),
        .init("SETTINGS_MAX_FRAME_SIZE of 16,383", .connection, [.protocolError], .settings([.maxFrameSize: 16_383])),
        .init("SETTINGS_MAX_FRAME_SIZE of 2^24", .connection, [.protocolError], .settings([.maxFrameSize: 1 << 24])),
        // Section 6.6.
        .init("a push, though ENABLE_PUSH is 0", .connection, [.protocolError], .pushPromise(2)),
        .init("a push on stream 0", .connection, [.protocolError], .pushPromise(2, stream: 0)),
        // Section 6.7.
        .init("PING on a stream", .connection, [.protocolError], .frame(.ping, [1, 2, 3, 4, 5, 6, 7, 8])),
        .init("PING of 7 bytes", .connection, [.frameSizeError], .ping([1, 2, 3, 4, 5, 6, 7])),
        .init("PING of 9 bytes", .connection, [.frameSizeError], .ping([1, 2, 3, 4, 5, 6, 7, 8, 9])),
        // Section 6.8.
        .init("GOAWAY on a stream", .connection, [.protocolError], .frame(.goAway, [0, 0, 0, 1, 0, 0, 0, 0])),
        .init("GOAWAY of 7 bytes", .connection, [.frameSizeError], .frame(.goAway, stream: 0, [0, 0, 0, 1, 0, 0, 0])),
        // Section 6.9.
        .init("WINDOW_UPDATE of 3 bytes", .connection, [.frameSizeError], .frame(.windowUpdate, [0, 0, 1])),
        .init("WINDOW_UPDATE of zero", .stream, [.protocolError], .windowUpdate(0)),
        .init("WINDOW_UPDATE of zero for the connection", .connection, [.protocolError], .windowUpdate(0, stream: 0)),
        .init("WINDOW_UPDATE on an idle stream", .connection, [.protocolError], .windowUpdate(1, stream: 1001)),
        .init("a window above 2^31 - 1", .stream, [.flowControlError], .windowUpdate(large)),
        .init("a window of the connection above 2^31 - 1", .connection, [.flowControlError], .windowUpdate(large, stream: 0)),
        .init(
            "a window above 2^31 - 1 by SETTINGS", .connection, [.flowControlError], .windowUpdate(large - 65_535),
            .settings([.initialWindowSize: 65_536])),
        // Section 6.10.
        .init("CONTINUATION without HEADERS", .connection, [.protocolError], .frame(.continuation, flags: .endHeaders)),
        .init(
            "CONTINUATION after the end of a field block", .connection, [.protocolError], head,
            .frame(.continuation, flags: .endHeaders)),
        .init("a field block cut by PING", .connection, [.protocolError], .frame(.headers, HPACKBytes.index(8)), .ping()),
        .init("a field block cut by DATA", .connection, [.protocolError], .frame(.headers, HPACKBytes.index(8)), .data("a")),
        .init(
            "a field block cut by an unknown frame", .connection, [.protocolError], .frame(.headers, HPACKBytes.index(8)),
            .frame(0xEE, [1, 2, 3])),
        .init(
            "a field block continued on another stream", .connection, [.protocolError],
            .frame(.headers, HPACKBytes.index(8)), .frame(.continuation, flags: .endHeaders, stream: 1001)),
    ]

    /// Frames that are not permitted in the current state.
    static let states: [HTTP2Fault] = [
        // Section 5.1.
        .init("DATA on an idle stream", .connection, [.protocolError], .frame(.data, stream: 1001, [1])),
        .init(
            "HEADERS on an idle stream", .connection, [.protocolError],
            .frame(.headers, flags: .endHeaders, stream: 1001, HPACKBytes.index(8))),
        .init(
            "HEADERS on an even stream", .connection, [.protocolError],
            .frame(.headers, flags: .endHeaders, stream: 2, HPACKBytes.index(8))),
        .init("DATA on an even stream", .connection, [.protocolError], .frame(.data, stream: 2, [1])),
        // Section 8.1.
        .init("DATA before HEADERS", .stream, [.protocolError], .frame(.data, Array("hello".utf8))),
        .init("END_STREAM before HEADERS", .stream, [.protocolError], .frame(.data, flags: .endStream)),
        .init(
            "trailers without END_STREAM", .stream, [.protocolError], peer: [], head, .data("hello", ends: false),
            .headers([("x-trailer", "a")])),
        .init("a second head", .stream, [.protocolError], head, .head(200)),
    ]
}
