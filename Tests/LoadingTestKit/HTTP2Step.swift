// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A step of an ``HTTP2ScriptedServer``: it sends a frame or bytes, waits for the client or the test, or changes the connection.
///
/// The steps of one script run in order, each after the previous one is done. The script of a connection and the scripts of its
/// requests run concurrently. By default, a step applies to the stream of its request, or to stream 0 in the script of a
/// connection.
package struct HTTP2Step: Sendable, Encodable {
    private enum Action: String, Encodable {
        case policy, preface, raw, frame, headers, data, `repeat`
        case awaitFrame, awaitEnd, awaitBody, awaitRequests
        case gate, reach, pause, stall, stopReading, startReading, close, closeAbruptly, shutdownOutput, reset
    }

    /// The automatic behavior of the server.
    package enum Policy: String, Sendable {
        /// SETTINGS and PING are acknowledged. On by default.
        case ackSettings, ackPings
        /// Flow control credit for DATA is returned immediately. On by default.
        case credit
        /// The connection stays open after the client has closed its sending side. Off by default.
        case lingers
    }

    private var `do`: Action
    private var stream: Int?
    private var type: UInt8?
    private var flags: UInt8?
    private var length: Int?
    private var bytes: Data?
    private var fields: [[String]]?
    private var huffman: Bool?
    private var size: Int?
    private var ends: Bool?
    private var count: Int?
    private var name: String?
    private var on: Bool?
    private var steps: [HTTP2Step]?

    private init(_ action: Action) { self.do = action }

    private static func make(_ action: Action, _ change: (inout HTTP2Step) -> Void = { _ in }) -> HTTP2Step {
        var step = HTTP2Step(action)
        change(&step)
        return step
    }

    // MARK: Frames

    /// Any frame, valid or not; `length` overrides the length in its header.
    package static func frame(
        _ type: UInt8, flags: HTTP2Frame.Flags = [], stream: Int? = nil, _ payload: [UInt8] = [], length: Int? = nil
    ) -> HTTP2Step {
        make(.frame) {
            $0.type = type
            $0.flags = flags.rawValue
            $0.stream = stream
            $0.bytes = Data(payload)
            $0.length = length
        }
    }

    package static func frame(
        _ kind: HTTP2Frame.Kind, flags: HTTP2Frame.Flags = [], stream: Int? = nil, _ payload: [UInt8] = [], length: Int? = nil
    ) -> HTTP2Step {
        frame(kind.rawValue, flags: flags, stream: stream, payload, length: length)
    }

    package static func settings(_ values: KeyValuePairs<HTTP2Frame.Setting, UInt32> = [:]) -> HTTP2Step {
        frame(.settings, stream: 0, values.flatMap { bytes(of: $0.rawValue) + bytes(of: $1) })
    }

    /// In a greeting: sends SETTINGS if the connection turns out to use HTTP/2.
    ///
    /// Sends nothing on an HTTP/1.1 connection.
    package static func preface(_ values: KeyValuePairs<HTTP2Frame.Setting, UInt32> = [:]) -> HTTP2Step {
        make(.preface) { $0.bytes = Data(values.flatMap { bytes(of: $0.rawValue) + bytes(of: $1) }) }
    }

    package static let settingsAck = frame(.settings, flags: .ack, stream: 0)

    package static func ping(_ bytes: [UInt8] = Array("12345678".utf8), ack: Bool = false) -> HTTP2Step {
        frame(.ping, flags: ack ? .ack : [], stream: 0, bytes)
    }

    package static func goAway(last: UInt32, _ code: HTTP2Frame.ErrorCode = .noError, _ debugText: String = "") -> HTTP2Step {
        frame(.goAway, stream: 0, bytes(of: last) + bytes(of: code.rawValue) + Array(debugText.utf8))
    }

    package static func resetStream(_ code: HTTP2Frame.ErrorCode, stream: Int? = nil) -> HTTP2Step {
        frame(.resetStream, stream: stream, bytes(of: code.rawValue))
    }

    package static func windowUpdate(_ increment: UInt32, stream: Int? = nil) -> HTTP2Step {
        frame(.windowUpdate, stream: stream, bytes(of: increment))
    }

    /// The promise of a response to `GET https://localhost/pushed`.
    package static func pushPromise(_ promised: UInt32, stream: Int? = nil) -> HTTP2Step {
        let fields = [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", "/pushed")]
        return frame(.pushPromise, flags: .endHeaders, stream: stream, bytes(of: promised) + HPACKBytes.literals(fields))
    }

    /// A compressed field section, in frames with a payload of at most `size` bytes.
    package static func headers(
        _ fields: [(String, String)], ends: Bool = false, stream: Int? = nil, huffman: Bool = true, size: Int? = nil
    ) -> HTTP2Step {
        make(.headers) {
            $0.fields = fields.map { [$0.0, $0.1] }
            $0.ends = ends
            $0.stream = stream
            $0.huffman = huffman
            $0.size = size
        }
    }

    /// A field block, sent unchanged.
    package static func block(_ bytes: [UInt8], ends: Bool = false, stream: Int? = nil, size: Int? = nil) -> HTTP2Step {
        make(.headers) {
            $0.bytes = Data(bytes)
            $0.ends = ends
            $0.stream = stream
            $0.size = size
        }
    }

    /// A body, or a part of it: the bytes repeated `times` times, in frames within the client's flow control windows, each with
    /// `padding` bytes of padding.
    package static func data(
        _ bytes: [UInt8], times: Int = 1, ends: Bool = true, stream: Int? = nil, padding: UInt8? = nil
    ) -> HTTP2Step {
        make(.data) {
            $0.bytes = Data(bytes)
            $0.count = times
            $0.ends = ends
            $0.stream = stream
            $0.size = padding.map { Int($0) }
        }
    }

    package static func data(_ text: String, ends: Bool = true, stream: Int? = nil) -> HTTP2Step {
        data(Array(text.utf8), ends: ends, stream: stream)
    }

    /// The bytes of a frame, for steps that write many frames at once.
    package static func bytes(
        of kind: HTTP2Frame.Kind, flags: HTTP2Frame.Flags = [], stream: Int = 0, _ payload: [UInt8] = []
    ) -> [UInt8] {
        bytes(of: UInt32(payload.count)).dropFirst() + [kind.rawValue, flags.rawValue] + bytes(of: UInt32(stream)) + payload
    }

    /// Bytes that are sent unchanged and without any check.
    package static func write(_ bytes: [UInt8]) -> HTTP2Step { make(.raw) { $0.bytes = Data(bytes) } }
    package static func write(_ text: String) -> HTTP2Step { write(Array(text.utf8)) }

    /// Repeats steps; `Int.max` means until the client disconnects.
    package static func repeating(_ count: Int, _ steps: HTTP2Step...) -> HTTP2Step {
        make(.repeat) {
            $0.count = count
            $0.steps = steps
        }
    }

    package static func policy(_ policy: Policy, _ isOn: Bool) -> HTTP2Step {
        make(.policy) {
            $0.name = policy.rawValue
            $0.on = isOn
        }
    }

    // MARK: Waiting

    /// Waits until `count` frames of this type, with these flags, have arrived since the connection began; nil means any stream.
    package static func awaitFrame(
        _ kind: HTTP2Frame.Kind, _ flags: HTTP2Frame.Flags = [], stream: Int? = nil, count: Int = 1
    ) -> HTTP2Step {
        make(.awaitFrame) {
            $0.type = kind.rawValue
            $0.flags = flags.rawValue
            $0.stream = stream
            $0.count = count
        }
    }

    /// Waits until the request is complete, or the client has reset it.
    package static let awaitRequestEnd = make(.awaitEnd)

    /// Waits until `count` bytes of the request's body have arrived, or the body has ended.
    package static func awaitBody(_ count: Int) -> HTTP2Step { make(.awaitBody) { $0.count = count } }

    /// Waits until `count` requests have begun on the connection.
    package static func awaitRequests(_ count: Int) -> HTTP2Step { make(.awaitRequests) { $0.count = count } }

    /// Waits until the test opens the gate; the test can wait for this step with ``HTTP2ScriptedServer/reached(_:times:)``.
    package static func gate(_ name: String) -> HTTP2Step { make(.gate) { $0.name = name } }

    /// Records that this point was reached, and continues.
    package static func reach(_ name: String) -> HTTP2Step { make(.reach) { $0.name = name } }

    /// Waits for the given time, to test timeouts that restart when data arrives.
    package static func pause(milliseconds: Int) -> HTTP2Step { make(.pause) { $0.count = milliseconds } }

    // MARK: The connection

    /// Does nothing more until the client closes the connection.
    package static let stall = make(.stall)
    /// Stops reading, so that the client's send buffer fills.
    package static let stopReading = make(.stopReading)
    package static let startReading = make(.startReading)
    /// Closes the connection, after sending close_notify if it uses TLS.
    package static let close = make(.close)
    /// Closes the connection, without sending close_notify even if it uses TLS.
    package static let closeAbruptly = make(.closeAbruptly)
    /// Closes the server's sending side, and continues to read.
    package static let shutdownOutput = make(.shutdownOutput)
    /// Closes the connection with a TCP reset.
    package static let resetConnection = make(.reset)

    /// The bytes of a number, big-endian.
    package static func bytes(of number: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }
}

extension HTTP2Step: CustomStringConvertible {
    package var description: String {
        let kind = type.map { " \(HTTP2Frame.Kind(rawValue: $0).map { "\($0)" } ?? "type \($0)")" } ?? ""
        return self.do.rawValue + kind + (stream.map { " of \($0)" } ?? "")
    }
}

extension [HTTP2Step] {
    /// A complete response, after the request is complete.
    package static func status(_ status: Int, _ headers: [(String, String)] = [], body: [UInt8] = []) -> [HTTP2Step] {
        let head = [(":status", "\(status)")] + headers
        let rest: [HTTP2Step] = body.isEmpty ? [] : [.data(body)]
        return [.awaitRequestEnd, .headers(head, ends: body.isEmpty)] + rest
    }

    package static func ok(_ body: String = "", _ headers: [(String, String)] = []) -> [HTTP2Step] {
        .status(200, headers, body: [UInt8](body.utf8))
    }

    package static func ok(_ body: [UInt8], _ headers: [(String, String)] = []) -> [HTTP2Step] {
        .status(200, headers, body: body)
    }

    package static func redirect(_ status: Int, to location: String, _ headers: [(String, String)] = []) -> [HTTP2Step] {
        .status(status, [("location", location)] + headers, body: [UInt8]("moved".utf8))
    }
}
